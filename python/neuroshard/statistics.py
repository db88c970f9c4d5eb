"""Statistics of tables from data: pooling factors, reuse histograms and which rows are accessed how
often, computed batch by batch.

From batches of NumPy arrays, or as TorchRec has them (`KeyedJaggedTensor`):

    statistics = from_batches(batches, {"user": ["user_id"]}, batch_size=512 * world_size)
    planner = NeuroShardPlanner(..., statistics=statistics)

or from files of the layout in which Meta's embedding lookup data set is public (`indices`,
`offsets`, `lengths` of all tables):

    tables = tables_of_lookups("fbgemm_t856_bs65536.pt", embedding_dim=64)  # after gunzip

Needs NumPy; PyTorch only for its own objects and files. Of a table, counts of at most 150 KiB are
kept, however many rows and lookups it has (`neuroshard.row_access`). One batch is in memory at a
time; of a file, one table of a batch (but all of a file in the format before PyTorch 1.6, which
cannot be mapped). What a .gz file holds, and a file in that format, may have at most 1 GiB, less
than the file above has, or what the environment variable NEUROSHARD_MAX_INPUT says ("8GiB").
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from . import _core
from .arguments import MOST_COUNT, integer_of, items_of, names_of, shown, type_of
from .errors import InputError, MachineError
from .torch_versions import VersionError, require_pytorch
from .types import REUSE_BINS, Table
from .types import TableStatistics as TableStatistics

try:
    import numpy as np
except ImportError:
    raise VersionError(
        "neuroshard.statistics: expected NumPy, got none; pip install numpy"
    ) from None

from .row_access import RowAccessCounter

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.integer[Any]]

#: Pooling factor of a table of which no lookup was seen: a task's must be above 0.
_LEAST_POOLING_FACTOR = 1e-6

#: Most hits of a row in each bin but the last: 1, 2, 4, ..., 32,768.
_MOST_HITS = 1 << np.arange(REUSE_BINS - 1)

#: What zip files begin with.
_ZIP = b"PK\x03\x04"

_NO_INDICES = np.empty(0, dtype=np.int64)


class ReuseCounter:
    """Adds up batches of one table.

    >>> import numpy as np
    >>> counter = ReuseCounter(batch_size=4)
    >>> counter.add(np.array([7, 7, 9, 4, 4, 4]))
    >>> counter.statistics().pooling_factor
    1.5
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = integer_of(batch_size, "batch_size", 1, MOST_COUNT)
        self._rows = np.zeros(REUSE_BINS, dtype=np.int64)
        self._lookups = 0
        self._batches = 0
        self._max_index = 0
        self._accesses = RowAccessCounter()

    def add(self, indices: Integers) -> None:
        """All row indices that one batch looks up. InputError for anything but integers from 0 in
        one dimension."""
        self._add(_rows(indices, "indices"))

    def _add(self, indices: Integers) -> None:
        """Of rows that were checked."""
        self._batches += 1
        self._lookups += indices.size
        if indices.size == 0:
            return
        rows, hits = np.unique(indices, return_counts=True)
        self._max_index = max(self._max_index, int(rows[-1]))
        self._rows += np.bincount(np.searchsorted(_MOST_HITS, hits), minlength=REUSE_BINS)
        self._accesses.add(rows, hits)

    def statistics(self) -> TableStatistics:
        """Of all batches added; there must be one."""
        if self._batches == 0:
            raise InputError("statistics: expected at least one batch, got none")
        distinct = int(self._rows.sum())
        shares = self._rows / distinct if distinct else np.eye(REUSE_BINS)[0]
        return TableStatistics(
            pooling_factor=max(
                self._lookups / (self._batches * self._batch_size), _LEAST_POOLING_FACTOR
            ),
            reuse_histogram=shares.tolist(),
            batch_size=self._batch_size,
            num_batches=self._batches,
            max_index=self._max_index,
            accesses=self._accesses.curve(),
        )


