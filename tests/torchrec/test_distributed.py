"""Real training on two processes: both planners' plans, equal losses, one plan on all ranks."""

import json
import re
import signal
from pathlib import Path

import pytest
from torchrun_processes import torchrun

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("tables", "more"),
    [
        ("dcnv2", []),
        ("generated", []),
        ("generated", ["--all-types"]),
        ("generated", ["--all-types", "--tables-only"]),
    ],
)
def test_training_gives_equal_losses(tmp_path, tables, more):
    torchrun(
        2,
        ROOT / "examples" / "torchrec_dlrm.py",
        *(*more, "--tables", tables, "--num-tables", 12, "--max-rows", 5000, "--batch-size", 32),
        *("--steps", 6, "--warm-up", 2, "--num-batches", 2, "--json", tmp_path / "results.json"),
    )
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["loss_difference"] <= 1e-4
    for name in ("torchrec", "neuroshard"):
        losses = results[name]["losses"]
        assert len(losses) == 6
        # The second half goes over the batches of the first again.
        assert losses[4] < losses[0] and losses[5] < losses[1]
        assert 0 < results[name]["embedding_ms"] < results[name]["step_ms"]


PLAN_ON_ALL_RANKS = """
import gc

import torch
import torch.distributed as dist
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

import neuroshard
from neuroshard import InputError
from neuroshard.torchrec import NeuroShardPlanner
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner import Topology

dist.init_process_group("gloo")
rank = dist.get_rank()
collection = EmbeddingBagCollection(
    device=torch.device("meta"),
    is_weighted=True,
    tables=[
        EmbeddingBagConfig(
            name=f"t{i}", num_embeddings=20_000, embedding_dim=128, feature_names=[f"f{i}"]
        )
        for i in range(5)
    ],
)
# Every rank has a seed of its own: only rank 0's may count.
planner = NeuroShardPlanner(
    # Room for two tables and a half each.
    topology=Topology(
        world_size=2, local_world_size=2, compute_device="cpu", ddr_cap=29 << 20
    ),
    storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
    debug=False,
    seed=rank,
)
sharders = [EmbeddingBagCollectionSharder()]
plan = planner.collective_plan(collection, sharders, dist.GroupMember.WORLD)
plans = [None, None]
dist.all_gather_object(plans, str(plan))
assert plans[0] == plans[1]
assert (planner.neuroshard_plan is not None) == (rank == 0)
try:
    planner.plan(collection, sharders)
    assert rank == 0
except InputError as error:
    assert rank == 1 and "collective_plan" in str(error), error

# Columns of one table are on both ranks.
widths = [
    [shard.shard_sizes[1] for shard in parameter.sharding_spec.shards]
    for parameter in plan.plan[""].values()
]
assert any(len(parts) > 1 for parts in widths), widths
model = DistributedModelParallel(
    module=collection, device=torch.device("cpu"), plan=plan, sharders=sharders
)
features = KeyedJaggedTensor(
    keys=[f"f{i}" for i in range(5)],
    values=torch.arange(30) * 7 % 1000,
    lengths=torch.tensor([2, 1, 3] * 5),
    weights=torch.linspace(0.5, 1.5, 30),
)
pooled = model(features)
assert pooled.values().shape == (3, 5 * 128)
pooled.values().sum().backward()
dist.barrier()
del model, features, pooled  # they hold the group, whose threads must end before the interpreter
gc.collect()
dist.destroy_process_group()
"""


def test_one_plan_on_all_ranks(tmp_path):
    script = tmp_path / "plan_on_all_ranks.py"
    script.write_text(PLAN_ON_ALL_RANKS)
    run = torchrun(2, script, check=False)
    assert run.returncode == 0, run.stderr[-3000:]


PLAN_IN_A_SUBGROUP = """
import torch.distributed as dist
from conftest import make_collection, make_topology
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

from neuroshard.torchrec import NeuroShardPlanner

dist.init_process_group("gloo")
groups = [dist.new_group([rank]) for rank in range(2)]
own = groups[dist.get_rank()]
planner = NeuroShardPlanner(topology=make_topology(1, 1 << 30), debug=False)
plan = planner.collective_plan(
    make_collection([(1000, 64)]), [EmbeddingBagCollectionSharder()], own
)
print(f"rank {dist.get_rank()}: {len(plan.plan[''])} tables", flush=True)


class Unreadable(Exception):
    def __reduce__(self):
        raise TypeError("not to be pickled")


def fail(*_):
    raise Unreadable("what went wrong")


planner._planned = fail
try:
    planner.collective_plan(make_collection([(1000, 64)]), [], dist.GroupMember.WORLD)
except RuntimeError as error:
    print(f"rank {dist.get_rank()}: {error}", flush=True)
del planner, plan, own, groups
dist.destroy_process_group()
"""


