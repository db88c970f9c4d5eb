"""Arguments that generated calls (fuzz/python_objects) found to be answered by something else than an
error in one line that names the argument."""

import dataclasses
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import neuroshard
from neuroshard import (
    DeviceCost,
    DeviceMove,
    Evaluation,
    Explanation,
    InputError,
    MachineError,
    Plan,
    PlanCost,
    PlanMoves,
    Shard,
    Table,
    TableStatistics,
    Task,
    Topology,
)
from neuroshard.arguments import flag_of, integer_of, names_of, seconds_of, share_of
from neuroshard.statistics import ReuseCounter, from_batches

ANALYTIC = ["analytic-a100-40gb", "analytic-a100-nvswitch"]

HUGE = 10**5000


def refusal(function, *arguments, **named):
    with pytest.raises(InputError) as error:
        function(*arguments, **named)
    text = str(error.value)
    assert text.isprintable()
    return text


@pytest.fixture
def plan(task):
    return Plan(task, [Shard("user", 0, 64, 0), Shard("item", 0, 32, 1)])


@pytest.mark.parametrize("value", [None, 7, 1.5, [], {}, np.zeros(2), object()])
def test_what_is_no_path(value, task, plan):
    kind = "None" if value is None else type(value).__name__
    for function in (Task.read, Plan.read, task.write, plan.write, plan.report):
        assert refusal(function, value) == f"path: expected a path, got {kind}"
    document = Evaluation(PlanCost(0, []), PlanCost(0, []), [], 0.0, None)
    assert refusal(document.write, value) == f"path: expected a path, got {kind}"