def from_batches(
    batches: Iterable[Any], features: Mapping[str, str | Sequence[str]], *, batch_size: int
) -> dict[str, TableStatistics]:
    """Statistics of tables from a few batches, read one after the other.

    A batch is a dict {feature: (values, offsets)} of arrays of integers: sample i looks up the rows
    values[offsets[i]:offsets[i + 1]], so there is one offset more than samples. It may also be a
    `KeyedJaggedTensor` of TorchRec. `features` gives the name or names of each table's features; of
    TorchRec's collections, `features_of(collection)`. `batch_size` is the batch over all devices,
    for which the histograms hold: batches are joined until they have that many samples, larger ones
    divided, and the rest at the end is left out. Raises InputError for less than one batch.

    >>> import numpy as np
    >>> from neuroshard import Table
    >>> from neuroshard.statistics import from_batches
    >>> batch = {"user_id": (np.array([7, 7, 9, 4, 4, 4]), np.array([0, 2, 3, 5, 6]))}
    >>> user = from_batches([batch], {"user": "user_id"}, batch_size=4)["user"]
    >>> user.pooling_factor
    1.5
    >>> Table("user", 10, 64, user.pooling_factor, reuse_histogram=user.reuse_histogram)
    Table(name='user', num_embeddings=10, embedding_dim=64, pooling_factor=1.5,
          reuse_histogram=<17 shares>)
    """
    batch_size = integer_of(batch_size, "batch_size", 1, MOST_COUNT)
    if not isinstance(features, Mapping):
        raise InputError(f"features: expected a dict of each table's, got {type_of(features)}")
    if not features:
        raise InputError("features: expected those of at least one table, got none")
    of_tables = {
        table: names_of(names, f"features[{_shown_name(table)}]")
        for table, names in features.items()
    }
    counters = {table: ReuseCounter(batch_size) for table in of_tables}
    waiting: dict[str, list[Integers]] = {table: [] for table in of_tables}
    held = 0
    seen = 0
    for number, batch in enumerate(_iterated(batches)):
        jagged, samples = _jagged_of(batch, of_tables, f"batches[{number}]")
        seen += samples
        first = 0
        while first < samples:
            last = min(samples, first + batch_size - held)
            for table, parts in jagged.items():
                for values, offsets in parts:
                    waiting[table].append(values[offsets[first] : offsets[last]].copy())
            held += last - first
            first = last
            if held == batch_size:
                for table, pieces in waiting.items():
                    counters[table]._add(np.concatenate(pieces) if pieces else _NO_INDICES)
                    pieces.clear()
                held = 0
    if seen < batch_size:
        raise InputError(f"batches: expected at least {batch_size} samples, got {seen}")
    return {table: counter.statistics() for table, counter in counters.items()}


def _iterated(batches: Any) -> Iterator[Any]:
    try:
        return iter(batches)
    except TypeError:
        raise InputError(
            f"batches: expected batches one after the other, got {type_of(batches)}"
        ) from None


def _shown_name(name: Any) -> str:
    """As a key of a dict."""
    return repr(name) if isinstance(name, str) else shown(name)


def _jagged_of(
    batch: Any, of_tables: Mapping[str, Sequence[str]], place: str
) -> tuple[dict[str, list[tuple[Integers, Integers]]], int]:
    """Values and offsets of every table's features in a batch, checked, and its samples."""
    pairs, samples = _pairs_of(batch, place)
    jagged: dict[str, list[tuple[Integers, Integers]]] = {table: [] for table in of_tables}
    for table, names in of_tables.items():
        for name in names:
            if name not in pairs:
                raise InputError(
                    f"features[{_shown_name(table)}]: expected features of the batches, got {name!r}"
                )
            values, offsets = _checked_pair(pairs[name], f"{place}[{name!r}]")
            if samples is None:
                samples = len(offsets) - 1
            if len(offsets) != samples + 1:
                raise InputError(
                    f"{place}[{name!r}]: offsets: expected one per sample and one more, "
                    f"{samples} + 1, got {len(offsets)}"
                )
            jagged[table].append((values, offsets))
    return jagged, samples or 0


