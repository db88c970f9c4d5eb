"""Plans found, made again and priced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from . import _core
from .arguments import flag_of, names_of, share_of, to_text
from .messages import tell
from .search_options import SearchOptions, options_json
from .plans import Plan, PlanLike, files_behind, plan_text
from .types import TaskLike, task_text


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
    tell(reasons, notes)
    return Plan.from_text(text, files_behind(task))


def replan(
    task: TaskLike,
    plan: PlanLike,
    *,
    max_move: float | str = 0.1,
    models: str | Sequence[str] = (),
    lower_bound: bool = True,
    baselines: bool = False,
    **options: Unpack[SearchOptions],
) -> Plan:
    """A plan of the task from an older plan, of which little moves: at most `max_move` (a share such
    as 0.1 or "10%") of the bytes that the older plan placed of what the task still has. Tables are
    known by their names, devices by their numbers; `moves` of the result says what is sent where.

    Models and options that are not given are those of the older plan. Raises InfeasibleError, which
    says the least share that was found, if no plan moves so little.

    >>> from neuroshard import Table, Task, Topology, plan, replan
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> before = plan(task, models=["analytic-a100-40gb", "analytic-a100-nvswitch"])
    >>> task.tables = [*task.tables, Table("item", 2000, 64, 9.0)]
    >>> replan(task, before, max_move="10%").moves
    <PlanMoves: ... bytes of ..., at most ...>
    """
    request = {
        "models": names_of(models, "models"),
        "options": options_json(options, "replan"),
        "lower_bound": lower_bound,
        "baselines": baselines,
    }
    text, reasons, notes = _core.replan(
        task_text(task), plan_text(plan), share_of(max_move, "max_move"), to_text(request, "replan")
    )
    tell(reasons, notes)
    return Plan.from_text(text, files_behind(task, plan))


def plan_like(plan: PlanLike, *, models: str | Sequence[str] = ()) -> Plan:
    """The plan made again: the same task, options and models, and so the same plan.

    `models` gives the present paths of its model files, if they have moved. Raises InputError if a
    model's content has changed, or the plan does not record how it was made.

    >>> from neuroshard import Table, Task, Topology, plan, plan_like
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> found = plan(task, models=["analytic-a100-40gb", "analytic-a100-nvswitch"], steps=1000)
    >>> plan_like(found).shards == found.shards
    True
    """
    text, reasons, notes = _core.plan_like(plan_text(plan), names_of(models, "models"))
    tell(reasons, notes)
    return Plan.from_text(text, files_behind(plan))


def price(
    plan: PlanLike, *, models: str | Sequence[str] = (), lower_bound: bool = True
) -> Plan:
    """The same plan with its predicted cost and lower bound by its own models or, for each kind
    that `models` names, by that model.

    >>> from neuroshard import Plan, Shard, Table, Task, Topology, price
    >>> task = Task([Table("user", 1000, 64, 3.0)], Topology(2, "1GiB"), batch_size=65536)
    >>> uneven = Plan(task, [Shard("user", 0, 48, device=0), Shard("user", 48, 16, device=1)])
    >>> price(uneven, models=["analytic-a100-40gb", "analytic-a100-nvswitch"]).predicted
    <PlanCost: ... ms, device ... of 2 is the slowest>
    """
    text, reasons, notes = _core.price(
        plan_text(plan), names_of(models, "models"), flag_of(lower_bound, "lower_bound")
    )
    tell(reasons, notes)
    return Plan.from_text(text, files_behind(plan))
