"""Where a table's accesses are, counted in memory that neither rows nor lookups let grow.

Two counts together give the curve of cumulative accesses over the rows:

- the lookups of ranges of rows, in 256 ranges from each power of two to the next: single rows up to
  row 511, then ranges of 1/512 to 1/256 of the rows before them; for ids of 63 bits some 14,300;
- the hottest rows, by the summaries of Misra and Gries (1982), which merge (Agarwal et al. 2012):
  2,048 rows, each counted too low by at most a 2,049th of all lookups.

That is 150 KiB a table at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .arguments import MOST_COUNT

if TYPE_CHECKING:
    import numpy.typing as npt

    Counts: TypeAlias = npt.NDArray[np.int64]
    Floats: TypeAlias = npt.NDArray[np.float64]
    Rows: TypeAlias = npt.NDArray[np.integer[Any]]

#: log2 of the ranges from a power of two to the next.
_RANGE_BITS = 8

_COUNTED_ROWS = 2048

#: Least share of the lookups of a row that is a range of its own: its count is right within 5 %.
_HOT_SHARE = 0.01

#: Distance of the curve of few points from the one of all, as a share of the accesses.
_TOLERANCE = 0.00025

_MOST_POINTS = 512


def _ranges_of(rows: Rows) -> Counts:
    """The number of each row's range."""
    exponents = np.frexp(rows.astype(np.float64))[1].astype(np.int64) - 1
    shifts = np.maximum(exponents - _RANGE_BITS, 0)
    ranges: Counts = (shifts << _RANGE_BITS) + (rows.astype(np.int64) >> shifts)
    return ranges


def _starts_of(ranges: Counts) -> Counts:
    """The first row of each range. The one behind all rows would begin at 2^63: it is said to begin
    at 2^63 - 1, which no row has."""
    shifts = np.maximum((ranges >> _RANGE_BITS) - 1, 0)
    places = (ranges - (shifts << _RANGE_BITS)).astype(np.uint64)
    starts = np.minimum(np.left_shift(places, shifts.astype(np.uint64)), np.uint64(MOST_COUNT))
    rows: Counts = starts.astype(np.int64)
    return rows


