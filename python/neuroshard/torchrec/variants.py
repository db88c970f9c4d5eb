"""Options that TorchRec's sharders can run and its enumerator does not list: wider blocks of
columns, and caches of other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import Shard, ShardingOption
from torchrec.distributed.types import CacheParams, ShardingType

from .tables import with_shards

_COLUMNS_CUT = {ShardingType.COLUMN_WISE.value, ShardingType.TABLE_COLUMN_WISE.value}

#: Shares of a table's rows in its cache on the device, besides TorchRec's default of 0.2.
_LOAD_FACTORS = (0.05, 0.1, 0.4, 0.6, 0.8)


def with_wider_blocks(option: ShardingOption) -> Iterator[ShardingOption]:
    """The option, and for cut columns those with fewer pieces of equal width. Not of sequences: all
    pieces of a module's must have one width, as FBGEMM's operator and TorchRec's all-to-all take
    no other, and tables that are chosen one by one would not keep to it."""
    yield option
    pieces = len(option.shards)
    if option.sharding_type not in _COLUMNS_CUT or not option.is_pooled:
        return
    rows, columns = option.tensor.shape
    for number in range(2, pieces):
        if pieces % number:
            continue
        width = columns // number
        yield with_shards(
            option, [Shard(size=[rows, width], offset=[0, i * width]) for i in range(number)]
        )


def with_other_caches(
    option: ShardingOption, load_factor_of_sharder: float | None
) -> Iterator[ShardingOption]:
    """The option, and for a cached table whose user leaves the cache's size open those with other
    caches."""
    yield option
    is_cached = option.compute_kernel == EmbeddingComputeKernel.FUSED_UVM_CACHING.value
    if not is_cached or load_factor_of_sharder is not None:
        return
    if option.cache_load_factor is not None:
        return
    for load_factor in _LOAD_FACTORS:
        other = with_shards(option, option.shards)
        other.cache_params = replace(option.cache_params or CacheParams(), load_factor=load_factor)
        yield other
