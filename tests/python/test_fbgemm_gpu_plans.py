"""FBGEMM's operator on a GPU host: what is packed for it (scripts/gpu/pack_fbgemm.py), and plans
measured with it (docs/experiments/fbgemm_gpu_plans.py), here by a device that only pretends."""

import argparse
import importlib.util
import json
import struct
import subprocess
import sys
import tarfile
import types
import zipfile
from pathlib import Path

import pytest

from neuroshard import collect
from neuroshard.types import task_text

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def experiment():
    """The script as a module."""
    path = ROOT / "docs" / "experiments" / "fbgemm_gpu_plans.py"
    spec = importlib.util.spec_from_file_location("fbgemm_gpu_plans", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def plans(tmp_path, task):
    """A folder with one plan of one task, for 4 devices of which two have a table."""
    plan = {
        "task": json.loads(task_text(task)),
        "shards": [{"table": "user", "device": 0}, {"table": "item", "device": 1}],
    }
    (tmp_path / "plans-8").mkdir()
    (tmp_path / "plans-4" / "task-0").mkdir(parents=True)
    (tmp_path / "plans-4" / "task-0" / "neuroshard.json").write_text(json.dumps(plan))
    return tmp_path


@pytest.mark.parametrize(("device", "expected"), [("cuda", 0.5), ("cpu", 0.25)])
def test_files_say_how_sets_were_measured(monkeypatch, experiment, plans, device, expected):
    calls = []
    torch = types.SimpleNamespace(get_num_threads=lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(collect, "Device", lambda options: None)
    monkeypatch.setattr(collect, "hardware_of", lambda device: {"kind": device})
    monkeypatch.setattr(collect._core, "collect", lambda *arguments: calls.append(arguments))
    experiment.measure(argparse.Namespace(folder=plans, device=device, memory="3MiB"))
    [(files, num_sets, hardware, operator, quantile, on_gpu, in_flight, *_)] = calls
    assert [path for _, path in files] == [str(plans / "costs" / "4-task-0-b4096.jsonl")]
    assert num_sets == 2
    assert json.loads(hardware) == {"kind": device}
    said = json.loads(operator)
    assert said["arena_bytes"] == 3 << 20
    assert said["quantile"] == quantile == expected
    assert said["in_flight"] == in_flight == 64
    assert on_gpu == (device == "cuda")


def test_half_of_the_tasks_are_not_taken_for_all(experiment, tmp_path):
    program = tmp_path / "neuroshard"
    is_killed = 'for word; do output=$word; done\nmkdir -p "$output" && kill -KILL $$\n'
    program.write_text("#!/bin/sh\n" + is_killed)
    program.chmod(0o755)
    folder = tmp_path / "plans"
    options = argparse.Namespace(folder=folder, neuroshard=program, count=2, batch_size=64)
    with pytest.raises(subprocess.CalledProcessError):
        experiment.make_plans(options)
    assert [path.name for path in folder.iterdir()] == ["tasks-4.new"]


def test_another_wheel_is_packed_as_it_is(tmp_path):
    entry = struct.pack("<HHIQ", 2, 0x101, 64, 4).ljust(28, b"\1") + struct.pack("<I", 90)
    body = entry.ljust(64, b"\2") + b"code"
    device_code = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    fbgemm = tmp_path / "fbgemm_gpu-1.6.0-cp312.whl"
    with zipfile.ZipFile(fbgemm, "w") as wheel:
        wheel.writestr("fbgemm_gpu/op.so", device_code)
    ours = tmp_path / "neuroshard-0.1.0-cp312.whl"
    other = device_code.replace(struct.pack("<I", 90), struct.pack("<I", 80))
    with zipfile.ZipFile(ours, "w") as wheel:
        wheel.writestr("neuroshard/_core.so", other)
        program = zipfile.ZipInfo("neuroshard/bin/neuroshard")
        program.external_attr = 0o100755 << 16
        wheel.writestr(program, "#!/bin/sh\n")
    output = tmp_path / "fbgemm.tar.xz"
    script = ROOT / "scripts" / "gpu" / "pack_fbgemm.py"
    subprocess.run(
        [sys.executable, script, "--wheel", fbgemm, "--add", ours, "-o", output],
        check=True,
        capture_output=True,
    )
    with tarfile.open(output) as archive:
        assert archive.extractfile("fbgemm_gpu/op.so").read() == device_code
        assert archive.extractfile("neuroshard/_core.so").read() == other
        assert archive.getmember("neuroshard/bin/neuroshard").mode & 0o111 == 0o111
        assert archive.getmember("neuroshard/_core.so").mode & 0o111 == 0
