"""Random tables in modules of every kind that TorchRec shards, with constraints and batches, for
torchrec_correctness.py."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

BAGS = "EmbeddingBagCollection"
WEIGHTED = "weighted bags"
FEATURES = "bags, several features"
FUSED = "FusedEmbeddingBagCollection"
PROCESSED = "feature-processed bags"
MANAGED_BAGS = "managed-collision bags"
VARIABLE = "bags, variable batch"
SEQUENCES = "EmbeddingCollection"
MANAGED_SEQUENCES = "managed-collision sequences"
BOTH = "bags and sequences"
KINDS = (
    *(BAGS, WEIGHTED, FEATURES, FUSED, PROCESSED),
    *(MANAGED_BAGS, VARIABLE, SEQUENCES, MANAGED_SEQUENCES, BOTH),
)

#: By TorchRec's estimate, by our models, and by these without the runtime's costs: then our search
#: places tables of EmbeddingBagCollections by columns alone, and TorchRec's planner all others.
ESTIMATED, MEASURED, MEASURED_COLUMNS = "torchrec", "measured", "measured by columns"

TABLE, COLUMNS, ROWS, COPIES = "table_wise", "column_wise", "row_wise", "data_parallel"
HOST_ROWS, HOST_COLUMNS, GRID = "table_row_wise", "table_column_wise", "grid_shard"
ALL_TYPES = (TABLE, COLUMNS, ROWS, COPIES, HOST_ROWS, HOST_COLUMNS, GRID)
CUT_COLUMNS = (COLUMNS, HOST_COLUMNS, GRID)

#: Types that TorchRec 1.8.0 with FBGEMM 1.8.0 does not run on CPUs and gloo, whoever plans: found
#: by trying them under its own planner, which gave these errors.
LEFT_OUT = {
    # DistributedDataParallel device_ids and output_device arguments only work with
    # single-device/multiple-device GPU modules or CPU modules, but got device_ids
    # [device(type='cpu')], ...
    FUSED: [COPIES],
    # Only ROW_WISE sharding is supported.
    MANAGED_BAGS: [TABLE, COLUMNS, COPIES, HOST_ROWS, HOST_COLUMNS, GRID],
    MANAGED_SEQUENCES: [TABLE, COLUMNS, COPIES, HOST_ROWS, HOST_COLUMNS, GRID],
    # Rows, in PyTorch: ProcessGroupGloo::allgather: invalid tensor size at index 1 (expected
    # (4320), got (4496)). Copies, in FBGEMM's dense operator: Index 40 is out of bounds: 1253,
    # range 0 to 389. Grids, in TorchRec: Dimension out of range (expected to be in range of
    # [-1, 0], but got 1).
    VARIABLE: [ROWS, HOST_ROWS, COPIES, GRID],
}
#: Of sequences in any module. Copies, in FBGEMM's dense operator, which pools: split_with_sizes
#: expects split_sizes to sum exactly to 80 (input tensor's size at dimension 0), but got
#: split_sizes=[94, 70, 48, 60, 48]. The others TorchRec does not have.
LEFT_OUT_OF_SEQUENCES = [COPIES, HOST_ROWS, HOST_COLUMNS, GRID]

#: Samples of a process.
BATCH_SIZE = 16


@dataclass
class DrawnTable:
    """A table and how it may be sharded."""

    name: str
    rows: int
    columns: int
    features: list[str]
    #: Mean lookups of each feature per sample.
    pooling_factor: int
    is_sequence: bool
    types: list[str]
    #: Columns of the narrowest piece.
    min_partition: int
    is_mean: bool = False
    #: Else SGD.
    has_adagrad: bool = False
    #: With managed collisions: the ids that have a slot, ascending, and their slots.
    ids: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    slots: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    @property
    def importance(self) -> float:
        """Of its features' losses: such that one learning rate does for all tables."""
        scale = 1.0 if self.is_sequence else float(self.pooling_factor)
        return (scale**0.5 if self.is_mean else 1.0 / scale) / len(self.features)

    @property
    def most_lookups(self) -> int:
        """Of a feature in a sample."""
        return 2 * self.pooling_factor


