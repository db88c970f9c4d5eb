"""Planning through the bindings: the same plans and refusals as the executable's."""

import dataclasses
import json
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import neuroshard
from neuroshard import EXECUTABLE, MODEL_FOLDER, InfeasibleError, InputError, Plan, Table


def test_the_executables_plan(task, tmp_path):
    task.write(tmp_path / "task.json")
    subprocess.run(
        [EXECUTABLE, "plan", tmp_path / "task.json", "-o", tmp_path / "plan.json"],
        check=True,
        capture_output=True,
    )
    expected = Plan.read(tmp_path / "plan.json")
    plan = neuroshard.plan(task)
    assert plan.shards == expected.shards
    assert plan.predicted == expected.predicted
    assert plan.model == expected.model
    assert plan.model["compute"]["sha256"] != ""
    assert plan.search["lower_bound_ms"] == expected.search["lower_bound_ms"]
    assert plan.violations() == []
    assert plan.predicted.cost_ms == max(d.total_ms for d in plan.predicted.devices)


def test_a_model_that_is_read_is_not_written_over(task, tmp_path):
    model = tmp_path / "mine.safetensors"
    model.write_bytes((Path(MODEL_FOLDER) / "cpu-xeon-2core.safetensors").read_bytes())
    before = model.read_bytes()
    plan = neuroshard.plan(task, models=[model, "analytic-pcie4"])
    refusal = "expected another file than those that are read, got "
    with pytest.raises(InputError, match="path: " + refusal):
        plan.write(model)
    with pytest.raises(InputError, match="journal: " + refusal):
        neuroshard.compare(task, models=[model, "analytic-pcie4"], journal=model)
    with pytest.raises(InputError, match="journal: " + refusal):
        neuroshard.compare(task, measure=True, controls=[model], journal=model)
    assert model.read_bytes() == before


def test_conditions_on_tables_are_kept(task):
    task.tables = [
        dataclasses.replace(table, min_shard_columns=32, extra_bytes_per_shard=1000)
        for table in task.tables
    ]
    plan = neuroshard.plan(task)
    widths = {shard.table: shard.num_columns for shard in plan.shards}
    assert all(shard.num_columns >= 32 for shard in plan.shards)
    assert widths["item"] == 32
    weights = 64 * 100_000 * 4 + 32 * 200_000 * 4
    rows = {"user": 100_000, "item": 200_000}
    state = sum(4 * (s.num_rows or rows[s.table]) for s in plan.shards)
    memory = sum(device.memory_bytes for device in plan.predicted.devices)
    assert memory == weights + state + 1000 * len(plan.shards)