@pytest.mark.parametrize("path", ["task\0.json", b"task\xff.json", "task\udcff.json"])
def test_paths_that_the_library_cannot_have(path, task, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for function in (Task.read, Plan.read, task.write, plan.write, plan.report):
        assert refusal(function, path).startswith("path: expected Unicode text without NUL, got 'task")
    for function, name in (
        (neuroshard.plan, "task"),
        (neuroshard.price, "plan"),
        (neuroshard.compare, "tasks"),
    ):
        given = path if isinstance(path, str) else "task\udcff.json"
        assert refusal(function, given).startswith(f"{name}: expected Unicode text without NUL")
    assert list(tmp_path.iterdir()) == []


class RefusesPath:
    def __fspath__(self):
        return 7


def test_a_path_object_that_is_none():
    assert refusal(Task.read, RefusesPath()) == "path: expected a path, got RefusesPath"
    assert refusal(names_of, [RefusesPath()], "models") == (
        "models[0]: expected a path, got RefusesPath"
    )


@pytest.mark.parametrize("value", [None, 7, np.array(1.5), np.float64(2.0)])
def test_what_has_no_items(value, task, plan):
    kind = "None" if value is None else type(value).__name__
    text = f"expected a name or a list of names, got {kind}"
    assert refusal(neuroshard.price, plan, models=value) == f"models: {text}"
    assert refusal(neuroshard.compare, value).startswith("tasks: expected a list or a dict of tasks")
    assert refusal(plan.report, "r.html", value).startswith("others: expected plans, one or several")
    named = {"evaluations": value}
    assert refusal(plan.report, "r.html", **named).startswith("evaluations: expected evaluations")
    assert refusal(neuroshard.compare, task, controls=value).startswith("controls: expected a list")
    assert refusal(from_batches, value, {"t": "f"}, batch_size=1).startswith(
        "batches: expected batches one after the other, got "
    )


def test_lists_longer_than_memory(task, plan):
    long = range(10**18)
    assert refusal(names_of, long, "models").endswith("got range")
    task.tables[0].row_access = long
    assert refusal(neuroshard.plan, task).startswith("task: tables[0].row_access: expected a number")
    pair = (long, [0, 1])
    with pytest.raises((InputError, MachineError), match=r"batches\[0\]\['f'\]: values: "):
        from_batches([{"f": pair}], {"t": "f"}, batch_size=1)


def test_integers_that_python_does_not_write(task):
    task.batch_size = HUGE
    text = f"expected a number, got an integer of {HUGE.bit_length()} bits"
    assert refusal(neuroshard.plan, task) == f"task: batch_size: {text}"
    assert refusal(seconds_of, HUGE, "time_limit").endswith("got an integer of 16610 bits")
    assert refusal(share_of, -HUGE, "max_move").endswith("got an integer of 16610 bits")
    assert refusal(from_batches, [], {"t": "f"}, batch_size=-HUGE).endswith("of 16610 bits")


@pytest.mark.parametrize("value", [1, 0, None, "yes", 1.0, np.ones(2, dtype=bool)])
def test_what_is_neither_true_nor_false(value, task, plan):
    assert refusal(neuroshard.price, plan, lower_bound=value).startswith(
        "lower_bound: expected True or False, got "
    )
    assert refusal(neuroshard.compare, task, measure=value).startswith(
        "measure: expected True or False, got "
    )


def test_numpys_numbers_are_numbers(task):
    assert flag_of(np.bool_(True), "flag") is True
    assert integer_of(np.uint8(7), "seed", 0, 9) == 7
    assert share_of(np.float32(0.5), "max_move") == 0.5
    assert seconds_of(Fraction(1, 2), "time_limit") == 0.5
    found = neuroshard.capacity(
        task, devices=np.array([1, 2]), memory=np.int64(1 << 30), models=ANALYTIC, steps=50
    )
    assert [(point.devices, point.memory_bytes) for point in found.points] == [
        (1, 1 << 30),
        (2, 1 << 30),
    ]


@pytest.mark.parametrize("value", [None, "2", 1.5, True, -1, 2**64, 10**400, np.array([1, 2])])
def test_what_is_no_number_of_something(value, task, plan):
    for call, name in (
        (lambda: neuroshard.explain(plan, num_threads=value), "num_threads"),
        (lambda: neuroshard.evaluate(plan, num_threads=value), "num_threads"),
        (lambda: neuroshard.evaluate(plan, arena_bytes=value), "arena_bytes"),
        (lambda: neuroshard.evaluate(plan, seed=value), "seed"),
        (lambda: neuroshard.compare(task, arena_bytes=value), "arena_bytes"),
        (lambda: neuroshard.list_workloads()[0].tables(value), "seed"),
        (lambda: from_batches([], {"t": "f"}, batch_size=value), "batch_size"),
        (lambda: ReuseCounter(value), "batch_size"),
        (lambda: TableStatistics(1.0, [1.0], 8).row_access(value), "num_embeddings"),
    ):
        assert refusal(call).startswith(f"{name}: expected a"), name


@pytest.mark.parametrize(
    "value", [1.5, object(), {1: 2}, np.zeros((2, 2)), np.array(3), b"1GiB"]
)
def test_sizes_of_clusters_that_are_none(value, task):
    text = refusal(neuroshard.capacity, task, devices=value, memory="1GiB")
    assert text.startswith("devices")
    assert refusal(neuroshard.capacity, task, devices=2, memory=value).startswith("memory")


@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
def test_text_that_the_library_cannot_have(text, task, plan):
    for call, name in (
        (lambda: neuroshard.explain(plan, table=text), "table"),
        (lambda: neuroshard.explain(plan, why_not=text), "why_not"),
        (lambda: neuroshard.compare(task, reference=text), "reference"),
        (lambda: neuroshard.compare({text: task}), "tasks"),
        (lambda: neuroshard.compare(task, backend=text, measure=True), "backend"),
        (lambda: neuroshard.evaluate(plan, backend=text), "backend"),
        (lambda: neuroshard.evaluate_on_cluster(plan, text), "platform"),
        (lambda: neuroshard.price(plan, models=text), "models"),
        (lambda: neuroshard.capacity(task, devices=text, memory="1GiB"), "devices"),
        (lambda: neuroshard.capacity(task, devices=1, memory=text), "memory[0]"),
        (lambda: seconds_of(text, "time"), "time"),
        (lambda: share_of(text, "share"), "share"),
        (lambda: plan.report("report.html", {text: plan}), "others"),
    ):
        assert refusal(call).startswith(f"{name}: expected Unicode text without NUL, got '"), name
    task.topology = Topology(2, text)
    assert refusal(neuroshard.plan, task).startswith("task: topology.memory_bytes: expected Unicode")


@pytest.mark.usefixtures("simgrid")
def test_options_that_begin_with_a_dash(plan):
    # They are what they are given for, and no option of the executable.
    text = refusal(neuroshard.evaluate_on_cluster, plan, "--help", models=ANALYTIC)
    assert "--help" in text


def test_errors_are_a_line(task):
    name = "a\nb\x1b[2J"
    assert r"a\nb\x1b[2J" in refusal(neuroshard.compare, {name: 7})
    fields = {"access_classes": [], name: math.nan}
    task.tables[0].index_distribution = fields
    assert refusal(neuroshard.plan, task).endswith(r".a\nb\x1b[2J: expected a finite number, got nan")
    kind = type("Two\nlines", (), {})
    assert refusal(neuroshard.plan, kind()).endswith(r"got Two\nlines")


def test_keys_that_are_no_names(task, plan):
    assert refusal(neuroshard.compare, {None: task}) == "tasks: expected names, got None"
    assert refusal(plan.report, "r.html", {object(): plan}).startswith("others: expected names of")
    task.tables[0].index_distribution = {object(): 1}
    assert refusal(neuroshard.plan, task).endswith("expected names of fields, got object")


def test_one_task_as_a_dict(task):
    found = neuroshard.compare(task.to_dict(), algorithms="greedy-size", models=ANALYTIC)
    assert [entry.task for entry in found.entries] == ["0"]


def test_fields_of_a_plan_that_are_no_lists(plan):
    for name in ("replicated_tables", "warnings"):
        changed = dataclasses.replace(plan, **{name: 7})
        assert refusal(changed.violations) == f"plan: {name}: expected a list of texts, got int"
        changed = dataclasses.replace(plan, **{name: np.array(["user", "item"])})
        assert changed.to_dict()[name] == ["user", "item"]
    for pairs, text in (
        (7, "moves.pairs: expected a list of DeviceMoves or dicts, got int"),
        ([7], "moves.pairs[0]: expected a DeviceMove or a dict, got int"),
    ):
        plan.moves = PlanMoves(0.1, 10, 5, None, pairs)
        assert refusal(plan.violations) == f"plan: {text}"
    plan.moves = PlanMoves(0.1, 10, 5, None, [{"from": 0, "to": 1, "bytes": 5}])
    as_dict = plan.to_dict()["moves"]
    plan.moves = PlanMoves(0.1, 10, 5, None, [DeviceMove(0, 1, 5)])
    assert plan.to_dict()["moves"] == as_dict


def test_evaluations_that_json_does_not_have(plan):
    for document in ({"a": object()}, {"a": math.nan}, {"a": HUGE}):
        assert refusal(plan.report, "r.html", evaluations=[document]).startswith("evaluation 1: a: ")


def test_reprs_are_there_to_be_looked_at(plan):
    rows = np.array([0, 1])
    table = Table("t", 10, 4, 1.0, devices=rows, allow=rows, row_order=rows)
    assert repr(table).startswith("Table(name='t', num_embeddings=10, embedding_dim=4")
    assert table.to_dict()["devices"] is rows
    assert Topology(2, 1, interconnect=rows).to_dict()["interconnect"] is rows
    for broken in (
        PlanCost(1.0, [7]),
        PlanCost(1.0, 7),
        PlanCost(HUGE, []),
        PlanMoves(None, 1, 2, 3, []),
        Task([], None, HUGE),
        Plan(None, [], predicted=PlanCost(10**400, [])),
        Shard(HUGE, 0, 1, 2),
    ):
        assert repr(broken).startswith(f"<{type(broken).__name__} with fields of wrong kinds>")
    content = defaultdict(list)
    assert repr(Explanation("text", content)) == "<Explanation: None>"
    assert content == {}


def test_a_cost_names_the_device_that_the_others_wait_for():
    waiting, busy = DeviceCost(1.0, 2.0, 0.5, 0, 4), DeviceCost(2.0, 1.0, 0.5, 0, 4)
    assert repr(PlanCost(3.5, [waiting, busy])) == "<PlanCost: 3.500 ms, device 1 of 2 is the slowest>"
    assert repr(PlanCost(3.5, [busy, busy])) == "<PlanCost: 3.500 ms on each of 2 devices>"
    assert repr(PlanCost(3.5, [busy])) == "<PlanCost: 3.500 ms, device 0 of 1 is the slowest>"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"max_index": None}, "max_index: expected an integer of at least 0, got None"),
        ({"pooling_factor": "3"}, "pooling_factor: expected a finite number, got str"),
        ({"accesses": 7}, "accesses: expected a list of points, got int"),
        ({"accesses": [7]}, "accesses[0]: expected rows and a share, got int"),
        ({"accesses": [(1,)]}, "accesses[0]: expected rows and a share, got 1 numbers"),
        ({"accesses": [(1, math.nan)]}, "accesses[0][1]: expected a finite number, got nan"),
        ({"accesses": [(0, 0.0), (9, 1)]}, "accesses[0][0]: expected more than 0 rows, got 0"),
        (
            {"accesses": [(40, 0.5), (10, 1.0)]},
            "accesses[1][0]: expected more than 40 rows, got 10",
        ),
        ({"accesses": [(10, 1.7)]}, "accesses[0][1]: expected a share from 0 to 1, got 1.7"),
        ({"accesses": [(10, -0.1)]}, "accesses[0][1]: expected a share from 0 to 1, got -0.1"),
        (
            {"accesses": [(10, 0.75), (40, 0.5), (60, 1.0)]},
            "accesses[1][1]: expected a share from 0.75 to 1, got 0.5",
        ),
        (
            {"accesses": [(10, 0.75), (40, 0.9)]},
            "accesses: expected 1 as the last share, got 0.9",
        ),
    ],
)
def test_statistics_with_fields_of_wrong_kinds(change, text):
    used = dataclasses.replace(TableStatistics(3.0, [1.0], 8), **change)
    assert refusal(used.row_access, 100) == text


