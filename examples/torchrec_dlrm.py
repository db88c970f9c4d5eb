"""Trains a DLRM with TorchRec's own sharding plan and with NeuroShard's, and times both.

    torchrun --nproc-per-node 2 examples/torchrec_dlrm.py --tables dcnv2
    torchrun --nproc-per-node 2 examples/torchrec_dlrm.py --tables generated

Both models begin with the same weights and see the same batches, so their losses must be the same
but for the order of additions. Steps of the two take turns, so that both meet the same conditions.
Times are first deciles: what else the host of a virtual machine does slows a step by half as easily
as not, and a mean or a median tells mainly how often. `--control` trains with TorchRec's plan a
second time: by how much the two differ is what can not be told apart.

By default both planners choose among whole tables and columns. `--all-types` lets both choose
row-wise and data-parallel tables too; ours then plans with what `--runtime` says of TorchRec's
runtime on this machine (`python -m neuroshard.collect --communication`, `python -m
neuroshard.runtime`).
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    SplitTableBatchedEmbeddingBagsCodegen,
)
from process_group import process_group
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.models.dlrm import DLRM_DCN
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.modules.mlp import MLP
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

import neuroshard
from neuroshard import _core
from neuroshard.torchrec import NeuroShardPlanner
from neuroshard.types import Table, Task, task_text

NUM_DENSE = 13
CONTROL = "torchrec again"
#: Names here, and those of the library.
WORKLOADS = {"dcnv2": "mlperf-dlrm-dcnv2", "criteo-kaggle": "criteo-kaggle"}
ALL_TYPES = ["table_wise", "column_wise", "row_wise", "data_parallel"]


class ConcatDLRM(nn.Module):
    """A DLRM for tables of any dimensions: dense features and pooled embeddings side by side."""

    def __init__(self, tables: EmbeddingBagCollection, num_columns: int) -> None:
        super().__init__()
        self.tables = tables
        self.bottom = MLP(NUM_DENSE, [512, 128])
        self.top = MLP(128 + num_columns, [512, 256])
        self.last = nn.Linear(256, 1)

    def forward(self, dense: torch.Tensor, sparse: KeyedJaggedTensor) -> torch.Tensor:
        """One logit per sample."""
        # By name: the order in which a sharded collection returns them depends on the plan.
        pooled = KeyedTensor.regroup([self.tables(sparse)], [sparse.keys()])[0]
        return self.last(self.top(torch.cat([self.bottom(dense), pooled], dim=1)))


class TablesOnly(nn.Module):
    """Nothing but the embeddings, to time their part of a step."""

    def __init__(self, tables: EmbeddingBagCollection) -> None:
        super().__init__()
        self.tables = tables

    def forward(self, dense: torch.Tensor, sparse: KeyedJaggedTensor) -> torch.Tensor:
        """All pooled embeddings."""
        return self.tables(sparse).values()


def load_tables(name: str, max_rows: int, num_tables: int, seed: int) -> list[Table]:
    """The tables of a workload, their rows scaled down to fit."""
    workloads = {workload.name: workload for workload in neuroshard.list_workloads()}
    if name in WORKLOADS:
        tables = workloads[WORKLOADS[name]].tables()
        largest = max(table.num_embeddings for table in tables)
        scale = min(1.0, max_rows / largest)
        for table in tables:
            table.num_embeddings = max(4, int(table.num_embeddings * scale))
    else:
        pool = workloads["dlrm-2021"].tables(seed)
        generator = torch.Generator().manual_seed(seed)
        tables = [pool[i] for i in torch.randperm(len(pool), generator=generator)[:num_tables]]
        dims = [16, 32, 64, 128]
        for table in tables:
            table.num_embeddings = min(table.num_embeddings, max_rows)
            table.embedding_dim = dims[int(torch.randint(4, (1,), generator=generator))]
    for table in tables:
        # Access classes describe all rows; with fewer rows, each keeps its share of the lookups.
        distribution = table.index_distribution or {}
        classes = distribution.get("access_classes")
        if classes:
            rows = sum(number for number, _ in classes)
            shrink = min(1.0, table.num_embeddings / rows)
            table.index_distribution = {
                "access_classes": fit_classes(classes, shrink, table.num_embeddings)
            }
    return tables


def fit_classes(classes: list, shrink: float, num_rows: int) -> list:
    """Access classes with fewer rows each, at least one, at most `num_rows` in all."""
    sizes = [max(1, int(number * shrink)) for number, _ in classes]
    while sum(sizes) > num_rows:
        sizes[sizes.index(max(sizes))] -= 1
    return [[size, share] for size, (_, share) in zip(sizes, classes)]


class Batches:
    """Batches of lookups drawn from the tables' distributions, the same on every run."""

    def __init__(self, tables: list[Table], batch_size: int, number: int, seed: int) -> None:
        task = Task(tables, neuroshard.Topology(1, 1 << 60), batch_size)
        drawing = _core.Collection(task_text(task), "", [], 1, 1, 1 << 60, 0.0, seed)
        rank = dist.get_rank()
        self.batches = []
        for batch in range(number):
            indices, lengths = [], []
            for table in range(len(tables)):
                drawn = drawing.draw(table, (batch * 1000 + rank) * 100_000 + table + seed)
                rows, offsets = (torch.from_numpy(array) for array in drawn)
                indices.append(rows)
                lengths.append(offsets.diff())
            generator = torch.Generator().manual_seed(seed * 7919 + batch * 1000 + rank)
            sparse = KeyedJaggedTensor(
                keys=[f"f_{table.name}" for table in tables],
                values=torch.cat(indices),
                lengths=torch.cat(lengths).to(torch.int32),
            )
            dense = torch.rand(batch_size, NUM_DENSE, generator=generator)
            label = (torch.rand(batch_size, 1, generator=generator) < 0.25).float()
            self.batches.append((dense, sparse, label))

    def __getitem__(self, step: int) -> tuple:
        return self.batches[step % len(self.batches)]


