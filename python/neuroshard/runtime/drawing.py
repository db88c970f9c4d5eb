"""Random plans of random tables, for measuring: for each task, several plans of the same tables."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .work import (
    COLUMN_WISE,
    DATA_PARALLEL,
    GRID,
    POOLED,
    ROW_WISE,
    SEQUENCE,
    TABLE_COLUMN_WISE,
    TABLE_ROW_WISE,
    TABLE_WISE,
    Setup,
    ShardedModule,
    ShardedTable,
    TableShard,
)

#: Plans of one task.
PLANS_OF_A_TASK = 8

#: Elements of the largest table that every process has a copy of.
_MOST_REPLICATED = 1 << 21

_DIMS = (16, 32, 64, 128)


@dataclass(frozen=True)
class DrawnTask:
    """Tables with several plans, each a list of modules."""

    number: int
    setup: Setup
    plans: tuple[tuple[ShardedModule, ...], ...]


def draw_task(
    number: int, seed: int, layout: tuple[int, int], batch_sizes: Sequence[int], max_rows: int
) -> DrawnTask:
    """Task number `number` of the sequence of this seed; batch sizes are of all processes."""
    draw = random.Random(f"{seed} {number}")
    world_size, local_world_size = layout
    setup = Setup(world_size, local_world_size, draw.choice(list(batch_sizes)) // world_size)
    kinds = draw.choices(
        [(POOLED,), (SEQUENCE,), (POOLED, SEQUENCE)], weights=[0.6, 0.2, 0.2]
    )[0]
    modules = [(kind, _draw_tables(draw, kind, max_rows)) for kind in kinds]
    plans = tuple(
        tuple(
            ShardedModule(kind, _sharded(draw, kind, tables, setup)) for kind, tables in modules
        )
        for _ in range(PLANS_OF_A_TASK)
    )
    return DrawnTask(number, setup, plans)


def types_of(kind: str, setup: Setup) -> list[str]:
    """The types that TorchRec's runtime takes for a kind of module on CPUs. Data-parallel sequences
    fail there: FBGEMM's dense operator adds up their lookups."""
    types = [TABLE_WISE, COLUMN_WISE, ROW_WISE]
    if kind == POOLED:
        types.append(DATA_PARALLEL)
    if kind == POOLED and setup.local_world_size < setup.world_size:
        types += [TABLE_ROW_WISE, TABLE_COLUMN_WISE, GRID]
    return types


def shards_of(
    sharding_type: str,
    rows: int,
    columns: int,
    setup: Setup,
    *,
    ranks: Sequence[int] = (0,),
    hosts: Sequence[int] = (0,),
) -> tuple[TableShard, ...]:
    """The shards as TorchRec cuts tables: by columns in as many parts as there are `ranks`, or for
    a grid `hosts`; rows in slices of one size, the last ones shorter or empty."""
    if sharding_type == DATA_PARALLEL:
        return ()
    if sharding_type in (TABLE_WISE, COLUMN_WISE, TABLE_COLUMN_WISE):
        width = columns // len(ranks)
        return tuple(
            TableShard(rank, 0, rows, part * width, width) for part, rank in enumerate(ranks)
        )
    devices = setup.world_size if sharding_type == ROW_WISE else setup.local_world_size
    firsts = [0] if sharding_type == ROW_WISE else [host * devices for host in hosts]
    height = math.ceil(rows / devices)
    width = columns // len(firsts)
    return tuple(
        TableShard(first + i, i * height, min(height, rows - i * height), part * width, width)
        for part, first in enumerate(firsts)
        for i in range(devices)
        if i * height < rows
    )


def _draw_tables(draw: random.Random, kind: str, max_rows: int) -> list[ShardedTable]:
    number = round(2 ** draw.uniform(1.0, 6.0)) if kind == POOLED else draw.randint(1, 6)
    tables = []
    # All tables of an EmbeddingCollection have the same columns.
    dims = _DIMS if kind == POOLED else (draw.choice(_DIMS),)
    for _ in range(number):
        rows = int(10 ** draw.uniform(2.5, math.log10(max_rows)))
        features = 2 if draw.random() < 0.1 else 1
        # Of each feature, a whole number, so that the mean is what batches have.
        lookups = round(10 ** draw.uniform(0.0, 1.8))
        tables.append(
            ShardedTable(
                TABLE_WISE, rows, draw.choice(dims), float(lookups * features), (), features
            )
        )
    return tables


def _most_parts(columns: int, most: int) -> int:
    """Into how many equal parts columns may be cut, up to a number: FBGEMM takes multiples of 4. At
    least 1, the whole."""
    return next((parts for parts in range(most, 1, -1) if columns % (4 * parts) == 0), 1)


def _sharded(
    draw: random.Random, kind: str, tables: Sequence[ShardedTable], setup: Setup
) -> tuple[ShardedTable, ...]:
    """The tables, each of one of one to three types, on processes that are more or less even."""
    known = types_of(kind, setup)
    chosen = draw.sample(known, draw.choices([1, 2, 3], weights=[0.5, 0.3, 0.2])[0])
    is_even = draw.random() < 0.7
    load = [0.0] * setup.world_size
    # Sequences of one operator have the same columns, and as many pieces.
    parts = draw.choice([2, _most_parts(tables[0].embedding_dim, setup.world_size)])
    result = []
    for table in tables:
        sharding_type = draw.choice(chosen)
        elements = table.num_embeddings * table.embedding_dim
        if sharding_type == DATA_PARALLEL and elements > _MOST_REPLICATED:
            sharding_type = TABLE_WISE
        order = sorted(range(setup.world_size), key=lambda rank: (load[rank], draw.random()))
        if not is_even:
            draw.shuffle(order)
        host = order[0] // setup.local_world_size
        hosts = [host]
        ranks = order[:1]
        if sharding_type == COLUMN_WISE:
            most = _most_parts(table.embedding_dim, setup.world_size)
            ranks = order[: parts if kind == SEQUENCE else draw.choice([2, most])]
        elif sharding_type == TABLE_COLUMN_WISE:
            first = host * setup.local_world_size
            number = _most_parts(table.embedding_dim, setup.local_world_size)
            ranks = [first + i for i in range(number)]
        elif sharding_type == GRID:
            all_hosts = setup.world_size // setup.local_world_size
            number = _most_parts(table.embedding_dim, all_hosts)
            hosts = sorted((host + i) % all_hosts for i in range(number))
        shards = shards_of(
            sharding_type,
            table.num_embeddings,
            table.embedding_dim,
            setup,
            ranks=ranks,
            hosts=hosts,
        )
        for shard in shards:
            load[shard.rank] += table.pooling_factor * shard.num_columns * shard.num_rows / (
                table.num_embeddings
            )
        result.append(
            ShardedTable(
                sharding_type,
                table.num_embeddings,
                table.embedding_dim,
                table.pooling_factor,
                shards,
                table.num_features,
            )
        )
    return tuple(result)
