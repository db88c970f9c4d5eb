"""One call of the planner: the options of all tables in, a plan of them out, by the way that the
objective asks for."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from torch import nn
from torchrec.distributed.planner.types import PlannerError, PlannerErrorType, ShardingOption
from torchrec.distributed.types import ModuleSharder

from ..errors import InfeasibleError
from ..plans import Plan
from ..runtime.costs import LayoutCosts, Price, RuntimeCosts
from .advice import what_would_do
from .choice import Choice, OptionSearch
from .enumeration import CutsEnumerator, OptionEnumerator
from .estimates import rating_ms
from .figures import Estimates, Seconds
from .inputs import PlanningInputs
from .measured import MeasuredPlan, MeasuredSearch, MeasuredSettings, divided
from .pieces import cost_ms
from .prediction import plan_by_models, warn_of_extrapolation
from .reference import ReferencePlan, ReferenceSettings, plan_of_torchrec, without_taken
from .runtime.choosing import RuntimeSearch, divided_by_runtime
from .runtime.pricing import RuntimePricing
from .tables import counted

logger = logging.getLogger(__name__)

#: TorchRec's planner is also asked for up to this number of tables, where the user does not say.
_MOST_TABLES_TO_COMPARE = 100


@dataclass
class PlanningSettings:
    """The planner's arguments that say how tables are placed."""

    #: "torchrec" or "measured".
    objective: str
    #: "auto", "always" or "never".
    compare_with_torchrec: str
    measured: MeasuredSettings
    #: The costs of TorchRec's runtime, and of these those of its processes; None: not used.
    runtime: tuple[RuntimeCosts, LayoutCosts] | None
    reference: ReferenceSettings


@dataclass
class Outcome:
    """What is known of a call, as far as it came."""

    neuroshard_plan: Plan | None = None
    left_to_torchrec: dict[str, str] = field(default_factory=dict)
    estimates: Estimates | None = None
    runtime_price: Price | None = None
    seconds: Seconds = field(default_factory=Seconds)
    num_proposals: int = 0
    num_plans: int = 0