def _hottest(rows: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """The summary of these counts: of the most that are kept, less the count of the next."""
    if rows.size <= _COUNTED_ROWS:
        return rows, counts
    next_count = np.partition(counts, rows.size - _COUNTED_ROWS - 1)[rows.size - _COUNTED_ROWS - 1]
    kept = counts > next_count
    return rows[kept], counts[kept] - next_count


class RowAccessCounter:
    """Adds up the accesses of one table."""

    def __init__(self) -> None:
        self._num_rows = 0  # up to the last that was seen
        self._of_ranges: Counts = np.zeros(0, dtype=np.int64)
        self._hot_rows: Counts = np.zeros(0, dtype=np.int64)
        self._hot_counts: Counts = np.zeros(0, dtype=np.int64)

    def add(self, rows: Rows, counts: Rows) -> None:
        """Different rows, rising, all below 2^63 - 1, and how often each is looked up."""
        if rows.size == 0:
            return
        self._num_rows = max(self._num_rows, int(rows[-1]) + 1)
        ranges = _ranges_of(rows)
        first, last = int(ranges[0]), int(ranges[-1])
        if last >= self._of_ranges.size:
            self._of_ranges = np.pad(self._of_ranges, (0, last + 1 - self._of_ranges.size))
        sums = np.bincount(ranges - first, weights=counts)
        self._of_ranges[first : last + 1] += np.rint(sums).astype(np.int64)
        batch_rows, batch_counts = _hottest(rows.astype(np.int64), counts.astype(np.int64))
        merged, places = np.unique(
            np.concatenate([self._hot_rows, batch_rows]), return_inverse=True
        )
        both = np.concatenate([self._hot_counts, batch_counts])
        merged_counts = np.rint(np.bincount(places, weights=both)).astype(np.int64)
        self._hot_rows, self._hot_counts = _hottest(merged, merged_counts)

    def curve(self) -> list[tuple[int, float]]:
        """(rows, share of the accesses that hit the rows before that), rising to (all rows up to
        the last that was seen, 1.0); none without accesses."""
        used = np.flatnonzero(self._of_ranges)
        total = int(self._of_ranges.sum())
        if total == 0:
            return []
        hot = self._hot_counts >= _HOT_SHARE * total
        starts, ends, counts = _split(
            _starts_of(used),
            np.minimum(_starts_of(used + 1), self._num_rows),
            self._of_ranges[used],
            self._hot_rows[hot],
            self._hot_counts[hot],
        )
        rows = np.unique(np.concatenate([starts, ends]))
        shares = np.zeros(rows.size)
        shares[np.searchsorted(rows, ends)] = counts / total
        shares = np.cumsum(shares)
        shares[-1] = 1.0
        if rows[0] > 0:
            rows = np.concatenate([[0], rows])
            shares = np.concatenate([[0.0], shares])
        kept = _simplified(rows, shares)
        points = zip(rows[kept].tolist(), np.minimum(shares[kept], 1.0).tolist(), strict=True)
        return list(points)[1:]


def _split(
    starts: Counts, ends: Counts, counts: Counts, hot_rows: Counts, hot_counts: Counts
) -> tuple[Counts, Counts, Floats]:
    """The ranges without the hot rows, which are ranges of their own, with their accesses."""
    first = np.searchsorted(hot_rows, starts)
    last = np.searchsorted(hot_rows, ends)
    whole = first == last
    pieces: list[tuple[int, int, float]] = []
    for i in np.flatnonzero(~whole).tolist():
        hot = slice(int(first[i]), int(last[i]))
        pieces += _pieces_of(
            int(starts[i]),
            int(ends[i]),
            int(counts[i]),
            dict(zip(hot_rows[hot].tolist(), hot_counts[hot].tolist(), strict=True)),
        )
    return (
        np.concatenate([starts[whole], np.array([p[0] for p in pieces], dtype=np.int64)]),
        np.concatenate([ends[whole], np.array([p[1] for p in pieces], dtype=np.int64)]),
        np.concatenate([counts[whole], np.array([p[2] for p in pieces], dtype=np.float64)]),
    )


def _pieces_of(
    start: int, end: int, count: int, hot: dict[int, int]
) -> list[tuple[int, int, float]]:
    """(first row, end, accesses) of the hot rows of a range, and of the rows between them, which
    have equal shares of the rest."""
    others = end - start - len(hot)
    rest = count - sum(hot.values())
    per_row = rest / others if others else 0.0
    extra = 0.0 if others else rest / len(hot)  # counted too low: there is no other row
    pieces = []
    at = start
    for row, hits in hot.items():
        pieces += [(at, row, per_row * (row - at)), (row, row + 1, hits + extra)]
        at = row + 1
    pieces.append((at, end, per_row * (end - at)))
    return [piece for piece in pieces if piece[0] < piece[1]]


def _simplified(rows: Counts, shares: Floats) -> Counts:
    """The numbers of few points between which the curve is nearly linear, with both ends."""
    tolerance = _TOLERANCE
    while True:
        kept = _kept(rows, shares, tolerance)
        if kept.size <= _MOST_POINTS:
            return kept
        tolerance *= 2.0


def _kept(rows: Counts, shares: Floats, tolerance: float) -> Counts:
    """Ramer's and Douglas and Peucker's algorithm (1972, 1973), with distances in shares."""
    kept = {0, rows.size - 1}
    waiting = [(0, int(rows.size) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        between = slice(first + 1, last)
        straight = np.interp(
            rows[between], [rows[first], rows[last]], [shares[first], shares[last]]
        )
        distances = np.abs(shares[between] - straight)
        farthest = int(np.argmax(distances))
        if distances[farthest] <= tolerance:
            continue
        middle = first + 1 + farthest
        kept.add(middle)
        waiting += [(first, middle), (middle, last)]
    return np.array(sorted(kept), dtype=np.int64)