class Task:
    """A random task for these processes: the first tasks go over all kinds, with one objective, the
    next with the other."""

    def __init__(self, number: int, seed: int, world_size: int, local_world_size: int) -> None:
        self.number = number
        self.seed = seed
        self.world_size = world_size
        self.local_world_size = local_world_size
        self.kind = KINDS[number % len(KINDS)]
        self.turn = turn = number // len(KINDS)
        # With a variable batch, FBGEMM on CPUs has one operator for each type alone, which has one
        # optimizer and one pooling: Using pre-allocated vbe_output is not supported on CPU.
        self.has_adagrad = turn % 4 in (1, 2) and self.kind != VARIABLE
        self._draw = random.Random(f"torchrec correctness {seed} {number}")
        self.generator = torch.Generator().manual_seed(self._draw.getrandbits(31))
        self.is_collection = self._draw.random() < 0.5  # of feature processors
        by_models = (MEASURED, MEASURED_COLUMNS)[self._draw.random() < 0.5]
        self.objective = (ESTIMATED, by_models)[(number + turn) % 2]
        parts = {SEQUENCES: [True], MANAGED_SEQUENCES: [True], BOTH: [False, True]}
        self.tables: list[DrawnTable] = []
        for is_sequence in parts.get(self.kind, [False]):
            self.tables += self._module(is_sequence)
        for table in self.tables:
            if self.is_managed:
                self._fill_slots(table)

    @property
    def is_managed(self) -> bool:
        """Whether ids are any numbers, mapped to slots."""
        return self.kind in (MANAGED_BAGS, MANAGED_SEQUENCES)

    @property
    def is_weighted(self) -> bool:
        """Whether lookups come with weights."""
        return self.kind == WEIGHTED

    def _types(self, is_sequence: bool) -> list[str]:
        """Those that can run, of which a module's tables have all."""
        types = [ROWS, HOST_ROWS] if self.has_only_rows and not is_sequence else [*ALL_TYPES]
        out = {*LEFT_OUT.get(self.kind, []), *(LEFT_OUT_OF_SEQUENCES if is_sequence else [])}
        if self.world_size == self.local_world_size:
            out |= {HOST_ROWS, HOST_COLUMNS, GRID}
        return [each for each in types if each not in out]

    @property
    def planner_options(self) -> dict:
        """Of NeuroShardPlanner."""
        if self.objective == MEASURED_COLUMNS:
            return {"objective": "measured", "runtime": None}
        return {"objective": self.objective}

    @property
    def is_placed_by_models(self) -> bool:
        """Whether our models place tables that may be cut by columns, runtime's costs or not."""
        return self.kind in (BAGS, WEIGHTED, FEATURES, VARIABLE, BOTH) and not self.has_only_rows

    @property
    def has_only_rows(self) -> bool:
        """Whether bags are cut by rows alone."""
        return self.kind == MANAGED_BAGS or (self.kind in (FUSED, BOTH) and self.has_adagrad)

    def _module(self, is_sequence: bool) -> list[DrawnTable]:
        """The tables of one module; its first ones may be of one type each, so that all occur."""
        draw = self._draw
        types = self._types(is_sequence)
        draw.shuffle(types)
        columns = 8 * draw.randint(1, 8)
        min_partition = max(4, columns // draw.randint(2, 4) // 4 * 4)
        tables = []
        for i in range(draw.randint(max(3, len(types)), 10)):
            name = f"{'s' if is_sequence else 't'}{i}"
            several = self.kind == FEATURES or draw.random() < 0.1
            if not is_sequence:
                columns = 8 * draw.randint(1, 8)
                min_partition = max(4, columns // draw.randint(2, 4) // 4 * 4)
            tables.append(
                DrawnTable(
                    name=name,
                    rows=round(50 * 60 ** draw.random()),
                    columns=columns,
                    features=[f"{name}_f{j}" for j in range(draw.randint(2, 3) if several else 1)],
                    pooling_factor=draw.randint(1, 10),
                    is_sequence=is_sequence,
                    types=[types[i]] if i < len(types) else draw.sample(types, min(2, len(types))),
                    min_partition=min_partition,
                )
            )
        if self.objective != ESTIMATED and not is_sequence and self.is_placed_by_models:
            # Where memory is short, this one must be cut.
            large = tables[types.index(COLUMNS)]
            large.rows, large.columns, large.types = 3000, 64, [TABLE, COLUMNS]
        for table in tables:
            table.is_mean = self._may_be_mean(table) and (
                self.kind in (FUSED, VARIABLE) or draw.random() < 0.5
            )
            table.has_adagrad = self.has_adagrad and not {*CUT_COLUMNS, COPIES} & {*table.types}
        return tables

    def _may_be_mean(self, table: DrawnTable) -> bool:
        """PyTorch has no means of weighted rows. Where a table with means is cut by rows, TorchRec
        divides the outputs of all of its module's tables by numbers of lookups, of other types too,
        which are wrong then; and means in grids are means of parts, added up. Both are so under its
        own planner likewise, without an error. And an unsharded FusedEmbeddingBagCollection with
        sums and means has tables' outputs under others' names."""
        if self.is_weighted or self.kind == PROCESSED or table.is_sequence:
            return False
        if self.kind == FUSED:
            return self.has_only_rows
        if self.kind == VARIABLE:
            return self.turn % 2 == 1
        return self.has_only_rows or not {ROWS, HOST_ROWS, GRID} & {*table.types}

    def _fill_slots(self, table: DrawnTable) -> None:
        """Every process's slice of rows gets ids of its share of all ids; the last row of each is
        that of ids without a slot."""
        block = -(-table.rows // self.world_size)
        for rank in range(self.world_size):
            first, end = rank * block, min(table.rows, (rank + 1) * block)
            ids = torch.randperm(10 * block, generator=self.generator)[: max(0, end - first - 1)]
            slots = first + torch.randperm(len(ids), generator=self.generator)
            table.ids = torch.cat([table.ids, rank * 10 * block + ids.sort().values])
            table.slots = torch.cat([table.slots, slots])

    def constraints(self) -> dict[str, ParameterConstraints]:
        """What the planner is told of each table."""
        return {
            table.name: ParameterConstraints(
                sharding_types=table.types,
                pooling_factors=[float(table.pooling_factor)] * len(table.features),
                min_partition=table.min_partition,
                # ValueError: Unrecognized or unsupported compute kernel: fused_uvm_caching, which
                # TorchRec's enumerator lists for these on CPUs.
                compute_kernels=["fused"] if self.is_managed else None,
            )
            for table in self.tables
        }


@dataclass
class Lookups:
    """Of one feature in the batch of one process."""

    lengths: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor
    #: With a variable batch: of every sample, its bag.
    inverse: torch.Tensor

    def of_samples(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Lengths, values and weights of all samples, whose bags may be the same."""
        places = torch.arange(len(self.values)).split(self.lengths.tolist())
        at = torch.cat([places[bag] for bag in self.inverse.tolist()])
        return self.lengths[self.inverse], self.values[at], self.weights[at]


class Batch:
    """Lookups of all processes."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lookups = {
            key: [self._drawn(table) for _ in range(task.world_size)]
            for table in task.tables
            for key in table.features
        }
        self._keys = {
            name: [
                key
                for table in task.tables
                if table.is_sequence == (name == "sequences")
                for key in table.features
            ]
            for name in ("bags", "sequences")
        }

    def _drawn(self, table: DrawnTable) -> Lookups:
        generator = self._task.generator
        bags = BATCH_SIZE
        inverse = torch.arange(BATCH_SIZE)
        if self._task.kind == VARIABLE:
            bags = int(torch.randint(BATCH_SIZE // 2, BATCH_SIZE, (), generator=generator))
            inverse = torch.randint(bags, (BATCH_SIZE,), generator=generator)
        lengths = torch.randint(table.most_lookups + 1, (bags,), generator=generator)
        number = int(lengths.sum())
        if len(table.ids):
            values = table.ids[torch.randint(len(table.ids), (number,), generator=generator)]
        else:
            values = torch.randint(table.rows, (number,), generator=generator)
        weights = 0.5 + torch.rand(number, generator=generator)
        return Lookups(lengths, values, weights, inverse)

    def of_process(self, rank: int) -> dict[str, KeyedJaggedTensor]:
        """What one process feeds its sharded modules with, by module."""
        result = {}
        for name, keys in self._keys.items():
            lookups = [self._lookups[key][rank] for key in keys]
            if not lookups:
                continue
            more: dict = {}
            if self._task.kind == VARIABLE:
                more = {
                    "stride_per_key_per_rank": [[len(each.lengths)] for each in lookups],
                    "inverse_indices": (keys, torch.stack([each.inverse for each in lookups])),
                }
            result[name] = self._joined(
                keys, [(each.lengths, each.values, each.weights) for each in lookups], more
            )
        return result

    def of_all(self) -> dict[str, KeyedJaggedTensor]:
        """All processes' samples one after another, each with bags of its own."""
        return {
            name: self._joined(
                keys,
                [each.of_samples() for key in keys for each in self._lookups[key]],
                {},
            )
            for name, keys in self._keys.items()
            if keys
        }

    def _joined(self, keys: list[str], parts: list[tuple], more: dict) -> KeyedJaggedTensor:
        lengths, values, weights = (torch.cat(each) for each in zip(*parts, strict=True))
        return KeyedJaggedTensor(
            keys=keys,
            values=values,
            lengths=lengths,
            weights=weights if self._task.is_weighted else None,
            **more,
        )

    def rows_of_processes(self, key: str, is_sequence: bool) -> list[int]:
        """How many rows of a feature's output in `of_all` are each process's."""
        if not is_sequence:
            return [BATCH_SIZE] * self._task.world_size
        return [int(each.of_samples()[0].sum()) for each in self._lookups[key]]