def _pairs_of(batch: Any, place: str) -> tuple[Mapping[str, Any], int | None]:
    """(values, offsets) by feature, and the number of samples, where the batch knows it."""
    if isinstance(batch, Mapping):
        return batch, None
    try:
        samples = int(batch.stride())
        parts = batch.to_dict()
        return {
            name: (part.values().cpu().numpy(), part.offsets().cpu().numpy())
            for name, part in parts.items()
        }, samples
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise InputError(
            f"{place}: expected a dict {{feature: (values, offsets)}} or a KeyedJaggedTensor, "
            f"got {type_of(batch)}"
        ) from None


def _checked_pair(pair: Any, place: str) -> tuple[Integers, Integers]:
    """Row indices from 0, and rising offsets into them from 0 to their end."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError(f"{place}: expected (values, offsets), got {type_of(pair)}")
    values = _rows(pair[0], f"{place}: values")
    offsets = _integers(pair[1], f"{place}: offsets")
    if (
        offsets.size == 0
        or offsets[0] != 0
        or offsets[-1] != values.size
        or bool(np.any(offsets[1:] < offsets[:-1]))
    ):
        ends = f"{offsets[0]} to {offsets[-1]}" if offsets.size else "none"
        raise InputError(
            f"{place}: offsets: expected rising numbers from 0 to {values.size}, got {ends}"
        )
    return values, offsets


def _rows(value: Any, place: str) -> Integers:
    """Row indices from 0."""
    rows = _integers(value, place)
    if rows.size and int(rows.min()) < 0:
        raise InputError(f"{place}: expected rows from 0, got {int(rows.min())}")
    if rows.size and int(rows.max()) >= MOST_COUNT:
        raise InputError(f"{place}: expected rows below 2^63 - 1, got {int(rows.max())}")
    return rows


def _integers(value: Any, place: str) -> Integers:
    """A list or an array in one dimension."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # which one depends on the value
        raise InputError(
            f"{place}: expected integers in 1 dimension, got {type_of(value)}"
        ) from None
    except MemoryError:
        raise MachineError(f"{place}: not enough memory for {type_of(value)}") from None
    if array.size == 0 and array.ndim == 1:
        return _NO_INDICES  # NumPy takes [] for floating-point numbers
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{place}: expected integers in 1 dimension, got {array.dtype} in {array.ndim}"
        )
    return array


def features_of(collection: Any) -> dict[str, list[str]]:
    """The features of every table of an EmbeddingBagCollection or an EmbeddingCollection."""
    for name in ("embedding_bag_configs", "embedding_configs"):
        configs = getattr(collection, name, None)
        if configs is not None:
            return {config.name: list(config.feature_names) for config in configs()}
    expected = "an EmbeddingBagCollection or an EmbeddingCollection"
    raise InputError(f"collection: expected {expected}, got {type_of(collection)}")


@contextmanager
def _decompressed(path: str) -> Iterator[str]:
    """The path of the file's content: of a temporary file for a .gz one, which is in no folder and
    so ends with the process, whatever ends that."""
    if not path.endswith(".gz"):
        yield path
        return
    most = _core.max_input_bytes()
    with tempfile.TemporaryFile(buffering=0) as plain:  # whose end has nothing left to write
        size = 0
        for part in _unpacked(path):
            size += len(part)
            if size > most:
                _core.fail_too_large(path, "more when decompressed")
            _write_unpacked(plain, part, path)
        # By a path, as PyTorch maps no open files.
        yield f"/proc/self/fd/{plain.fileno()}"


