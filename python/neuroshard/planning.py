"""Plans found, priced, compared and measured."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, overload

from . import _core
from .arguments import names_of, to_text
from .errors import ExtrapolationWarning, InputError
from .executable_answer import Answer, answer_of, repeated, with_names
from .search_options import SearchOptions, options_arguments, options_json
from .types import Plan, PlanCost, PlanLike, Table, TaskLike, plan_text, task_text, tasks_of

#: What was chosen for the user that the user may want to choose.
_log = logging.getLogger("neuroshard")


def _tell(reasons: Sequence[str], notes: Sequence[str]) -> None:
    for note in notes:
        _log.warning(note)
    for reason in reasons:
        warnings.warn(reason, ExtrapolationWarning, stacklevel=3)


def plan(
    task: TaskLike,
    *,
    models: str | Sequence[str] = (),
    algorithm: str = "neuroshard",
    lower_bound: bool = True,
    baselines: bool = False,
    **options: Unpack[SearchOptions],
) -> Plan:
    """The plan of lowest predicted cost that the algorithm finds.

    `models` are names of `list_models()` or files, at most one for computation and one for
    communication; a kind that is not named gets the default. The search's options are those of
    `SearchOptions`: `seed`, `num_threads`, `time_limit_seconds`, `steps`, `improvement`,
    `pessimism`, `least_gain` and `cuts`. With `baselines`, `plan.search["baselines"]` has the result
    of every baseline.
    Raises InfeasibleError, which says what memory or devices would do, if no plan fits into memory;
    InputError for an invalid task; and warns (ExtrapolationWarning) where a model is used outside
    of its range.

    >>> from neuroshard import Table, Task, Topology, plan
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> plan(task, models=["analytic-a100-40gb", "analytic-a100-nvswitch"])
    <Plan: 1 table in ... on 2 devices, batch size 65536, predicted cost ... ms>
    """
    request = {
        "models": names_of(models, "models"),
        "algorithm": algorithm,
        "options": options_json(options, "plan"),
        "lower_bound": lower_bound,
        "baselines": baselines,
    }
    text, reasons, notes = _core.plan(task_text(task), to_text(request, "plan"))
    _tell(reasons, notes)
    return Plan.from_text(text)


def plan_like(plan: PlanLike, *, models: str | Sequence[str] = ()) -> Plan:
    """The plan made again: the same task, options and models, and so the same plan.

    `models` gives the present paths of its model files, if they have moved. Raises InputError if a
    model's content has changed, or the plan does not record how it was made.
    """
    text, reasons, notes = _core.plan_like(plan_text(plan), names_of(models, "models"))
    _tell(reasons, notes)
    return Plan.from_text(text)


def price(
    plan: PlanLike, *, models: str | Sequence[str] = (), lower_bound: bool = True
) -> Plan:
    """The same plan with its predicted cost and lower bound by its own models or, for each kind
    that `models` names, by that model.

    >>> from neuroshard import Plan, Shard, Table, Task, Topology, price
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> halves = Plan(task, [Shard("user", 0, 32, device=0), Shard("user", 32, 32, device=1)])
    >>> price(halves, models=["analytic-a100-40gb", "analytic-a100-nvswitch"]).predicted
    <PlanCost: ... ms, device ... of 2 is the slowest>
    """
    text, reasons, notes = _core.price(plan_text(plan), names_of(models, "models"), lower_bound)
    _tell(reasons, notes)
    return Plan.from_text(text)


@dataclass(frozen=True)
class ComparisonEntry:
    """One algorithm's result on one task."""

    task: str
    algorithm: str
    found: bool
    wall_ms: float
    reason: str = ""
    #: That its plan may have; None in journals of versions that knew columns alone.
    cuts: Sequence[str] | None = None
    predicted_ms: float | None = None
    measured_ms: float | None = None
    measured_compute_ms: float | None = None
    #: Mean relative error of the predicted computation; 0.05 is 5 %.
    compute_mape: float | None = None
    #: With controls: their cost now over their cost then, the median.
    drift: float | None = None
    #: With controls: as `measured_ms`, with the measured computation divided by `drift`.
    less_drift_ms: float | None = None
    device_columns: Sequence[int] = ()
    device_compute_ms: Sequence[float] = ()
    #: If measured: bytes of the all-reduce of replicated tables on each device, and the predicted
    #: time of adding up partial sums of slices of rows.
    all_reduce_bytes: int = 0
    partial_sums_ms: float = 0.0


