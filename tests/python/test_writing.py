"""All that Python writes, by the rules of the command line: whole or not at all, through links and
pipes, and never over what is read or took long to measure."""

import dataclasses
import json
import os
import subprocess
import sys
import threading

import pytest

import neuroshard
from neuroshard import InputError, Plan
from neuroshard.runtime import LayoutCosts, RuntimeCosts
from neuroshard.runtime.__main__ import main as learn
from neuroshard.runtime.work import WORK

ANALYTIC = ["analytic-a100-40gb", "analytic-a100-nvswitch"]

WRITERS = ["task", "plan", "report", "evaluation", "runtime"]


@pytest.fixture(params=WRITERS)
def write(request, task):
    """A function of a path, and of `force`."""
    if request.param == "task":
        return task.write
    if request.param == "runtime":
        zeros = dict.fromkeys(WORK, 0.0)
        layout = LayoutCosts(2, 2, zeros, zeros, {"pooled": {"model": 1.0}, "sequence": {"lookups": 1.0}}, {})
        return RuntimeCosts("fbgemm-cpu-epyc", (layout,)).write
    plan = neuroshard.plan(task, models=ANALYTIC, steps=10)
    if request.param == "plan":
        return plan.write
    if request.param == "report":
        return plan.report
    cost = plan.predicted
    return neuroshard.Evaluation(cost, cost, [], 0.0, None, evaluation_of(plan)).write


def evaluation_of(plan):
    """The document of an evaluation in which all is as predicted."""
    devices = [
        {
            "device": number,
            "memory_bytes": device.memory_bytes,
            "num_columns": device.num_columns,
            "interval": 0.0,
        }
        | {
            f"{kind}_{name}_ms": getattr(device, f"{name}_ms")
            for kind in ("predicted", "measured")
            for name in ("compute", "forward_comm", "backward_comm")
        }
        for number, device in enumerate(plan.predicted.devices)
    ]
    return {
        "format": "neuroshard/evaluation/1",
        "predicted_ms": plan.predicted.cost_ms,
        "measured_ms": plan.predicted.cost_ms,
        "compute_mape": 0.0,
        "compute_tau": None,
        "devices": devices,
    }


KEPT = {
    "measured computation costs": b'{"format": "neuroshard/compute-costs/1"}\n',
    "measured steps of TorchRec": b' {"hardware": {}, "f\\u006frmat": "neuroshard/runtime-costs/1"}\n',
    "a comparison's journal": b'{"format": "neuroshard/comparison-journal/1"}\n',
    "a model": (17).to_bytes(8, "little") + b'{"__metadata__":1}',
    "a model of TorchRec's runtime": b'{\n "format": "neuroshard/runtime-model/1"}\n',
}


