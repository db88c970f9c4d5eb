"""TorchRec's tables as the tables of a task, and pieces of ours as TorchRec's sharding options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import ParameterConstraints, Shard, ShardingOption
from torchrec.distributed.types import ShardingType

from ..errors import InputError
from ..statistics import TableStatistics
from ..types import Table

TABLE_WISE = ShardingType.TABLE_WISE.value
COLUMN_WISE = ShardingType.COLUMN_WISE.value
FUSED = EmbeddingComputeKernel.FUSED.value

#: Kernels of GPUs that keep tables in the host's memory.
OUTSIDE_THE_DEVICE = {
    EmbeddingComputeKernel.FUSED_UVM.value,
    EmbeddingComputeKernel.FUSED_UVM_CACHING.value,
}

_DATA_TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "fp16"}


@dataclass
class PlannedTable:
    """A table that we place: TorchRec's option for it, and how it may be sharded."""

    option: ShardingOption
    #: Of table_wise and column_wise, those that are allowed.
    sharding_types: Sequence[str]
    #: Features that look up in it.
    num_features: int

    @property
    def fqn(self) -> str:
        """Its name in the task: unique, which a table's own name need not be."""
        return str(self.option.fqn)

    def with_shards(self, pieces: Sequence[tuple[int, int, int | None]]) -> ShardingOption:
        """TorchRec's option with pieces of (first column, columns, rank)."""
        rows, _ = self.option.tensor.shape
        whole = len(pieces) == 1 and TABLE_WISE in self.sharding_types
        option = copy_of(self.option)
        option.sharding_type = TABLE_WISE if whole else COLUMN_WISE
        option.shards = [
            Shard(size=[rows, columns], offset=[0, offset], rank=rank)
            for offset, columns, rank in pieces
        ]
        return option


def with_shards(option: ShardingOption, shards: list[Shard]) -> ShardingOption:
    """The option with these shards; its tensor and module are shared, as in TorchRec."""
    other = object.__new__(type(option))
    other.__dict__.update(option.__dict__)
    other.shards = shards
    return other


def copy_of(option: ShardingOption) -> ShardingOption:
    """The option with shards of its own."""
    return with_shards(option, [replace(shard) for shard in option.shards])


def reason_to_leave(option: ShardingOption, is_known_module: bool) -> str:
    """Why TorchRec's planner must place this table; empty if ours does."""
    if not is_known_module:
        return "not a table of an EmbeddingBagCollection"
    if option.dependency is not None:
        return "its place depends on that of others"
    if option.tensor.dtype not in _DATA_TYPES:
        return f"its values are {option.tensor.dtype}"
    return ""


def some(names: Sequence[str]) -> str:
    """ "a, b, c, ..." of more than three names."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def counted(names: Sequence[str]) -> str:
    """ "4 tables (a, b, c, ...)"."""
    return f"{len(names)} table{'' if len(names) == 1 else 's'} ({some(names)})"


def feature_counts(collection: Any) -> dict[str, int]:
    """Features that look up in each table of an EmbeddingBagCollection or EmbeddingCollection."""
    counts: dict[str, int] = {}
    is_pooled = hasattr(collection, "embedding_bag_configs")
    for config in (
        collection.embedding_bag_configs() if is_pooled else collection.embedding_configs()
    ):
        counts[config.name] = max(len(config.feature_names), counts.get(config.name, 1))
    return counts


def per_feature(given: Sequence[float] | None, default: float, number: int) -> list[float]:
    """One value for each of `number` features."""
    values = list(given or [default])
    return values * number if len(values) == 1 else values


def pooling_factor(
    constraint: ParameterConstraints | None, planned: PlannedTable, batch_size: int
) -> float:
    """Lookups in a table per sample of the batch, over all its features. Where TorchRec knows one
    number of a table with several (its default, or the only one given), it is that of each."""
    lengths = list(planned.option.input_lengths)
    if len(lengths) == 1:
        lengths *= planned.num_features
    poolings = per_feature(constraint and constraint.num_poolings, 1.0, len(lengths))
    batches = per_feature(constraint and constraint.batch_sizes, batch_size, len(lengths))
    lookups = sum(a * b * c for a, b, c in zip(lengths, poolings, batches))
    # A table that is hardly looked up still is a table.
    return max(float(lookups) / batch_size, 1e-6)


def to_table(
    planned: PlannedTable,
    constraint: ParameterConstraints | None,
    statistics: TableStatistics | None,
    batch_size: int,
    storage_bytes: Any,
    rowwise_state: bool,
    least_columns: int = 0,
) -> Table:
    """The table of the task. `batch_size` is one rank's; `storage_bytes(option)` gives the bytes of
    each shard of an option by TorchRec's estimator. Pieces have at least `least_columns` columns
    where the constraint does not say. InputError for statistics of a larger table."""
    rows, columns = planned.option.tensor.shape
    element_bytes = planned.option.tensor.element_size()
    least = (constraint and constraint.min_partition) or least_columns
    if COLUMN_WISE not in planned.sharding_types:
        least = columns
    if statistics is None:
        factor = pooling_factor(constraint, planned, batch_size)
        histogram = None
        row_access = None
    else:
        factor = statistics.pooling_factor
        histogram = statistics.reuse_histogram
        try:
            row_access = statistics.row_access(rows)
        except InputError as error:
            raise InputError(f"statistics[{planned.option.name!r}]: {error}") from error
    table = Table(
        name=planned.fqn,
        num_embeddings=rows,
        embedding_dim=columns,
        pooling_factor=factor,
        data_type=_DATA_TYPES[planned.option.tensor.dtype],
        reuse_histogram=histogram,
        row_access=row_access,
        min_shard_columns=min(least, columns),
        num_features=planned.num_features,
    )
    per_row = 4 if rowwise_state else 0
    table.extra_bytes_per_shard, table.extra_bytes_per_column = extra_bytes(
        planned, columns, storage_bytes, lambda width: rows * (width * element_bytes + per_row)
    )
    return table


def extra_bytes(
    planned: PlannedTable, columns: int, storage_bytes: Any, counted: Any
) -> tuple[int, int]:
    """Bytes per shard and per column by which TorchRec's estimate exceeds `counted(columns)`.

    The estimate of a shard is affine in its columns, up to rounding: two widths give it. What the
    task counts may exceed it (the optimizer's state, of which TorchRec knows only where the
    optimizer is fused into the backward pass); so the result is the least that is not negative
    and, for no width up to the table's, below the difference.
    """
    narrow = max(1, columns // 2)
    widths = [columns, narrow] if narrow < columns else [columns]
    option = planned.with_shards([(0, width, None) for width in widths])
    option.sharding_type = COLUMN_WISE
    rounding = 4  # bytes: the estimator rounds four times
    above = [
        bytes_ + rounding - counted(width) for width, bytes_ in zip(widths, storage_bytes(option))
    ]
    if len(widths) == 1:
        return max(0, above[0]), 0
    slope = (above[0] - above[1]) / (columns - narrow)
    constant = above[0] - slope * columns
    if constant < 0:
        return 0, max(0, math.ceil(above[0] / columns))
    return math.ceil(constant) + 1, max(0, math.ceil(slope))
