"""A model that was trained under one plan goes on under another, by torch.distributed.checkpoint, on
two processes and on two hosts of two; and what TorchRec itself cannot bring along is refused
before."""

from pathlib import Path

import pytest
from conftest import make_collection
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.sharding_plan import (
    column_wise,
    construct_module_sharding_plan,
    data_parallel,
    grid_shard,
    row_wise,
    table_row_wise,
    table_wise,
)
from torchrec.distributed.types import ShardingPlan, ShardingType
from torchrun_processes import torchrun

from neuroshard import InputError
from neuroshard.torchrec import check_resumable

SIZES = [(400, 16), (600, 32), (500, 64), (300, 8), (200, 256)]


class AllTypes(EmbeddingBagCollectionSharder):
    """TorchRec runs rows on CPUs, and does not offer them."""

    def sharding_types(self, compute_device_type):
        return [kind.value for kind in ShardingType]


def on(rank):
    return table_wise(rank, compute_kernel="fused")


def rows():
    return row_wise(compute_kernel="fused")


def columns(*ranks):
    return column_wise(ranks=list(ranks), compute_kernel="fused")


def fused(generator):
    """The sharding with the kernel that has an optimizer's state."""

    def sharding(*arguments):
        found = generator(*arguments)
        found.compute_kernel = "fused"
        return found

    return sharding


def host_rows(host):
    return fused(table_row_wise(host))


def grid(*hosts):
    return fused(grid_shard(list(hosts)))


def make_plan(world_size=2, **kinds):
    """Of CPUs, two a host."""
    module = make_collection(SIZES)
    chosen = {
        "t0": on(0), "t1": rows(), "t2": columns(0, 1), "t3": on(1), "t4": rows()
    } | kinds  # fmt: skip
    return ShardingPlan(
        {
            "": construct_module_sharding_plan(
                module, chosen, AllTypes(), local_size=2, world_size=world_size, device_type="cpu"
            )
        }
    )


def plans(world_size):
    """One to train under, one to go on under, and one whose state TorchRec cannot bring along."""
    if world_size == 2:
        new = {"t0": rows(), "t1": on(1), "t2": columns(1, 0), "t3": on(0)}
        return make_plan(), make_plan(**new), make_plan(t2=on(0))
    old = {"t0": host_rows(0), "t2": columns(0, 2), "t3": on(3), "t4": grid(0, 1)}
    new = {
        "t0": rows(), "t1": host_rows(1), "t2": columns(3, 1), "t3": host_rows(0), "t4": grid(1, 0)
    }  # fmt: skip
    return make_plan(4, **old), make_plan(4, **new), make_plan(4, **old | {"t4": rows()})