@dataclass(frozen=True)
class ComparisonSummary:
    """One algorithm over all tasks; mean costs are over those that every algorithm solved."""

    algorithm: str
    tasks: int
    solved: int
    common: int
    wins: int
    mean_predicted_ms: float
    mean_wall_ms: float
    #: That its plans may have, on any of the tasks.
    cuts: Sequence[str] | None = None
    mean_measured_ms: float | None = None
    mean_measured_compute_ms: float | None = None
    measured_wins: int | None = None
    #: Mean of |predicted / measured - 1|.
    mean_gap: float | None = None
    #: The same with the measured cost without the machine's drift, over tasks measured with
    #: controls.
    mean_gap_less_drift: float | None = None
    #: Cost over that of the reference's plan, over the tasks that both solved.
    mean_ratio: float | None = None
    worst_ratio: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Every algorithm on every task."""

    entries: Sequence[ComparisonEntry]
    summary: Sequence[ComparisonSummary]
    #: What of the tasks lies outside of what the models were trained on, a sentence each.
    warnings: Sequence[str] = ()
    #: The name of the model of the all-to-alls (of the first task).
    communication_model: str = ""
    #: True if that was learned from a simulation: "pre-trained (simulated)".
    communication_is_simulated: bool = False


def compare(
    tasks: Mapping[str, TaskLike] | Sequence[TaskLike] | TaskLike,
    *,
    models: str | Sequence[str] = (),
    algorithms: str | Sequence[str] = (),
    reference: str = "",
    measure: bool = False,
    arena_bytes: int = 4 << 30,
    controls: Sequence[str | os.PathLike[str]] = (),
    journal: str | os.PathLike[str] | None = None,
    platform: str | os.PathLike[str] | None = None,
    backend: str = "cpu",
    **options: Unpack[SearchOptions],
) -> Comparison:
    """Runs the algorithms (all, if none is named) on the tasks; ratios are to the algorithm
    `reference`. The search's options are those of `plan`; "neuroshard:columns+rows" is an algorithm
    with cuts of its own.

    With `measure`, the computation of every plan is measured on this machine, the tables lying in
    `arena_bytes` of memory. `controls` are files of costs measured earlier, some samples of which
    are measured again with the plans, to show how the machine's speed has changed. `journal` is a
    file of results task by task (.jsonl), with which a run that was stopped goes on.

    `platform` simulates the all-to-alls of measured plans on a cluster, as of `evaluate`; `backend`
    "cuda" measures on GPUs. Either is done by the package's executable, to which a journal then
    belongs.

    >>> from neuroshard import Table, Task, Topology, compare
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> found = compare(
    ...     {"tiny": task},
    ...     algorithms=["neuroshard", "greedy-size"],
    ...     models=["analytic-a100-40gb", "analytic-a100-nvswitch"],
    ... )
    >>> [(entry.task, entry.algorithm, entry.found) for entry in found.entries]
    [('tiny', 'neuroshard', True), ('tiny', 'greedy-size', True)]
    >>> found.summary[0].mean_predicted_ms <= found.summary[1].mean_predicted_ms
    True
    """
    texts = tasks_of(tasks)
    if platform is not None or backend != "cpu":
        if not measure:
            raise InputError("compare: platform and backend need measure=True")
        arguments = [*options_arguments(options, "compare"), "--measure"]
        arguments += ["--arena", str(arena_bytes), "--backend", backend, "--relative-to", reference]
        if names := names_of(algorithms, "algorithms"):
            arguments += ["--algorithms", ",".join(names)]
        arguments += repeated("--model", names_of(models, "models"))
        arguments += repeated("--controls", controls)
        arguments += repeated("--journal", [] if journal is None else [journal])
        arguments += repeated("--platform", [] if platform is None else [platform])
        found, reasons, notes = _run_compare(texts, arguments)
        _tell(reasons, notes)
        return _comparison(found)
    text = _core.compare(
        list(texts.items()),
        names_of(models, "models"),
        names_of(algorithms, "algorithms"),
        to_text(options_json(options, "compare"), "compare"),
        arena_bytes if measure else 0,
        reference,
        "" if journal is None else os.fspath(journal),
        [os.fspath(file) for file in controls],
    )
    found = json.loads(text)
    _tell(found["warnings"], [])
    return _comparison(found)


def _run_compare(texts: Mapping[str, str], arguments: Sequence[str]) -> Answer:
    # The files' names and places are the same in each run, as a journal refers to them.
    names = {f"task-{number:06}.json": name for number, name in enumerate(texts)}
    with tempfile.TemporaryDirectory() as folder:
        for file, text in zip(names, texts.values()):
            Path(folder, file).write_text(text, encoding="utf-8")
        answer = answer_of(["compare", *names, *arguments], folder, names)
    for entry in answer.found["entries"]:
        entry["task"] = names[entry["task"]]
    answer.found["warnings"] = [with_names(line, names) for line in answer.found["warnings"]]
    return answer


def _comparison(found: Mapping[str, Any]) -> Comparison:
    return Comparison(
        entries=[ComparisonEntry(**entry) for entry in found["entries"]],
        summary=[ComparisonSummary(**line) for line in found["summary"]],
        warnings=found["warnings"],
        communication_model=found["communication_model"],
        communication_is_simulated=found["communication_is_simulated"],
    )


@dataclass(frozen=True)
class Evaluation:
    """A plan's computation measured on this machine, with its prediction."""

    predicted: PlanCost
    #: Computation measured, communication as the model predicts it for the measured computation.
    measured: PlanCost
    #: Per device: half-width of the 95 % interval, relative.
    interval: Sequence[float]
    #: Mean relative error of the predicted computation, over the devices that have pieces.
    compute_mape: float
    #: Kendall's rank correlation of predicted and measured computation; None where all devices are
    #: predicted, or measured, to be equal.
    compute_tau: float | None


