"""How tables are used, from data: pooling factors and reuse histograms, streaming.

From batches as TorchRec has them:

    statistics = from_batches(batches, {"user": ["user_id"]}, batch_size=512 * world_size)
    planner = NeuroShardPlanner(..., statistics=statistics)

or from files of the layout in which Meta's embedding lookup data set is public (`indices`,
`offsets`, `lengths` of all tables):

    tables = tables_of_lookups("fbgemm_t856_bs65536.pt.gz", embedding_dim=64)

Needs PyTorch, except for `TableStatistics` itself. What is kept of a table is 17 counts; what is
held at a time is one batch, of a file one table of a batch (but all of a file in the format of
before PyTorch 1.6, which cannot be mapped).
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .torch_versions import require_pytorch
from .types import REUSE_BINS, Table

if TYPE_CHECKING:
    import torch

#: Pooling factor of a table of which no lookup was seen: a task's must be above 0.
_LEAST_POOLING_FACTOR = 1e-6


@dataclass(frozen=True)
class TableStatistics:
    """Of one table: mean lookups per sample, and of the distinct rows that one batch touches, the
    shares by number of hits (1, 2, 3-4, 5-8, ..., above 32,768)."""

    pooling_factor: float
    reuse_histogram: Sequence[float]
    #: Samples in the batches that the histogram is of.
    batch_size: int
    #: Batches that were read.
    num_batches: int = 1
    #: The largest row index seen.
    max_index: int = 0


class ReuseCounter:
    """Adds up batches of one table."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._rows = [0] * REUSE_BINS
        self._lookups = 0
        self._batches = 0
        self._max_index = 0

    def add(self, indices: torch.Tensor) -> None:
        """All row indices that one batch looks up."""
        import torch

        self._batches += 1
        self._lookups += indices.numel()
        if indices.numel() == 0:
            return
        rows, counts = torch.unique(indices, return_counts=True)
        self._max_index = max(self._max_index, int(rows[-1]))
        # Bin 0: one hit; bin i: 2^(i-1) + 1 to 2^i; the last: above 32,768.
        edges = torch.tensor([1 << bin for bin in range(REUSE_BINS - 1)])
        bins = torch.bucketize(counts, edges)
        for bin, number in enumerate(torch.bincount(bins, minlength=REUSE_BINS).tolist()):
            self._rows[bin] += number

    def statistics(self) -> TableStatistics:
        """Of all batches added."""
        distinct = sum(self._rows)
        shares = [rows / distinct for rows in self._rows] if distinct else [1.0] + [0.0] * 16
        return TableStatistics(
            pooling_factor=max(
                self._lookups / (self._batches * self._batch_size), _LEAST_POOLING_FACTOR
            ),
            reuse_histogram=shares,
            batch_size=self._batch_size,
            num_batches=self._batches,
            max_index=self._max_index,
        )


def from_batches(
    batches: Iterable[Any], features: Mapping[str, Sequence[str]], *, batch_size: int
) -> dict[str, TableStatistics]:
    """Statistics of tables from a few batches (`KeyedJaggedTensor`), read one after the other.

    `features` gives the names of each table's features; of an EmbeddingBagCollection,
    `features_of(collection)`. `batch_size` is the batch over all devices, for which the histograms
    are to hold: batches are joined until they have so many samples, larger ones divided, and what
    remains at the end is left out. Raises InputError if there are fewer samples than one batch.
    """
    require_pytorch("neuroshard.statistics")
    import torch

    if batch_size < 1:
        raise InputError(f"batch_size: expected at least 1, got {batch_size}")
    counters = {table: ReuseCounter(batch_size) for table in features}
    waiting: dict[str, list[torch.Tensor]] = {table: [] for table in features}
    held = 0
    seen = 0
    for batch in batches:
        jagged = _jagged_of(batch, features)
        stride = _stride_of(batch)
        seen += stride
        first = 0
        while first < stride:
            last = min(stride, first + batch_size - held)
            for table, parts in jagged.items():
                for values, offsets in parts:
                    waiting[table].append(values[int(offsets[first]) : int(offsets[last])].clone())
            held += last - first
            first = last
            if held == batch_size:
                for table, pieces in waiting.items():
                    counters[table].add(torch.cat(pieces) if pieces else torch.empty(0).long())
                    pieces.clear()
                held = 0
    if seen < batch_size:
        raise InputError(f"batches: expected at least {batch_size} samples, got {seen}")
    return {table: counter.statistics() for table, counter in counters.items()}


def _stride_of(batch: Any) -> int:
    try:
        return int(batch.stride())
    except (AttributeError, TypeError):
        raise InputError(f"batches: expected KeyedJaggedTensors, got {type(batch)}") from None


