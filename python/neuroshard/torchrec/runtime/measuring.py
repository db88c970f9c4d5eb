"""A model of given shards, and the times of its steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    DenseTableBatchedEmbeddingBagsCodegen,
    SplitTableBatchedEmbeddingBagsCodegen,
)
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.types import (
    EmbeddingModuleShardingPlan,
    EnumerableShardingSpec,
    LazyAwaitable,
    ParameterSharding,
    ShardingPlan,
    ShardMetadata,
)
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from ...runtime.work import DATA_PARALLEL, POOLED, Setup, ShardedModule, ShardedTable

_OPTIMIZERS = {
    "sgd": EmbOptimType.EXACT_SGD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
}

#: Small enough that weights hardly change, however many steps there are.
_LEARNING_RATE = 1e-7

#: Batches that alternate.
_BATCHES = 2


class _Tables(nn.Module):
    """Nothing but the modules: their outputs, all requested before the first is waited for."""

    def __init__(self, modules: Sequence[ShardedModule]) -> None:
        super().__init__()
        for number, module in enumerate(modules):
            self.add_module(f"m{number}", _collection(number, module))
        self._number = len(modules)

    def forward(self, batches: Sequence[KeyedJaggedTensor]) -> list[torch.Tensor]:
        """The pooled outputs of a module as one tensor, sequences as one for each feature."""
        requested = [getattr(self, f"m{i}")(batches[i]) for i in range(self._number)]
        values: list[torch.Tensor] = []
        for output in requested:
            found: Any = output.wait() if isinstance(output, LazyAwaitable) else output
            if isinstance(found, dict):
                values += [sequence.values() for sequence in found.values()]
            else:
                values.append(found.values())
        return values


class OperatorClock:
    """Adds up the time in FBGEMM's operators, of either pass."""

    def __init__(self, model: nn.Module) -> None:
        self.forward_ms = 0.0
        self.backward_ms = 0.0
        self._start = 0.0
        # Sharded modules keep their lookups in plain lists.
        lookups = [one for module in model.modules() for one in getattr(module, "_lookups", [])]
        for module in (inner for lookup in lookups for inner in lookup.modules()):
            if isinstance(
                module,
                (SplitTableBatchedEmbeddingBagsCodegen, DenseTableBatchedEmbeddingBagsCodegen),
            ):
                module.register_forward_pre_hook(lambda *_: self._begin())
                module.register_forward_hook(self._after_forward)

    def reset(self) -> None:
        """Before a step."""
        self.forward_ms = self.backward_ms = 0.0

    def _begin(self) -> None:
        self._start = time.perf_counter()

    def _elapsed_ms(self) -> float:
        return 1e3 * (time.perf_counter() - self._start)

    def _after_forward(self, module: nn.Module, inputs: Any, output: torch.Tensor) -> None:
        self.forward_ms += self._elapsed_ms()
        if output.grad_fn is not None:
            output.grad_fn.register_prehook(lambda *_: self._begin())
            output.grad_fn.register_hook(lambda *_: self._end_backward())

    def _end_backward(self) -> None:
        self.backward_ms += self._elapsed_ms()


