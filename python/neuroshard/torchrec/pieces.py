"""Pieces of a plan in the form that is fastest for FBGEMM: few, and one of a table per device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..plans import Plan
from ..plans import Shard as ShardOfPlan
from ..types import Table


def as_whole(table: Table | Mapping[str, Any]) -> Table:
    """The table, not to be cut."""
    assert isinstance(table, Table)
    return replace(table, min_shard_columns=table.embedding_dim)


def cost_ms(plan: Plan) -> float:
    """The predicted time of its slowest device."""
    assert plan.predicted is not None
    return plan.predicted.cost_ms


def joined(shards: Sequence[ShardOfPlan]) -> list[ShardOfPlan]:
    """A table's pieces on one device as one; its columns lie on its devices in the old order."""
    columns: dict[str, dict[int, int]] = defaultdict(dict)
    for shard in sorted(shards, key=lambda shard: shard.column_offset):
        of_table = columns[shard.table]
        of_table[shard.device] = of_table.get(shard.device, 0) + shard.num_columns
    result = []
    for table, by_device in columns.items():
        offset = 0
        for device, width in by_device.items():
            result.append(ShardOfPlan(table, offset, width, device))
            offset += width
    return result
