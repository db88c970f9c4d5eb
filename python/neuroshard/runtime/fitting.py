"""Learns the runtime's costs from measured steps: least squares of relative errors, with costs that
are at least 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from .. import _core
from ..errors import InputError
from .accuracy import Errors, errors_of
from .costs import LayoutCosts
from .operators import OPERATOR_WORK, OperatorWork, operator_work, signed, unmeasured_operators
from .samples import RuntimeSample, measured_operators_ms
from .trained_work import trained_work_of
from .work import BACKWARD_ALONE, FORWARD_ALONE, OPERATORS, WORK, units, work_of

#: Of the tasks, every fifth is kept from the fit.
_HELD_OUT_EVERY = 5


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
    work = {
        sample.index: operator_work(sample.modules, sample.setup, [model], optimizer)
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
        operators=_operator_costs(fitted, work),
        types=_types(fitted),
        trained=trained_work_of(fitted, work),
    )
    errors = [errors_of(costs, part, work) for part in (fitted, held_out)]
    known = {"fitted": errors[0].content(), "held_out": errors[1].content()}
    return Fit(replace(costs, errors=known), *errors)


def _pass_costs(samples: Sequence[RuntimeSample], *, forward: bool) -> dict[str, float]:
    """What a pass takes beyond the operators of the process where these take longest."""
    names = [
        name for name in WORK if name not in (BACKWARD_ALONE if forward else FORWARD_ALONE)
    ]
    rows = []
    targets = []
    for sample in samples:
        work = work_of(sample.modules, sample.setup)
        work[OPERATORS] = fmean(measured_operators_ms(sample))
        total = sample.forward_ms if forward else sample.backward_ms
        operators = max(times[0 if forward else 1] for times in sample.operator_ms)
        weight = 1.0 / sample.step_ms
        rows.append([weight * units(name, work) for name in names])
        targets.append(weight * (total - operators))
    return dict(zip(names, non_negative_least_squares(rows, targets), strict=True))


def _operator_costs(
    samples: Sequence[RuntimeSample], work: Mapping[int, Sequence[OperatorWork]]
) -> dict[str, dict[str, float]]:
    """Of the operators on each process, whose errors count relative to the step's time."""
    names = [(kind, name) for kind, known in OPERATOR_WORK.items() for name in known]
    rows = []
    targets = []
    for sample in samples:
        weight = 1.0 / sample.step_ms
        for (forward, backward), of_rank in zip(
            sample.operator_ms, work[sample.index], strict=True
        ):
            rows.append([weight * signed(name) * of_rank[kind][name] for kind, name in names])
            targets.append(weight * (forward + backward))
    found: dict[str, dict[str, float]] = {kind: {} for kind in OPERATOR_WORK}
    for (kind, name), cost in zip(names, non_negative_least_squares(rows, targets), strict=True):
        found[kind][name] = cost
    return {
        kind: costs if any(costs.values()) else unmeasured_operators(kind)
        for kind, costs in found.items()
    }


def _types(samples: Sequence[RuntimeSample]) -> dict[str, list[str]]:
    """The sharding types of each kind of module."""
    found: dict[str, set[str]] = {}
    for sample in samples:
        for module in sample.modules:
            found.setdefault(module.kind, set()).update(
                table.sharding_type for table in module.tables
            )
    return {kind: sorted(types) for kind, types in sorted(found.items())}


def non_negative_least_squares(
    rows: Sequence[Sequence[float]], targets: Sequence[float]
) -> list[float]:
    """The x >= 0 of least |rows x - targets|^2. Columns are brought to one length, as they differ by
    orders of magnitude."""
    lengths = [sum(value * value for value in column) ** 0.5 or 1.0 for column in zip(*rows)]
    scaled = [[value / length for value, length in zip(row, lengths, strict=True)] for row in rows]
    found = _core.nonnegative_least_squares(scaled, targets)
    return [value / length for value, length in zip(found, lengths, strict=True)]