@overload
def evaluate(
    plan: PlanLike,
    *,
    models: str | Sequence[str] = (),
    arena_bytes: int = 4 << 30,
    num_threads: int = 0,
    seed: int = 0,
    backend: str = "cpu",
    platform: None = None,
) -> Evaluation: ...


@overload
def evaluate(
    plan: PlanLike, *, models: str | Sequence[str] = (), platform: str | os.PathLike[str]
) -> SimulatedIteration: ...


def evaluate(
    plan: PlanLike,
    *,
    models: str | Sequence[str] = (),
    arena_bytes: int = 4 << 30,
    num_threads: int = 0,
    seed: int = 0,
    backend: str = "cpu",
    platform: str | os.PathLike[str] | None = None,
) -> Evaluation | SimulatedIteration:
    """Runs every device's pieces through the library's own operator on this machine or, with
    `backend` "cuda", on its GPUs. With `platform`, `evaluate_on_cluster`: nothing is measured.

    `models` default to those that the plan was made with. The tables lie in `arena_bytes` of
    memory.

    >>> import warnings
    >>> from neuroshard import Plan, Shard, Table, Task, Topology, evaluate
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(1, "1GiB"), batch_size=1024)
    >>> with warnings.catch_warnings(action="ignore"):  # this machine is not the models'
    ...     found = evaluate(
    ...         Plan(task, [Shard("user", 0, 64, device=0)]),
    ...         models=["analytic-a100-40gb", "analytic-a100-nvswitch"],
    ...         arena_bytes=64 << 20,
    ...     )
    >>> found.measured
    <PlanCost: ... ms, device 0 of 1 is the slowest>
    >>> found.measured.devices[0].compute_ms > 0
    True
    """
    if platform is not None:
        if backend != "cpu":
            raise InputError("evaluate: platform simulates, backend measures: expected one of them")
        found, reasons, notes = _run_evaluate(plan, models, repeated("--platform", [platform]))
        _tell(reasons, notes)
        return _simulated_iteration(found)
    if backend != "cpu":
        arguments = ["--backend", backend, "--arena", str(arena_bytes), "--seed", str(seed)]
        arguments += ["--threads", str(num_threads)] if num_threads != 0 else []
        found, reasons, notes = _run_evaluate(plan, models, arguments)
    else:
        text, reasons, notes = _core.evaluate(
            plan_text(plan), names_of(models, "models"), arena_bytes, num_threads, seed
        )
        found = json.loads(text)
    _tell(reasons, notes)
    return Evaluation(
        predicted=_cost(found, "predicted"),
        measured=_cost(found, "measured"),
        interval=[device["interval"] for device in found["devices"]],
        compute_mape=found["compute_mape"],
        compute_tau=found["compute_tau"],
    )


def _cost(evaluation: Mapping[str, Any], prefix: str) -> PlanCost:
    """The predicted or the measured cost of an evaluation's devices."""
    devices = [
        {
            "compute_ms": device[f"{prefix}_compute_ms"],
            "all_reduce_ms": device.get(f"{prefix}_all_reduce_ms", 0.0),
            "forward_comm_ms": device[f"{prefix}_forward_comm_ms"],
            "backward_comm_ms": device[f"{prefix}_backward_comm_ms"],
            "all_reduce_ms": device.get(f"{prefix}_all_reduce_ms", 0.0),
            "memory_bytes": device["memory_bytes"],
            "num_columns": device["num_columns"],
        }
        for device in evaluation["devices"]
    ]
    return PlanCost.from_dict({"cost_ms": evaluation[f"{prefix}_ms"], "devices": devices})


@dataclass(frozen=True)
class SimulatedDevice:
    """A device's part of a simulated iteration [ms]; its computation is as predicted."""

    compute_ms: float
    forward_comm_ms: float
    backward_comm_ms: float
    total_ms: float
    #: Of the gradients of replicated tables.
    all_reduce_ms: float = 0.0