@pytest.mark.parametrize("what", KEPT)
def test_what_took_long_is_replaced_by_force_alone(write, what, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(KEPT[what])
    with pytest.raises(InputError) as error:
        write(path)
    assert str(error.value) == (
        f"{path}: expected a new file, or force=True, got {what} that "
        f"{'is' if what.startswith('a ') else 'are'} there already"
    )
    assert path.read_bytes() == KEPT[what]
    write(path, force=True)
    assert path.read_bytes() != KEPT[what]
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(InputError, match="force: expected True or False, got 1"):
        write(path, force=1)


def test_results_replace_older_ones(write, tmp_path):
    path = tmp_path / "out"
    write(path)
    content = path.read_bytes()
    path.write_text("older")
    path.chmod(0o640)
    write(os.fsencode(path))
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o640


def test_links_stay_links(write, tmp_path):
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    link = tmp_path / "link"
    link.symlink_to("folder/target")  # to no file yet
    write(link, force=True)
    content = target.read_bytes()
    target.write_text("older")
    write(link, force=True)
    assert target.read_bytes() == content
    assert os.readlink(link) == "folder/target"
    assert os.listdir(target.parent) == ["target"]


def test_a_pipe_is_written_to(write, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(30)
    assert pipe.is_fifo()
    write(tmp_path / "file")
    assert found == [(tmp_path / "file").read_bytes()]


@pytest.mark.parametrize("path", ["", "no-such-folder/out", ".", "out\0"])
def test_what_cannot_be_written(write, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="expected"):
        write(path)
    assert os.listdir(tmp_path) == []


READ_ONLY = """
import sys
from neuroshard import InputError, Task
from neuroshard.documents import write_text

for write in (Task.read(sys.argv[1]).write, lambda path: write_text(path, "new")):
    try:
        write(sys.argv[2])
        print("written")
    except InputError as error:
        print(error)
"""


def test_a_file_that_is_read_only_stays(task, tmp_path):
    task.write(tmp_path / "task.json")
    path = tmp_path / "out"
    path.write_text("older")
    path.chmod(0o444)
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents[:3]:
        folder.chmod(folder.stat().st_mode | 0o555)
    command = [sys.executable, "-c", READ_ONLY, tmp_path / "task.json", path]
    # For root, no file is read-only.
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        run = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **other)
    except PermissionError:
        pytest.skip("nobody may not run this interpreter")
    if "No module named" in run.stderr or "Permission" in run.stderr:
        pytest.skip("nobody may not read the package")
    line = f"{path}: expected a writable file, got Permission denied\n"
    assert run.stdout == 2 * line, run.stderr
    assert path.read_text() == "older"


def test_what_is_read_is_not_written(task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plan = neuroshard.plan(task, models=ANALYTIC, steps=10)
    plan.write("plan.json")
    os.link("plan.json", "other.json")
    with pytest.raises(InputError, match="^path: expected another file than those that are read"):
        plan.report("other.json", "plan.json", force=True)
    # The command finds it before any work, with --force too.
    samples = tmp_path / "samples.jsonl"
    samples.write_bytes(KEPT["measured steps of TorchRec"])
    os.link(samples, "same.jsonl")
    for output in ("samples.jsonl", "same.jsonl"):
        assert learn(["samples.jsonl", "-o", output, "--force"]) == 2
        said = capsys.readouterr().err
        assert "--output: expected another file than those that are read, got " in said
    (tmp_path / "journal").write_bytes(KEPT["a comparison's journal"])
    assert learn(["no-such.jsonl", "-o", "journal"]) == 2
    assert "journal: expected a new file, or --force, got a comp" in capsys.readouterr().err
    assert samples.read_bytes() == KEPT["measured steps of TorchRec"]


def test_what_a_plan_was_made_from_is_not_written(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refusal = "^path: expected another file than those that are read"
    task.write("task.json")
    before = (tmp_path / "task.json").read_bytes()
    plan = neuroshard.plan("task.json", models=ANALYTIC, steps=10)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for write in (plan.write, plan.report):
        with pytest.raises(InputError, match=refusal):
            write("../task.json", force=True)
    assert (tmp_path / "task.json").read_bytes() == before
    plan.write("plan.json")
    text = (folder / "plan.json").read_bytes()
    priced = neuroshard.price(folder / "plan.json")
    again = neuroshard.replan("../task.json", "plan.json", steps=10)
    evaluated = neuroshard.evaluate("plan.json", arena_bytes="1MiB")
    for made in (priced, again, evaluated):
        with pytest.raises(InputError, match=refusal):
            made.write("plan.json")
    assert (folder / "plan.json").read_bytes() == text
    # What was read to be written again is.
    neuroshard.Plan.read("plan.json").write("plan.json")
    assert (folder / "plan.json").read_bytes() == text


def test_what_plans_in_between_were_made_from_is_not_written(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task.write("task.json")
    made = neuroshard.plan("task.json", models=ANALYTIC, steps=10)
    made.write("plan.json")
    read = Plan.read("plan.json")
    before = {name: (tmp_path / name).read_bytes() for name in ("task.json", "plan.json")}
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, plan in (("task.json", made), ("plan.json", read)):
        evaluated = neuroshard.evaluate(plan, arena_bytes="1MiB")
        for write in (
            plan.report,
            neuroshard.price(plan).write,
            neuroshard.price(neuroshard.price(plan)).write,
            neuroshard.plan_like(plan).write,
            neuroshard.replan(task, plan, steps=10).write,
            evaluated.write,
            lambda path, **options: read.report(path, made, **options),
            lambda path, **options: made.report(path, {"other": read}, **options),
            lambda path, **options: made.report(path, {"other": "../plan.json"}, **options),
            lambda path, **options: made.report(path, evaluations=evaluated, **options),
        ):
            with pytest.raises(InputError, match="^path: expected another file than those"):
                write(f"../{name}", force=True)
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    # What was read to be written again is, and what was made may be written over what was written.
    read.write("../plan.json")
    neuroshard.price(made).write("../plan.json")
    made.report("report.html", {"read": read})


def test_the_file_that_a_task_was_read_from_is_not_written_over_by_its_plan(
    task, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    task.write("task.json")
    content = (tmp_path / "task.json").read_bytes()
    read = neuroshard.Task.read("task.json")
    assert read == task
    plan = neuroshard.plan(read, models=ANALYTIC, steps=10)
    for write in (plan.write, plan.report, neuroshard.replan(read, plan, steps=10).write):
        with pytest.raises(InputError, match="^path: expected another file than those"):
            write("task.json", force=True)
    assert (tmp_path / "task.json").read_bytes() == content
    assert "file" not in dataclasses.asdict(read)
    read.batch_size *= 2
    read.write("task.json")  # itself, changed


def test_a_models_file_is_not_written(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [model] = [each for each in neuroshard.list_models() if each.name == "cpu-xeon-2core"]
    content = open(model.origin, "rb").read()
    (tmp_path / "weights.bin").write_bytes(content)
    plan = neuroshard.plan(task, models="weights.bin", steps=10)
    for write in (plan.write, plan.report):
        with pytest.raises(InputError, match="^path: expected another file than those"):
            write("weights.bin", force=True)
    zeros = dict.fromkeys(WORK, 0.0)
    layout = LayoutCosts(2, 2, zeros, zeros, {"pooled": {"model": 1.0}, "sequence": {"lookups": 1.0}}, {})
    with pytest.raises(InputError, match="^path: expected another file than those"):
        RuntimeCosts("weights.bin", (layout,)).write("weights.bin", force=True)
    assert (tmp_path / "weights.bin").read_bytes() == content


def test_a_file_of_lines(tmp_path):
    path = tmp_path / "lines.jsonl"
    file = neuroshard._core.LineFile(str(path))
    file.append("1")
    file.append("2")
    file.cut_to(2)
    file.append("3")
    file.sync()
    assert path.read_text() == "1\n3\n"
    with pytest.raises(InputError, match="expected one line"):
        file.append("4\n5")
    with pytest.raises(InputError, match="expected a file that nobody else is writing"):
        neuroshard._core.LineFile(str(path))
    del file
    neuroshard._core.LineFile(str(path)).append("4")
    assert path.read_text() == "1\n3\n4\n"


@pytest.fixture
def model_file():
    """That of a shipped model."""
    [found] = [each.origin for each in neuroshard.list_models() if each.name == "cpu-xeon-2core"]
    return open(found, "rb").read()


def test_a_file_here_is_a_model_whatever_its_suffix(task, model_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = neuroshard.plan(task, models="cpu-xeon-2core", steps=10)
    for name in ("weights.bin", "weights.st", "weights"):
        (tmp_path / name).write_bytes(model_file)
        found = neuroshard.plan(task, models=[name, "analytic-pcie4"], steps=10)
        assert found.model["compute"]["sha256"] == usual.model["compute"]["sha256"]
        assert found.model["compute"]["file"] == str(tmp_path / name)
        assert neuroshard.plan_like(found).shards == found.shards
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(InputError, match="^notes.txt: expected a safetensors file"):
        neuroshard.plan(task, models="notes.txt")
    with pytest.raises(InputError, match="^--model: expected a file or one of "):
        neuroshard.plan(task, models="no-such.bin")


@pytest.mark.usefixtures("simgrid")
@pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")  # another machine
def test_the_executable_finds_files_that_are_here(task, model_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.bin").write_bytes(model_file)
    (tmp_path / "pcie4").write_text("no model, and no platform")
    plan = neuroshard.plan(task, models=ANALYTIC, steps=10)
    models = ["weights.bin", "pcie4"]
    assert neuroshard.evaluate(plan, models=models, platform="pcie4").simulated_ms > 0
    options = {"algorithms": "greedy-size", "measure": True, "arena_bytes": 16 << 20}
    neuroshard.compare(
        task, models=models, platform="pcie4", journal="journal", **options
    )
    assert json.loads((tmp_path / "journal").read_text().splitlines()[0])["format"] == (
        "neuroshard/comparison-journal/1"
    )


@pytest.mark.usefixtures("simgrid")
@pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")  # another machine
def test_the_executable_finds_models_in_folders_named_from_here(
    task, model_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine.safetensors").write_bytes(model_file)
    monkeypatch.setenv("NEUROSHARD_MODELS", "folder::" + os.environ["NEUROSHARD_MODELS"])
    plan = neuroshard.plan(task, models=["mine", "analytic-pcie4"], steps=10)
    found = neuroshard.evaluate(plan, models=["mine", "analytic-pcie4"], platform="pcie4")
    assert found.simulated_ms > 0


def test_folders_whose_names_are_no_utf_8(task, model_file, tmp_path, monkeypatch):
    odd = tmp_path / os.fsdecode(b"odd\xff")
    odd.mkdir()
    (odd / "mine.safetensors").write_bytes(model_file)
    # As the folder of models: all are listed, and found by name.
    monkeypatch.setenv("NEUROSHARD_MODELS", str(odd) + ":" + os.environ["NEUROSHARD_MODELS"])
    models = {each.name: each.origin for each in neuroshard.list_models()}
    assert models["mine"] == f"{tmp_path}/odd\\xff/mine.safetensors"
    assert "cpu-xeon-2core" in models
    by_name = neuroshard.plan(task, models="mine", steps=10)
    # As the working folder: plans are made, written, and made again there.
    monkeypatch.chdir(odd)
    found = neuroshard.plan(task, models="./mine.safetensors", steps=10)
    assert found.model["compute"]["file"] == "./mine.safetensors"
    assert found.shards == by_name.shards
    found.write("plan.json")
    again = neuroshard.plan_like("plan.json")
    assert again.shards == found.shards
    again.write("again.json")
    with pytest.raises(InputError, match="^path: expected another file than those that are read"):
        again.write("plan.json")
    Plan.read("plan.json").report("report.html")
    task.write("task.json")
    command = [neuroshard.EXECUTABLE, "plan", "task.json", "--model", "./mine.safetensors"]
    subprocess.run([*command, "--steps", "10", "-o", "again.json"], check=True, capture_output=True)
    assert Plan.read("again.json").shards == found.shards
    command = [neuroshard.EXECUTABLE, "model", "list", "--json"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
    assert "mine" in [each["name"] for each in json.loads(run.stdout)["models"]]
