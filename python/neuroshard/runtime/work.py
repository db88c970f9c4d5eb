"""What TorchRec's runtime does for a plan beyond looking up: how many modules, operators and sets of
collectives there are, and what bytes they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Modules: an `EmbeddingBagCollection`, and an `EmbeddingCollection`, whose outputs are sequences.
POOLED = "pooled"
SEQUENCE = "sequence"
KINDS = (POOLED, SEQUENCE)

TABLE_WISE = "table_wise"
COLUMN_WISE = "column_wise"
ROW_WISE = "row_wise"
TABLE_ROW_WISE = "table_row_wise"
TABLE_COLUMN_WISE = "table_column_wise"
GRID = "grid_shard"
DATA_PARALLEL = "data_parallel"

#: TorchRec's names of the types that are known here.
SHARDING_TYPES = (
    DATA_PARALLEL,
    TABLE_WISE,
    COLUMN_WISE,
    ROW_WISE,
    TABLE_ROW_WISE,
    TABLE_COLUMN_WISE,
    GRID,
)
_ROWS_CUT = {ROW_WISE, TABLE_ROW_WISE, GRID}
_WITHIN_HOSTS = {TABLE_ROW_WISE, GRID}

#: Counted in a plan. All tables of one type in a module are one operator with collectives of its
#: own, of the kind that the name says: `hierarchical` are a reduce-scatter within hosts and an
#: all-to-all between them. `features` are the lists of lookups that are sent, one for each range of
#: columns that is looked up by itself.
COUNTS = (
    "pooled_modules",
    "sequence_modules",
    "all_to_alls",
    "reduce_scatters",
    "hierarchical",
    "all_reduces",
    "features",
)

#: Bytes of a process, in the mean of all, which share a machine: `lookups` that it receives,
#: `bucketized` lookups that it sorts by slices of rows, pooled outputs that it sends (`exchanged`)
#: and has added up (`reduced`), outputs of lookups one by one that it sends (`sequences`), and
#: gradients of tables that every device has (`all_reduced`). Of its own samples: pooled `outputs`,
#: those of them that are `joined` from several operators' and whose pieces of columns are put in
#: order (`permuted`), and outputs of lookups one by one (`sequence_outputs`), of which those of
#: several slices of rows are put in order (`reordered`).
BYTES = (
    "lookups",
    "bucketized",
    "exchanged",
    "reduced",
    "sequences",
    "outputs",
    "joined",
    "permuted",
    "sequence_outputs",
    "reordered",
    "all_reduced",
)

#: Milliseconds in FBGEMM's operators, in the mean of all processes: each slows the others.
OPERATORS = "operators"

WORK = (*COUNTS, *BYTES, OPERATORS)
#: Those of a process's own samples, which it has whatever the plan is.
OUTPUTS = ("outputs", "sequence_outputs")
#: Those that every process has of a table, wherever its shards are.
ON_ALL = ("bucketized", "permuted", "reordered", "all_reduced")

#: Work that only one of the passes does.
FORWARD_ALONE = ("lookups", "bucketized")
BACKWARD_ALONE = ("all_reduced",)

_INDEX_BYTES = 8
_LENGTH_BYTES = 4
_VALUE_BYTES = 4
_MIB = 1 << 20


@dataclass(frozen=True)
class Setup:
    """The processes and the batch of one of them."""

    world_size: int
    local_world_size: int
    #: Samples of one process.
    batch_size: int


@dataclass(frozen=True)
class TableShard:
    """A range of rows and columns of a table on a process."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int


@dataclass(frozen=True)
class ShardedTable:
    """A table and how it is sharded."""

    sharding_type: str
    num_embeddings: int
    embedding_dim: int
    #: Lookups of a sample, over all features.
    pooling_factor: float
    #: Those that have rows and columns; of a data-parallel table none.
    shards: tuple[TableShard, ...]
    num_features: int = 1

    @property
    def column_ranges(self) -> int:
        """Ranges of columns that are looked up by themselves."""
        return len({shard.column_offset for shard in self.shards}) or 1


