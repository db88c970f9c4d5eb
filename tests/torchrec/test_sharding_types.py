"""TorchRec's own planner on the tasks of tests/baselines/golden/torchrec_plans.json.

The file has its options, estimates and plans; tests/baselines holds the baseline `torchrec-like` to
it. So both planners are compared without either needing the other's environment. After a change of
the cases or of TorchRec's release, write it anew:

    build/torchrec/bin/python tests/torchrec/test_sharding_types.py
"""

import json
import math
import random
from pathlib import Path

import torch
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.shard_estimators import (
    EmbeddingPerfEstimator,
    EmbeddingStorageEstimator,
)
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

GOLDEN = Path(__file__).parent.parent / "baselines" / "golden" / "torchrec_plans.json"

#: Bytes/ms of TorchRec's defaults, and of a CPU with a slow network: they favour other types.
GPU = {"device": 963_146_416.128, "intra_host": 644_245_094.4, "inter_host": 13_421_772.8}
CPU = {"device": 12_000_000.0, "intra_host": 5_000_000.0, "inter_host": 1_200_000.0}


class AllTypes(EmbeddingEnumerator):
    """With grid_shard, which TorchRec takes only where a constraint names it, and in one order."""

    def _filter_sharding_types(self, name, allowed_sharding_types, sharder_key=""):
        return allowed_sharding_types


def case(name, num_tables, devices, per_host, seed, *, rows, constants=GPU, min_partition=32,
         slack=None, data_type="fp32"):
    """A task in the documented format, its devices having `slack` times their share of the
    tables' bytes; without it, plenty."""
    draw = random.Random(seed)
    tables = [
        {
            "name": f"t{i}",
            "num_embeddings": int(10 ** draw.uniform(*rows)),
            "embedding_dim": draw.choice([16, 32, 48, 64, 100, 128, 256]),
            "pooling_factor": round(10 ** draw.uniform(-0.5, 1.7), 2),
            "data_type": data_type,
        }
        for i in range(num_tables)
    ]
    size = 4 if data_type == "fp32" else 2
    total = sum(table["num_embeddings"] * table["embedding_dim"] * size for table in tables)
    memory = int(slack * total / devices) if slack else 1 << 40
    task = {
        "format": "neuroshard/task/1",
        "batch_size": 512 * devices,
        "optimizer": "sgd",
        "tables": tables,
        "topology": {
            "world_size": devices,
            "local_world_size": per_host,
            "memory_bytes": memory,
        },
    }
    return {
        "name": name,
        "min_partition": min_partition,
        "constants": {**constants, "all_reduce": constants["inter_host"] * per_host},
        "task": task,
    }


def cases():
    return [
        case("grid search of three tables", 3, 4, 4, 1, rows=(3, 6)),
        case("one host", 12, 8, 8, 2, rows=(2, 6)),
        case("one host of CPUs", 12, 8, 8, 2, rows=(2, 6), constants=CPU),
        case("two hosts", 16, 8, 4, 3, rows=(2, 6.5)),
        case("four hosts of CPUs", 16, 16, 4, 4, rows=(1, 6), constants=CPU),
        case("little memory", 10, 4, 4, 5, rows=(3, 6.5), slack=1.3),
        case("little memory on two hosts", 14, 8, 4, 6, rows=(3, 6.5), slack=1.2, constants=CPU),
        case("few rows", 8, 8, 4, 7, rows=(0, 1.5)),
        case("half precision, wide blocks", 10, 8, 4, 8, rows=(2, 6), data_type="fp16",
             min_partition=64, constants=CPU),
    ]


def planned(given):
    """The case with what TorchRec's planner makes of it."""
    task = given["task"]
    devices = task["topology"]["world_size"]
    constants = given["constants"]
    topology = Topology(
        world_size=devices,
        local_world_size=task["topology"]["local_world_size"],
        compute_device="cuda",
        hbm_cap=task["topology"]["memory_bytes"],
        hbm_mem_bw=constants["device"],
        intra_host_bw=constants["intra_host"],
        inter_host_bw=constants["inter_host"],
    )
    half = task["tables"][0]["data_type"] == "fp16"
    collection = EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingBagConfig(
                name=table["name"],
                num_embeddings=table["num_embeddings"],
                embedding_dim=table["embedding_dim"],
                feature_names=[f"f_{table['name']}"],
                data_type=DataType.FP16 if half else DataType.FP32,
            )
            for table in task["tables"]
        ],
    )
    constraints = {
        table["name"]: ParameterConstraints(
            pooling_factors=[table["pooling_factor"]],
            min_partition=given["min_partition"],
            compute_kernels=["fused", "dense"],  # no tables in the host's memory
        )
        for table in task["tables"]
    }
    batch_size = task["batch_size"] // devices
    enumerator = AllTypes(
        topology,
        batch_size=batch_size,
        constraints=constraints,
        estimator=[
            EmbeddingPerfEstimator(topology, constraints),
            # Of weights alone, as a task's memory is: no indices, no pooled outputs.
            EmbeddingStorageEstimator(topology, constraints, is_inference=True),
        ],
    )
    planner = EmbeddingShardingPlanner(
        topology=topology,
        batch_size=batch_size,
        enumerator=enumerator,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        constraints=constraints,
        stats=[],
        debug=False,
    )
    sharders = [EmbeddingBagCollectionSharder()]
    planner.plan(collection, sharders)
    best = planner._best_plan
    assert [option.name for option in best] == [table["name"] for table in task["tables"]]
    space = enumerator.enumerate(collection, sharders)
    return {
        **given,
        "rating_ms": NoopPerfModel(topology).rate(best),
        "types": [option.sharding_type for option in best],
        "devices": [[shard.rank for shard in option.shards] for option in best],
        "options": [
            [option_fields(option) for option in space if option.name == table["name"]]
            for table in task["tables"]
        ],
    }


def option_fields(option):
    """A type's shards, of which the first says what all cost."""
    perf = option.shards[0].perf
    assert all(shard.perf == perf for shard in option.shards)
    return {
        "type": option.sharding_type,
        "rows": [shard.size[0] for shard in option.shards],
        "columns": option.shards[0].size[1],
        "bytes": sum(shard.storage.hbm for shard in option.shards),
        "perf_ms": [perf.fwd_compute, perf.fwd_comms, perf.bwd_compute, perf.bwd_comms],
    }


def assert_same(found, expected, place=""):
    """Equal, numbers up to the last bits."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key, value in expected.items():
            assert_same(found[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            assert_same(found[number], value, f"{place}[{number}]")
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-12), place
    else:
        assert found == expected, place


def test_the_file_has_what_torchrec_plans():
    with open(GOLDEN) as file:
        golden = json.load(file)["cases"]
    found = [planned(given) for given in cases()]
    for ours, theirs in zip(golden, found, strict=True):
        assert_same(theirs, ours, ours["name"])
    # The cases are worth comparing: every type is chosen in some.
    chosen = {kind for given in golden for kind in given["types"]}
    assert len(chosen) >= 6, chosen


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(planned(given)) for given in cases())
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text('{"cases": [\n' + lines + "\n]}\n")