def build_model(kind: str, tables: list[Table]) -> nn.Module:
    """The model; on the meta device if it will be sharded."""
    collection = EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingBagConfig(
                name=table.name,
                num_embeddings=table.num_embeddings,
                embedding_dim=table.embedding_dim,
                feature_names=[f"f_{table.name}"],
            )
            for table in tables
        ],
    )
    torch.manual_seed(0)
    if kind == "tables-only":
        return TablesOnly(collection)
    if kind == "dcnv2":
        return DLRM_DCN(
            embedding_bag_collection=collection,
            dense_in_features=NUM_DENSE,
            dense_arch_layer_sizes=[512, 256, tables[0].embedding_dim],
            over_arch_layer_sizes=[512, 256, 1],
            dcn_num_layers=3,
            dcn_low_rank_dim=64,
        )
    return ConcatDLRM(collection, sum(table.embedding_dim for table in tables))


class AllTypesSharder(EmbeddingBagCollectionSharder):
    """TorchRec runs row-wise tables on CPUs, and its stock sharder does not offer them."""

    def sharding_types(self, compute_device_type: str) -> list[str]:
        """Those of one host."""
        return ALL_TYPES


def make_planner(name: str, tables: list[Table], options: argparse.Namespace):
    """TorchRec's planner or ours, with the same topology and constraints."""
    batch_size = options.batch_size
    arguments = {
        "topology": Topology(
            world_size=dist.get_world_size(),
            local_world_size=dist.get_world_size(),
            compute_device="cpu",
            ddr_cap=options.memory,
        ),
        "batch_size": batch_size,
        "storage_reservation": FixedPercentageStorageReservation(percentage=0.0),
        # Whole tables, or columns of at least 32, as TorchRec's users have them; or all types.
        "constraints": {
            table.name: ParameterConstraints(
                pooling_factors=[table.pooling_factor],
                sharding_types=ALL_TYPES if options.all_types else ["table_wise", "column_wise"],
                min_partition=min(32, table.embedding_dim),
            )
            for table in tables
        },
        "debug": False,
    }
    if name == "torchrec":
        return EmbeddingShardingPlanner(**arguments)
    samples = batch_size * dist.get_world_size()
    histograms = neuroshard.reuse_histograms(
        Task(tables, neuroshard.Topology(1, 1 << 60), samples)
    )
    known = {
        table.name: neuroshard.TableStatistics(table.pooling_factor, histogram, samples)
        for table, histogram in zip(tables, histograms)
    }
    models = None if options.model is None else [options.model]
    runtime = options.runtime or ("auto" if options.all_types else None)
    return NeuroShardPlanner(**arguments, statistics=known, models=models, runtime=runtime)


class GivenPlan:
    """A planner that returns a given plan."""

    def __init__(self, plan) -> None:
        self._plan = plan

    def collective_plan(self, *_):
        """As a planner's."""
        return self._plan


@dataclass
class Timings:
    """This rank's steps with one plan, in milliseconds."""

    lookup: list[float] = field(default_factory=list)  # FBGEMM's operator, forward and backward
    step: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)


