"""The table of the package's functions, each with how its arguments are made and what must hold of
an answer."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neuroshard
from neuroshard import Plan, PlanCost, Table, Task, Topology, runtime, statistics

from . import documents, grammar, promise
from .damage import damage
from .promise import Violation

Arguments = dict[str, Any]


def _returned(_: Any) -> None:
    """Any answer will do."""


@dataclass(frozen=True)
class Call:
    """A function of the package."""

    name: str
    function: Callable[..., Any]
    make: Callable[[random.Random], Arguments]
    #: Raises Violation for an answer that cannot be right.
    check: Callable[[Any], None] = _returned
    #: Of this number of calls that are asked for, one is made: those that take long are fewer.
    one_in: int = 1
    #: Arguments that are changed inside alone: the object whose method is called.
    whole: frozenset[str] = frozenset()
    #: Arguments that are not changed, because they bound the work.
    keep: frozenset[str] = frozenset()
    #: Of these arguments, either of which bounds the work, one is not changed.
    keep_one: tuple[str, ...] = ()


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)


class Workplace:
    """The folder in which calls are made, with the files that arguments name: the same for each."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        """`inputs` is a folder of `write_inputs`, which is copied."""
        self._folder = folder
        self._files = {path.name: path.read_bytes() for path in inputs.iterdir()}
        self.tidy()

    def tidy(self) -> None:
        """Takes away what a call has written."""
        for path in self._folder.iterdir():
            if path.name in self._files:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for name, content in self._files.items():
            path = self._folder / name
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)


def write_inputs(folder: Path) -> None:
    """The files that arguments name."""
    task = Task(
        [Table("user", 1000, 64, 3.0), Table("item", 2000, 32, 20.0)],
        Topology(2, "1GiB", local_world_size=1),
        batch_size=4096,
    )
    task.write(folder / "task.json")
    found = neuroshard.plan(task, models=grammar.MODELS, steps=50)
    found.write(folder / "plan.json")
    # Without SimGrid, as in wheels, there is no cluster to simulate.
    neuroshard.evaluate(found, arena_bytes=16 << 20).write(folder / "evaluation.json")


# Answers.


def _valid(plan: Any) -> None:
    _require(isinstance(plan, Plan), "an answer is a plan")
    found = plan.violations()
    _require(not found, f"a plan is valid: {found[:1]}")
    _priced(plan)


def _priced(plan: Any) -> None:
    cost = plan.predicted
    _require(isinstance(cost, PlanCost) and 0.0 <= cost.cost_ms < float("inf"), "a cost is finite")
    bound = plan.search.get("lower_bound_ms", 0.0)
    _require(bound <= cost.cost_ms * (1 + 1e-9), "no plan costs less than the lower bound")


def _read_again(task: Any) -> None:
    _require(Task.from_dict(task.to_dict()) == task, "a task is read as it was written")


def _written(path: Any) -> None:
    _require(os.path.isfile(path), "a file was written")


# Functions that are methods, or that are followed by a look at what they did.


def _repr(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError) as error:
        # Python's own limits, in the reprs that Python makes of dataclasses.
        if "for integer string conversion" in str(error) or isinstance(error, RecursionError):
            return ""
        raise
    _require(isinstance(text, str) and bool(text), "a repr is text")
    return text


def _to_dict(value: Any) -> dict[str, Any]:
    return value.to_dict()


def _construct(kind: str, fields: Arguments) -> Any:
    return getattr(neuroshard, kind)(**fields)


def _write(value: Any, path: Any) -> Any:
    value.write(path)
    return path


def _violations(plan: Any) -> list[str]:
    return plan.violations()


def _report(plan: Any, **arguments: Any) -> Any:
    plan.report(**arguments)
    return arguments.get("path")


def _html(plan: Any) -> str | None:
    return plan._repr_html_()


def _workload_tables(seed: Any) -> Any:
    generated = next(each for each in neuroshard.list_workloads() if each.is_seeded)
    return generated.tables(seed)


def _write_evaluation(document: Any, path: Any) -> Any:
    nothing = PlanCost(0.0, [])
    neuroshard.Evaluation(nothing, nothing, [], 0.0, None, document).write(path)
    return path


def _file_of(content: bytes) -> str:
    Path("input.json").write_bytes(content)
    return "input.json"


def _read_samples(content: bytes) -> Any:
    return runtime.read_samples(_file_of(content))


def _read_runtime_costs(content: bytes) -> Any:
    return runtime.read_runtime_costs(Path(_file_of(content)))


def _saved_plan(content: bytes) -> Any:
    plan = neuroshard.torchrec.SavedPlan(_file_of(content))
    plan.sharding_plan()
    return plan


def _row_access(used: Any, num_embeddings: Any) -> Any:
    return used.row_access(num_embeddings)


def _counter(batch_size: Any, batches: Any) -> Any:
    counter = statistics.ReuseCounter(batch_size)
    for batch in batches:
        counter.add(batch)
    return counter.statistics()


def _usable(found: Any) -> None:
    """Statistics that a task may have, as far as it may have tables and batches as large."""
    for used in found.values() if isinstance(found, dict) else [found]:
        if used.max_index >= 1 << 42 or used.batch_size > 1 << 30:
            continue
        table = Table(
            "t", used.max_index + 1, 16, used.pooling_factor, reuse_histogram=used.reuse_histogram
        )
        table.row_access = used.row_access(used.max_index + 1)
        Task.from_dict(Task([table], Topology(1, 1 << 60), used.batch_size).to_dict())


def _measured(found: Any) -> None:
    """Samples of which costs can be learned."""
    world_size, _ = found.layout
    for sample in found.samples:
        _require(0.0 < sample.step_ms < math.inf, "a step takes a time")
        _require(len(sample.operator_ms) == world_size, "each process has a time")
        work = runtime.work_of(sample.modules, sample.setup)
        _require(all(0 <= units < math.inf for units in work.values()), "work is finite")


def _learned(found: Any) -> None:
    """Costs that price work."""
    table = runtime.ShardedTable("data_parallel", 1 << 42, 65536, 3.0, ())
    for layout in found.layouts:
        setup = runtime.Setup(layout.world_size, layout.local_world_size, 1 << 20)
        work = runtime.work_of([runtime.ShardedModule("pooled", (table,))], setup)
        _require(0.0 <= layout.runtime_ms(work) < math.inf, "a price is finite")


def _loaded(found: Any) -> None:
    """A plan that has each of its tables."""
    options = found.load()
    _require(all(option.shards for option in options.values()), "a table has shards")
    _require(all(math.isfinite(option.total_perf) for option in options.values()), "a price is finite")


# Arguments.


def _planning(random: random.Random) -> Arguments:
    arguments = {"models": grammar.models(random), **grammar.search_options(random)}
    if random.random() < 0.3:
        arguments["lower_bound"] = random.choice((True, False))
    return arguments


def _for_plan(random: random.Random) -> Arguments:
    arguments = {"task": grammar.task(random), **_planning(random)}
    if random.random() < 0.3:
        arguments["algorithm"] = random.choice(("greedy-size", "beam-search", "torchrec-like"))
    if random.random() < 0.1:
        arguments["baselines"] = True
    return arguments


def _for_replan(random: random.Random) -> Arguments:
    arguments = {"task": grammar.task(random), "plan": grammar.plan(random), **_planning(random)}
    arguments["max_move"] = random.choice((0.1, "10%", 0, 1.0, "100%"))
    return arguments


def _for_price(random: random.Random) -> Arguments:
    arguments = {"plan": grammar.plan(random), "models": grammar.models(random)}
    if random.random() < 0.5:
        arguments["lower_bound"] = random.choice((True, False))
    return arguments


def _for_plan_like(random: random.Random) -> Arguments:
    plan = random.choice(("plan.json", Path("plan.json"), grammar.plan(random), Plan.read("plan.json")))
    return {"plan": plan, "models": random.choice(((), list(grammar.MODELS)))}


def _for_explain(random: random.Random) -> Arguments:
    arguments = {"plan": grammar.plan(random), "models": grammar.models(random)}
    which = random.randrange(3)
    if which == 0:
        arguments["table"] = random.choice(grammar.NAMES)
        return arguments
    arguments["time_limit_seconds"] = 0.1
    if which == 1:
        choice = random.choice(("rows=2", "columns=2", "replicated", "device=1"))
        arguments["why_not"] = f"{random.choice(grammar.NAMES)}:{choice}"
    else:
        arguments["num_threads"] = random.choice((0, 1, 2))
    return arguments


def _for_capacity(random: random.Random) -> Arguments:
    options = grammar.search_options(random)
    del options["time_limit_seconds"]  # planned by steps
    return {
        "task": grammar.task(random),
        "devices": random.choice(("1:4", "2", 2, [1, 4], (2,))),
        "memory": random.choice(("1GiB", 1 << 30, ["40MiB", 1 << 30], ())),
        "models": grammar.models(random),
        **options,
    }


def _for_compare(random: random.Random) -> Arguments:
    arguments = {
        "tasks": grammar.tasks(random),
        "models": grammar.models(random),
        "algorithms": random.choice(("greedy-size", ["greedy-size", "neuroshard"], "neuroshard")),
        **grammar.search_options(random),
    }
    if random.random() < 0.3:
        arguments["reference"] = "greedy-size"
    if random.random() < 0.3:
        arguments["journal"] = random.choice((None, "journal.jsonl", Path("journal.jsonl")))
    if random.random() < 0.2:
        arguments["controls"] = random.choice(((), [], ["missing.jsonl"]))
    if random.random() < 0.2:
        arguments["arena_bytes"] = 1 << 24
    return arguments


def _for_evaluate(random: random.Random) -> Arguments:
    arguments = {"plan": grammar.plan(random), "models": grammar.models(random)}
    arguments["arena_bytes"] = 1 << 24
    if random.random() < 0.5:
        arguments["num_threads"] = random.choice((0, 1))
        arguments["seed"] = random.choice((0, 7))
    return arguments


def _for_cluster(random: random.Random) -> Arguments:
    platform = random.choice(("ethernet-25g", "a100-nvswitch", "missing.xml"))
    return {"plan": grammar.plan(random), "platform": platform, "models": grammar.models(random)}


def _for_report(random: random.Random) -> Arguments:
    arguments: Arguments = {"plan": grammar.plan_object(random), "path": "report.html"}
    if random.random() < 0.3:
        arguments["plan"] = Plan.read("plan.json")
        arguments["evaluations"] = random.choice(
            ("evaluation.json", ["evaluation.json"], (), [{"format": "neuroshard/evaluation/1"}])
        )
    if random.random() < 0.5:
        other = arguments["plan"]
        arguments["others"] = random.choice((other, [other], {"other": other}, "plan.json", ()))
    return arguments


def _for_from_batches(random: random.Random) -> Arguments:
    return {
        "batches": [grammar.batch(random) for _ in range(random.choice((1, 3, 3)))],
        "features": grammar.features(random),
        "batch_size": random.choice((1, 2, 4)),
    }


def _for_counter(random: random.Random) -> Arguments:
    batches = [grammar.jagged(random, 4)[0] for _ in range(random.choice((0, 1, 1, 3)))]
    return {"batch_size": 4, "batches": batches}


def _for_row_access(random: random.Random) -> Arguments:
    return {"used": grammar.table_statistics(random), "num_embeddings": random.choice((40, 100))}


def _for_evaluation_write(random: random.Random) -> Arguments:
    document = json.loads(Path("evaluation.json").read_text(encoding="utf-8"))
    return {"document": document, "path": grammar.path(random, "out.json")}


def _for_construct(random: random.Random) -> Arguments:
    value = random.choice(
        (
            grammar.table(random, "user"),
            grammar.topology(random),
            grammar.task_object(random),
            grammar.plan_object(random),
            grammar.table_statistics(random),
        )
    )
    return {"kind": type(value).__name__, "fields": dict(vars(value))}


def _for_repr(random: random.Random) -> Arguments:
    makers: tuple[Callable[[], Any], ...] = (
        lambda: grammar.table(random, "user"),
        lambda: grammar.topology(random),
        lambda: grammar.task_object(random),
        lambda: grammar.plan_object(random),
        lambda: grammar._cost(random, 2),
        lambda: Plan.read("plan.json"),
        lambda: neuroshard.PlanMoves(0.1, 1000, 50, 2.0, [neuroshard.DeviceMove(0, 1, 50)]),
        lambda: neuroshard.Shard("user", 0, 64, 0),
        lambda: neuroshard.Explanation("text", {"format": "neuroshard/explanation/1"}),
    )
    return {"value": random.choice(makers)()}


def _content(
    make: Callable[[random.Random], list[dict[str, Any]]],
) -> Callable[[random.Random], Arguments]:
    """The bytes of a file, changed already."""
    return lambda random: {"content": documents.content(make, random)}


def _for_saved_plan(random: random.Random) -> Arguments:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that TorchRec imports
        import neuroshard.torchrec  # noqa: F401
    return {"content": documents.content(documents.torchrec_plan, random)}


_CONTENT = frozenset(("content",))
_VALUE = frozenset(("value",))
_PLAN = frozenset(("plan",))
_SEARCH = ("steps", "time_limit_seconds")
_TIME = frozenset(("time_limit_seconds",))
_ARENA = frozenset(("arena_bytes",))


def _of(value: Any) -> Arguments:
    return {"value": value}


CALLS = (
    Call("construct", _construct, _for_construct, whole=frozenset(("kind", "fields"))),
    Call("repr", _repr, _for_repr, whole=_VALUE),
    Call("Table.to_dict", _to_dict, lambda r: _of(grammar.table(r, "user")), whole=_VALUE),
    Call("Topology.to_dict", _to_dict, lambda r: _of(grammar.topology(r)), whole=_VALUE),
    Call("Task.to_dict", _to_dict, lambda r: _of(grammar.task_object(r)), whole=_VALUE),
    Call("Task.from_dict", Task.from_dict, lambda r: {"fields": grammar.task_dict(r)}, _read_again),
    Call("Task.read", Task.read, lambda r: {"path": grammar.path(r, "task.json")}, _read_again),
    Call(
        "Task.write",
        _write,
        lambda r: {"value": grammar.task_object(r), "path": grammar.path(r, "out.json")},
        _written,
        whole=_VALUE,
    ),
    Call("Plan.to_dict", _to_dict, lambda r: _of(grammar.plan_object(r)), whole=_VALUE),
    Call("Plan.read", Plan.read, lambda r: {"path": grammar.path(r, "plan.json")}),
    Call(
        "Plan.write",
        _write,
        lambda r: {"value": grammar.plan_object(r), "path": grammar.path(r, "out.json")},
        _written,
        whole=_VALUE,
    ),
    Call("Plan.violations", _violations, lambda r: {"plan": grammar.plan_object(r)}, whole=_PLAN),
    Call("Plan._repr_html_", _html, lambda r: {"plan": grammar.plan_object(r)}, whole=_PLAN),
    Call("Plan.report", _report, _for_report, _written, one_in=2, whole=_PLAN),
    Call("plan", neuroshard.plan, _for_plan, _valid, one_in=2, keep_one=_SEARCH),
    Call("replan", neuroshard.replan, _for_replan, _valid, one_in=2, keep_one=_SEARCH),
    Call("plan_like", neuroshard.plan_like, _for_plan_like, _valid, one_in=2),
    Call("price", neuroshard.price, _for_price, _priced),
    Call("explain", neuroshard.explain, _for_explain, one_in=4, keep=_TIME),
    Call("capacity", neuroshard.capacity, _for_capacity, one_in=2, keep_one=("steps",)),
    Call("compare", neuroshard.compare, _for_compare, one_in=2, keep=_ARENA, keep_one=_SEARCH),
    Call("evaluate", neuroshard.evaluate, _for_evaluate, one_in=10, keep=_ARENA),
    Call("evaluate_on_cluster", neuroshard.evaluate_on_cluster, _for_cluster, one_in=20),
    Call("reuse_histograms", neuroshard.reuse_histograms, lambda r: {"task": grammar.task(r)}),
    Call("Workload.tables", _workload_tables, lambda r: {"seed": r.choice((0, 7, 2**64 - 1))}),
    Call("TableStatistics.row_access", _row_access, _for_row_access, whole=frozenset(("used",))),
    Call("from_batches", statistics.from_batches, _for_from_batches, _usable),
    Call("ReuseCounter", _counter, _for_counter, _usable, whole=frozenset(("batches",))),
    Call("Evaluation.write", _write_evaluation, _for_evaluation_write, _written),
    Call(
        "read_samples",
        _read_samples,
        _content(documents.runtime_costs),
        _measured,
        whole=_CONTENT,
    ),
    Call(
        "read_runtime_costs",
        _read_runtime_costs,
        _content(documents.runtime_model),
        _learned,
        whole=_CONTENT,
    ),
)

#: What needs TorchRec.
if importlib.util.find_spec("torchrec") is not None:
    CALLS += (
        Call("SavedPlan", _saved_plan, _for_saved_plan, _loaded, whole=_CONTENT),
    )


def find_call(name: str) -> Call | None:
    return next((call for call in CALLS if call.name == name), None)


def arguments_of(call: Call, seed: int, number: int) -> Arguments:
    """The arguments of this number, which follow from the seed and the number alone. A third of them
    are as the grammar makes them."""
    chance = random.Random(f"{call.name} {seed} {number}")
    arguments = call.make(chance)
    if chance.random() < 2 / 3:
        keep = call.keep
        if call.keep_one:
            keep = keep | {chance.choice(call.keep_one)}
        damage(chance, arguments, call.whole, keep)
    return arguments


def try_call(call: Call, seed: int, number: int) -> bool:
    """Whether an answer came back. Raises Violation."""
    returned, answer = promise.call(call.function, arguments_of(call, seed, number))
    if returned:
        call.check(answer)
    return returned
