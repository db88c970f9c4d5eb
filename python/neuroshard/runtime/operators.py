"""What FBGEMM's operators of a plan do, one operator for each sharding type of a module: their time by
a computation model, and what that model does not know of a training that runs."""

from __future__ import annotations

import math
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

#: Operators of data-parallel tables: gradients of whole tables in the place of updates. Other
#: operators are of their module's kind.
REPLICATED = "replicated"

#: What operators of a kind do on a process, as far as it has a cost. `model` is their time by the
#: computation model [ms], and `calls` is how many there are with a part of a table: what a call
#: takes more where the model was measured than in a training, which is subtracted. Millions of
#: `lookups` and of `distinct_rows` among them; of these rows those that are `crowded` (`crowding`)
#: and those that are `far`, beyond a cache in their table (`_far`). MiB: `gathered` by the lookups,
#: `distinct` of those rows, pooled outputs that are `put_out`, and the `whole` tables, of replicated ones, each of whose rows
#: has a gradient. Models know pooled outputs alone.
OPERATOR_WORK = {
    POOLED: ("model", "calls", "put_out"),
    SEQUENCE: ("lookups", "distinct_rows", "crowded", "far", "gathered", "distinct"),
    REPLICATED: ("lookups", "distinct_rows", "crowded", "gathered", "put_out", "whole"),
}

#: Half of an operator's different rows are crowded where they are as many as this, in millions.
_CROWD = 0.05

#: Half of a table's different rows are far where it has as many MiB on a process as this.
_CACHE_MIB = 2.0

#: Of each device: nothing is to be placed here.
_ANY_MEMORY = 1 << 60

_MILLION = 1e6
_FLOATS_OF_A_MIB = 1 << 18

#: By kind of operator, then by kind of `OPERATOR_WORK`.
OperatorWork = dict[str, dict[str, float]]


def operator_work(
    modules: Sequence[ShardedModule],
    setup: Setup,
    models: Sequence[str],
    optimizer: str = "sgd",
    tables: Sequence[Sequence[Table]] = (),
) -> list[OperatorWork]:
    """Of each process, what its operators of each kind do in both passes.

    `tables` has, for each module's tables, how they are used; without it every row is equally
    likely. Raises InputError where the models have no price for a piece.
    """
    result = [
        {kind: dict.fromkeys(names, 0.0) for kind, names in OPERATOR_WORK.items()}
        for _ in range(setup.world_size)
    ]
    for number, module in enumerate(modules):
        used = tables[number] if tables else [used_evenly(table) for table in module.tables]
        places = {id(table): place for place, table in enumerate(module.tables)}
        for sharding_type, group in tables_by_type(module).items():
            chosen = [(table, used[places[id(table)]]) for table in group]
            kind = kind_of_operator(sharding_type, module.kind)
            parts = [part for table, how in chosen for part in table_work(table, how, setup)]
            users = {rank for rank, _ in parts}
            distinct = dict.fromkeys(users, 0.0)
            for rank, work in parts:
                distinct[rank] += work["distinct_rows"]
            for rank, work in parts:
                work["crowded"] = work["distinct_rows"] * crowding(distinct[rank])
                for name in OPERATOR_WORK[kind]:
                    result[rank][kind][name] += work[name]
            if kind == POOLED:
                for rank, ms in enumerate(_operator_ms(chosen, setup, models, optimizer)):
                    result[rank][kind]["model"] += ms
                for rank in users:
                    result[rank][kind]["calls"] += 1.0
    return result


def signed(name: str) -> float:
    """-1 for what is subtracted."""
    return -1.0 if name == "calls" else 1.0


def unmeasured_operators(kind: str) -> dict[str, float]:
    """Costs of operators of which there are no measurements: what the model says, or nothing."""
    return {name: 1.0 if name == "model" else 0.0 for name in OPERATOR_WORK[kind]}


def kind_of_operator(sharding_type: str, module_kind: str) -> str:
    """A kind of `OPERATOR_WORK`."""
    return REPLICATED if sharding_type == DATA_PARALLEL else module_kind


def crowding(distinct_rows: float) -> float:
    """The share of an operator's different rows, of which there are so many millions, that are
    crowded: the more there are, the less of what FBGEMM keeps for each lies in a cache."""
    return distinct_rows / (distinct_rows + _CROWD)


def table_work(
    table: ShardedTable, used: Table, setup: Setup
) -> list[tuple[int, dict[str, float]]]:
    """What each shard of a table is, or each copy, with its process, in the names of every kind; but
    for the `model`, the `calls` and what is `crowded`, which are of all tables together."""
    samples = setup.batch_size * setup.world_size
    if table.sharding_type == DATA_PARALLEL:
        parts = [
            (rank, table.num_embeddings, table.embedding_dim, 1.0 / setup.world_size)
            for rank in range(setup.world_size)
        ]
    else:
        parts = [(shard.rank, shard.num_rows, shard.num_columns, 1.0) for shard in table.shards]
    found = []
    for rank, rows, columns, share in parts:
        outputs = samples * share * table.num_features
        lookups = samples * share * table.pooling_factor * rows / table.num_embeddings
        distinct = min(lookups, distinct_rows(used, samples, share) * rows / table.num_embeddings)
        mib = columns / _FLOATS_OF_A_MIB
        work = {
            "model": 0.0,
            "calls": 0.0,
            "lookups": lookups / _MILLION,
            "distinct_rows": distinct / _MILLION,
            "crowded": 0.0,
            "far": distinct / _MILLION * _far(rows * mib),
            "gathered": lookups * mib,
            "distinct": distinct * mib,
            "put_out": outputs * mib,
            "whole": rows * mib,
        }
        found.append((rank, work))
    return found


def _far(mib: float) -> float:
    """The share of the rows of a table of so many MiB that lie beyond a cache."""
    return mib / (mib + _CACHE_MIB)


def distinct_rows(table: Table, samples: int, share: float = 1.0) -> float:
    """How many rows of a table a share of a batch touches, by the histogram of the whole batch's
    hits, or with every row equally likely."""
    rows = table.num_embeddings
    lookups = samples * table.pooling_factor
    if table.reuse_histogram is None:
        return rows * -math.expm1(-lookups * share / rows)
    hits = sum(part * _hits_of_bin(bin_) for bin_, part in enumerate(table.reuse_histogram))
    touched = min(float(rows), lookups / max(hits, 1.0))
    # A row that the batch hits so often is hit by the share with this probability.
    return touched * math.expm1(-hits * share) / math.expm1(-hits)


def _hits_of_bin(number: int) -> float:
    """About the middle of 1, 2, 3-4, 5-8, ..."""
    return float(number + 1) if number < 2 else 0.75 * 2**number


def used_evenly(table: ShardedTable) -> Table:
    """The table with every row equally likely."""
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
        priced = planning.price(Plan(task, shards), models=models, lower_bound=False)
    assert priced.predicted is not None
    return [device.compute_ms for device in priced.predicted.devices]