class LookupClock:
    """Adds up the time in FBGEMM's operators, forward and backward."""

    def __init__(self, model: nn.Module) -> None:
        self.ms = 0.0
        self._start = 0.0
        lookups = [one for m in model.modules() for one in getattr(m, "_lookups", [])]
        for module in (inner for lookup in lookups for inner in lookup.modules()):
            if isinstance(module, SplitTableBatchedEmbeddingBagsCodegen):
                module.register_forward_pre_hook(lambda *_: self._begin())
                module.register_forward_hook(self._after_forward)

    def _begin(self) -> None:
        self._start = time.perf_counter()

    def _end(self) -> None:
        self.ms += 1e3 * (time.perf_counter() - self._start)

    def _after_forward(self, module: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        self._end()
        if output.grad_fn is not None:
            output.grad_fn.register_prehook(lambda *_: self._begin())
            output.grad_fn.register_hook(lambda *_: self._end())


class Trainer:
    """A model sharded by one planner's plan, and its steps."""

    def __init__(self, kind: str, tables: list[Table], planner, all_types: bool) -> None:
        self.tables_only = kind == "tables-only"
        model = build_model(kind, tables)
        collection = next(m for m in model.modules() if isinstance(m, EmbeddingBagCollection))
        apply_optimizer_in_backward(torch.optim.SGD, collection.parameters(), {"lr": 0.05})
        sharders = [AllTypesSharder() if all_types else EmbeddingBagCollectionSharder()]
        dist.barrier()  # so that planning includes no wait for another rank
        start = time.perf_counter()
        self.plan = planner.collective_plan(model, sharders, dist.GroupMember.WORLD)
        self.planning_seconds = time.perf_counter() - start
        self.model = DistributedModelParallel(
            module=model, device=torch.device("cpu"), plan=self.plan, sharders=sharders
        )
        self._initialize()
        # Data-parallel tables are updated with the dense layers, by the same rule and rate.
        dense = [p for p in self.model.parameters() if p.requires_grad and not _is_sharded(p)]
        self.dense_optimizer = torch.optim.SGD(dense, lr=0.05) if dense else None
        self.clock = LookupClock(self.model)
        self.timings = Timings()

    def _initialize(self) -> None:
        """Weights that depend on the table alone, not on how it is sharded."""
        for name, value in self.model.state_dict().items():
            if "embedding_bags" not in name:
                continue
            seed = sum(ord(c) * 31**i for i, c in enumerate(name)) % (1 << 31)
            parts = [(value, (0, 0))]
            if hasattr(value, "local_shards"):
                parts = [(s.tensor, s.metadata.shard_offsets) for s in value.local_shards()]
            for part, (row, column) in parts:
                _fill(part.detach(), row, column, value.size(), seed)

    def step(self, batch: tuple) -> None:
        """One step: forward, loss, backward, both optimizers. Of the tables alone the loss, of
        the mean of all pooled embeddings, is not timed."""
        dense, sparse, label = batch
        dist.barrier()
        self.clock.ms = 0.0
        start = time.perf_counter()
        output = self.model(dense, sparse)
        if self.tables_only:
            forward_seconds = time.perf_counter() - start
            pooled = output.detach().requires_grad_()
            loss = cross_entropy(pooled.mean(dim=1, keepdim=True), label)
            gradient = torch.autograd.grad(loss, pooled)[0].contiguous()
            dist.barrier()
            start = time.perf_counter() - forward_seconds
            output.backward(gradient)
        else:
            loss = cross_entropy(output, label)
            loss.backward()
        if self.dense_optimizer is not None:
            self.dense_optimizer.step()
            self.dense_optimizer.zero_grad()
        self.timings.step.append(1e3 * (time.perf_counter() - start))
        self.timings.lookup.append(self.clock.ms)
        total = loss.detach().clone()
        dist.all_reduce(total)
        self.timings.loss.append(total.item() / dist.get_world_size())


def _fill(part: torch.Tensor, row: int, column: int, size: torch.Size, seed: int) -> None:
    """Sets the part of a table of this size that begins at a row and a column."""
    generator = torch.Generator().manual_seed(seed)
    rows, columns = part.shape
    for begin in range(0, size[0], 65536):
        block = torch.rand(min(65536, size[0] - begin), size[1], generator=generator) - 0.5
        first, end = max(begin, row), min(begin + len(block), row + rows)
        if first < end:
            values = block[first - begin : end - begin, column : column + columns]
            part[first - row : end - row].copy_(0.1 * values)


def _is_sharded(parameter: nn.Parameter) -> bool:
    return hasattr(parameter, "_in_backward_optimizers")


def slowest(values: list[float]) -> float:
    """The first decile of a rank's steps, of the rank that takes longest. (The slowest rank of each
    step would be the one that was disturbed.)"""
    first = statistics.quantiles(values, n=10, method="inclusive")[0]
    decile = torch.tensor(first, dtype=torch.float64)
    dist.all_reduce(decile, op=dist.ReduceOp.MAX)
    return decile.item()


def tables_of(plan) -> list:
    """How each table of a ShardingPlan is sharded."""
    return [parameter for module in plan.plan.values() for parameter in module.values()]


def pieces_of(plan) -> int:
    """Shards in a ShardingPlan, and copies."""
    return sum(
        len(each.sharding_spec.shards if each.sharding_spec is not None else each.ranks)
        for each in tables_of(plan)
    )


def run(options: argparse.Namespace) -> dict:
    """Trains with both plans; the results of both."""
    tables = load_tables(options.tables, options.max_rows, options.num_tables, options.seed)
    batches = Batches(tables, options.batch_size, options.num_batches, options.seed)
    kind = "tables-only" if options.tables_only else options.tables
    trainers = {}
    for name in ("torchrec", "neuroshard"):
        planner = make_planner(name, tables, options)
        trainers[name] = Trainer(kind, tables, planner, options.all_types)
    predicted = predicted_steps(planner)
    if options.control:
        again = GivenPlan(trainers["torchrec"].plan)
        trainers[CONTROL] = Trainer(kind, tables, again, options.all_types)
    for step in range(options.steps):
        # Another begins whenever the batches begin anew.
        names = list(trainers)
        first = step // options.num_batches % len(names)
        for name in names[first:] + names[:first]:
            trainers[name].step(batches[step])
    results: dict = {"tables": options.tables, "num_tables": len(tables), "seed": options.seed}
    for name, trainer in trainers.items():
        results[name] = {
            "planning_seconds": trainer.planning_seconds,
            "pieces": pieces_of(trainer.plan),
            "types": Counter(each.sharding_type for each in tables_of(trainer.plan)),
            "predicted_ms": predicted.get(name),
            "embedding_ms": slowest(trainer.timings.lookup[options.warm_up :]),
            "step_ms": slowest(trainer.timings.step[options.warm_up :]),
            "losses": trainer.timings.loss,
        }
    pairs = list(zip(results["torchrec"]["losses"], results["neuroshard"]["losses"]))
    results["loss_difference"] = max(abs(a - b) / max(abs(a), 1e-12) for a, b in pairs)
    return results


def predicted_steps(planner: NeuroShardPlanner) -> dict[str, float | None]:
    """What the runtime's costs say of both planners' plans; rank 0 alone knows."""
    if planner.runtime_price is None or planner.estimates is None:
        return {}
    return {
        "neuroshard": planner.runtime_price.step_ms,
        "torchrec": planner.estimates.torchrec_by_models_ms,
    }


def show(results: dict) -> None:
    """Prints a table of both plans."""
    print(f"{results['num_tables']} tables ({results['tables']}), {dist.get_world_size()} ranks")
    print("plan            pieces  planning s  embedding ms  step ms  first loss  last loss")
    for name in ("torchrec", "neuroshard", CONTROL):
        if name not in results:
            continue
        r = results[name]
        print(
            f"{name:14}  {r['pieces']:6}  {r['planning_seconds']:10.3f}  {r['embedding_ms']:12.2f}"
            f"  {r['step_ms']:7.2f}  {r['losses'][0]:10.6f}  {r['losses'][-1]:9.6f}"
        )
    print(f"largest relative difference of a loss: {results['loss_difference']:.1e}")


def main() -> int:
    """Exit code 1 if the losses differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", choices=[*WORKLOADS, "generated"], default="dcnv2")
    parser.add_argument("--num-tables", type=int, default=40, help="of generated ones")
    parser.add_argument("--max-rows", type=int, default=400_000, help="rows are scaled down to it")
    parser.add_argument("--batch-size", type=int, default=512, help="samples per rank")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=10, help="steps that are not timed")
    parser.add_argument("--num-batches", type=int, default=8, help="different batches")
    parser.add_argument("--memory", type=int, default=8 << 30, help="bytes of every rank")
    parser.add_argument("--model", help="NeuroShard's computation model; default the shipped one")
    parser.add_argument("--all-types", action="store_true", help="of sharding, for both planners")
    parser.add_argument("--runtime", help="its costs, for NeuroShard: a file or a name")
    parser.add_argument("--tables-only", action="store_true", help="no dense layers")
    parser.add_argument("--control", action="store_true", help="TorchRec's plan a second time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    logging.getLogger("torchrec").setLevel(logging.ERROR)
    with process_group():
        results = run(options)
        if dist.get_rank() == 0:
            show(results)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(results, file, indent=1)
        dist.barrier()
    return 0 if results["loss_difference"] <= 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
