"""A plan of all sharding types by the runtime's costs: searches with some of the types each, whose
plans are priced whole."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchrec.distributed.planner.types import ShardingOption

from ...errors import InfeasibleError
from ...runtime.costs import Price
from ...runtime.work import POOLED
from ..choice import OptionSearch
from ..inputs import PlanningInputs
from ..tables import COLUMN_WISE, TABLE_WISE, copy_of
from .pricing import RuntimePricing, kind_of

#: Types that tables are chosen from together. Each is an operator with collectives of its own in
#: every module, which costs more than a third kind gains.
_MOST_TYPES = 2


@dataclass
class RuntimeChoice:
    """What was found."""

    options: list[ShardingOption]
    price: Price
    plans_priced: int


def cheapest(
    listed: Sequence[ShardingOption],
    taken: Sequence[ShardingOption],
    others: Sequence[Sequence[ShardingOption]],
    inputs: PlanningInputs,
    pricing: RuntimePricing,
) -> RuntimeChoice:
    """The plan of the lowest price for the listed options, which have their storage estimates,
    next to tables that are placed already; `others` are whole plans to compare with. Raises
    InfeasibleError where none fits into memory."""
    pricing.set_shares(listed)
    plans: list[Sequence[ShardingOption]] = list(others)
    failure: InfeasibleError | None = None
    for options in _by_types(listed):
        try:
            plans.append(OptionSearch(inputs, prices_known=True).choose(options, taken).options)
        except InfeasibleError as error:
            failure = error
    if not plans:
        assert failure is not None
        raise failure
    may_be_cut = {option.fqn for option in listed if option.sharding_type == COLUMN_WISE}
    plans += [united for plan in plans if (united := _united(plan, may_be_cut)) is not None]
    prices = [pricing.price(plan) for plan in plans]
    best = min(range(len(plans)), key=lambda number: prices[number].step_ms)
    return RuntimeChoice([copy_of(option) for option in plans[best]], prices[best], len(plans))


def _by_types(listed: Sequence[ShardingOption]) -> Iterator[list[ShardingOption]]:
    """The options of some types, of all tables; a table that has none of these keeps all its own."""
    types = sorted({option.sharding_type for option in listed})
    by_table: dict[str, list[ShardingOption]] = defaultdict(list)
    for option in listed:
        by_table[option.fqn].append(option)
    seen: set[tuple[int, ...]] = set()
    for number in range(1, _MOST_TYPES + 1):
        for chosen in itertools.combinations(types, number):
            options = [
                option
                for of_table in by_table.values()
                for option in (
                    [option for option in of_table if option.sharding_type in chosen] or of_table
                )
            ]
            key = tuple(map(id, options))
            if key not in seen:
                seen.add(key)
                yield options


def _united(
    plan: Sequence[ShardingOption], may_be_cut: set[str]
) -> list[ShardingOption] | None:
    """The plan with whole tables as column-wise ones of one piece, next to cut ones, where they may
    be: one operator less. None where that changes nothing."""
    # Sequences of one operator must have the same columns.
    modules = {
        option.module[0]
        for option in plan
        if option.sharding_type == COLUMN_WISE and kind_of(option) == POOLED
    }
    changes = [
        option.sharding_type == TABLE_WISE
        and option.module[0] in modules
        and option.fqn in may_be_cut
        for option in plan
    ]
    if not any(changes):
        return None
    result = []
    for option, is_changed in zip(plan, changes, strict=True):
        other = copy_of(option)
        if is_changed:
            other.sharding_type = COLUMN_WISE
        result.append(other)
    return result
