"""TorchRec's runtime on gloo: every sharding type runs and is measured, in files that are continued."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torchrun_processes import COLLECT, torchrun

from neuroshard.runtime import read_samples
from neuroshard.torchrec.runtime.collecting import main, parser

LAYOUTS = [(2, 2), (4, 2)]


ALL_TYPES = """
import gc
import sys

import torch
import torch.distributed as dist
from torch.distributed._shard.sharded_tensor import ShardedTensor

from neuroshard.runtime.drawing import shards_of, types_of
from neuroshard.runtime.work import KINDS, Setup, ShardedModule, ShardedTable
from neuroshard.torchrec.runtime.measuring import MeasuredModel
from neuroshard.torchrec.runtime.processes import gloo_processes

SIZES = [(101, 32, 3.0, 1), (50, 32, 1.0, 1), (64, 32, 4.0, 2)]


def weight(table, rows, columns):
    at = torch.arange(rows)[:, None] * 31 + torch.arange(columns)[None, :] * 7 + table
    return (at % 97).float() / 97


def shards(sharding_type, rows, columns, setup, number):
    ranks = [number % setup.world_size]
    if sharding_type == "column_wise":
        ranks = [setup.world_size - 1, 0]
    if sharding_type == "table_column_wise":
        ranks = [2, 3]
    hosts = [0, 1] if sharding_type == "grid_shard" else [number % 2]
    return shards_of(sharding_type, rows, columns, setup, ranks=ranks, hosts=hosts)


def initialize(model):
    for name, value in model.state_dict().items():
        table = int(name.split("_")[-1].split(".")[0])
        whole = weight(table, *SIZES[table][:2])
        if not isinstance(value, ShardedTensor):
            value.copy_(whole)
            continue
        for shard in value.local_shards():
            (row, column), (rows, columns) = shard.metadata.shard_offsets, shard.metadata.shard_sizes
            shard.tensor.copy_(whole[row : row + rows, column : column + columns])


def check(kind, types, setup):
    tables = tuple(
        ShardedTable(each, rows, columns, lookups, shards(each, rows, columns, setup, i), features)
        for i, ((rows, columns, lookups, features), each) in enumerate(zip(SIZES, types))
    )
    measured = MeasuredModel([ShardedModule(kind, tables)], setup, "sgd", 3)
    initialize(measured.model)
    [batch] = measured.batch()
    found = measured.model.module.m0(batch)
    found = found.to_dict() if kind == "pooled" else dict(found.wait())
    assert found.keys() == set(batch.keys())
    for key, output in found.items():
        table = int(key.split("_")[1])
        whole = weight(table, *SIZES[table][:2])
        lookups = batch[key]
        if kind == "sequence":
            torch.testing.assert_close(output.values(), whole[lookups.values()])
            continue
        offsets = lookups.lengths().cumsum(0) - lookups.lengths()
        expected = torch.nn.functional.embedding_bag(lookups.values(), whole, offsets, mode="sum")
        torch.testing.assert_close(output, expected)
    for _ in range(3):
        measured.step()
    for forward_ms, backward_ms, *operator in measured.times:
        # A process may have no table.
        assert 0 <= operator[0] < forward_ms and 0 <= operator[1] < backward_ms, measured.times
        assert operator[0] > 0 or setup.world_size > 2, measured.times


with gloo_processes(2, 1) as layout:
    setup = Setup(*layout, batch_size=6)
    for kind in KINDS:
        types = types_of(kind, setup)
        for each in types:
            check(kind, [each] * len(SIZES), setup)
        check(kind, types[:3], setup)
        print(f"{kind}: {len(types)} types", flush=True)
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_type_looks_up_what_whole_tables_have(tmp_path, layout):
    script = tmp_path / "all_types.py"
    script.write_text(ALL_TYPES)
    run = torchrun(layout[0], script)
    for kind, types in (("pooled", 4 if layout == (2, 2) else 7), ("sequence", 3)):
        assert run.stdout.count(f"{kind}: {types} types") == layout[0], run.stdout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_are_measured_and_files_continued(tmp_path, layout):
    path = tmp_path / "costs.jsonl"
    more = ("--repetitions", 4, "--batch-size", "64,128", "--local-world-size", 2, "-o", path)
    torchrun(layout[0], *COLLECT, *more, "--samples", 8)
    first = read_samples(path)
    assert first.layout == layout and len(first.samples) == 8
    for sample in first.samples:
        assert len(sample.operator_ms) == layout[0]
        assert max(f + b for f, b in sample.operator_ms) < sample.step_ms
    if layout != (2, 2):
        return
    with path.open("a") as file:
        file.write('{"index": 8, "task"')  # a run that was stopped
    run = torchrun(2, *COLLECT, *more, "--samples", 16)
    assert "8 samples measured" in run.stderr
    found = read_samples(path)
    assert found.samples[:8] == first.samples
    assert [sample.index for sample in found.samples] == list(range(16))
    # A time limit that has passed: nothing is begun. And another's file is not continued.
    run = torchrun(2, *COLLECT, *more, "--samples", 24, "--time-limit", 1e-9)
    assert "0 samples measured" in run.stderr
    run = torchrun(2, *COLLECT, *more, "--samples", 24, "--seed", 1, check=False)
    assert run.returncode != 0
    assert "sampling: expected" in run.stderr


