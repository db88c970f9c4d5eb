"""A plan of all sharding types by the runtime's costs: searches with some of the types each, whose
plans are priced whole."""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn
from torchrec.distributed.planner.types import PlannerError, ShardingOption
from torchrec.distributed.types import ModuleSharder

from ...errors import ExtrapolationWarning, InfeasibleError
from ...runtime.costs import LayoutCosts, Price
from ...runtime.work import POOLED
from ..choice import OptionSearch
from ..inputs import PlanningInputs
from ..measured import MeasuredSearch, divided
from ..tables import COLUMN_WISE, TABLE_WISE, copy_of
from .pricing import RuntimePricing, kind_of, reason_without_runtime_price

#: Types that tables are chosen from together. Each is an operator with collectives of its own in
#: every module, which costs more than a third kind gains.
_MOST_TYPES = 2


@dataclass
class RuntimeChoice:
    """What was found."""

    options: list[ShardingOption]
    price: Price
    plans_priced: int
    #: The price of TorchRec's own plan, if it was a candidate.
    torchrec_step_ms: float | None
    #: What models said of the search by columns: what they were not trained on.
    extrapolations: list[str]


def divided_by_runtime(
    listed: Sequence[ShardingOption], layout: LayoutCosts
) -> tuple[list[ShardingOption], list[ShardingOption], dict[str, str]]:
    """The options that the runtime's costs can price; those of tables that have none such; and why,
    by table."""
    reasons = [reason_without_runtime_price(option, layout) for option in listed]
    priced = [option for option, reason in zip(listed, reasons, strict=True) if not reason]
    known = {option.fqn for option in priced}
    others = [option for option in listed if option.fqn not in known]
    left = {
        option.fqn: reason
        for option, reason in zip(listed, reasons, strict=True)
        if option.fqn not in known
    }
    return priced, others, left


class RuntimeSearch:
    """Plans tables of all sharding types that the runtime's costs know."""

    def __init__(
        self,
        pricing: RuntimePricing,
        by_columns: MeasuredSearch,
        inputs: PlanningInputs,
        sharders: Sequence[ModuleSharder[nn.Module]],
    ) -> None:
        self._pricing = pricing
        self._by_columns = by_columns
        self._inputs = inputs
        self._sharders = sharders

    def place(
        self,
        priced: Sequence[ShardingOption],
        taken: Sequence[ShardingOption],
        of_torchrec: Sequence[ShardingOption] | None,
    ) -> RuntimeChoice:
        """The plan of the lowest price for these options, which have their storage estimates, next
        to tables that are placed already and to TorchRec's plan, if there is one. Raises
        InfeasibleError where none fits into memory."""
        pricing = self._pricing
        pricing.know(priced)
        with warnings.catch_warnings(record=True) as caught:  # the plan's own come later
            warnings.simplefilter("always", ExtrapolationWarning)
            pricing.set_shares(priced)
            plans, failure = self._candidates(priced, taken)
        extrapolations = []
        for warning in caught:
            if issubclass(warning.category, ExtrapolationWarning):
                extrapolations.append(str(warning.message))
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
        if of_torchrec is not None:
            plans.insert(0, of_torchrec)
        if not plans:
            assert failure is not None
            raise failure
        may_be_cut = {option.fqn for option in priced if option.sharding_type == COLUMN_WISE}
        plans += [united for plan in plans if (united := _united(plan, may_be_cut)) is not None]
        prices = [pricing.price(plan) for plan in plans]
        best = min(range(len(plans)), key=lambda number: prices[number].step_ms)
        may_be_whole = {option.fqn for option in priced if option.sharding_type == TABLE_WISE}
        return RuntimeChoice(
            _uncut(plans[best], may_be_whole),
            prices[best],
            len(plans),
            None if of_torchrec is None else prices[0].step_ms,
            list(dict.fromkeys(extrapolations)),
        )

    def _candidates(
        self, priced: Sequence[ShardingOption], taken: Sequence[ShardingOption]
    ) -> tuple[list[Sequence[ShardingOption]], InfeasibleError | None]:
        """The plan by columns, where that can be, and those of some types each; why one of them does
        not fit, if so."""
        plans: list[Sequence[ShardingOption]] = []
        by_cuts, rest, _ = divided(priced)
        if not rest:
            try:
                plans.append(self._by_columns.place(by_cuts, taken, self._sharders, {}).options)
            except PlannerError:
                pass  # whole rows may not fit where slices do
        failure: InfeasibleError | None = None
        for options in _by_types(priced):
            try:
                search = OptionSearch(self._inputs, prices_known=True)
                plans.append(search.choose(options, taken).options)
            except InfeasibleError as error:
                failure = error
        return plans, failure


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


def _uncut(plan: Sequence[ShardingOption], may_be_whole: set[str]) -> list[ShardingOption]:
    """A copy of the plan, in which modules whose column-wise tables all have one piece have them
    table-wise, where they may be: the same operator by its plain name."""
    result = [copy_of(option) for option in plan]
    by_columns = [option for option in result if option.sharding_type == COLUMN_WISE]
    cut = {
        option.module[0]
        for option in by_columns
        if len(option.shards) > 1 or option.fqn not in may_be_whole
    }
    for option in by_columns:
        if option.module[0] not in cut:
            option.sharding_type = TABLE_WISE
    return result


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
