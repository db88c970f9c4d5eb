"""Fixtures of the tests with the real packages: collections, topologies, options of a plan."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

torch.set_num_threads(1)


class RowsToo(EmbeddingBagCollectionSharder):
    """TorchRec runs rows on CPUs, and does not offer them."""

    def sharding_types(self, compute_device_type):
        return sorted({*super().sharding_types(compute_device_type), "row_wise"})


def make_collection(sizes, *, weighted=False, device="meta", data_type=None):
    """An EmbeddingBagCollection of tables t0, t1, ... of (rows, columns)."""
    extra = {} if data_type is None else {"data_type": data_type}
    return EmbeddingBagCollection(
        device=torch.device(device),
        is_weighted=weighted,
        tables=[
            EmbeddingBagConfig(
                name=f"t{i}",
                num_embeddings=rows,
                embedding_dim=columns,
                feature_names=[f"f{i}"],
                **extra,
            )
            for i, (rows, columns) in enumerate(sizes)
        ],
    )


def make_topology(world_size, memory, device="cpu", local=None):
    """Devices of this much memory."""
    return Topology(
        world_size=world_size,
        local_world_size=local or world_size,
        compute_device=device,
        ddr_cap=memory,
        hbm_cap=memory,
    )


def shards_of(plan, path=""):
    """{table: [(first column, columns, rank), ...]} of a ShardingPlan."""
    return {
        name: [
            (shard.shard_offsets[1], shard.shard_sizes[1], shard.placement.rank())
            for shard in parameter.sharding_spec.shards
        ]
        for name, parameter in plan.plan[path].items()
    }


@pytest.fixture
def sharders():
    return [EmbeddingBagCollectionSharder()]
