"""Plans train as unsharded modules do: the first tasks of docs/experiments/torchrec_correctness.py, of
every kind of module on two processes; and what once did not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import make_topology
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from neuroshard.torchrec import NeuroShardPlanner

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "torchrec_correctness.py"


def torchrun(processes, *arguments):
    return subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(processes), str(SCRIPT)),
            *map(str, arguments),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(("processes", "tasks"), [(2, 10), (4, 1)])
def test_plans_train_as_unsharded_modules_do(tmp_path, processes, tasks):
    path = tmp_path / "correct.jsonl"
    options = ("--local-world-size", 2, "-o", path)
    run = torchrun(processes, "--tasks", tasks, *options)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-3000:]
    results = [json.loads(line) for line in path.read_text().splitlines()]
    assert [result["task"] for result in results] == list(range(tasks))
    for result in results:
        assert result["is_equal"]
        assert result["output_difference"] <= 1e-5
        assert result["loss_difference"] <= 1e-4
        assert result["weight_difference"] <= 1e-4
        assert len(result["losses"]) == 20 and result["losses"][-1] < result["losses"][0]
        assert sum(result["types"].values()) == result["tables"]
    # The first task has tables of every type.
    assert len(results[0]["types"]) >= (4 if processes == 2 else 7), results[0]["types"]
    assert f"{tasks} of {tasks} tasks train as unsharded modules do" in run.stdout


def test_a_file_is_continued_and_a_difference_is_told(tmp_path):
    path = tmp_path / "correct.jsonl"
    assert torchrun(2, "--tasks", 1, "-o", path).returncode == 0
    [first] = path.read_text().splitlines()
    path.write_text(first.replace('"is_equal": true', '"is_equal": false') + '\n{"task": 1')
    run = torchrun(2, "--tasks", 2, "-o", path)
    assert run.returncode == 1
    assert "task  0" not in run.stdout and "1 of 2 tasks" in run.stdout
    assert [json.loads(line)["task"] for line in path.read_text().splitlines()] == [0, 1]


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
