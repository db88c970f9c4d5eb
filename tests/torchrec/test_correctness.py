"""Plans that TorchRec can run: what once it could not."""

import pytest
import torch
from conftest import make_topology
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from neuroshard.torchrec import NeuroShardPlanner


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_sequences_of_a_module_are_cut_to_one_width(device):
    """TorchRec runs no other: "Mixed dimension tables only supported for pooling tables."."""
    sizes = [(626, 2.0), (1328, 8.0), (123, 8.0)]
    planner = NeuroShardPlanner(
        topology=make_topology(4, 1 << 32, device),
        batch_size=16,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        constraints={
            f"t{i}": ParameterConstraints(
                sharding_types=["column_wise"], pooling_factors=[factor], min_partition=16
            )
            for i, (_, factor) in enumerate(sizes)
        },
        debug=False,
        objective="torchrec",
    )
    tables = [
        EmbeddingConfig(
            name=f"t{i}", num_embeddings=rows, embedding_dim=64, feature_names=[f"f{i}"]
        )
        for i, (rows, _) in enumerate(sizes)
    ]
    module = EmbeddingCollection(tables=tables, device=torch.device("meta"))
    plan = planner.plan(module, [EmbeddingCollectionSharder()])
    widths = {
        shard.shard_sizes[1]
        for parameter in plan.plan[""].values()
        for shard in parameter.sharding_spec.shards
    }
    assert len(widths) == 1, widths
