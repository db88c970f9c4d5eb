"""How far the runtime's costs are from measured steps, and how far steps are that were measured
again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from .costs import LayoutCosts
from .operators import OperatorWork
from .samples import RuntimeSample
from .work import work_of


@dataclass(frozen=True)
class Errors:
    """Of some samples: mean errors relative to the measured step, and whether the fastest plan of
    each task is the one that is predicted to be."""

    samples: int
    #: With the operators' measured times: the error of the runtime's costs alone.
    runtime: float
    #: All predicted.
    step: float
    #: Half of the samples' errors are below.
    median_step: float
    naming: Naming

    def content(self) -> dict[str, Any]:
        """As in the file of the costs."""
        return {
            "samples": self.samples,
            "runtime": round(self.runtime, 4),
            "step": round(self.step, 4),
            "median_step": round(self.median_step, 4),
            "tasks": self.naming.tasks,
            "named_right": self.naming.right,
            "mean_loss": round(self.naming.mean_loss, 4),
        }


@dataclass(frozen=True)
class Naming:
    """Of some tasks, whether the plan that one figure says is the fastest is so by another."""

    tasks: int
    right: int
    #: By how much the plan that is named takes longer than the fastest, in the mean.
    mean_loss: float


@dataclass(frozen=True)
class Repeated:
    """Steps that were measured twice: how far they are from themselves."""

    samples: int
    step: float
    median_step: float
    #: Whether the plan that was the fastest before is so again.
    naming: Naming


def naming_of(plans: Sequence[tuple[int, float, float]]) -> Naming:
    """Of plans, each with its task, what names it and its measured time."""
    by_task: dict[int, list[tuple[float, float]]] = {}
    for task, named_by, measured in plans:
        by_task.setdefault(task, []).append((named_by, measured))
    losses = [min(plans)[1] / min(ms for _, ms in plans) - 1.0 for plans in by_task.values()]
    return Naming(len(by_task), sum(loss == 0.0 for loss in losses), mean(losses))


def errors_of(
    costs: LayoutCosts,
    samples: Sequence[RuntimeSample],
    operators: Mapping[int, Sequence[OperatorWork]],
) -> Errors:
    """Of costs; `operators` has the `operator_work` of each sample, by its index."""
    runtime_errors = []
    step_errors = []
    plans = []
    for sample in samples:
        runtime = costs.runtime_ms(work_of(sample.modules, sample.setup))
        with_measured = runtime + measured_operators_ms(sample)
        step = runtime + costs.slowest_ms(operators[sample.index])
        runtime_errors.append(abs(with_measured / sample.step_ms - 1.0))
        step_errors.append(abs(step / sample.step_ms - 1.0))
        plans.append((sample.task, step, sample.step_ms))
    return Errors(
        samples=len(samples),
        runtime=mean(runtime_errors),
        step=mean(step_errors),
        median_step=median(step_errors),
        naming=naming_of(plans),
    )


def repeated(before: Sequence[RuntimeSample], again: Sequence[RuntimeSample]) -> Repeated:
    """Of samples that were measured twice, in the same order."""
    pairs = list(zip(before, again, strict=True))
    differences = [abs(one.step_ms / other.step_ms - 1.0) for one, other in pairs]
    plans = [(other.task, one.step_ms, other.step_ms) for one, other in pairs]
    return Repeated(len(pairs), mean(differences), median(differences), naming_of(plans))


def measured_operators_ms(sample: RuntimeSample) -> float:
    """Of the process where they take longest, both passes."""
    return max(forward + backward for forward, backward in sample.operator_ms)