class MeasuredModel:
    """A plan's tables on these processes, and the times of its steps on this one."""

    def __init__(
        self, modules: Sequence[ShardedModule], setup: Setup, optimizer: str, seed: int
    ) -> None:
        fused = {"optimizer": _OPTIMIZERS[optimizer], "learning_rate": _LEARNING_RATE}
        self.model = DistributedModelParallel(
            module=_Tables(modules),
            device=torch.device("cpu"),
            plan=sharding_plan(modules, setup),
            sharders=[
                EmbeddingBagCollectionSharder(fused_params=dict(fused)),
                EmbeddingCollectionSharder(fused_params=dict(fused)),
            ],
        )
        replicated = any(
            table.sharding_type == DATA_PARALLEL for module in modules for table in module.tables
        )
        self._dense: Any = None
        if replicated:
            self._dense = torch.optim.SGD(self.model.parameters(), lr=_LEARNING_RATE)
        draw = torch.Generator().manual_seed(seed * 7919 + dist.get_rank())
        self._batches = [
            [
                _batch(number, module, setup.batch_size, draw)
                for number, module in enumerate(modules)
            ]
            for _ in range(_BATCHES)
        ]
        self._steps = 0
        self._clock = OperatorClock(self.model)
        #: Forward and backward pass, and of these the operators.
        self.times: list[tuple[float, float, float, float]] = []

    def outputs(self, batch: int = 0) -> list[torch.Tensor]:
        """The modules' outputs."""
        return list(self.model(self._batches[batch]))

    def batch(self, batch: int = 0) -> list[KeyedJaggedTensor]:
        """This process's lookups, a list of each module's."""
        return self._batches[batch]

    def step(self) -> None:
        """Both passes, which all processes begin together."""
        batch = self._batches[self._steps % _BATCHES]
        self._steps += 1
        self._clock.reset()
        dist.barrier()
        start = time.perf_counter()
        outputs = self.model(batch)
        forward_ms = 1e3 * (time.perf_counter() - start)
        gradients = [torch.full_like(output, 1e-3) for output in outputs]
        dist.barrier()
        start = time.perf_counter()
        torch.autograd.backward(outputs, gradients)
        if self._dense is not None:
            self._dense.step()
            self._dense.zero_grad()
        backward_ms = 1e3 * (time.perf_counter() - start)
        self.times.append(
            (forward_ms, backward_ms, self._clock.forward_ms, self._clock.backward_ms)
        )


def sharding_plan(modules: Sequence[ShardedModule], setup: Setup) -> ShardingPlan:
    """The plan as `DistributedModelParallel` takes it."""
    return ShardingPlan(
        {
            f"m{number}": EmbeddingModuleShardingPlan(
                {
                    f"t{number}_{i}": _parameter_sharding(table, setup)
                    for i, table in enumerate(module.tables)
                }
            )
            for number, module in enumerate(modules)
        }
    )


def _parameter_sharding(table: ShardedTable, setup: Setup) -> ParameterSharding:
    if table.sharding_type == DATA_PARALLEL:
        return ParameterSharding(
            sharding_type=table.sharding_type,
            compute_kernel=EmbeddingComputeKernel.DENSE.value,
            ranks=list(range(setup.world_size)),
            sharding_spec=None,
        )
    return ParameterSharding(
        sharding_type=table.sharding_type,
        compute_kernel=EmbeddingComputeKernel.FUSED.value,
        ranks=[shard.rank for shard in table.shards],
        sharding_spec=EnumerableShardingSpec(
            [
                ShardMetadata(
                    shard_offsets=[shard.row_offset, shard.column_offset],
                    shard_sizes=[shard.num_rows, shard.num_columns],
                    placement=f"rank:{shard.rank}/cpu",
                )
                for shard in table.shards
            ]
        ),
    )


def _collection(number: int, module: ShardedModule) -> nn.Module:
    configs = [
        {
            "name": f"t{number}_{i}",
            "num_embeddings": table.num_embeddings,
            "embedding_dim": table.embedding_dim,
            "feature_names": _features(number, i, table),
        }
        for i, table in enumerate(module.tables)
    ]
    meta = torch.device("meta")
    if module.kind == POOLED:
        return EmbeddingBagCollection(
            device=meta, tables=[EmbeddingBagConfig(**config) for config in configs]
        )
    return EmbeddingCollection(
        device=meta, tables=[EmbeddingConfig(**config) for config in configs]
    )


def _features(number: int, table: int, sharded: ShardedTable) -> list[str]:
    return [f"f{number}_{table}_{i}" for i in range(sharded.num_features)]


def _batch(
    number: int, module: ShardedModule, samples: int, draw: torch.Generator
) -> KeyedJaggedTensor:
    """Lookups of all rows alike: of a feature with one a sample exactly that, of others up to twice
    the mean."""
    keys: list[str] = []
    lengths: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    for i, table in enumerate(module.tables):
        mean = round(table.pooling_factor / table.num_features)
        for key in _features(number, i, table):
            keys.append(key)
            if mean == 1:
                drawn = torch.ones(samples, dtype=torch.int64)
            else:
                drawn = torch.randint(0, 2 * mean + 1, (samples,), generator=draw)
            lengths.append(drawn)
            values.append(
                torch.randint(0, table.num_embeddings, (int(drawn.sum()),), generator=draw)
            )
    return KeyedJaggedTensor(keys=keys, values=torch.cat(values), lengths=torch.cat(lengths))