def test_row_indices_that_are_none():
    for rows, text in (
        ("user", "indices: expected integers in 1 dimension, got <U4 in 0"),
        ([1.5], "indices: expected integers in 1 dimension, got float64 in 1"),
        ([-1], "indices: expected rows from 0, got -1"),
        ([[1, 2], [3]], "indices: expected integers in 1 dimension, got list"),
        (np.array([2**64 - 1], dtype=np.uint64), "indices: expected rows below 2^63 - 1, got 1844"),
        ([2**63 - 1], "indices: expected rows below 2^63 - 1, got 9223372036854775807"),
    ):
        assert refusal(ReuseCounter(4).add, rows).startswith(text)
    assert refusal(ReuseCounter(4).statistics) == "statistics: expected at least one batch, got none"
    counter = ReuseCounter(4)
    counter.add(np.empty(0, dtype=complex))
    counter.add(np.array([2**63 - 2, 5], dtype=">i8"))
    assert counter.statistics().max_index == 2**63 - 2
    assert refusal(from_batches, [], {}, batch_size=1).startswith("features: expected those of")


def test_a_batch_that_cannot_say_its_samples():
    class Stranger:
        def stride(self):
            return math.nan

    text = refusal(from_batches, [Stranger()], {"t": "f"}, batch_size=1)
    assert text.endswith("or a KeyedJaggedTensor, got Stranger")


def test_no_memory_is_the_machines_error(plan):
    with pytest.raises(MachineError):
        neuroshard.evaluate(plan, models=ANALYTIC, arena_bytes=1 << 59)


def test_a_simulation_needs_a_cluster_and_a_whole_plan(plan):
    # Without a platform, `evaluate` would measure.
    assert refusal(neuroshard.evaluate_on_cluster, plan, None).startswith("platform: expected ")
    fields = {name: value for name, value in plan.to_dict().items() if name != "task"}
    text = refusal(neuroshard.evaluate_on_cluster, fields, "pcie4")
    assert text.startswith("plan: task: expected this required field")