@dataclass(frozen=True)
class SimulatedIteration:
    """One iteration of a plan: computation predicted, all-to-alls and all-reduces simulated."""

    predicted_ms: float
    simulated_ms: float
    devices: Sequence[SimulatedDevice]
    #: The device that enters the forward all-to-all last, `entered_ms` after the start.
    last_to_enter: int
    entered_ms: float
    #: The device that ends last.
    last_to_end: int


def _simulated_iteration(found: Mapping[str, Any]) -> SimulatedIteration:
    return SimulatedIteration(
        predicted_ms=found["predicted_ms"],
        simulated_ms=found["simulated_ms"],
        devices=[
            SimulatedDevice(
                compute_ms=device["predicted_compute_ms"],
                forward_comm_ms=device["simulated_forward_comm_ms"],
                backward_comm_ms=device["simulated_backward_comm_ms"],
                total_ms=device["simulated_total_ms"],
                all_reduce_ms=device.get("simulated_all_reduce_ms", 0.0),
            )
            for device in found["devices"]
        ],
        last_to_enter=found["last_to_enter"],
        entered_ms=found["entered_ms"],
        last_to_end=found["last_to_end"],
    )


def _run_evaluate(
    plan: PlanLike, models: str | Sequence[str], arguments: Sequence[str]
) -> Answer:
    given = plan if isinstance(plan, Plan) else Plan.from_text(plan_text(plan))
    with tempfile.TemporaryDirectory() as folder:
        given.write(os.path.join(folder, "plan.json"))
        command = ["evaluate", "plan.json", *arguments]
        command += repeated("--model", names_of(models, "models"))
        return answer_of(command, folder, {"plan.json": "plan"})


def evaluate_on_cluster(
    plan: PlanLike, platform: str | os.PathLike[str], *, models: str | Sequence[str] = ()
) -> SimulatedIteration:
    """Simulates the plan's all-to-alls on a cluster: a preset (`ethernet-25g`, ...) or a SimGrid
    platform file (.xml).

    `models` default to those that the plan was made with. Runs the package's executable, as SimGrid
    simulates once per process.
    """
    return evaluate(plan, models=models, platform=platform)


@dataclass(frozen=True)
class Model:
    """A cost model that can be asked for by name."""

    name: str
    #: "compute" or "communication"; "unreadable" for a broken file
    kind: str
    #: True if computed from data sheets, not learned from measurements.
    is_estimate: bool
    #: The file, or the source of the numbers.
    origin: str
    #: True if learned from a simulation: "pre-trained (simulated)".
    is_simulated: bool = False


def list_models() -> list[Model]:
    """The shipped models, those in the folders of $NEUROSHARD_MODELS, and the analytic presets.

    >>> from neuroshard import list_models
    >>> [model.name for model in list_models() if model.kind == "compute" and model.is_estimate]
    [...'analytic-a100-40gb'...]
    """
    return [Model(**model) for model in json.loads(_core.list_models())["models"]]


def list_algorithms() -> list[str]:
    """The names of algorithms for `plan` and `compare`, the search first.

    >>> from neuroshard import list_algorithms
    >>> list_algorithms()
    ['neuroshard', ...]
    """
    return _core.list_algorithms()


@dataclass(frozen=True)
class Workload:
    """The tables of one recommendation model with its training settings."""

    name: str
    source: str
    num_tables: int
    batch_size: int
    optimizer: str
    is_seeded: bool

    def tables(self, seed: int = 0) -> list[Table]:
        """Its tables; of a generated workload (`is_seeded`), those of this seed."""
        fields = json.loads(_core.workload_task(self.name, seed))
        return [Table(**table) for table in fields["tables"]]


def list_workloads() -> list[Workload]:
    """The published workloads, then the generated ones.

    >>> from neuroshard import list_workloads
    >>> workloads = {workload.name: workload for workload in list_workloads()}
    >>> tables = workloads["mlperf-dlrm-dcnv2"].tables()
    >>> len(tables)
    26
    """
    return [Workload(**workload) for workload in json.loads(_core.list_workloads())["workloads"]]


def reuse_histograms(task: TaskLike) -> list[list[float]]:
    """Every table's reuse histogram at the task's batch size, from its distribution.

    >>> from neuroshard import Table, Task, Topology, reuse_histograms
    >>> table = Table("t", 1000, 64, 3.0, index_distribution={"zipf_exponent": 1.1})
    >>> [histogram] = reuse_histograms(Task([table], Topology(1, "1GiB"), batch_size=4096))
    >>> len(histogram), round(sum(histogram), 6)
    (17, 1.0)
    """
    return _core.reuse_histograms(task_text(task))
