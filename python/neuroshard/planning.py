"""Plans found, priced, compared and measured."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _core
from .errors import ExtrapolationWarning
from .types import Plan, PlanCost, Table, Task, task_text, to_text


def _warn(reasons: Sequence[str]) -> None:
    for reason in reasons:
        warnings.warn(reason, ExtrapolationWarning, stacklevel=3)


def plan(
    task: Task | Mapping[str, Any],
    *,
    models: Sequence[str] = (),
    algorithm: str = "neuroshard",
    seed: int = 0,
    num_threads: int = 0,
    time_limit_seconds: float = 1.0,
    steps: int = 0,
    improvement: str = "thorough",
    lower_bound: bool = True,
) -> Plan:
    """The plan of lowest predicted cost that the algorithm finds.

    `models` are names of `list_models()` or files, at most one for computation and one for
    communication. `num_threads` 0 is one per core; the plan does not depend on it. `steps` are the
    neighbours that each chain of the improvement tries; 0: as many as follow from the time limit.
    `improvement` is "thorough" (chains of two kinds in long rounds) or "brief" (annealing alone in
    short rounds, better for fewer than 60,000 steps). Raises InfeasibleError, which says what would
    do, if no plan fits into memory; InputError for a task that is none; and warns
    (ExtrapolationWarning) where a model is used outside of its range.
    """
    text, reasons = _core.plan(
        task_text(task),
        list(models),
        algorithm,
        seed,
        num_threads,
        time_limit_seconds,
        steps,
        improvement,
        lower_bound,
    )
    _warn(reasons)
    return Plan.from_text(text)


def price(plan: Plan | Mapping[str, Any], *, models: Sequence[str] = ()) -> Plan:
    """The same plan with the cost that these models predict."""
    text, reasons = _core.price(to_text(plan), list(models))
    _warn(reasons)
    return Plan.from_text(text)


@dataclass(frozen=True)
class ComparisonEntry:
    """One algorithm's result on one task."""

    task: str
    algorithm: str
    found: bool
    wall_ms: float
    reason: str = ""
    predicted_ms: float | None = None
    measured_ms: float | None = None
    measured_compute_ms: float | None = None
    compute_mape: float | None = None
    device_columns: Sequence[int] = ()
    device_compute_ms: Sequence[float] = ()


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
    mean_measured_ms: float | None = None
    mean_measured_compute_ms: float | None = None
    measured_wins: int | None = None
    #: Mean of |predicted / measured - 1|.
    mean_gap: float | None = None
    #: Cost over that of the reference's plan, over the tasks that both solved.
    mean_ratio: float | None = None
    worst_ratio: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Every algorithm on every task."""

    entries: Sequence[ComparisonEntry]
    summary: Sequence[ComparisonSummary]


def compare(
    tasks: Mapping[str, Task | Mapping[str, Any]] | Sequence[Task | Mapping[str, Any]],
    *,
    models: Sequence[str] = (),
    algorithms: Sequence[str] = (),
    seed: int = 0,
    num_threads: int = 0,
    time_limit_seconds: float = 1.0,
    steps: int = 0,
    improvement: str = "thorough",
    reference: str = "",
    measure: bool = False,
    arena_bytes: int = 4 << 30,
) -> Comparison:
    """Runs the algorithms (all, if none is named) on the tasks; ratios are to the algorithm
    `reference`.

    With `measure`, the computation of every plan is measured on this machine, the tables lying in
    `arena_bytes` of memory.
    """
    named = tasks if isinstance(tasks, Mapping) else {str(i): task for i, task in enumerate(tasks)}
    text = _core.compare(
        [(name, task_text(task)) for name, task in named.items()],
        list(models),
        list(algorithms),
        seed,
        num_threads,
        time_limit_seconds,
        steps,
        improvement,
        arena_bytes if measure else 0,
        reference,
    )
    found = json.loads(text)
    return Comparison(
        entries=[ComparisonEntry(**entry) for entry in found["entries"]],
        summary=[ComparisonSummary(**line) for line in found["summary"]],
    )


@dataclass(frozen=True)
class Evaluation:
    """A plan's computation measured on this machine beside its prediction."""

    predicted: PlanCost
    #: Computation measured, communication as the model predicts it for the measured computation.
    measured: PlanCost
    #: Per device: half-width of the 95 % interval, relative.
    interval: Sequence[float]
    #: Mean relative error of the predicted computation, over the devices that have pieces.
    compute_mape: float
    #: Kendall's rank correlation of predicted and measured computation.
    compute_tau: float


def evaluate(
    plan: Plan | Mapping[str, Any],
    *,
    models: Sequence[str] = (),
    arena_bytes: int = 4 << 30,
    num_threads: int = 0,
    seed: int = 0,
) -> Evaluation:
    """Runs every device's pieces through the library's own operator on this machine.

    `models` default to those that the plan was made with. The tables lie in `arena_bytes` of
    memory.
    """
    given = plan if isinstance(plan, Plan) else Plan.from_text(to_text(plan))
    names = list(models) or [reference["name"] for reference in given.model.values()]
    text, reasons = _core.evaluate(to_text(given), names, arena_bytes, num_threads, seed)
    _warn(reasons)
    found = json.loads(text)
    return Evaluation(
        predicted=PlanCost.from_dict(found["predicted"]),
        measured=PlanCost.from_dict(found["measured"]),
        interval=found["interval"],
        compute_mape=found["compute_mape"],
        compute_tau=found["compute_tau"],
    )


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


def list_models() -> list[Model]:
    """The shipped models, those in the folders of $NEUROSHARD_MODELS, and the analytic presets."""
    return [Model(**model) for model in json.loads(_core.list_models())]


def list_algorithms() -> list[str]:
    """What `plan` and `compare` take for an algorithm, the search first."""
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
    """The published workloads, then the generated ones."""
    return [Workload(**workload) for workload in json.loads(_core.list_workloads())]


def reuse_histograms(task: Task | Mapping[str, Any]) -> list[list[float]]:
    """Every table's reuse histogram at the task's batch size, from its distribution."""
    return _core.reuse_histograms(task_text(task))