def test_no_room(task, tmp_path):
    task.topology.memory_bytes = 1 << 20
    task.write(tmp_path / "task.json")
    run = subprocess.run(
        [EXECUTABLE, "plan", tmp_path / "task.json"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    with pytest.raises(InfeasibleError) as error:
        neuroshard.plan(task)
    assert f"neuroshard: {error.value}\n" == run.stderr
    assert "would do" in str(error.value)


def test_prices_follow_the_model(task):
    plan = neuroshard.plan(task)
    assert neuroshard.price(plan).predicted == plan.predicted
    other = neuroshard.price(plan, models=["analytic-a100-80gb", "analytic-a100-nvswitch"])
    assert other.shards == plan.shards
    assert other.predicted.cost_ms < plan.predicted.cost_ms
    plan.shards = plan.shards[1:]
    with pytest.raises(InfeasibleError, match="plan: not valid"):
        neuroshard.price(plan)


def test_compare(task):
    tighter = dataclasses.replace(
        task, topology=dataclasses.replace(task.topology, memory_bytes=27 << 20)
    )
    result = neuroshard.compare(
        {"roomy": task, "tight": tighter}, algorithms=["neuroshard", "greedy-size"]
    )
    assert [line.algorithm for line in result.summary] == ["neuroshard", "greedy-size"]
    entry = {(e.task, e.algorithm): e for e in result.entries}
    assert entry["roomy", "neuroshard"].predicted_ms == neuroshard.plan(task).predicted.cost_ms
    best, greedy = result.summary
    assert best.wins == best.tasks == 2
    assert greedy.mean_predicted_ms >= best.mean_predicted_ms
    with pytest.raises(InputError):
        neuroshard.compare([task], algorithms=["no-such"])
    for tasks, name in (([task, "0"], "0"), ({1: task, "1": tighter}, "1")):
        with pytest.raises(InputError, match=f"^tasks: expected each task once, got {name} again$"):
            neuroshard.compare(tasks)
    assert {e.algorithm for e in neuroshard.compare([task]).entries} == set(
        neuroshard.list_algorithms()
    )


def test_cuts_are_a_list_or_a_text_as_the_command_line_takes_it(task):
    def shards(cuts):
        return neuroshard.plan(task, steps=100, cuts=cuts).shards

    assert shards("none") == shards([])
    assert shards("columns, rows") == shards(["columns", "rows"])
    with pytest.raises(InputError, match="cuts"):
        shards("columns,none")


def test_algorithms_with_cuts_of_their_own(task):
    names = ["neuroshard:columns", "neuroshard:columns+rows+replicas", "torchrec-like:rows"]
    result = neuroshard.compare(task, algorithms=[*names, "greedy-size"], steps=100)
    assert [line.algorithm for line in result.summary] == [*names, "greedy-size"]
    assert [line.cuts for line in result.summary] == [
        ["columns"],
        ["columns", "rows", "replicas"],
        ["rows"],
        [],
    ]
    assert all(entry.cuts is not None for entry in result.entries)
    columns, everything = result.summary[:2]
    of_columns = neuroshard.plan(task, steps=100, cuts="columns")
    assert columns.mean_predicted_ms == of_columns.predicted.cost_ms
    assert everything.mean_predicted_ms == neuroshard.plan(task, steps=100).predicted.cost_ms
    assert everything.mean_predicted_ms <= columns.mean_predicted_ms
    with pytest.raises(InputError, match="cuts of one that chooses among them"):
        neuroshard.compare(task, algorithms="random:rows")


def test_each_task_is_priced_by_its_own_interconnect(task):
    other = dataclasses.replace(
        task, topology=dataclasses.replace(task.topology, interconnect="ethernet-10g")
    )
    result = neuroshard.compare([task, other], algorithms="greedy-size")
    for entry, one in zip(result.entries, [task, other], strict=True):
        plan = neuroshard.plan(one, algorithm="greedy-size")
        assert entry.predicted_ms == plan.predicted.cost_ms
    assert result.entries[0].predicted_ms != result.entries[1].predicted_ms


def test_unknown_options(task):
    for function in (neuroshard.plan, neuroshard.compare):
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'patience'"):
            function(task, patience=3)


def test_evaluate_measures(task):
    plan = neuroshard.plan(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", neuroshard.ExtrapolationWarning)  # another machine
        evaluation = neuroshard.evaluate(plan, arena_bytes="64MiB")
    assert evaluation.predicted == dataclasses.replace(
        plan.predicted,
        devices=[
            dataclasses.replace(device, memory_bytes=predicted.memory_bytes)
            for device, predicted in zip(plan.predicted.devices, evaluation.predicted.devices)
        ],
    )
    assert all(device.compute_ms > 0 for device in evaluation.measured.devices)
    assert len(evaluation.interval) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", neuroshard.ExtrapolationWarning)
        again = neuroshard.evaluate(plan.to_dict(), arena_bytes=64 << 20)  # dicts are welcome
    assert again.predicted == evaluation.predicted


def test_measured_comparison(task):
    result = neuroshard.compare(
        [task], algorithms=["greedy-size", "random"], measure=True, arena_bytes="64MiB", steps=100
    )
    assert all(entry.measured_ms > 0 for entry in result.entries)
    assert all(line.mean_gap is not None for line in result.summary)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_time_limits_that_mean_nothing(task, seconds):
    with pytest.raises(InputError, match="time_limit_seconds: expected above 0"):
        neuroshard.plan(task, time_limit_seconds=seconds)


@pytest.mark.parametrize("function", ["plan", "compare"])
def test_a_time_limit_ends_steps_without_end(task, function):
    start = time.monotonic()
    if function == "plan":
        neuroshard.plan(task, steps=10**18, time_limit_seconds=0.2)
    else:
        neuroshard.compare(
            [task], algorithms="neuroshard", steps=10**18, time_limit_seconds=0.2
        )
    assert time.monotonic() - start < 20  # without a limit it would take years


def test_a_time_limit_too_short_for_a_plan(task):
    with pytest.raises(InfeasibleError, match="no plan found within 0.001 ms"):
        neuroshard.plan(task, time_limit_seconds=1e-6)


def test_schedules_of_the_improvement(task):
    thorough = neuroshard.plan(task, steps=2000)
    assert neuroshard.plan(task, steps=2000, improvement="thorough").shards == thorough.shards
    brief = neuroshard.plan(task, steps=2000, improvement="brief")
    assert brief.predicted.cost_ms > 0
    with pytest.raises(InputError, match='improvement: expected thorough or brief, got "short"'):
        neuroshard.plan(task, improvement="short")
    with pytest.raises(InputError, match='improvement: expected thorough or brief, got "short"'):
        neuroshard.compare([task], improvement="short")


def test_extrapolation_warns():
    task = neuroshard.Task([Table("t", 1000, 64, 1.0)], neuroshard.Topology(1, 1 << 30), 7)
    with pytest.warns(neuroshard.ExtrapolationWarning, match="batch"):
        neuroshard.plan(task)


#: What is said of a batch of 7 samples, which no shipped model was trained on.
BATCH_OF_7 = re.compile(r"cpu-xeon-2core: batch_size: trained on \d+ to \d+, got 7$")


def of_batch(batch_size):
    topology = neuroshard.Topology(2, 1 << 30)
    return neuroshard.Task([Table("t", 1000, 64, 1.0)], topology, batch_size)


def warned(call):
    """What a call returns, and the extrapolations that it warned of."""
    with pytest.warns(neuroshard.ExtrapolationWarning) as caught:
        found = call()
    return found, [str(warning.message) for warning in caught]


def says_batch_of_7_once(lines):
    return sum(map(bool, map(BATCH_OF_7.match, lines))) == 1


def test_everything_that_prices_warns_of_extrapolation(tmp_path):
    plan, lines = warned(lambda: neuroshard.plan(of_batch(7), models="analytic-pcie4"))
    assert list(plan.warnings) == lines
    assert says_batch_of_7_once(lines)
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json").warnings == plan.warnings
    for price in (
        lambda: neuroshard.price(plan),
        lambda: neuroshard.plan_like(plan),
        lambda: neuroshard.replan(of_batch(7), plan),
        lambda: neuroshard.explain(plan),
        lambda: neuroshard.capacity(of_batch(7), devices=2, memory="1GiB", models="analytic-pcie4"),
        lambda: neuroshard.evaluate(plan, arena_bytes=1 << 20),  # and of another machine
    ):
        assert says_batch_of_7_once(warned(price)[1])
    tasks = {"one": of_batch(7), "other": of_batch(6)}
    found, lines = warned(
        lambda: neuroshard.compare(tasks, models="analytic-pcie4", algorithms="random")
    )
    assert list(found.warnings) == lines
    assert lines[0].endswith("got 7: 2 of 2 tasks, the first of them one")


@pytest.mark.usefixtures("simgrid")
def test_simulated_clusters_warn_of_extrapolation():
    plan, _ = warned(lambda: neuroshard.plan(of_batch(7), models="analytic-pcie4"))
    assert says_batch_of_7_once(warned(lambda: neuroshard.evaluate_on_cluster(plan, "pcie4"))[1])


def test_other_threads_run_meanwhile():
    workload = next(w for w in neuroshard.list_workloads() if w.name == "dlrm-2021")
    topology = neuroshard.Topology(16, 64 << 30, local_world_size=4)
    task = neuroshard.Task(workload.tables()[:200], topology, 4096)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    start = time.perf_counter()
    try:
        neuroshard.plan(task, num_threads=1)
        end = time.perf_counter()
    finally:
        done.set()
        thread.join()
    # With the GIL held through the search there would be none between its first and last tenth.
    inside = [t for t in ticks if start + 0.1 * (end - start) < t < end - 0.1 * (end - start)]
    assert end - start > 0.05
    assert len(inside) > 5


def test_models_and_workloads_are_in_the_package():
    models = {model.name: model for model in neuroshard.list_models()}
    assert not models["cpu-xeon-2core"].is_estimate
    assert models["analytic-a100-80gb"].is_estimate
    assert not models["cpu-xeon-2core"].is_simulated
    assert models["pcie4"].is_simulated
    assert (MODEL_FOLDER / "cpu-xeon-2core.safetensors").exists()
    dlrm = next(w for w in neuroshard.list_workloads() if w.name == "mlperf-dlrm-dcnv2")
    tables = dlrm.tables()
    assert len(tables) == dlrm.num_tables == 26
    histograms = neuroshard.reuse_histograms(
        neuroshard.Task(tables, neuroshard.Topology(1, 1 << 40), dlrm.batch_size)
    )
    assert all(sum(histogram) == pytest.approx(1.0) for histogram in histograms)


def test_the_command_is_the_executable():
    run = subprocess.run(
        [sys.executable, "-m", "neuroshard", "model", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cpu-xeon-2core" in run.stdout


def without_times(comparison):
    """Entries but for `wall_ms`, which is that of the run that made them."""
    return [dataclasses.replace(entry, wall_ms=0.0) for entry in comparison.entries]


def test_a_comparison_goes_on_from_its_journal(task, tmp_path):
    journal = tmp_path / "journal.jsonl"
    arguments = {"algorithms": ["greedy-size", "random"], "journal": journal}
    first = neuroshard.compare({"a": task, "b": task}, **arguments)
    written = journal.read_text()
    assert len(written.splitlines()) == 3
    # Only read where it is finished; else it goes on, here with the second of two tasks.
    assert neuroshard.compare({"a": task, "b": task}, **arguments) == first
    assert journal.read_text() == written
    journal.write_text(written[:-20])
    resumed = neuroshard.compare({"a": task, "b": task}, **arguments)
    assert without_times(resumed) == without_times(first)
    assert journal.read_text().splitlines()[:2] == written.splitlines()[:2]
    with pytest.raises(InputError, match="comparison.seed"):
        neuroshard.compare({"a": task, "b": task}, seed=1, **arguments)


def test_controls_are_measured_with_the_plans(task, tmp_path):
    controls = tmp_path / "controls.jsonl"
    with pytest.raises(InputError, match="controls needs measured plans"):
        neuroshard.compare([task], algorithms=["random"], controls=[controls])
    subprocess.run(
        [EXECUTABLE, "collect", "compute", "--samples", "2", "--tables", "1:2", "--dims", "4"]
        + ["--batch-size", str(task.batch_size), "--optimizer", task.optimizer]
        + ["--arena", "64MiB", "-o", controls],
        check=True,
        capture_output=True,
    )
    result = neuroshard.compare(
        [task], algorithms=["random"], measure=True, arena_bytes=64 << 20, controls=[controls]
    )
    assert all(entry.drift > 0 and entry.less_drift_ms > 0 for entry in result.entries)
    assert result.summary[0].mean_gap_less_drift is not None


def test_reference_sets_need_measured_plans_and_a_model_that_knows_them(task):
    with pytest.raises(InputError, match="reference_sets need measure=True"):
        neuroshard.compare([task], algorithms=["random"], reference_sets=True)
    with pytest.raises(InputError, match="which knows none"):
        neuroshard.compare(
            [task],
            algorithms=["random"],
            models=["analytic-cpu", "analytic-pcie4"],
            measure=True,
            reference_sets=True,
        )
    plan = neuroshard.plan(task, algorithm="greedy-size")
    with pytest.raises(InputError, match="platform measures nothing"):
        neuroshard.evaluate(plan, reference_sets=True, platform="pcie4")
    with pytest.raises(InputError, match="got analytic-cpu, which knows none"):
        neuroshard.evaluate(plan, models=["analytic-cpu", "analytic-pcie4"], reference_sets=True)


def test_an_evaluation_next_to_reference_sets_knows_the_machines_speed(task, tmp_path):
    costs, model = tmp_path / "costs.jsonl", tmp_path / "mine.safetensors"
    for command in (
        ["collect", "compute", "--samples", "40", "--batch-size", "64", "--tables", "1:2"]
        + ["--dims", "4", "--arena", "4MiB", "--in-flight", "40", "--reference-sets", "-o", costs],
        ["train", "compute", costs, "--epochs", "1", "--members", "1", "-o", model],
    ):
        subprocess.run([EXECUTABLE, *command], check=True, capture_output=True)
    plan = neuroshard.plan(task, models=["analytic-cpu", "analytic-pcie4"], steps=10)
    with warnings.catch_warnings(action="ignore"):  # of what it was trained on
        found = neuroshard.evaluate(
            plan,
            models=[str(model), "analytic-pcie4"],
            arena_bytes="4MiB",
            reference_sets=True,
        )
    assert found.drift > 0
    assert found.less_drift_ms > 0
    assert found.document["less_drift_ms"] == found.less_drift_ms
    assert all("less_drift_compute_ms" in device for device in found.document["devices"])


def write_tiny_model(path, costs):
    """Of pieces of 4 columns, one or two on a device, in batches of 64."""
    for command in (
        ["collect", "compute", "--samples", "40", "--batch-size", "64", "--tables", "1:2"]
        + ["--dims", "4", "--arena", "4MiB", "--in-flight", "40", "-o", costs],
        ["train", "compute", costs, "--epochs", "1", "--members", "1", "-o", path],
    ):
        subprocess.run([EXECUTABLE, *command], check=True, capture_output=True)


def set_metric(path, name, value):
    """As if the model's training had found it."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metrics = json.loads(header["__metadata__"]["metrics"]) | {name: value}
    header["__metadata__"]["metrics"] = json.dumps(metrics)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def test_entries_of_a_comparison_have_their_warnings_and_expected_costs(task, tmp_path):
    model = tmp_path / "mine.safetensors"
    write_tiny_model(model, tmp_path / "costs.jsonl")
    # Of the plan alone: as one table is larger than all others, these are more pieces on a device
    # than the model has seen, though the tables could lie on the devices in pairs.
    rows = [100_000, 1000, 1000, 1000]
    tables = [Table(f"t{number}", rows[number], 4, 1.0) for number in range(4)]
    crowded = dataclasses.replace(task, tables=tables, batch_size=64)
    arguments = {"models": [model, "analytic-pcie4"], "algorithms": ["greedy-size"]}
    with warnings.catch_warnings(action="ignore"):
        [entry] = neuroshard.compare([crowded], **arguments).entries
    assert any("pieces" in line for line in entry.warnings)
    assert entry.expected_ms is None
    set_metric(model, "devices.scatter", 0.05)
    with warnings.catch_warnings(action="ignore"):
        result = neuroshard.compare([crowded], measure=True, arena_bytes="4MiB", **arguments)
    [entry] = result.entries
    assert entry.predicted_ms < entry.expected_ms < 1.05 * entry.predicted_ms
    gap = abs(entry.expected_ms / entry.measured_ms - 1)
    assert result.summary[0].mean_expected_gap == pytest.approx(gap)


def test_a_plan_and_its_evaluation_say_what_is_expected(task, tmp_path):
    model = tmp_path / "mine.safetensors"
    write_tiny_model(model, tmp_path / "costs.jsonl")
    models = [model, "analytic-pcie4"]
    with warnings.catch_warnings(action="ignore"):
        plan = neuroshard.plan(task, models=models, steps=10)
        assert "expected_ms" not in plan.search
        assert neuroshard.evaluate(plan, arena_bytes="4MiB").expected_ms is None
        set_metric(model, "devices.scatter", 0.05)
        plan = neuroshard.plan(task, models=models, steps=10)
        found = neuroshard.evaluate(plan, arena_bytes="4MiB")
    assert plan.search["expected_ms"] > plan.predicted.cost_ms
    assert found.expected_ms == found.document["expected_ms"] == plan.search["expected_ms"]


@pytest.mark.usefixtures("simgrid")
def test_a_plan_on_a_simulated_cluster(task):
    plan = neuroshard.plan(task)
    simulated = neuroshard.evaluate_on_cluster(plan, "pcie4")
    assert simulated.predicted_ms == plan.predicted.cost_ms
    assert simulated.simulated_ms == max(device.total_ms for device in simulated.devices)
    # SimGrid simulates once per process, Python as often as it likes.
    assert neuroshard.evaluate_on_cluster(plan.to_dict(), "pcie4") == simulated
    assert neuroshard.evaluate(plan, platform="pcie4") == simulated
    with pytest.raises(InputError, match="platform: expected one of"):
        neuroshard.evaluate_on_cluster(plan, "token-ring")
    with pytest.raises(InputError, match="expected one of them"):
        neuroshard.evaluate(plan, platform="pcie4", backend="cuda")


@pytest.mark.usefixtures("simgrid")
@pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")  # another machine
def test_a_comparison_on_a_simulated_cluster(task, tmp_path):
    arguments = {
        "algorithms": ["neuroshard:columns+rows", "greedy-size"],
        "measure": True,
        "arena_bytes": 64 << 20,
        "steps": 100,
        "time_limit_seconds": 1e308,
        "cuts": (),
        "reference": "greedy-size",
        "journal": tmp_path / "journal.jsonl",
    }
    result = neuroshard.compare({"mine": task}, platform="pcie4", **arguments)
    assert {entry.task for entry in result.entries} == {"mine"}
    assert [line.cuts for line in result.summary] == [["columns", "rows"], []]
    assert result.summary[1].mean_ratio == 1.0
    assert all(entry.measured_ms > 0 for entry in result.entries)
    # It goes on from its journal, and the all-to-alls are simulated anew.
    again = neuroshard.compare({"mine": task}, platform="pcie4", **arguments)
    assert again == result
    slow = neuroshard.compare({"mine": task}, platform="ethernet-10g", **arguments)
    for entry, slower in zip(result.entries, slow.entries):
        assert slower.measured_compute_ms == entry.measured_compute_ms
        assert slower.measured_ms > entry.measured_ms
    with pytest.raises(InputError, match="need measure=True"):
        neuroshard.compare(task, platform="pcie4")
    with pytest.raises(InputError, match="^two: expected the topology and batch size of one"):
        tasks = {"one": task, "two": dataclasses.replace(task, batch_size=128)}
        neuroshard.compare(tasks, platform="pcie4", measure=True, algorithms="random")


def test_gpus_that_are_not_there(task):
    plan = neuroshard.plan(task)
    # Without CUDA in the build, or without a GPU here: said as the executable says it.
    with pytest.raises((InputError, neuroshard.MachineError), match="(?i)cuda"):
        neuroshard.evaluate(plan, backend="cuda")
    with pytest.raises(InputError, match="--backend: expected one of cpu,cuda, got "):
        neuroshard.evaluate(plan, backend="tpu")


def test_a_plan_from_an_older_one(task, tmp_path):
    models = ["analytic-a100-40gb", "analytic-a100-nvswitch"]
    before = neuroshard.plan(task, models=models, steps=500, pessimism=0.25)
    assert before.moves is None
    task.tables = [*task.tables, Table("new", 1000, 32, 5.0)]
    after = neuroshard.replan(task, before, max_move="50%", seed=3)
    assert after.violations() == []
    assert after.model == before.model
    assert after.search["options"]["pessimism"] == 0.25  # the older plan's
    assert after.search["options"]["seed"] == 3
    assert after.moves.max_move == 0.5
    assert after.moves.moved_bytes <= 0.5 * after.moves.placed_bytes
    assert sum(pair.bytes for pair in after.moves.pairs) == after.moves.moved_bytes
    after.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == after
    kept = neuroshard.replan(task, before, max_move=0)
    assert kept.moves.moved_bytes == 0
    for share in (1.5, -0.1, True, "half", None):
        with pytest.raises(InputError, match="max_move: expected a share"):
            neuroshard.replan(task, before, max_move=share)
    with pytest.raises(InputError, match="task alone"):
        neuroshard.plan_like(after)