def test_groups_other_than_all_ranks_and_failures_that_cannot_be_sent(tmp_path):
    script = tmp_path / "plan_in_a_subgroup.py"
    path = str(ROOT / "tests" / "torchrec")
    script.write_text(f"import sys\nsys.path.insert(0, {path!r})\n" + PLAN_IN_A_SUBGROUP)
    run = torchrun(2, script)
    for rank in (0, 1):
        assert f"rank {rank}: 1 tables" in run.stdout, run.stdout
        assert f"rank {rank}: Unreadable: what went wrong" in run.stdout, run.stdout


FAILING_ON_ALL_RANKS = """
import gc
import sys
import weakref

import torch
import torch.distributed as dist
from conftest import make_collection, make_topology
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.types import PlannerError

from neuroshard.torchrec import NeuroShardPlanner

dist.init_process_group("gloo")
planner = NeuroShardPlanner(topology=make_topology(2, 1 << 20), debug=False)
gc.disable()
held = sys.getrefcount(dist.GroupMember.WORLD)
try:
    planner.collective_plan(
        make_collection([(100_000, 64)]), [EmbeddingBagCollectionSharder()], dist.GroupMember.WORLD
    )
except PlannerError as error:
    print(f"rank {dist.get_rank()}: {error.error_type}: {error}", flush=True)
    failure = weakref.ref(error)
# A traceback that outlives its handling would hold the process group beyond its destruction, and
# the group's threads would still run, and abort, when the interpreter ends.
assert failure() is None
assert sys.getrefcount(dist.GroupMember.WORLD) == held
dist.destroy_process_group()
"""


def test_what_fails_on_rank_0_fails_on_all(tmp_path):
    script = tmp_path / "failing_on_all_ranks.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'tests' / 'torchrec')!r})\n")
    with script.open("a") as file:
        file.write(FAILING_ON_ALL_RANKS)
    run = torchrun(2, script)
    for rank in (0, 1):
        assert f"rank {rank}: PlannerErrorType.INSUFFICIENT_STORAGE" in run.stdout, run.stdout


TRAINING_THAT_MAY_FAIL = """
import glob
import sys
import time
import torchrec_dlrm
from neuroshard import InputError


def threads_of_the_group():
    names = []
    for path in glob.glob("/proc/self/task/*/comm"):
        try:
            names.append(open(path).read().strip())
        except OSError:  # it ended since it was listed
            pass
    return [name for name in names if "gloo" in name]


try:
    torchrec_dlrm.main()
except InputError as error:
    print(f"failed: {error}")
# The kernel still lists a thread for a moment after it was joined; one that runs on stays.
deadline = time.monotonic() + 10
while (threads := threads_of_the_group()) and time.monotonic() < deadline:
    time.sleep(0.01)
print(f"of the group: {len(threads)} threads", flush=True)
"""


@pytest.mark.parametrize("model", ["fbgemm-cpu-xeon", "no-such-model"])
def test_no_thread_of_the_group_outlives_it(tmp_path, model):
    script = tmp_path / "training.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'examples')!r})\n" + TRAINING_THAT_MAY_FAIL
    )
    run = torchrun(
        2,
        script,
        *("--tables", "generated", "--num-tables", 4, "--max-rows", 1000, "--batch-size", 16),
        *("--steps", 4, "--warm-up", 1, "--model", model),
    )
    assert run.stdout.count("of the group: 0 threads") == 2, run.stdout
    assert run.stdout.count("failed: ") == (2 if model == "no-such-model" else 0), run.stdout


def test_an_example_that_fails_ends_in_order():
    run = torchrun(
        2,
        ROOT / "examples" / "torchrec_dlrm.py",
        *("--tables", "generated", "--num-tables", 4, "--max-rows", 1000, "--batch-size", 16),
        *("--steps", 4, "--warm-up", 1, "--model", "no-such-model"),
        check=False,
    )
    assert run.returncode == 1
    assert 'got "no-such-model"' in run.stderr, run.stderr[-3000:]
    # No rank aborts; torchrun itself ends (SIGTERM) a rank that has not yet left when it notices
    # that another has failed.
    signals = set(re.findall(r"exitcode  : -(\d+)", run.stderr))
    assert signals <= {str(int(signal.SIGTERM))}, run.stderr[-3000:]
