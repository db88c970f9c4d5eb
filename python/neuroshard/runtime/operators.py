"""What FBGEMM's operators of a plan take by a computation model, one operator for each sharding type
of a module."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .. import planning
from ..errors import ExtrapolationWarning
from ..plans import Plan, Shard
from ..types import Table, Task, Topology
from .work import (
    DATA_PARALLEL,
    POOLED,
    SEQUENCE,
    Setup,
    ShardedModule,
    ShardedTable,
    tables_by_type,
)

#: Operators that differ by what they do: pooled outputs, an output for each lookup, and gradients
#: of whole tables in the place of updates.
REPLICATED = "replicated"
OPERATORS = (POOLED, SEQUENCE, REPLICATED)

#: Of each device: nothing is to be placed here.
_ANY_MEMORY = 1 << 60


def operators_ms(
    modules: Sequence[ShardedModule],
    setup: Setup,
    models: Sequence[str],
    optimizer: str = "sgd",
    tables: Sequence[Sequence[Table]] = (),
) -> list[dict[str, float]]:
    """Of each process, the time of its operators of each kind of `OPERATORS`, forward and backward.

    Sequences are priced as if they were pooled; what they take more is learned (`LayoutCosts`).
    `tables` has, for each module's tables, how they are used; without it every row is equally
    likely. Raises InputError where the models have no price for a piece.
    """
    result = [dict.fromkeys(OPERATORS, 0.0) for _ in range(setup.world_size)]
    for number, module in enumerate(modules):
        used = tables[number] if tables else [_table(table) for table in module.tables]
        places = {id(table): place for place, table in enumerate(module.tables)}
        for sharding_type, group in tables_by_type(module).items():
            chosen = [(table, used[places[id(table)]]) for table in group]
            kind = REPLICATED if sharding_type == DATA_PARALLEL else module.kind
            for rank, ms in enumerate(_operator_ms(chosen, setup, models, optimizer)):
                result[rank][kind] += ms
    return result


def _table(table: ShardedTable) -> Table:
    return Table(
        "",
        table.num_embeddings,
        table.embedding_dim,
        table.pooling_factor,
        num_features=table.num_features,
    )


def _operator_ms(
    chosen: Sequence[tuple[ShardedTable, Table]],
    setup: Setup,
    models: Sequence[str],
    optimizer: str,
) -> list[float]:
    """Of each process, one operator of all these tables."""
    tables = []
    shards = []
    replicated = []
    for number, (sharded, table) in enumerate(chosen):
        name = str(number)
        # The use of the table alone counts, not what a plan may do with it.
        tables.append(
            Table(
                name,
                table.num_embeddings,
                table.embedding_dim,
                max(table.pooling_factor, 1e-6),
                data_type=table.data_type,
                reuse_histogram=table.reuse_histogram,
                row_access=table.row_access,
                num_features=table.num_features,
            )
        )
        if sharded.sharding_type == DATA_PARALLEL:
            replicated.append(name)
        for shard in sharded.shards:
            is_slice = shard.num_rows != sharded.num_embeddings
            shards.append(
                Shard(
                    name,
                    shard.column_offset,
                    shard.num_columns,
                    shard.rank,
                    row_offset=shard.row_offset if is_slice else None,
                    num_rows=shard.num_rows if is_slice else None,
                )
            )
    task = Task(
        tables,
        Topology(setup.world_size, _ANY_MEMORY, local_world_size=setup.local_world_size),
        setup.batch_size * setup.world_size,
        optimizer,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        priced = planning.price(
            Plan(task, shards, replicated_tables=replicated), models=models, lower_bound=False
        )
    assert priced.predicted is not None
    return [device.compute_ms for device in priced.predicted.devices]
