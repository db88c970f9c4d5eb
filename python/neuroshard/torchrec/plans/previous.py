"""TorchRec's plans as older plans of the library, of which a new plan keeps most."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchrec.distributed.types import ParameterSharding, ShardingPlan, ShardingType

from ...arguments import share_of, type_of
from ...errors import InputError
from ...plans import Plan, Shard
from ...types import CUTS, Table, Task
from ...types import Topology as Devices
from ..tables import counted
from .plan_files import load_plan

logger = logging.getLogger(__name__)

#: Of each device, as what is running has been found to fit.
_ANY_MEMORY = 1 << 60


@dataclass
class PreviousPlan:
    """What is to be kept, and how much of it may move."""

    plan: ShardingPlan
    #: From 0 to 1, of the bytes that the plan placed.
    max_move: float


def previous_plan_of(plan: Any, max_move: float | str) -> PreviousPlan | None:
    """Of a ShardingPlan or a file of `save_plan`; None of None."""
    share = share_of(max_move, "max_move")
    if plan is None:
        return None
    if isinstance(plan, ShardingPlan):
        return PreviousPlan(plan, share)
    if isinstance(plan, (str, os.PathLike)):
        return PreviousPlan(load_plan(plan), share)
    raise InputError(
        "previous_plan: expected a ShardingPlan or the path of a saved plan, "
        f"got {type_of(plan)}"
    )


def older_plan(previous: ShardingPlan, task: Task, left: Mapping[str, str]) -> Plan:
    """The part of TorchRec's plan that the task's tables have, as a valid plan of those tables as
    they were. `left` are tables of the module that are not the task's, and why.

    The log says which of the plan's tables are not in it: their places count as given up, and do
    not count as moved. Raises InputError if no table is left."""
    tables: list[Table | Mapping[str, Any]] = []
    shards: list[Shard] = []
    replicated: list[str] = []
    now = {table.name: table for table in task.tables if isinstance(table, Table)}
    others: dict[str, list[str]] = defaultdict(list)
    ranks = [0]
    for fqn, sharding in _parameters(previous):
        of_table = _rectangles(sharding)
        ranks += sharding.ranks or []
        ranks += [device for *_, device in of_table]
        if fqn not in now:
            others["left to TorchRec's planner" if fqn in left else "not in the module"].append(fqn)
            continue
        table = now[fqn]
        rows, columns = _extent(of_table) if of_table else (
            table.num_embeddings,
            table.embedding_dim,
        )
        reason = _reason_not_kept(of_table, table, columns)
        if reason:
            others[reason].append(fqn)
            continue
        tables.append(
            replace(
                table,
                num_embeddings=rows,
                min_shard_columns=0,
                min_shard_rows=0,
                allow=CUTS,
                row_access=None,
                extra_bytes_per_shard=0,
                extra_bytes_per_column=0,
                devices=None,
                same_device_as=None,
            )
        )
        if sharding.sharding_type == ShardingType.DATA_PARALLEL.value:
            replicated.append(fqn)
            continue
        for row, num_rows, column, num_columns, device in of_table:
            is_slice = num_rows != rows
            shards.append(
                Shard(
                    fqn,
                    column,
                    num_columns,
                    device,
                    row_offset=row if is_slice else None,
                    num_rows=num_rows if is_slice else None,
                )
            )
    for reason, names in others.items():
        logger.warning("previous_plan: not kept: %s: %s", counted(names), reason)
    if not tables:
        raise InputError(
            f"previous_plan: expected some of the {len(now)} tables that are placed here, got none"
        )
    world_size = max(ranks) + 1
    old_task = replace(
        task,
        tables=tables,
        topology=Devices(world_size=world_size, memory_bytes=_ANY_MEMORY),
    )
    return Plan(old_task, shards, replicated_tables=replicated)


def _parameters(plan: ShardingPlan) -> Iterator[tuple[str, ParameterSharding]]:
    """The plan's tables by their names in tasks."""
    for path, of_module in plan.plan.items():
        if isinstance(of_module, Mapping):
            for name, sharding in of_module.items():
                yield f"{path}.{name}", sharding


def _rectangles(sharding: ParameterSharding) -> list[tuple[int, int, int, int, int]]:
    """First row, rows, first column, columns and rank of each part; none of copies."""
    shards = getattr(sharding.sharding_spec, "shards", None) or []
    return [
        (
            shard.shard_offsets[0],
            shard.shard_sizes[0],
            shard.shard_offsets[1],
            shard.shard_sizes[1],
            shard.placement.rank(),
        )
        for shard in shards
        if 0 not in shard.shard_sizes
    ]


def _extent(of_table: list[tuple[int, int, int, int, int]]) -> tuple[int, int]:
    """Rows and columns of the table."""
    return (
        max(row + rows for row, rows, *_ in of_table),
        max(column + columns for _, _, column, columns, _ in of_table),
    )


def _reason_not_kept(
    of_table: list[tuple[int, int, int, int, int]], table: Table, columns: int
) -> str:
    """Why the table cannot be in an older plan; empty if it can."""
    if columns != table.embedding_dim:
        return "it has another number of columns now"
    if any(column % 4 for _, _, column, _, _ in of_table):
        return "its columns are cut at no multiple of 4"
    return ""
