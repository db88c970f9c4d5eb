"""TorchRec's own estimates of sharding options: asked for once for shards that are equal, and
summed up as its planner does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchrec.distributed.planner.types import (
    Enumerator,
    Perf,
    PerfModel,
    Shard,
    ShardingOption,
    Storage,
)

from .tables import with_shards

#: Relative differences of what sums in another order may give.
ROUNDING = 1e-9


@dataclass(frozen=True)
class EqualShards:
    """Shards of an option that follow each other and are of one size."""

    number: int
    perf: Perf
    storage: Storage


def shard_estimates(
    options: Sequence[ShardingOption], enumerator: Enumerator
) -> list[list[EqualShards]]:
    """The estimates of each option's shards. The enumerator's estimators see one shard of each
    size: a row-wise table has as many shards as there are devices, which differ by their rows
    alone."""
    short = []
    for option in options:
        of_sizes: dict[tuple[int, ...], Shard] = {}
        for shard in option.shards:
            size = tuple(shard.size)
            if size not in of_sizes:
                of_sizes[size] = replace(shard)
        short.append(with_shards(option, list(of_sizes.values())))
    enumerator.populate_estimates(short)
    return [
        _in_order(option, {tuple(shard.size): shard for shard in of_sizes.shards})
        for option, of_sizes in zip(options, short)
    ]


def known_estimates(options: Sequence[ShardingOption]) -> list[list[EqualShards]]:
    """Of options whose shards have their estimates already."""
    return [
        [EqualShards(1, shard.perf, shard.storage) for shard in option.shards]
        for option in options
    ]


def repeated(estimates: Iterable[EqualShards]) -> list[EqualShards]:
    """One for each shard."""
    return [equal for equal in estimates for _ in range(equal.number)]


def set_estimates(option: ShardingOption, estimates: Iterable[EqualShards]) -> None:
    """Gives each shard of the option its estimates."""
    for shard, equal in zip(option.shards, repeated(estimates), strict=True):
        shard.perf = equal.perf
        shard.storage = equal.storage


def is_as_estimated(option: ShardingOption, estimates: Iterable[EqualShards]) -> bool:
    """Whether the option's shards, estimated all together, cost what was estimated for them."""
    return all(
        shard.storage == equal.storage
        and math.isclose(shard.perf.total, equal.perf.total, rel_tol=ROUNDING, abs_tol=1e-300)
        for shard, equal in zip(option.shards, repeated(estimates), strict=True)
    )


def rating_ms(model: PerfModel, options: list[ShardingOption]) -> float:
    """What TorchRec's planner compares plans by: the slowest device's estimates, summed up."""
    return float(model.rate(options))


def loads_ms(options: Iterable[ShardingOption], world_size: int) -> list[float]:
    """The sum of each device's estimates."""
    loads = [0.0] * world_size
    for option in options:
        for shard in option.shards:
            loads[shard.rank] += shard.perf.total
    return loads


def _in_order(
    option: ShardingOption, by_size: dict[tuple[int, ...], Any]
) -> list[EqualShards]:
    """The option's shards as runs of equal ones."""
    runs: list[tuple[tuple[int, ...], int]] = []
    for shard in option.shards:
        size = tuple(shard.size)
        if runs and runs[-1][0] == size:
            runs[-1] = (size, runs[-1][1] + 1)
        else:
            runs.append((size, 1))
    return [
        EqualShards(number, by_size[size].perf, by_size[size].storage) for size, number in runs
    ]