def torchrun_in_background(processes, *arguments):
    return subprocess.Popen(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(processes), *map(str, arguments)),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_samples(run, path, number):
    """Until the file has as many, and perhaps more."""
    for _ in range(1200):
        if path.exists() and path.read_bytes().count(b"\n") > number:
            return
        if run.poll() is not None:
            break
        time.sleep(0.1)
    run.kill()
    pytest.fail(run.communicate()[1][-3000:])


def children_of(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("to_one", [False, True], ids=["torchrun", "one process"])
def test_a_run_that_is_stopped_ends_in_order(tmp_path, to_one):
    path = tmp_path / "costs.jsonl"
    more = (*COLLECT, "--repetitions", 4, "--batch-size", "64", "-o", path)
    run = torchrun_in_background(2, *more, "--samples", 100_000)
    wait_for_samples(run, path, 8)
    # Meanwhile another run may not write to the file, and says so on all processes.
    other = torchrun(2, *more, "--samples", 100_000, check=False)
    assert f"{path}: expected a file that nobody else is writing" in other.stderr
    os.kill(children_of(run.pid)[-1] if to_one else run.pid, signal.SIGTERM)
    said = run.communicate(timeout=60)[1]
    assert run.returncode != 0
    found = read_samples(path)
    assert f"{path}: {len(found.samples)} samples measured" in said
    assert "neuroshard.collect: stopped by SIGTERM" in said
    if to_one:  # as torchrun reports it
        assert "exitcode  : 143" in said
    assert len(found.samples) % 8 == 0 and path.read_bytes().endswith(b"\n")
    torchrun(2, *more, "--samples", len(found.samples) + 8)
    assert read_samples(path).samples[: len(found.samples)] == found.samples


def test_a_run_that_is_killed_keeps_its_samples(tmp_path):
    path = tmp_path / "costs.jsonl"
    more = (*COLLECT, "--repetitions", 4, "--batch-size", "64", "-o", path)
    run = torchrun_in_background(2, *more, "--samples", 100_000)
    wait_for_samples(run, path, 8)
    for pid in children_of(run.pid):
        os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=60)
    before = read_samples(path).samples[:8]
    assert len(before) == 8
    # A header that was cut is written anew; another file's beginning stays.
    header = path.read_bytes().split(b"\n")[0]
    for content in (b"", header[: len(header) // 2], header):
        path.write_bytes(content)
        torchrun(2, *more, "--samples", 8)
        assert [sample.modules for sample in read_samples(path).samples] == [
            sample.modules for sample in before
        ]
    path.write_bytes(b"{")
    torchrun(2, *more, "--samples", 8)
    path.write_bytes(b"notes")
    run = torchrun(2, *more, "--samples", 8, check=False)
    assert run.returncode != 0 and path.read_bytes() == b"notes"
    run = torchrun(2, *more[:-1], f"{path}.gz", "--samples", 8, check=False)
    assert "expected an uncompressed file to append to" in run.stderr


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("0.0", 0.0), ("1.5", 1.5), ("500ms", 0.5), ("10min", 600.0), ("1e308", 1e308)],
)
def test_time_limits(text, seconds):
    assert parser().parse_args(["-o", "costs", "--time-limit", text]).time_limit == seconds


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "-inf", "1e400", "infs", "-1s", "0s", "soon", ""])
def test_time_limits_that_mean_nothing(text, capsys):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["-o", "costs", f"--time-limit={text}"])
    assert ended.value.code == 2
    assert "argument --time-limit: time limit: expected " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--samples", 10**30], "--samples: expected an integer between 1 and 1000000000, got 1000"),
        (["--local-world-size=-1"], "--local-world-size: expected an integer between 0 and"),
        (["--seed=-1"], "--seed: expected an integer between 0 and"),
        (["--threads", 0], "--threads: expected an integer between 1 and 1024, got 0"),
    ],
)
def test_numbers_that_mean_nothing(tmp_path, more, text, capsys):
    assert main(["-o", str(tmp_path / "costs.jsonl"), *map(str, more)]) == 2
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_collecting_needs_torchrun():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, COLLECT), "-o", "/tmp/costs.jsonl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert run.returncode == 2
    assert "expected processes of torchrun" in run.stderr
