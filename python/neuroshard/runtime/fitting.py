"""Learns the runtime's costs from measured steps: least squares of relative errors, with costs that
are at least 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from ..errors import InputError
from .costs import LayoutCosts, units
from .operators import OPERATORS, operators_ms
from .samples import RuntimeSample
from .work import BACKWARD_ALONE, FORWARD_ALONE, WORK, work_of

#: Of the tasks, every fifth is kept from the fit.
_HELD_OUT_EVERY = 5

_MOST_ROUNDS = 20_000


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
    tasks: int
    #: Tasks whose fastest plan is the one with the lowest price.
    named_right: int
    #: By how much the plan of the lowest price takes longer than the fastest, in the mean.
    mean_loss: float

    def content(self) -> dict[str, Any]:
        """As in the file of the costs."""
        return {
            "samples": self.samples,
            "runtime": round(self.runtime, 4),
            "step": round(self.step, 4),
            "median_step": round(self.median_step, 4),
            "tasks": self.tasks,
            "named_right": self.named_right,
            "mean_loss": round(self.mean_loss, 4),
        }


@dataclass(frozen=True)
class Fit:
    """The costs of a layout, and their errors on the samples they were learned from and on others."""

    costs: LayoutCosts
    fitted: Errors
    held_out: Errors


def fit_layout(samples: Sequence[RuntimeSample], model: str, optimizer: str = "sgd") -> Fit:
    """Learns from samples of one layout, but for every fifth task."""
    tasks = sorted({sample.task for sample in samples})
    kept = set(tasks[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY])
    if not kept:
        raise InputError(
            f"expected samples of at least {_HELD_OUT_EVERY} tasks, got {len(tasks)}"
        )
    predicted = {
        sample.index: operators_ms(sample.modules, sample.setup, [model], optimizer)
        for sample in samples
    }
    fitted = [sample for sample in samples if sample.task not in kept]
    held_out = [sample for sample in samples if sample.task in kept]
    setup = samples[0].setup
    costs = LayoutCosts(
        setup.world_size,
        setup.local_world_size,
        forward=_pass_costs(fitted, forward=True),
        backward=_pass_costs(fitted, forward=False),
        operators=_operator_factors(fitted, predicted),
        types=_types(fitted),
    )
    errors = [_errors(costs, part, predicted) for part in (fitted, held_out)]
    costs = LayoutCosts(
        costs.world_size,
        costs.local_world_size,
        costs.forward,
        costs.backward,
        costs.operators,
        costs.types,
        {"fitted": errors[0].content(), "held_out": errors[1].content()},
    )
    return Fit(costs, *errors)


def measured_operators_ms(sample: RuntimeSample) -> float:
    """Of the process where they take longest, both passes."""
    return max(forward + backward for forward, backward in sample.operator_ms)


def _pass_costs(samples: Sequence[RuntimeSample], *, forward: bool) -> dict[str, float]:
    """What a pass takes beyond the operators of the process where these take longest."""
    names = [
        name for name in WORK if name not in (BACKWARD_ALONE if forward else FORWARD_ALONE)
    ]
    rows = []
    targets = []
    for sample in samples:
        work = work_of(sample.modules, sample.setup)
        total = sample.forward_ms if forward else sample.backward_ms
        operators = max(times[0 if forward else 1] for times in sample.operator_ms)
        weight = 1.0 / sample.step_ms
        rows.append([weight * units(name, work) for name in names])
        targets.append(weight * (total - operators))
    return dict(zip(names, non_negative_least_squares(rows, targets), strict=True))


def _operator_factors(
    samples: Sequence[RuntimeSample], predicted: Mapping[int, Sequence[Mapping[str, float]]]
) -> dict[str, float]:
    rows = []
    targets = []
    seen: set[str] = set()
    for sample in samples:
        for (forward, backward), by_kind in zip(
            sample.operator_ms, predicted[sample.index], strict=True
        ):
            total = forward + backward
            if total > 0:
                rows.append([by_kind[kind] / total for kind in OPERATORS])
                targets.append(1.0)
                seen |= {kind for kind in OPERATORS if by_kind[kind] > 0}
    found = dict(zip(OPERATORS, non_negative_least_squares(rows, targets), strict=True))
    return {kind: found[kind] if kind in seen else 1.0 for kind in OPERATORS}


def _types(samples: Sequence[RuntimeSample]) -> dict[str, list[str]]:
    """The sharding types of each kind of module."""
    found: dict[str, set[str]] = {}
    for sample in samples:
        for module in sample.modules:
            found.setdefault(module.kind, set()).update(
                table.sharding_type for table in module.tables
            )
    return {kind: sorted(types) for kind, types in sorted(found.items())}


def _errors(
    costs: LayoutCosts,
    samples: Sequence[RuntimeSample],
    predicted: Mapping[int, Sequence[Mapping[str, float]]],
) -> Errors:
    runtime_errors = []
    step_errors = []
    by_task: dict[int, list[tuple[float, float]]] = {}
    for sample in samples:
        runtime = costs.runtime_ms(work_of(sample.modules, sample.setup))
        with_measured = runtime + measured_operators_ms(sample)
        step = runtime + costs.slowest_ms(predicted[sample.index])
        runtime_errors.append(abs(with_measured / sample.step_ms - 1.0))
        step_errors.append(abs(step / sample.step_ms - 1.0))
        by_task.setdefault(sample.task, []).append((step, sample.step_ms))
    losses = [min(plans)[1] / min(ms for _, ms in plans) - 1.0 for plans in by_task.values()]
    return Errors(
        samples=len(samples),
        runtime=mean(runtime_errors),
        step=mean(step_errors),
        median_step=median(step_errors),
        tasks=len(by_task),
        named_right=sum(loss == 0.0 for loss in losses),
        mean_loss=mean(losses),
    )


def non_negative_least_squares(
    rows: Sequence[Sequence[float]], targets: Sequence[float]
) -> list[float]:
    """The x >= 0 of least |rows x - targets|^2, by going down one coordinate after another, which
    for so few reaches the minimum."""
    number = len(rows[0])
    # Columns are brought to one length, so that steps are as long in all.
    lengths = [sum(row[i] * row[i] for row in rows) ** 0.5 or 1.0 for i in range(number)]
    scaled = [[value / length for value, length in zip(row, lengths, strict=True)] for row in rows]
    matrix = [
        [sum(row[i] * row[j] for row in scaled) for j in range(number)] for i in range(number)
    ]
    vector = [sum(row[i] * t for row, t in zip(scaled, targets, strict=True)) for i in range(number)]
    x = [0.0] * number
    for _ in range(_MOST_ROUNDS):
        change = 0.0
        for i in range(number):
            if matrix[i][i] == 0.0:
                continue
            gradient = vector[i] - sum(a * b for a, b in zip(matrix[i], x, strict=True))
            new = max(0.0, x[i] + gradient / matrix[i][i])
            change = max(change, abs(new - x[i]))
            x[i] = new
        if change <= 1e-12 * max(1e-300, max(x)):
            break
    return [value / length for value, length in zip(x, lengths, strict=True)]
