"""Checkpoints under another plan: what `torch.distributed.checkpoint` cannot bring along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torchrec.distributed.types import ParameterSharding, ShardingPlan, ShardingType

from ...errors import InputError
from ..tables import some


def check_resumable(
    old_plan: ShardingPlan, new_plan: ShardingPlan, *, optimizer: str | Any
) -> None:
    """Raises InputError, which names tables and reasons, unless a model that was trained under the
    old plan and saved with `torch.distributed.checkpoint` goes on under the new one, its fused
    optimizers' state included.

    `optimizer` is FBGEMM's EmbOptimType or its name, such as "EXACT_ROWWISE_ADAGRAD". Weights can
    be loaded under any plan. What cannot is the state of TorchRec's optimizers

    - row-wise ones, of a table whose columns are cut otherwise than before: TorchRec keeps one
      state of all rows for each range of columns (column_wise, table_column_wise, grid_shard);
    - all that keep state, of a table that is data_parallel in one of the plans alone: a
      data-parallel table has no fused optimizer.
    """
    name = str(getattr(optimizer, "name", optimizer)).upper()
    if name.removeprefix("EXACT_") in ("SGD", "NONE"):
        return
    old = dict(_parameters(old_plan))
    faults: dict[str, list[str]] = {}
    for fqn, sharding in _parameters(new_plan):
        before = old.get(fqn)
        reason = "" if before is None else _fault(before, sharding, "ROWWISE" in name)
        if reason:
            faults.setdefault(reason, []).append(fqn)
    if faults:
        reasons = [f"{some(names)}: {reason}" for reason, names in faults.items()]
        raise InputError(
            f"new_plan: expected one under which {name}'s state can be loaded, got "
            + "; ".join(reasons)
        )


def _fault(old: ParameterSharding, new: ParameterSharding, is_rowwise: bool) -> str:
    copied = ShardingType.DATA_PARALLEL.value
    if (old.sharding_type == copied) != (new.sharding_type == copied):
        return f"{new.sharding_type}, before {old.sharding_type}"
    before, now = _column_ranges(old), _column_ranges(new)
    if is_rowwise and before != now:
        return f"columns cut into {_widths(now)}, before {_widths(before)}"
    return ""


def _parameters(plan: ShardingPlan) -> Iterator[tuple[str, ParameterSharding]]:
    for path, of_module in plan.plan.items():
        if isinstance(of_module, Mapping):
            for name, sharding in of_module.items():
                yield (f"{path}.{name}" if path else name), sharding


def _column_ranges(sharding: ParameterSharding) -> list[tuple[int, int]]:
    """First column and columns of each range."""
    shards = getattr(sharding.sharding_spec, "shards", None) or []
    return sorted({(shard.shard_offsets[1], shard.shard_sizes[1]) for shard in shards})


def _widths(ranges: list[tuple[int, int]]) -> str:
    return " + ".join(str(width) for _, width in ranges)
