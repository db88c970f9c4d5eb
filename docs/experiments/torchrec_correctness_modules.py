"""The modules of torchrec_correctness.py's tasks: unsharded, and under plans of
NeuroShardPlanner."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torch import nn
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fp_embeddingbag import FeatureProcessedEmbeddingBagCollectionSharder
from torchrec.distributed.fused_embeddingbag import FusedEmbeddingBagCollectionSharder
from torchrec.distributed.mc_embedding import ManagedCollisionEmbeddingCollectionSharder
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import PlannerError
from torchrec.distributed.types import (
    LazyAwaitable,
    ModuleSharder,
    ParameterSharding,
    ShardingPlan,
    ShardingType,
)
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.modules.feature_processor_ import (
    PositionWeightedModule,
    PositionWeightedModuleCollection,
)
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import (
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)
from torchrec.modules.mc_modules import (
    LFU_EvictionPolicy,
    ManagedCollisionCollection,
    MCHManagedCollisionModule,
)
from torchrec.optim import RowWiseAdagrad
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from neuroshard.torchrec import NeuroShardPlanner
from torchrec_correctness_tasks import (
    BATCH_SIZE,
    CUT_COLUMNS,
    ESTIMATED,
    FUSED,
    MANAGED_BAGS,
    MANAGED_SEQUENCES,
    PROCESSED,
    Batch,
    DrawnTable,
    Task,
)

#: Of SGD.
LEARNING_RATE = 1.5
#: Row-wise Adagrad's steps are as long as this, however small gradients are.
ADAGRAD = {"lr": 0.05, "eps": 1e-3}
#: Of feature processors' weights, which all samples share.
PROCESSORS_LEARNING_RATE = 0.01
#: Bytes of each process, where memory is not short.
MEMORY = 1 << 32


class Tables(nn.Module):
    """A task's modules: outputs by feature."""

    def __init__(self, modules: dict[str, nn.Module]) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)
        self._names = list(modules)

    def forward(self, batches: dict[str, KeyedJaggedTensor]) -> dict[str, torch.Tensor]:
        """Pooled, or the rows of sequences one below the other."""
        requested = [getattr(self, name)(batches[name]) for name in self._names]
        outputs: dict[str, torch.Tensor] = {}
        for found in requested:
            if isinstance(found, tuple):  # and remapped ids
                found = found[0]
            if isinstance(found, LazyAwaitable):
                found = found.wait()
            if isinstance(found, KeyedTensor):
                outputs |= found.to_dict()
            else:
                outputs |= {key: sequence.values() for key, sequence in found.items()}
        return outputs


def module_of(task: Task, device: str) -> Tables:
    """The task's modules, not sharded."""
    where = torch.device(device)
    bags = [
        EmbeddingBagConfig(
            **_fields(table), pooling=PoolingType.MEAN if table.is_mean else PoolingType.SUM
        )
        for table in task.tables
        if not table.is_sequence
    ]
    sequences = [EmbeddingConfig(**_fields(table)) for table in task.tables if table.is_sequence]
    if task.kind == FUSED:
        optimizer = (RowWiseAdagrad, ADAGRAD) if task.has_adagrad else (
            torch.optim.SGD,
            {"lr": LEARNING_RATE},
        )
        return Tables(
            {
                "bags": FusedEmbeddingBagCollection(
                    tables=bags,
                    optimizer_type=optimizer[0],
                    optimizer_kwargs=dict(optimizer[1]),
                    device=where,
                )
            }
        )
    modules: dict[str, nn.Module] = {}
    if bags:
        is_weighted = task.is_weighted or task.kind == PROCESSED
        modules["bags"] = EmbeddingBagCollection(tables=bags, is_weighted=is_weighted, device=where)
    if sequences:
        modules["sequences"] = EmbeddingCollection(tables=sequences, device=where)
    if task.kind == PROCESSED:
        lengths = {key: table.most_lookups for table in task.tables for key in table.features}
        processors = (
            PositionWeightedModuleCollection(lengths, device=where)
            if task.is_collection
            else {key: PositionWeightedModule(most, where) for key, most in lengths.items()}
        )
        modules["bags"] = FeatureProcessedEmbeddingBagCollection(modules["bags"], processors)
    if task.kind == MANAGED_BAGS:
        modules["bags"] = ManagedCollisionEmbeddingBagCollection(
            modules["bags"], _managed(task, bags, where)
        )
    if task.kind == MANAGED_SEQUENCES:
        modules["sequences"] = ManagedCollisionEmbeddingCollection(
            modules["sequences"], _managed(task, sequences, where)
        )
    return Tables(modules)


