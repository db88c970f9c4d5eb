"""Plans as pages that people look at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from . import _core
from .arguments import flag_of, items_of, path_of, shown, text_of, to_text, type_of
from .errors import InputError

if TYPE_CHECKING:
    from .plans import Plan, PlanLike


class Evaluated(Protocol):
    """What `evaluate` returns, in any of its kinds."""

    @property
    def document(self) -> Mapping[str, Any]:
        """As `neuroshard evaluate --json` prints it."""


#: The forms of an evaluation as an argument: what `evaluate` returned, or its file.
EvaluationLike: TypeAlias = Evaluated | Mapping[str, Any] | str | os.PathLike[str]


def write_report(
    plan: Plan,
    path: str | os.PathLike[str],
    others: PlanLike | Iterable[PlanLike] | Mapping[str, PlanLike],
    evaluations: EvaluationLike | Iterable[EvaluationLike],
    force: bool,
) -> None:
    """As `Plan.report`, which documents it."""
    named_plans = [("this plan", to_text(plan, "plan")), *_named_plans(others)]
    named_evaluations = _named_evaluations(evaluations)
    files = [name for name, _ in [*named_plans[1:], *named_evaluations]] + list(plan.read_from)
    where = path_of(path, "path")
    _core.write_report(named_plans, named_evaluations, files, where, flag_of(force, "force"))


def _named_plans(
    plans: PlanLike | Iterable[PlanLike] | Mapping[str, PlanLike],
) -> list[tuple[str, str]]:
    """Plans with the names that a report shows them by: those given, their files', or numbers."""
    from .plans import Plan, plan_text

    if isinstance(plans, (Plan, str, os.PathLike)):
        plans = [plans]
    if isinstance(plans, Mapping):
        if "format" in plans:
            return [("other plan", plan_text(plans))]
        return [(_name_of(name), plan_text(plan)) for name, plan in plans.items()]
    given = items_of(plans, "others", "plans, one or several")
    return [
        (
            path_of(plan, "others") if isinstance(plan, (str, os.PathLike)) else f"plan {number}",
            plan_text(plan),
        )
        for number, plan in enumerate(given, start=2)
    ]


def _name_of(key: Any) -> str:
    if not isinstance(key, (str, int)):
        raise InputError(f"others: expected names of plans, got {type_of(key)}")
    return text_of(key, "others") if isinstance(key, str) else shown(key)


def _named_evaluations(
    evaluations: EvaluationLike | Iterable[EvaluationLike],
) -> list[tuple[str, str]]:
    is_one = isinstance(evaluations, (str, os.PathLike, Mapping)) or hasattr(
        evaluations, "document"
    )
    given = (
        [evaluations]
        if is_one
        else items_of(evaluations, "evaluations", "evaluations, one or several")
    )
    return [_named_evaluation(each, number) for number, each in enumerate(given, start=1)]


def _named_evaluation(evaluation: Any, number: int) -> tuple[str, str]:
    if isinstance(evaluation, (str, os.PathLike)):
        path = path_of(evaluation, "evaluations")
        return path, _core.read_json(path)
    document = getattr(evaluation, "document", evaluation)
    if not isinstance(document, Mapping):
        raise InputError(
            "evaluations: expected what evaluate returned, or the path of its file, got "
            + type_of(evaluation)
        )
    name = f"evaluation {number}"
    return name, to_text(dict(document), name)