def _write_unpacked(plain: IO[bytes], part: bytes, path: str) -> None:
    left = memoryview(part)
    try:
        while left:
            left = left[plain.write(left) :]
    except OSError as error:
        raise MachineError(
            f"{tempfile.gettempdir()}: expected room for {path}, decompressed, got {error.strerror}"
        ) from error


def _unpacked(path: str) -> Iterator[bytes]:
    """The content of a gzip file, part by part."""
    with _readable(path, path) as file:
        try:
            with gzip.open(file, "rb") as packed:
                while part := packed.read(1 << 20):
                    yield part
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path}: expected a gzip file, got {error}") from error


@contextmanager
def _readable(path: str, shown: str) -> Iterator[IO[bytes]]:
    """The file, open. InputError where it cannot be opened, or read while it is open here."""
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        reason = error.strerror or type_of(error)
        raise InputError(f"{shown}: expected a readable file, got {reason}") from error


def _check_size(path: str, shown: str) -> bool:
    """Whether the file can be mapped. InputError for one that would take more memory than a file may
    when it is loaded: a small one that holds much, packed, or a large one that cannot be mapped."""
    with _readable(path, shown) as file:
        is_zip = file.read(len(_ZIP)) == _ZIP  # what PyTorch goes by, too
    if not is_zip:
        if os.path.getsize(path) > _core.max_input_bytes():
            _core.fail_too_large(shown, f"{os.path.getsize(path)} bytes that cannot be mapped")
        return False
    try:
        with zipfile.ZipFile(path) as parts:
            packed = [each for each in parts.infolist() if each.compress_type != zipfile.ZIP_STORED]
    except Exception as error:  # which error it is depends on the damage
        raise InputError(f"{shown}: expected a file of torch.save, got {error}") from error
    if packed:
        raise InputError(
            f"{shown}: expected tensors as torch.save stores them, got some compressed in the file"
        )
    return True


def _load(path: str, shown: str) -> list[Any]:
    """The three tensors, mapped where they can be. Nothing but tensors is unpickled."""
    import torch

    can_be_mapped = _check_size(path, shown)  # not so files of before PyTorch 1.6
    loaded: Any = None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=can_be_mapped)
    except Exception as error:  # which error torch.load raises depends on the damage
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        raise InputError(
            f"{shown}: expected the tensors indices, offsets, lengths, got {reason}"
        ) from error
    tensors = list(loaded) if isinstance(loaded, (tuple, list)) else []
    if len(tensors) != 3 or not all(isinstance(part, torch.Tensor) for part in tensors):
        raise InputError(
            f"{shown}: expected the tensors indices, offsets, lengths, got {type(loaded).__name__}"
        )
    return tensors


@dataclass
class _Lookups:
    """The lookups of one batch in all tables."""

    shown: str
    indices: Integers
    offsets: Integers
    lengths: Integers
    num_tables: int
    batch_size: int

    def of_table(self, table: int) -> tuple[Integers, Integers]:
        """Row indices and batch_size + 1 offsets, the first 0; checked."""
        first = table * self.batch_size
        offsets = self.offsets[first : first + self.batch_size + 1].astype(np.int64)
        low, high = int(offsets[0]), int(offsets[-1])
        if not (0 <= low <= high <= self.indices.size) or bool(
            np.any(offsets[1:] < offsets[:-1])
        ):
            raise InputError(
                f"{self.shown}: offsets: expected rising numbers up to {self.indices.size} "
                f"for table {table}, got {low} to {high}"
            )
        if bool(np.any(offsets[1:] - offsets[:-1] != self.lengths[table])):
            raise InputError(
                f"{self.shown}: lengths: expected the differences of the offsets for table {table}"
                f", got others"
            )
        indices = self.indices[low:high]
        if indices.size and int(indices.min()) < 0:
            raise InputError(
                f"{self.shown}: indices: expected rows from 0 for table {table}, "
                f"got {int(indices.min())}"
            )
        return indices, offsets - low


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Lookups]:
    try:
        shown = os.fsdecode(path)
    except TypeError:
        raise InputError(f"paths: expected paths of files, got {type_of(path)}") from None
    if not os.path.isfile(shown):
        raise InputError(f"{shown}: expected a file, got none")
    with _decompressed(shown) as plain:
        arrays = []
        for name, dims, tensor in zip(
            ("indices", "offsets", "lengths"), (1, 1, 2), _load(plain, shown), strict=True
        ):
            if tensor.dim() != dims or tensor.is_floating_point():
                raise InputError(
                    f"{shown}: {name}: expected integers in {dims} dimensions, "
                    f"got {tensor.dtype} in {tensor.dim()}"
                )
            arrays.append(tensor.numpy())  # of the same memory, mapped or not
        indices, offsets, lengths = arrays
        num_tables, batch_size = lengths.shape
        if num_tables * batch_size == 0 or offsets.size != num_tables * batch_size + 1:
            raise InputError(
                f"{shown}: offsets: expected one per table and sample and one more, "
                f"{num_tables} x {batch_size} + 1, got {offsets.size}"
            )
        yield _Lookups(shown, indices, offsets, lengths, num_tables, batch_size)