@dataclass(frozen=True)
class ShardedModule:
    """The tables of one module; its kind is one of `KINDS`."""

    kind: str
    tables: tuple[ShardedTable, ...]


def tables_by_type(module: ShardedModule) -> dict[str, list[ShardedTable]]:
    """The tables that are one operator each type."""
    groups: dict[str, list[ShardedTable]] = {}
    for table in module.tables:
        groups.setdefault(table.sharding_type, []).append(table)
    return groups


def work_of(modules: Sequence[ShardedModule], setup: Setup) -> dict[str, float]:
    """How much of each kind of `WORK` a plan is, but for the `OPERATORS`."""
    work = dict.fromkeys(WORK, 0.0)
    for module in modules:
        work[f"{module.kind}_modules"] += 1
        types = tables_by_type(module)
        for sharding_type in types:
            work[_collectives(sharding_type, module.kind)] += 1
        for table in module.tables:
            work["features"] += table.num_features * table.column_ranges
            of_table = dict(bytes_of(table, module.kind, setup))
            if len(types) > 1 and module.kind == POOLED:
                of_table["joined"] = of_table["outputs"]
            for name, by_rank in of_table.items():
                work[name] += sum(by_rank) / setup.world_size
    return work


def bytes_of(table: ShardedTable, kind: str, setup: Setup) -> Mapping[str, list[float]]:
    """The bytes of `BYTES` that a table is, on each process, whatever other tables there are."""
    ranks = setup.world_size
    own = setup.batch_size
    samples = own * ranks
    features = table.num_features
    row_bytes = _VALUE_BYTES * table.embedding_dim
    on_all: dict[str, float] = {}
    if kind == SEQUENCE:
        on_all["sequence_outputs"] = own * table.pooling_factor * row_bytes
    else:
        on_all["outputs"] = float(own * features * row_bytes)
    if table.sharding_type == DATA_PARALLEL:
        on_all["all_reduced"] = float(table.num_embeddings * row_bytes)
        return {name: [value] * ranks for name, value in on_all.items()}
    moved = {name: [0.0] * ranks for name in ("lookups", "exchanged", "reduced", "sequences")}
    for shard in table.shards:
        lookups = samples * table.pooling_factor * shard.num_rows / table.num_embeddings
        moved["lookups"][shard.rank] += (
            _INDEX_BYTES * lookups + _LENGTH_BYTES * samples * features
        )
        width = _VALUE_BYTES * shard.num_columns
        if kind == SEQUENCE:
            moved["sequences"][shard.rank] += lookups * width
            continue
        pooled = float(samples * features * width)
        if table.sharding_type not in _ROWS_CUT:
            moved["exchanged"][shard.rank] += pooled
            continue
        moved["reduced"][shard.rank] += pooled
        if table.sharding_type in _WITHIN_HOSTS:
            moved["exchanged"][shard.rank] += pooled / setup.local_world_size
    if table.sharding_type in _ROWS_CUT:
        slices = ranks if table.sharding_type == ROW_WISE else setup.local_world_size
        on_all["bucketized"] = table.column_ranges * own * (
            _INDEX_BYTES * table.pooling_factor + _LENGTH_BYTES * features * slices
        )
        if kind == SEQUENCE:
            on_all["reordered"] = on_all["sequence_outputs"]
    if kind == POOLED and table.column_ranges > 1:
        on_all["permuted"] = on_all["outputs"]
    return moved | {name: [value] * ranks for name, value in on_all.items()}


def units(name: str, work: Mapping[str, float]) -> float:
    """Work in the unit of its cost: a number, MiB or milliseconds."""
    return work[name] / _MIB if name in BYTES else work[name]


def _collectives(sharding_type: str, kind: str) -> str:
    """What the operator of a type is followed by."""
    if sharding_type == DATA_PARALLEL:
        return "all_reduces"
    if kind == SEQUENCE or sharding_type not in _ROWS_CUT:
        return "all_to_alls"
    return "hierarchical" if sharding_type in _WITHIN_HOSTS else "reduce_scatters"