GOING_ON = """
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from conftest import make_collection
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from neuroshard.torchrec import check_resumable
from neuroshard.torchrec.runtime.processes import gloo_processes
from test_checkpoint import SIZES, AllTypes, plans

ROWWISE = EmbOptimType.EXACT_ROWWISE_ADAGRAD


def make_model(plan):
    sharder = AllTypes({"optimizer": ROWWISE, "learning_rate": 0.1})
    return DistributedModelParallel(
        module=make_collection(SIZES),
        device=torch.device("cpu"),
        plan=plan,
        sharders=[sharder],
    )


def train(model, steps, seed):
    losses = []
    draw = torch.Generator().manual_seed(seed + rank)
    for _ in range(steps):
        lengths = torch.randint(0, 5, (len(SIZES) * 8,), generator=draw)
        values = []
        for i, (rows, _) in enumerate(SIZES):
            count = int(lengths[8 * i : 8 * i + 8].sum())
            values.append(torch.randint(0, rows, (count,), generator=draw))
        features = KeyedJaggedTensor(
            keys=[f"f{i}" for i in range(len(SIZES))], values=torch.cat(values), lengths=lengths
        )
        loss = model(features).to_dict()
        loss = sum(((pooled - 0.5) ** 2).sum() for pooled in loss.values())
        loss.backward()
        losses.append(float(loss))
    return losses


def tensors_of(model):
    state = {f"model {name}": value for name, value in model.state_dict().items()}
    for parameter, of_parameter in model.fused_optimizer.state_dict()["state"].items():
        for name, value in of_parameter.items():
            state[f"optimizer {parameter} {name}"] = value
    return state


def whole(model):
    # Every tensor, put together of both ranks' parts: a rank has the states of its tables alone.
    local = {}
    for name, value in tensors_of(model).items():
        parts = [([0] * value.dim(), value)]
        if isinstance(value, ShardedTensor):
            parts = [(s.metadata.shard_offsets, s.tensor) for s in value.local_shards()]
        local[name] = tuple(value.size()), [(at, part.detach().clone()) for at, part in parts]
    of_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, local)
    found = {}
    for of_rank in of_ranks:
        for name, (size, parts) in of_rank.items():
            full = found.setdefault(name, torch.zeros(size))
            for offsets, part in parts:
                full[tuple(slice(o, o + n) for o, n in zip(offsets, part.shape))] = part
    return found


def main():
    old_plan, new_plan, other_plan = plans(dist.get_world_size())
    check_resumable(old_plan, new_plan, optimizer=ROWWISE)
    old = make_model(old_plan)
    train(old, 5, seed=1)
    checkpoint.save(tensors_of(old), checkpoint_id=sys.argv[1])
    before = whole(old)
    goes_on = train(old, 3, seed=2)

    new = make_model(new_plan)
    state = tensors_of(new)
    checkpoint.load(state, checkpoint_id=sys.argv[1])
    new.load_state_dict(
        {name[len("model "):]: value for name, value in state.items() if name.startswith("model ")}
    )
    after = whole(new)
    assert before.keys() == after.keys() and len(before) >= 8, sorted(before)
    for name, value in before.items():
        assert value.abs().sum() > 0, name
        assert torch.equal(value, after[name]), name
    torch.testing.assert_close(train(new, 3, seed=2), goes_on, rtol=1e-5, atol=1e-6)

    # A table whose columns are cut otherwise: weights can be loaded, TorchRec's state cannot.
    other = make_model(other_plan)
    state = tensors_of(other)
    weights = {name: value for name, value in state.items() if name.startswith("model ")}
    checkpoint.load(weights, checkpoint_id=sys.argv[1])
    loaded = whole(other)
    for name, value in before.items():
        assert not name.startswith("model ") or torch.equal(value, loaded[name]), name
    try:
        checkpoint.load(state, checkpoint_id=sys.argv[1])
    except BaseException as error:  # PyTorch's CheckpointException is no Exception
        print(f"rank {rank}: refused: {type(error).__name__}", flush=True)
    dist.barrier()


with gloo_processes(2, 1):
    rank = dist.get_rank()
    main()
print(f"rank {rank}: done", flush=True)
"""


@pytest.mark.parametrize("processes", [2, 4])
def test_training_goes_on_under_another_plan(tmp_path, processes):
    script = tmp_path / "going_on.py"
    folder = str(Path(__file__).parent)
    script.write_text(f"import sys\nsys.path.insert(0, {folder!r})\n" + GOING_ON)
    run = torchrun(processes, script, tmp_path / "checkpoint")
    for rank in range(processes):
        assert f"rank {rank}: refused" in run.stdout, run.stdout
        assert f"rank {rank}: done" in run.stdout, run.stdout


@pytest.mark.parametrize(
    ("kinds", "optimizer", "reason"),
    [
        ({"t0": rows(), "t3": on(0)}, "EXACT_ROWWISE_ADAGRAD", ""),
        ({"t2": columns(1, 0)}, "EXACT_ROWWISE_ADAGRAD", ""),
        (
            {"t2": on(0)},
            "EXACT_ROWWISE_ADAGRAD",
            r"t2: columns cut into 64, before 32 \+ 32",
        ),
        (
            {"t1": columns(1, 0)},
            "exact_rowwise_adagrad",
            r"t1: columns cut into 16 \+ 16, before 32",
        ),
        ({"t2": on(0)}, "ADAM", ""),
        ({"t2": on(0), "t1": data_parallel()}, "EXACT_SGD", ""),
        (
            {"t1": data_parallel(), "t2": data_parallel()},
            "ADAM",
            "t1: data_parallel, before row_wise; t2: data_parallel, before column_wise",
        ),
    ],
)
def test_what_cannot_be_brought_along_is_refused(kinds, optimizer, reason):
    if not reason:
        check_resumable(make_plan(), make_plan(**kinds), optimizer=optimizer)
        return
    with pytest.raises(InputError, match=reason) as caught:
        check_resumable(make_plan(), make_plan(**kinds), optimizer=optimizer)
    assert f"new_plan: expected one under which {optimizer.upper()}'s state" in str(caught.value)