def from_lookups(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    batch_size: int | None = None,
) -> list[TableStatistics]:
    """Statistics of every table of lookup files (.pt, .pt.gz), several batches of the same tables.

    A file is one batch; `batch_size` divides it into smaller ones, for which the histograms then
    hold. Needs PyTorch. Raises InputError for a file that is damaged, or holds anything but the
    three tensors.
    """
    require_pytorch("neuroshard.statistics.from_lookups")
    files = (
        [paths]
        if isinstance(paths, (str, os.PathLike))
        else items_of(paths, "paths", "files of lookups")
    )
    if batch_size is not None:
        batch_size = integer_of(batch_size, "batch_size", 1, MOST_COUNT)
    counters: list[ReuseCounter] = []
    of_first = 0
    for path in files:
        with _opened(path) as lookups:
            samples = batch_size or lookups.batch_size
            if not 1 <= samples <= lookups.batch_size:
                raise InputError(
                    f"{lookups.shown}: batch_size: expected 1 to {lookups.batch_size}, "
                    f"got {samples}"
                )
            if not counters:
                counters = [ReuseCounter(samples) for _ in range(lookups.num_tables)]
                of_first = samples
            if samples != of_first:
                raise InputError(
                    f"{lookups.shown}: expected batches of {of_first} samples as in {files[0]}, or "
                    f"batch_size, got {samples}"
                )
            if lookups.num_tables != len(counters):
                raise InputError(
                    f"{lookups.shown}: expected {len(counters)} tables as in {files[0]}, "
                    f"got {lookups.num_tables}"
                )
            for table, counter in enumerate(counters):
                indices, offsets = lookups.of_table(table)
                for first in range(0, lookups.batch_size - samples + 1, samples):
                    counter.add(indices[offsets[first] : offsets[first + samples]])
    if not counters:
        raise InputError("lookups: expected at least one file, got none")
    return [counter.statistics() for counter in counters]


def tables_of_lookups(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    embedding_dim: int,
    batch_size: int | None = None,
    data_type: str = "fp32",
) -> list[Table]:
    """The tables t0, t1, ... of lookup files, with as many rows as the largest index needs."""
    statistics = from_lookups(paths, batch_size=batch_size)
    digits = len(str(len(statistics) - 1))
    return [
        Table(
            name=f"t{number:0{digits}}",
            num_embeddings=of_table.max_index + 1,
            embedding_dim=embedding_dim,
            pooling_factor=of_table.pooling_factor,
            data_type=data_type,
            reuse_histogram=list(of_table.reuse_histogram),
            row_access=of_table.row_access(of_table.max_index + 1),
        )
        for number, of_table in enumerate(statistics)
    ]
