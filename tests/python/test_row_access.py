"""Where a table's accesses are, against exact counts."""

import numpy as np
import pytest

from neuroshard import InputError, Table, TableStatistics, Task, Topology
from neuroshard.row_access import RowAccessCounter
from neuroshard.statistics import from_batches


def zipf(generator, rows, exponent, count, first=0):
    """Rows by frequency: those of a continuous power law, rounded down."""
    u = generator.random(count)
    top = float(rows + 1) ** (1.0 - exponent)
    ranks = (1.0 - u * (1.0 - top)) ** (1.0 / (1.0 - exponent))
    return first + np.minimum(ranks.astype(np.int64) - 1, rows - 1)


def counted(batches):
    counter = RowAccessCounter()
    for batch in batches:
        counter.add(*np.unique(batch, return_counts=True))
    return counter


def share_of(curve, rows):
    """Of the accesses, those to the first `rows` rows."""
    ends = [0] + [end for end, _ in curve]
    shares = [0.0] + [share for _, share in curve]
    return np.interp(rows, ends, shares)


def test_ranges_follow_each_other():
    from neuroshard.row_access import _ranges_of, _starts_of

    ranges = np.arange(14_336)  # all that rows of 63 bits have
    starts = _starts_of(ranges)
    assert starts[0] == 0 and bool(np.all(np.diff(starts) >= 1))
    assert bool(np.all(_ranges_of(starts) == ranges))
    assert bool(np.all(_ranges_of(starts[1:] - 1) == ranges[:-1]))
    assert bool(np.all(np.diff(starts)[512:] <= starts[512:-1] / 256))


@pytest.mark.parametrize("last", [2**62, 2**63 - 2**54 - 1, 2**63 - 2**54, 2**63 - 2])
def test_hashed_ids_up_to_the_last(last):
    batch = np.repeat(np.array([3, 3, 3, last - 1, last, last]), 100)
    curve = counted([batch]).curve()
    rows = [end for end, _ in curve]
    assert rows[0] > 0 and rows == sorted(set(rows)) and curve[-1] == (last + 1, 1.0)
    assert (4, 0.5) in curve
    assert dict(curve)[last] == pytest.approx(4 / 6)  # the two last rows are told from each other
    used = statistics_of(batch, 3)
    assert used.max_index == last and list(used.accesses) == curve
    points = used.row_access(last + 1)
    assert points[-1] == [1.0, 1.0] and np.all(np.diff(points, axis=0) >= 0)
    assert np.min(points) >= 0 and np.max(points) <= 1


def test_ids_that_leave_no_room_for_their_number_are_refused():
    with pytest.raises(InputError, match="expected rows below 2\\^63 - 1, got 9223372036854775807"):
        statistics_of(np.array([0, 2**63 - 1]), 2)


@pytest.mark.parametrize("exponent", [1.05, 1.2, 1.5])
def test_rows_by_frequency(exponent):
    generator = np.random.default_rng(1)
    rows = 3_000_000
    batches = [zipf(generator, rows, exponent, 100_000) for _ in range(5)]
    curve = counted(batches).curve()
    assert len(curve) <= 512
    everything = np.sort(np.concatenate(batches))
    for first in (1, 2, 3, 10, 100, 777, 5_000, 123_456, 1_000_000, rows):
        exact = np.searchsorted(everything, first) / everything.size
        assert share_of(curve, first) == pytest.approx(exact, abs=0.002)
    # Slices of equal shares of the accesses, by the curve: within 5 %.
    for slices in range(2, 9):
        cuts = np.interp(
            np.arange(1, slices) / slices, [s for _, s in curve], [r for r, _ in curve]
        )
        ends = np.concatenate([[0], np.unique(np.ceil(cuts)), [rows]])
        for first, last in zip(ends[:-1], ends[1:]):
            measured = np.diff(np.searchsorted(everything, [first, last]))[0] / everything.size
            said = share_of(curve, last) - share_of(curve, first)
            assert measured == pytest.approx(said, rel=0.05)


