"""Plans as pages that people look at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from . import _core
from .arguments import flag_of, items_of, names_of, path_of, shown, text_of, to_text, type_of
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
    from .plans import files_behind, plan_text

    other_plans = _named_plans(others)
    named_plans = [("this plan", to_text(plan, "plan"))]
    named_plans += [(name, plan_text(other)) for name, other in other_plans]
    given = _listed_evaluations(evaluations)
    named_evaluations = [_named_evaluation(each, number) for number, each in enumerate(given, 1)]
    files = [
        *files_behind(plan, *(other for _, other in other_plans), *given),
        *(file for each in given for file in _files_of(each)),
    ]
    where = path_of(path, "path")
    _core.write_report(named_plans, named_evaluations, files, where, flag_of(force, "force"))


def _named_plans(
    plans: PlanLike | Iterable[PlanLike] | Mapping[str, PlanLike],
) -> list[tuple[str, Any]]:
    """Plans with the names that a report shows them by: those given, their files', or numbers."""
    from .plans import Plan

    if isinstance(plans, (Plan, str, os.PathLike)):
        plans = [plans]
    if isinstance(plans, Mapping):
        if "format" in plans:
            return [("other plan", plans)]
        return [(_name_of(name), plan) for name, plan in plans.items()]
    given = items_of(plans, "others", "plans, one or several")
    return [
        (
            path_of(plan, "others") if isinstance(plan, (str, os.PathLike)) else f"plan {number}",
            plan,
        )
        for number, plan in enumerate(given, start=2)
    ]


def _name_of(key: Any) -> str:
    if not isinstance(key, (str, int)):
        raise InputError(f"others: expected names of plans, got {type_of(key)}")
    return text_of(key, "others") if isinstance(key, str) else shown(key)


def _listed_evaluations(evaluations: EvaluationLike | Iterable[EvaluationLike]) -> list[Any]:
    if isinstance(evaluations, (str, os.PathLike, Mapping)) or hasattr(evaluations, "document"):
        return [evaluations]
    return items_of(evaluations, "evaluations", "evaluations, one or several")


def _files_of(evaluation: Any) -> list[str]:
    """Of the plan that was evaluated, as far as what `evaluate` returned knows."""
    return names_of(getattr(evaluation, "read_from", ()), "evaluations")


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
