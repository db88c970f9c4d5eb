"""How near the sums of our shares are to what devices cost: random tasks, planned by TorchRec's own
planner with `NeuroShardPerfEstimator`, and the plans priced whole by the same models.

    build/torchrec/bin/python docs/experiments/torchrec_shares.py

Five tasks of 8 to 60 tables on 4 devices for each kind of device and set of sharding types.
"""

from __future__ import annotations

import logging
import random
import statistics
import warnings

import torch
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.shard_estimators import EmbeddingStorageEstimator
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from neuroshard.torchrec import NeuroShardPerfEstimator
from neuroshard.torchrec.inputs import PlanningInputs
from neuroshard.torchrec.measured import MeasuredSettings
from neuroshard.torchrec.prediction import plan_by_models

BATCH_SIZE = 1024
MODELS = {"cpu": None, "cuda": ["analytic-a100-80gb", "a100-nvswitch"]}
KINDS = (
    ["table_wise", "column_wise"],
    ["row_wise"],
    ["data_parallel"],
    ["table_wise", "column_wise", "row_wise", "data_parallel"],
)


class RowsToo(EmbeddingBagCollectionSharder):
    """TorchRec runs rows on CPUs, and does not offer them."""

    def sharding_types(self, compute_device_type: str) -> list[str]:
        return sorted({*super().sharding_types(compute_device_type), "row_wise"})


def errors(device: str, kinds: list[str], seed: int) -> tuple[list[float], float]:
    """Of a task: relative errors of each device's computation, and of the slowest device."""
    draw = random.Random(seed)
    tables = [
        EmbeddingBagConfig(
            name=f"t{i}",
            num_embeddings=round(10 ** draw.uniform(3, 6)),
            embedding_dim=draw.choice([16, 32, 64, 128]),
            feature_names=[f"f{i}"],
        )
        for i in range(draw.choice([8, 24, 60]))
    ]
    constraints = {
        table.name: ParameterConstraints(
            pooling_factors=[round(10 ** draw.uniform(0, 1.7), 1)],
            sharding_types=kinds,
            compute_kernels=["fused", "dense"],
        )
        for table in tables
    }
    topology = Topology(
        world_size=4, local_world_size=4, compute_device=device, ddr_cap=32 << 30, hbm_cap=32 << 30
    )
    estimators = [
        NeuroShardPerfEstimator(topology, constraints, models=MODELS[device]),
        EmbeddingStorageEstimator(topology, constraints),
    ]
    planner = EmbeddingShardingPlanner(
        topology=topology,
        batch_size=BATCH_SIZE,
        enumerator=EmbeddingEnumerator(topology, BATCH_SIZE, constraints, estimator=estimators),
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        constraints=constraints,
        stats=[],
        debug=False,
    )
    module = EmbeddingBagCollection(device=torch.device("meta"), tables=tables)
    planner.plan(module, [RowsToo()])
    sums, computed = [0.0] * 4, [0.0] * 4
    for option in planner._best_plan:
        for shard in option.shards:
            sums[shard.rank] += shard.perf.total
            computed[shard.rank] += shard.perf.fwd_compute + shard.perf.bwd_compute
    inputs = PlanningInputs(topology, topology, BATCH_SIZE, constraints, None, 0, 0)
    whole = plan_by_models(
        planner._best_plan, [RowsToo()], inputs, MeasuredSettings(MODELS[device])
    ).predicted
    of_devices = [
        computed[d] / cost.compute_ms - 1.0
        for d, cost in enumerate(whole.devices)
        if cost.compute_ms > 0
    ]
    return of_devices, max(sums) / whole.cost_ms - 1.0


def main() -> None:
    """Prints a line for each kind of device and set of sharding types."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for device in MODELS:
        for kinds in KINDS:
            found = [errors(device, kinds, seed) for seed in range(5)]
            computation = [abs(error) for of_devices, _ in found for error in of_devices]
            slowest = [error for _, error in found]
            print(
                f"{device}, {', '.join(kinds)}: computation of a device off by "
                f"{statistics.mean(computation):.1%} in the mean, {max(computation):.1%} at most; "
                f"slowest device {min(slowest):+.1%} to {max(slowest):+.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