def test_a_hot_row_anywhere_is_seen():
    generator = np.random.default_rng(2)
    rows = 50_000_000
    hot = {12_345_678: 0.1, 12_345_679: 0.03, 49_999_999: 0.02}
    batches = []
    for _ in range(4):
        batch = generator.integers(0, rows, 100_000)
        chosen = generator.random(batch.size)
        low = 0.0
        for row, share in hot.items():
            batch[(chosen >= low) & (chosen < low + share)] = row
            low += share
        batches.append(batch)
    curve = counted(batches).curve()
    everything = np.concatenate(batches)
    for row in hot:
        exact = np.count_nonzero(everything == row) / everything.size
        assert share_of(curve, row + 1) - share_of(curve, row) == pytest.approx(exact, rel=0.05)


def test_ranges_in_the_middle():
    generator = np.random.default_rng(3)
    rows = 10_000_000
    hot = generator.integers(6_000_000, 7_000_000, 150_000)
    batch = np.concatenate([generator.integers(0, rows, 50_000), hot])
    curve = counted([batch]).curve()
    for first in range(0, rows + 1, 500_000):
        exact = np.count_nonzero(batch < first) / batch.size
        assert share_of(curve, first) == pytest.approx(exact, abs=0.01)


def test_memory_does_not_grow_with_rows_or_lookups():
    generator = np.random.default_rng(4)
    counter = RowAccessCounter()
    for scale in (10, 10**6, 10**12, 2**62):
        for _ in range(5):
            counter.add(*np.unique(generator.integers(0, scale, 50_000), return_counts=True))
    kept = counter._of_ranges.nbytes + counter._hot_rows.nbytes + counter._hot_counts.nbytes
    assert kept <= 150 << 10


def test_the_order_of_the_batches_hardly_matters():
    generator = np.random.default_rng(5)
    batches = [zipf(generator, 100_000, 1.3, 20_000) for _ in range(6)]
    forward = counted(batches).curve()
    backward = counted(batches[::-1]).curve()
    for rows in (1, 10, 1_000, 50_000):
        assert share_of(forward, rows) == pytest.approx(share_of(backward, rows), abs=0.002)


def statistics_of(values, samples=1_000):
    offsets = np.linspace(0, values.size, samples + 1).astype(np.int64)
    return from_batches([{"f": (values, offsets)}], {"t": "f"}, batch_size=samples)["t"]


def test_tables_get_their_row_access():
    generator = np.random.default_rng(6)
    used = statistics_of(zipf(generator, 100_000, 1.2, 50_000))
    points = used.row_access(100_000)
    assert points[-1] == [1.0, 1.0]
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(points, points[1:]))
    table = Table("t", 100_000, 64, used.pooling_factor, row_access=points)
    assert "row_access=<" in repr(table)
    task = Task([table], Topology(2, "1GiB"), batch_size=1_000)
    again = Task.from_dict(task.to_dict()).tables[0]
    assert again.row_access == points and again.row_order == "hashed"
    # Rows beyond those that were seen have no accesses.
    assert used.row_access(200_000)[-2] == [(used.max_index + 1) / 200_000, 1.0]


def test_hashed_ids_have_none():
    generator = np.random.default_rng(7)
    assert statistics_of(generator.integers(0, 100_000, 200_000)).row_access(100_000) is None
    # So few lookups that it may be chance; and none.
    assert statistics_of(np.array([5, 70, 71, 99]), 4).row_access(100) is None
    assert TableStatistics(1.0, [1.0] + [0.0] * 16, 64).row_access(100) is None
    with pytest.raises(InputError, match="expected more than the largest row seen, 99, got 99"):
        statistics_of(np.array([5, 99]), 2).row_access(99)


def test_row_order_in_tasks():
    table = Table("t", 100, 4, 1.0, index_distribution={"zipf_exponent": 1.1})
    task = Task([table], Topology(2, "1GiB"), batch_size=64)
    assert "row_order" not in table.to_dict()
    table.row_order = "by_frequency"
    assert Task.from_dict(task.to_dict()).tables[0].row_order == "by_frequency"
    table.row_order = "sorted"
    with pytest.raises(InputError, match=r"tables\[0\].row_order: expected \"hashed\" or"):
        Task.from_dict(task.to_dict())
    table.row_order = "by_frequency"
    table.row_access = [[1.0, 1.0]]
    with pytest.raises(InputError, match="expected row_order or row_access, got both"):
        Task.from_dict(task.to_dict())
    table.row_order = "hashed"
    table.row_access = [[0.5, 0.4], [1.0, 0.9]]
    with pytest.raises(InputError, match=r"row_access: expected \[1, 1\] as the last point"):
        Task.from_dict(task.to_dict())