def _fields(table: DrawnTable) -> dict:
    return {
        "name": table.name,
        "num_embeddings": table.rows,
        "embedding_dim": table.columns,
        "feature_names": list(table.features),
    }


def _managed(task: Task, configs: list, device: torch.device) -> ManagedCollisionCollection:
    """Zero-collision hashing whose ids have their slots already: which id gets which one depends on
    the sharding, so that only then outputs are comparable."""
    modules = {}
    for table in task.tables:
        modules[table.name] = MCHManagedCollisionModule(
            zch_size=table.rows,
            device=device,
            eviction_policy=LFU_EvictionPolicy(),
            # Where it finds nothing to evict. With Adagrad's state, it never runs:
            # NotImplementedError: Could not run 'fbgemm::reset_weight_momentum' with arguments from
            # the 'CPU' backend.
            eviction_interval=1000 if task.has_adagrad else 5,
            input_hash_size=10 * -(-table.rows // task.world_size) * task.world_size,
            buckets=task.world_size,
        )
    return ManagedCollisionCollection(modules, configs)


def fill_slots(task: Task, model: nn.Module) -> None:
    """Lets each collision module, whole or of a slice, know the ids of its slots."""
    tables = {table.name: table for table in task.tables}
    for name, module in model.named_modules():
        if not isinstance(module, MCHManagedCollisionModule):
            continue
        table = tables[name.rsplit(".", 1)[-1]]
        first = module._output_global_offset
        end = first + module._zch_size
        is_here = (table.slots >= first) & (table.slots < end)
        slots = table.slots[is_here]
        is_free = torch.ones(end - first, dtype=torch.bool)
        is_free[slots - first] = False
        module._mch_sorted_raw_ids[: len(slots)] = table.ids[is_here]
        module._mch_remapped_ids_mapping.copy_(
            torch.cat([slots, first + is_free.nonzero().flatten()])
        )


def sharders_of(task: Task) -> list[ModuleSharder[nn.Module]]:
    """With all sharding types, which stock ones do not offer on CPUs, and SGD where a table says
    nothing else."""
    fused = {"optimizer": EmbOptimType.EXACT_SGD, "learning_rate": LEARNING_RATE}
    bags = _AllTypes(fused_params=dict(fused))
    sequences = EmbeddingCollectionSharder(fused_params=dict(fused))
    return [
        bags,
        sequences,
        _AllTypesFused(),
        FeatureProcessedEmbeddingBagCollectionSharder(ebc_sharder=bags),
        ManagedCollisionEmbeddingBagCollectionSharder(ebc_sharder=bags),
        ManagedCollisionEmbeddingCollectionSharder(ec_sharder=sequences),
    ]


class _AllTypes(EmbeddingBagCollectionSharder):
    def sharding_types(self, compute_device_type: str) -> list[str]:
        return [kind.value for kind in ShardingType]


class _AllTypesFused(FusedEmbeddingBagCollectionSharder):
    def sharding_types(self, compute_device_type: str) -> list[str]:
        return [kind.value for kind in ShardingType]


def planned(task: Task, module: nn.Module) -> ShardingPlan:
    """The plan; by our models with little more memory than a plan can be found for, so that tables
    are cut."""
    constraints = task.constraints()
    weights = 4 * sum(table.rows * table.columns for table in task.tables)
    memory = MEMORY if task.objective == ESTIMATED else weights / task.world_size
    while True:
        planner = NeuroShardPlanner(
            topology=Topology(
                world_size=task.world_size,
                local_world_size=task.local_world_size,
                compute_device="cpu",
                ddr_cap=int(memory),
            ),
            batch_size=BATCH_SIZE,
            constraints=constraints,
            storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
            debug=False,
            stats=[],
            **task.planner_options,
        )
        try:
            return planner.collective_plan(module, sharders_of(task), dist.GroupMember.WORLD)
        except PlannerError:
            if memory >= MEMORY:
                raise
        memory *= 1.1


class Reference:
    """The unsharded modules, trained by plain optimizers on the batches of all processes."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.module = module_of(task, "cpu")
        fill_slots(task, self.module)
        tables = {table.name: table for table in task.tables}
        self._rowwise: list[tuple[nn.Parameter, torch.Tensor]] = []
        plain, processors = [], []
        for name, parameter in self.module.named_parameters():
            table = tables.get(name.split(".")[-2])
            with torch.no_grad():
                parameter.uniform_(-0.2, 0.2, generator=task.generator)
                if table is None:
                    parameter += 1.0
            if table is None:
                processors.append(parameter)
            elif table.has_adagrad:
                self._rowwise.append((parameter, torch.zeros(len(parameter))))
            else:
                plain.append(parameter)
        self._sgd = sgd(plain, processors)

    def outputs(self, batch: Batch) -> dict[str, tuple[torch.Tensor, ...]]:
        """Of every feature, those of each process."""
        found = self.module(batch.of_all())
        return {
            key: found[key].split(batch.rows_of_processes(key, table.is_sequence))
            for table in self.task.tables
            for key in table.features
        }

    def step(self, losses: torch.Tensor) -> None:
        """The losses of processes and features, as of `losses`: the mean over processes counts."""
        self._sgd.zero_grad()
        for parameter, _ in self._rowwise:
            parameter.grad = None
        losses.sum(1).mean().backward()
        self._sgd.step()
        for parameter, sums in self._rowwise:
            gradient = parameter.grad
            if gradient is None:  # the module has optimizers of its own
                continue
            # As FBGEMM's EXACT_ROWWISE_ADAGRAD: one sum of squares a row.
            sums += (gradient * gradient).mean(1)
            with torch.no_grad():
                parameter -= ADAGRAD["lr"] * gradient / (sums.sqrt() + ADAGRAD["eps"])[:, None]


def sgd(tables: list[nn.Parameter], processors: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Of those whose gradients are there after the backward pass."""
    groups = [
        {"params": tables, "lr": LEARNING_RATE},
        {"params": processors, "lr": PROCESSORS_LEARNING_RATE},
    ]
    return torch.optim.SGD([group for group in groups if group["params"]] or groups[:1])


class Sharded:
    """The same modules under a plan."""

    def __init__(self, task: Task, reference: Reference) -> None:
        self.task = task
        module = module_of(task, "meta")
        adagrad = {table.name for table in task.tables if table.has_adagrad}
        if task.kind != FUSED:
            for name, parameter in module.named_parameters():
                if name.split(".")[-2] in adagrad:
                    apply_optimizer_in_backward(RowWiseAdagrad, [parameter], dict(ADAGRAD))
        start = time.perf_counter()
        self.plan = planned(task, module)
        self.planning_seconds = time.perf_counter() - start
        self.model = DistributedModelParallel(
            module=module,
            device=torch.device("cpu"),
            plan=self.plan,
            sharders=sharders_of(task),
        )
        fill_slots(task, self.model)
        for mine, whole in self.weights(reference):
            mine.copy_(whole)
        names = {table.name for table in task.tables}
        dense: dict[bool, list[nn.Parameter]] = {True: [], False: []}
        for name, parameter in self.model.named_parameters():
            if not hasattr(parameter, "_in_backward_optimizers"):
                dense[name.split(".")[-2] in names].append(parameter)
        self._sgd = sgd(dense[True], dense[False])

    def weights(self, reference: Reference) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """This process's parts of all weights, and the same parts of the reference's."""
        expected = reference.module.state_dict()
        found = self.model.state_dict()
        assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
        for name, value in found.items():
            whole = expected[name]
            if not whole.is_floating_point():  # of managed collisions
                continue
            if not isinstance(value, ShardedTensor):
                yield value.detach(), whole
                continue
            for shard in value.local_shards():
                at = zip(shard.metadata.shard_offsets, shard.metadata.shard_sizes, strict=True)
                yield shard.tensor.detach(), whole[tuple(slice(o, o + n) for o, n in at)]

    def outputs(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Of every feature."""
        return self.model(batch.of_process(dist.get_rank()))

    def step(self, losses: torch.Tensor) -> None:
        """TorchRec, as DistributedDataParallel, takes the mean over processes."""
        self._sgd.zero_grad()
        losses.sum().backward()
        self._sgd.step()

    def types(self) -> dict[str, str]:
        """Of every table, its type, and whether its columns are whole where they might be cut."""
        found = {}
        for of_module in self.plan.plan.values():
            for name, parameter in of_module.items():
                found[name] = parameter.sharding_type
                if found[name] in CUT_COLUMNS and len(widths_of(parameter)) == 1:
                    found[name] += " (whole)"
        return found

    def widths(self) -> dict[str, list[int]]:
        """Of the tables whose columns are cut, those of the pieces."""
        return {
            name: widths_of(parameter)
            for of_module in self.plan.plan.values()
            for name, parameter in of_module.items()
            if parameter.sharding_type in CUT_COLUMNS and len(widths_of(parameter)) > 1
        }


def widths_of(parameter: ParameterSharding) -> list[int]:
    """Of a table's pieces, those side by side."""
    shards = parameter.sharding_spec.shards
    return list({s.shard_offsets[1]: s.shard_sizes[1] for s in shards}.values())
