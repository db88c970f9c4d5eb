"""How far the runtime's costs are from measured steps, and how far steps are that were measured
again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from .costs import LayoutCosts
from .operators import OperatorWork
from .samples import RuntimeSample, measured_operators_ms
from .work import DATA_PARALLEL, work_of


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
    """Steps that were measured several times: how far each measurement is from the median of the
    others."""

    step: float
    median_step: float
    #: Whether the plan that is the fastest by one measurement is so by the others.
    naming: Naming


@dataclass(frozen=True)
class TimedPlan:
    """A plan of a task: what names it, and its measured time."""

    task: int
    #: Equal for plans of the task that differ by the order of their processes alone.
    likeness: Hashable
    named_by: float
    measured: float


def naming_of(plans: Sequence[TimedPlan]) -> Naming:
    """Whether the plans that are named are the fastest, of the tasks with different plans. Plans that
    are alike count as one, with the means of both figures: which of them was measured to be faster
    says nothing."""
    by_task: dict[int, dict[Hashable, list[TimedPlan]]] = {}
    for plan in plans:
        by_task.setdefault(plan.task, {}).setdefault(plan.likeness, []).append(plan)
    losses = []
    for of_task in by_task.values():
        different = [
            (fmean(plan.named_by for plan in alike), fmean(plan.measured for plan in alike))
            for alike in of_task.values()
        ]
        if len(different) > 1:
            _, measured = min(different, key=lambda plan: plan[0])
            losses.append(measured / min(measured for _, measured in different) - 1.0)
    right = sum(loss == 0.0 for loss in losses)
    return Naming(len(losses), right, fmean(losses) if losses else 0.0)


def likeness(sample: RuntimeSample) -> Hashable:
    """What a plan is but for the order of its hosts and of the processes of a host, and for where in
    its table a shard begins."""
    copies = []
    pieces: list[list[tuple[int, int, str, int, int]]] = [
        [] for _ in range(sample.setup.world_size)
    ]
    for number, module in enumerate(sample.modules):
        for place, table in enumerate(module.tables):
            if table.sharding_type == DATA_PARALLEL:
                copies.append((number, place))
            for shard in table.shards:
                pieces[shard.rank].append(
                    (number, place, table.sharding_type, shard.num_rows, shard.num_columns)
                )
    of_rank = [tuple(sorted(each)) for each in pieces]
    size = sample.setup.local_world_size
    hosts = [tuple(sorted(of_rank[i : i + size])) for i in range(0, len(of_rank), size)]
    return tuple(copies), tuple(sorted(hosts))


def median_of(measurements: Sequence[Sequence[RuntimeSample]]) -> list[RuntimeSample]:
    """The samples, in the same order in each measurement, with the medians of their times."""
    return [
        replace(
            each[0],
            forward_ms=median(one.forward_ms for one in each),
            backward_ms=median(one.backward_ms for one in each),
            operator_ms=tuple(
                (median(forward for forward, _ in rank), median(backward for _, backward in rank))
                for rank in zip(*(one.operator_ms for one in each), strict=True)
            ),
        )
        for each in zip(*measurements, strict=True)
    ]


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
        work = work_of(sample.modules, sample.setup)
        with_measured = costs.price_of(work, measured_operators_ms(sample)).step_ms
        step = costs.price_of(work, costs.operators_ms(operators[sample.index])).step_ms
        runtime_errors.append(abs(with_measured / sample.step_ms - 1.0))
        step_errors.append(abs(step / sample.step_ms - 1.0))
        plans.append(TimedPlan(sample.task, likeness(sample), step, sample.step_ms))
    return Errors(
        samples=len(samples),
        runtime=fmean(runtime_errors),
        step=fmean(step_errors),
        median_step=median(step_errors),
        naming=naming_of(plans),
    )


def repeated(measurements: Sequence[Sequence[RuntimeSample]]) -> Repeated:
    """Of samples that were measured at least twice, in the same order each time."""
    differences = []
    namings = []
    for number, one in enumerate(measurements):
        others = median_of([*measurements[:number], *measurements[number + 1 :]])
        pairs = list(zip(one, others, strict=True))
        differences += [abs(single.step_ms / other.step_ms - 1.0) for single, other in pairs]
        namings.append(
            naming_of(
                [
                    TimedPlan(other.task, likeness(other), single.step_ms, other.step_ms)
                    for single, other in pairs
                ]
            )
        )
    return Repeated(
        fmean(differences),
        median(differences),
        Naming(
            sum(naming.tasks for naming in namings),
            sum(naming.right for naming in namings),
            fmean(naming.mean_loss for naming in namings),
        ),
    )