class PlanningCall:
    """Plans a module's tables; what it learns goes into `outcome`, also where it fails."""

    def __init__(
        self,
        settings: PlanningSettings,
        module: nn.Module,
        sharders: list[ModuleSharder[nn.Module]],
        inputs: PlanningInputs,
        outcome: Outcome,
    ) -> None:
        self._settings = settings
        self._module = module
        self._sharders = sharders
        self._inputs = inputs
        self._outcome = outcome
        #: What the user was warned of.
        self._said: set[str] = set()

    def plan(self, listed: list[ShardingOption]) -> list[ShardingOption]:
        """One of each table's options, with ranks. Raises PlannerError where nothing fits."""
        if self._settings.runtime is not None:
            return self._by_runtime(listed)
        if self._settings.objective == "measured":
            return self._by_models(listed)
        return self._by_estimates(listed)

    def rate(self, options: list[ShardingOption]) -> None:
        """What a plan costs that was made before."""
        self._outcome.estimates = Estimates(chosen_ms=self._rating_ms(options))
        self._price_by_models(options)

    def _by_models(self, listed: list[ShardingOption]) -> list[ShardingOption]:
        ours, others, self._outcome.left_to_torchrec = divided(listed)
        self._say_what_is_left()
        search = MeasuredSearch(self._inputs, self._settings.measured)
        left = self._outcome.left_to_torchrec
        search.check_names({planned.option.name for planned in ours}, left)
        found: MeasuredPlan | None = None
        try:
            options = self._placed_by_torchrec(others)
            if ours:
                with self._outcome.seconds.counting("search"):
                    found = search.place(ours, options, self._sharders, left)
        except PlannerError as error:
            if self._settings.measured.has_pins:
                raise
            return self._by_torchrec(error, self._with_all_types())
        if found is not None:
            self._outcome.neuroshard_plan = found.plan
            self._said |= set(found.plan.warnings)  # by the search
            self._outcome.num_proposals += found.plans_priced
            self._outcome.num_plans += found.plans_priced
            options = options + found.options
        if options:
            rating = self._rating_ms(options)
            self._outcome.estimates = Estimates(chosen_ms=rating, neuroshard_ms=rating)
            if self._outcome.neuroshard_plan is not None:
                self._outcome.estimates.by_models_ms = cost_ms(self._outcome.neuroshard_plan)
        if self._settings.compare_with_torchrec == "always" and options:
            self._compare_with(self._candidate_of_torchrec(self._with_all_types()))
        return options

    def _by_runtime(self, listed: list[ShardingOption]) -> list[ShardingOption]:
        """By our models and the runtime's costs, all tables of all types that these know."""
        assert self._settings.runtime is not None
        costs, layout = self._settings.runtime
        priced, others, self._outcome.left_to_torchrec = divided_by_runtime(listed, layout)
        self._say_what_is_left()
        by_columns = MeasuredSearch(self._inputs, self._settings.measured)
        by_columns.check_names({option.name for option in priced}, self._outcome.left_to_torchrec)
        try:
            taken = self._placed_by_torchrec(others)
        except PlannerError as error:
            return self._by_torchrec(error, listed)
        if not priced:
            return taken
        with self._outcome.seconds.counting("estimates"):
            self._inputs.enumerator.populate_estimates(priced)
        theirs = self._candidate_of_torchrec(priced, prices_known=True, taken=taken)
        pricing = RuntimePricing(
            costs, layout, self._inputs, self._settings.measured, self._sharders
        )
        search = RuntimeSearch(pricing, by_columns, self._inputs, self._sharders)
        try:
            with self._outcome.seconds.counting("search"):
                found = search.place(priced, taken, None if theirs is None else theirs.options)
        except InfeasibleError as error:
            return self._by_torchrec(error, listed)
        self._outcome.num_proposals += found.plans_priced
        self._outcome.num_plans += found.plans_priced
        with self._outcome.seconds.counting("estimates"):
            self._inputs.enumerator.populate_estimates(found.options)
        self._outcome.runtime_price = found.price
        options = taken + found.options
        rating = self._rating_ms(options)
        self._outcome.estimates = Estimates(
            chosen_ms=rating, neuroshard_ms=rating, by_models_ms=found.price.step_ms
        )
        with self._outcome.seconds.counting("search"):
            self._outcome.neuroshard_plan = self._by_our_models(options)
        # A plan with tables that the models cannot price is not priced by them as a whole: then what
        # the search was told of the others.
        whole = self._outcome.neuroshard_plan
        reasons = found.extrapolations if whole is None else whole.warnings
        if self._settings.measured.models is None:  # communication has its price from the runtime
            own = f"{costs.operator_model}: "
            reasons = [reason for reason in reasons if reason.startswith(own)]
        if outside := pricing.reason_outside(found.options):
            of_runtime = f"{costs.name}: {outside}"
            reasons = [*reasons, of_runtime]
            if whole is not None:
                self._outcome.neuroshard_plan = replace(
                    whole, warnings=[*whole.warnings, of_runtime]
                )
        self._warn_once(reasons)
        if theirs is not None:
            self._outcome.estimates.torchrec_ms = self._rating_ms(taken + theirs.options)
            self._outcome.estimates.torchrec_by_models_ms = found.torchrec_step_ms
        return options

    def _by_estimates(self, listed: list[ShardingOption]) -> list[ShardingOption]:
        others = [option for option in listed if option.dependency is not None]
        self._outcome.left_to_torchrec = {
            option.fqn: "its place depends on that of others" for option in others
        }
        self._say_what_is_left()
        taken = self._placed_by_torchrec(others)
        ours = [option for option in listed if option.dependency is None]
        if not ours:
            return taken
        prices_known = not isinstance(self._inputs.enumerator, OptionEnumerator)
        found: Choice | None = None
        failure: InfeasibleError | None = None
        try:
            found = OptionSearch(self._inputs, prices_known=prices_known).choose(ours, taken)
        except InfeasibleError as error:
            failure = error
        else:
            self._outcome.seconds.estimates += found.estimate_seconds
            self._outcome.seconds.search += found.search_seconds
            self._outcome.num_proposals += found.statistics["steps"]
            self._outcome.num_plans += found.statistics["accepted"]
        theirs = self._candidate_of_torchrec(listed, prices_known, is_needed=found is None)
        if found is None and theirs is None:
            assert failure is not None
            raise self._with_advice(failure, ours) from failure
        candidates = []
        if found is not None:
            candidates.append(taken + found.options)
        if theirs is not None:
            candidates.append(theirs.options)
        ratings = [self._rating_ms(options) for options in candidates]
        best = ratings.index(min(ratings))
        self._outcome.estimates = Estimates(
            chosen_ms=ratings[best],
            neuroshard_ms=ratings[0] if found is not None else None,
            torchrec_ms=ratings[-1] if theirs is not None else None,
            lower_bound_ms=found.lower_bound_ms if found is not None else None,
        )
        self._price_by_models(candidates[best])
        if self._outcome.neuroshard_plan is not None:
            self._compare_with(theirs)
        return candidates[best]

    def _by_torchrec(
        self, failure: Exception, listed: list[ShardingOption]
    ) -> list[ShardingOption]:
        """TorchRec's plan of all tables, where our search found none. Raises PlannerError with what
        would do where there is none either."""
        theirs = self._candidate_of_torchrec(listed, is_needed=True)
        if theirs is None:
            raise self._with_advice(failure, listed) from failure
        logger.warning("TorchRec's plan is taken, as ours found none: %s", failure)
        self._outcome.left_to_torchrec = {
            option.fqn: "our search found no plan" for option in theirs.options
        }
        rating = self._rating_ms(theirs.options)
        self._outcome.estimates = Estimates(chosen_ms=rating, torchrec_ms=rating)
        if self._settings.runtime is None:  # else a step's price stands there
            self._price_by_models(theirs.options)
        return theirs.options

    def _compare_with(self, theirs: ReferencePlan | None) -> None:
        """Sets the figures of TorchRec's plan next to ours."""
        if theirs is None or self._outcome.estimates is None:
            return
        self._outcome.estimates.torchrec_ms = self._rating_ms(theirs.options)
        priced = self._by_our_models(theirs.options)
        if priced is not None:
            self._warn_once(priced.warnings)
            self._outcome.estimates.torchrec_by_models_ms = cost_ms(priced)

    def _with_all_types(self) -> list[ShardingOption]:
        """The options of all tables, also those that our cuts stand for."""
        inputs = self._inputs
        enumerator = inputs.enumerator
        if isinstance(enumerator, CutsEnumerator):
            enumerator = OptionEnumerator(
                topology=inputs.topology,
                batch_size=inputs.batch_size,
                constraints=dict(inputs.constraints),
            )
        with self._outcome.seconds.counting("enumeration"):
            return enumerator.enumerate(self._module, self._sharders)

    def _with_advice(
        self, failure: Exception, options: list[ShardingOption]
    ) -> PlannerError:
        """That nothing fits, and what would, as far as trying finds it."""
        ways = what_would_do(self._module, self._sharders, options, self._inputs)
        return PlannerError(
            error_type=PlannerErrorType.INSUFFICIENT_STORAGE,
            message=str(failure) + ("; what would do: " + ", or ".join(ways) if ways else ""),
        )

    def _candidate_of_torchrec(
        self,
        listed: list[ShardingOption],
        prices_known: bool = False,
        *,
        is_needed: bool = False,
        taken: Sequence[ShardingOption] = (),
    ) -> ReferencePlan | None:
        """The plan of TorchRec's planner, if it is asked, as it is where ours found none, and finds
        one. Next to it are tables that are `taken` as they are placed already."""
        tables = len({option.fqn for option in listed})
        is_asked = self._settings.compare_with_torchrec == "always" or (
            self._settings.compare_with_torchrec == "auto" and tables <= _MOST_TABLES_TO_COMPARE
        )
        if not (is_asked or is_needed):
            return None
        try:
            with self._outcome.seconds.counting("torchrec"):
                if not prices_known:
                    self._inputs.enumerator.populate_estimates(listed)
                inputs = replace(
                    self._inputs, reserved=without_taken(self._inputs.reserved, taken)
                )
                return plan_of_torchrec(self._module, listed, inputs, self._settings.reference)
        except PlannerError:
            return None

    def _placed_by_torchrec(self, others: list[ShardingOption]) -> list[ShardingOption]:
        if not others:
            return []
        with self._outcome.seconds.counting("torchrec"):
            self._inputs.enumerator.populate_estimates(others)
            plan = plan_of_torchrec(self._module, others, self._inputs, self._settings.reference)
        self._outcome.num_proposals += plan.num_proposals
        self._outcome.num_plans += plan.num_plans
        return plan.options

    def _say_what_is_left(self) -> None:
        by_reason: dict[str, list[str]] = defaultdict(list)
        for fqn, reason in self._outcome.left_to_torchrec.items():
            by_reason[reason].append(fqn)
        for reason, tables in by_reason.items():
            logger.warning("left to TorchRec's planner: %s: %s", counted(tables), reason)

    def _rating_ms(self, options: list[ShardingOption]) -> float:
        return rating_ms(self._settings.reference.performance_model, options)

    def _by_our_models(self, options: list[ShardingOption]) -> Plan | None:
        return plan_by_models(options, self._sharders, self._inputs, self._settings.measured)

    def _price_by_models(self, options: list[ShardingOption]) -> None:
        assert self._outcome.estimates is not None
        self._outcome.neuroshard_plan = self._by_our_models(options)
        if self._outcome.neuroshard_plan is not None:
            self._warn_once(self._outcome.neuroshard_plan.warnings)
            self._outcome.estimates.by_models_ms = cost_ms(self._outcome.neuroshard_plan)

    def _warn_once(self, reasons: Iterable[str]) -> None:
        """Of what lies outside what models were trained on, however many plans they price."""
        new = [reason for reason in dict.fromkeys(reasons) if reason not in self._said]
        self._said |= set(new)
        warn_of_extrapolation(new)