def _jagged_of(
    batch: Any, features: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Values and offsets of every table's features in a batch."""
    _stride_of(batch)
    keys = list(batch.keys())
    for table, names in features.items():
        for name in names:
            if name not in keys:
                raise InputError(
                    f"features[{table!r}]: expected features of the batches, got {name!r}"
                )
    by_key = batch.to_dict()
    return {
        table: [(by_key[name].values().cpu(), by_key[name].offsets().cpu()) for name in names]
        for table, names in features.items()
    }


def features_of(collection: Any) -> dict[str, list[str]]:
    """The features of every table of an EmbeddingBagCollection."""
    return {
        config.name: list(config.feature_names) for config in collection.embedding_bag_configs()
    }


@contextmanager
def _decompressed(path: str) -> Iterator[str]:
    """The path of the file's content: a temporary file for a .gz one."""
    if not path.endswith(".gz"):
        yield path
        return
    with tempfile.NamedTemporaryFile(suffix=".pt") as plain:
        try:
            with gzip.open(path, "rb") as packed:
                shutil.copyfileobj(packed, plain, 1 << 20)
        except (OSError, EOFError) as error:
            raise InputError(f"{path}: expected a gzip file, got {error}") from error
        plain.flush()
        yield plain.name


def _load(path: str, shown: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three tensors, mapped, not read. Nothing but tensors is unpickled."""
    import torch

    loaded: Any = None
    try:
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # files of before PyTorch 1.6 cannot be mapped
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises what the damage happens to lead to
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        raise InputError(
            f"{shown}: expected the tensors indices, offsets, lengths, got {reason}"
        ) from error
    tensors = list(loaded) if isinstance(loaded, (tuple, list)) else []
    if len(tensors) != 3 or not all(isinstance(part, torch.Tensor) for part in tensors):
        raise InputError(
            f"{shown}: expected the tensors indices, offsets, lengths, got {type(loaded).__name__}"
        )
    return tensors[0], tensors[1], tensors[2]


@dataclass
class _Lookups:
    """The lookups of one batch in all tables."""

    shown: str
    indices: torch.Tensor
    offsets: torch.Tensor
    lengths: torch.Tensor
    num_tables: int
    batch_size: int

    def of_table(self, table: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Row indices and batch_size + 1 offsets, the first 0; checked."""
        import torch

        first = table * self.batch_size
        offsets = self.offsets[first : first + self.batch_size + 1].long()
        low, high = int(offsets[0]), int(offsets[-1])
        if not (0 <= low <= high <= self.indices.numel()) or bool(
            torch.any(offsets[1:] < offsets[:-1])
        ):
            raise InputError(
                f"{self.shown}: offsets: expected rising numbers up to {self.indices.numel()} "
                f"for table {table}, got {low} to {high}"
            )
        if bool(torch.any(offsets[1:] - offsets[:-1] != self.lengths[table])):
            raise InputError(
                f"{self.shown}: lengths: expected the differences of the offsets for table {table}"
                f", got others"
            )
        indices = self.indices[low:high].long()
        if indices.numel() and int(indices.min()) < 0:
            raise InputError(
                f"{self.shown}: indices: expected rows from 0 for table {table}, "
                f"got {int(indices.min())}"
            )
        return indices, offsets - low


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Lookups]:
    shown = os.fspath(path)
    if not os.path.isfile(shown):
        raise InputError(f"{shown}: expected a file, got none")
    with _decompressed(shown) as plain:
        indices, offsets, lengths = _load(plain, shown)
        for name, tensor, dims in (
            ("indices", indices, 1),
            ("offsets", offsets, 1),
            ("lengths", lengths, 2),
        ):
            if tensor.dim() != dims or tensor.is_floating_point():
                raise InputError(
                    f"{shown}: {name}: expected integers in {dims} dimensions, "
                    f"got {tensor.dtype} in {tensor.dim()}"
                )
        num_tables, batch_size = lengths.shape
        if num_tables * batch_size == 0 or offsets.numel() != num_tables * batch_size + 1:
            raise InputError(
                f"{shown}: offsets: expected one per table and sample and one more, "
                f"{num_tables} x {batch_size} + 1, got {offsets.numel()}"
            )
        yield _Lookups(shown, indices, offsets, lengths, num_tables, batch_size)


def from_lookups(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    batch_size: int | None = None,
) -> list[TableStatistics]:
    """Statistics of every table of lookup files (.pt, .pt.gz), several batches of the same tables.

    A file is one batch; `batch_size` divides it into smaller ones for which the histograms are to
    hold. Raises InputError for a file that is damaged, or holds anything but the three tensors.
    """
    require_pytorch("neuroshard.statistics")
    files = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    counters: list[ReuseCounter] = []
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
            if lookups.num_tables != len(counters):
                raise InputError(
                    f"{lookups.shown}: expected {len(counters)} tables as in {files[0]}, "
                    f"got {lookups.num_tables}"
                )
            for table, counter in enumerate(counters):
                indices, offsets = lookups.of_table(table)
                for first in range(0, lookups.batch_size - samples + 1, samples):
                    counter.add(indices[int(offsets[first]) : int(offsets[first + samples])])
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
        )
        for number, of_table in enumerate(statistics)
    ]
