"""The planner: TorchRec's options in, the search of the library, TorchRec's plan out."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner.planners import EmbeddingShardingPlanner, to_sharding_plan
from torchrec.distributed.planner.stats import EmbeddingStats
from torchrec.distributed.planner.types import (
    Enumerator,
    ParameterConstraints,
    ShardingOption,
    StorageReservation,
    Topology,
)
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder, ShardingPlan

from ..arguments import MOST_COUNT, integer_of, names_of, path_of
from ..errors import InputError
from ..moves import PlanMoves
from ..plans import Plan
from ..runtime.costs import Price
from ..statistics import TableStatistics
from .checks import (
    check_constraints,
    check_options,
    check_statistics,
    require_measured,
    require_none,
    without_none,
)
from .collective import transferable
from .enumeration import CutsEnumerator, OptionEnumerator
from .figures import Estimates, Seconds, figures
from .final_checks import check_finished
from .garbage import paused_collector
from .inputs import PlanningInputs
from .measured import MeasuredSettings, say_what_is_not_used
from .planning_call import Outcome, PlanningCall, PlanningSettings
from .plans.context import context_hash
from .plans.loading import check_loader, loaded_options
from .plans.previous import previous_plan_of
from .reference import ReferenceSettings
from .runtime.layouts import known_runtime, runtime_costs
from .statistics_table import log_stats

logger = logging.getLogger(__name__)


class NeuroShardPlanner(EmbeddingShardingPlanner):
    """Takes the place of TorchRec's `EmbeddingShardingPlanner`, with its constructor arguments.

    With `objective="torchrec"`, TorchRec's own estimators price every option that its enumerator
    lists, of all sharding types, kernels and modules, and our search chooses one for each table and
    devices for its shards, so that the slowest device's estimate is least. Tables whose place
    depends on others' (embedding towers) are left to TorchRec's planner.

    With `objective="measured"`, our models price. Places the tables of every
    `EmbeddingBagCollection` (weighted ones too) table-wise and column-wise. Tables that may be
    sharded in neither way, other modules, and kernels other than `fused` are left to TorchRec's
    planner. They come first, and their memory is not available to ours.

    After `plan`, `left_to_torchrec` and the log say which tables those are and why, `estimates`
    what the plan costs by TorchRec's estimate, and `seconds` where the time went. `proposer`,
    `partitioner`, `performance_model` and `timeout_seconds` are for TorchRec's planner; ours runs a
    number of steps, not a time. Constraints, the topology's memory and the storage reservation are
    checked with TorchRec's own storage estimator, by which every returned plan fits. A
    `plan_loader` gives the plan in the place of a search (`SavedPlan`); pins and a previous plan,
    which only a search keeps to, are refused next to one.

    Beyond TorchRec's arguments:
        objective: "torchrec" or "measured"; default: "measured" where `models` are given and on
            CPUs, whose operator is measured, "torchrec" elsewhere.
        compare_with_torchrec: whether TorchRec's planner plans the same options, as a candidate for
            the objective "torchrec" and with `runtime`, there next to the tables that are left to
            it: "auto" (with up to 100 tables), "always" or "never". For our models without
            `runtime` it is asked by "always" alone, and its plan gives figures to compare with. It
            is asked in any case where our search finds no plan, unless there are pins or a previous
            plan, and its plan is then taken.
        models: cost models by name or file, as of `neuroshard.plan`. Default: on CPUs the shipped
            model of FBGEMM's operator, on H100s and H200s (by `interconnect`, or this process's
            GPU) that of it on one H100, on other GPUs an estimate from data sheets; measure your own
            (`python -m neuroshard.collect`).
        statistics: how tables are used, by table name (`neuroshard.statistics`), for our models;
            default: the constraints' pooling factors, and every row equally likely.
        optimizer: "sgd" or "rowwise_adagrad", for our models; default: what the sharders' fused
            parameters or the tables say.
        runtime: what TorchRec's runtime takes on CPUs and gloo, its operators and all else, as
            learned from measured steps (`python -m neuroshard.runtime`): a file, or the name of
            costs that come with the package. With it, tables may be of all sharding types, and those
            of `EmbeddingCollection`s are placed too; for the objective "measured", and for new plans
            without pins. "auto": the costs that come with the package, where they were measured on
            as many processes and neither `models`, pins nor a previous plan are given. None: none.
        interconnect: one that the communication model knows.
        devices: ranks that tables may lie on, by table name; for the objective "measured".
        same_device_as: tables that stay, whole, on the rank of another, by table name; likewise.
        previous_plan, max_move: a ShardingPlan, or the path of a saved one, of whose bytes at most
            this share may move; likewise. `moves` then says what is sent where.
        seed, num_threads: of the search; the plan does not depend on the threads.
    """

    def __init__(
        self,
        topology: Topology | None = None,
        batch_size: int | None = None,
        enumerator: Enumerator | None = None,
        storage_reservation: StorageReservation | None = None,
        proposer: Any = None,
        partitioner: Any = None,
        performance_model: Any = None,
        stats: Any = None,
        constraints: dict[str, ParameterConstraints] | None = None,
        debug: bool = True,
        callbacks: Any = None,
        timeout_seconds: int | None = None,
        plan_loader: Any = None,
        *,
        objective: str | None = None,
        compare_with_torchrec: str = "auto",
        models: str | os.PathLike[str] | Iterable[str] | None = None,
        statistics: Mapping[str, TableStatistics] | None = None,
        optimizer: str | None = None,
        interconnect: str = "",
        runtime: str | os.PathLike[str] | None = "auto",
        devices: Mapping[str, Sequence[int]] | None = None,
        same_device_as: Mapping[str, str] | None = None,
        previous_plan: ShardingPlan | str | os.PathLike[str] | None = None,
        max_move: float | str = 0.1,
        seed: int = 0,
        num_threads: int = 0,
    ) -> None:
        check_loader(plan_loader)
        constraints = without_none(constraints)
        check_constraints(constraints or {})
        if batch_size is not None:  # as Python's, where it is NumPy's; 0 is TorchRec's default too
            batch_size = integer_of(batch_size, "batch_size", 0, MOST_COUNT)
        check_options(
            {
                "objective": objective,
                "compare_with_torchrec": compare_with_torchrec,
                "optimizer": optimizer,
                "statistics": statistics,
                "devices": devices,
                "same_device_as": same_device_as,
                "interconnect": interconnect,
                "seed": seed,
                "num_threads": num_threads,
            }
        )
        super().__init__(
            topology=topology,
            batch_size=batch_size,
            enumerator=enumerator,
            storage_reservation=storage_reservation,
            proposer=proposer,
            partitioner=partitioner,
            performance_model=performance_model,
            stats=stats if stats is not None else EmbeddingStats(),
            constraints=constraints,
            debug=debug,
            callbacks=callbacks,
            timeout_seconds=timeout_seconds,
        )
        # As a list: a generator gives its names once, and the letters of a text are no names.
        model_names = None if models is None else names_of(models, "models")
        is_measured = model_names is not None or self._topology.compute_device == "cpu"
        #: "torchrec" or "measured".
        self.objective = objective or ("measured" if is_measured else "torchrec")
        by_columns_alone = {
            "devices": devices,
            "same_device_as": same_device_as,
            "previous_plan": previous_plan,
        }
        if plan_loader is not None:
            require_none(by_columns_alone, "plan_loader, whose plan is taken as it is")
        if runtime == "auto":
            others = [models, *by_columns_alone.values()]
            is_free = self.objective == "measured" and all(each is None for each in others)
            runtime = known_runtime(self._topology) if is_free else None
        elif runtime is not None:
            require_none(by_columns_alone, "runtime, which has plans of all sharding types")
        if enumerator is None:
            is_cut_by_us = self.objective == "measured" and runtime is None
            kind = CutsEnumerator if is_cut_by_us else OptionEnumerator
            self._enumerator = kind(
                topology=self._topology, batch_size=self._batch_size, constraints=constraints
            )
        require_measured(self.objective, **by_columns_alone, runtime=runtime)
        self._runtime = None if runtime is None else runtime_costs(runtime, self._topology)
        if self.objective == "measured":
            say_what_is_not_used(self._topology)
        self.plan_loader = plan_loader
        #: Files that `save_plan` must not write to, and models, by name or file, likewise.
        self.files_read = [
            path_of(given, name)
            for name, given in (("runtime", runtime), ("previous_plan", previous_plan))
            if isinstance(given, (str, os.PathLike))
        ]
        self.models_read = model_names or []
        self._compare = compare_with_torchrec
        self._measured = MeasuredSettings(
            model_names,
            dict(statistics or {}),
            optimizer,
            interconnect,
            dict(devices or {}),
            dict(same_device_as or {}),
            previous_plan_of(previous_plan, max_move),
        )
        self._seed = seed
        self._num_threads = num_threads
        self._outcome = Outcome()
        #: Of the last `plan`: SHA-256 of the topology, what its reservation leaves, the batch size,
        #: the tables and the constraints, the same in every process. Sharders and their fused
        #: parameters, statistics and models do not count.
        self.context_hash: str | None = None

    @property
    def neuroshard_plan(self) -> Plan | None:
        """Of the last `plan`: our part as a plan of the library, with its cost by our models; with
        the objective "torchrec" only where models are given or measured."""
        return self._outcome.neuroshard_plan

    @property
    def left_to_torchrec(self) -> dict[str, str]:
        """Of the last `plan`: tables that TorchRec's planner placed, and why."""
        return self._outcome.left_to_torchrec

    @property
    def estimates(self) -> Estimates | None:
        """Of the last `plan`: its cost by TorchRec's estimate, next to others'."""
        return self._outcome.estimates

    @property
    def runtime_price(self) -> Price | None:
        """Of the last `plan`: its price with `runtime`."""
        return self._outcome.runtime_price

    @property
    def seconds(self) -> Seconds:
        """Of the last `plan`: where the time went."""
        return self._outcome.seconds

    @property
    def moves(self) -> PlanMoves | None:
        """Of the last `plan`, if it was made from a previous one: what moves."""
        return None if self.neuroshard_plan is None else self.neuroshard_plan.moves

    def hash_planner_context_inputs_str(self) -> str:
        """`context_hash` under the name that TorchRec's planner has for its own."""
        if self.context_hash is None:
            raise InputError("context_hash: expected a planner that has planned, got another")
        return self.context_hash

    def hash_planner_context_inputs(self) -> int:
        """The same as a number."""
        return int(self.hash_planner_context_inputs_str(), 16)

    def collective_plan(
        self,
        module: nn.Module,
        sharders: list[ModuleSharder[nn.Module]] | None = None,
        pg: dist.ProcessGroup | None = None,
    ) -> ShardingPlan:
        """Plans on rank 0 of the process group and broadcasts the plan. An error there is raised on
        every rank, so that none waits for a plan in vain."""
        group = pg if pg is not None else dist.GroupMember.WORLD
        if group is None:
            raise InputError(
                "collective_plan: expected a process group (torch.distributed.init_process_group), "
                "got none; plan() needs none"
            )
        if sharders is None:
            sharders = get_default_sharders()
        # Not TorchRec's own function: a failure that is raised again would refer to its frames,
        # and they to the failure and the group. See below.
        outcome: list[ShardingPlan | Exception | None] = [None]
        if group.rank() == 0:
            try:
                outcome = [self._planned(module, sharders)]
            except Exception as error:  # for all ranks, in the plan's place
                outcome = [transferable(error)]
        if group.size() > 1:
            dist.broadcast_object_list(outcome, group_src=0, group=group)
        if isinstance(outcome[0], Exception):
            try:
                raise outcome[0]
            finally:
                # The failure's traceback holds this frame. Were the frame to hold the failure, both
                # would stay, and with them the group: its threads would outlive
                # destroy_process_group, and abort the process where they meet its end.
                del outcome, group, pg
        assert outcome[0] is not None
        return outcome[0]

    def plan(self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]) -> ShardingPlan:
        """The plan for a module. In a process group of several ranks, use `collective_plan`."""
        if dist.is_initialized() and dist.get_rank() != 0:
            raise InputError(
                "plan: expected collective_plan, which plans on rank 0 and broadcasts, "
                f"got a plan of its own on rank {dist.get_rank()}"
            )
        return self._planned(module, sharders)

    def _planned(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> ShardingPlan:
        start = time.perf_counter()
        self._outcome = Outcome()
        # What an earlier plan left must not be saved as this one's if this one fails.
        self._best_plan: list[ShardingOption] | None = None
        self.context_hash = None
        inputs = PlanningInputs(
            topology=self._topology,
            reserved=self._storage_reservation.reserve(
                topology=self._topology,
                batch_size=self._batch_size,
                module=module,
                sharders=sharders,
                constraints=self._constraints,
            ),
            batch_size=self._batch_size,
            constraints=self._constraints or {},
            enumerator=self._enumerator,
            seed=self._seed,
            num_threads=self._num_threads,
        )
        with paused_collector():
            listed = self._enumerated(module, sharders)
            check_statistics(
                self._measured.statistics,
                {option.name for option in listed},
                inputs.batch_size,
                self._topology.world_size,
            )
            self.context_hash = context_hash(
                self._topology,
                inputs.reserved,
                self._batch_size,
                listed,
                inputs.constraints,
                self._storage_reservation,
            )
            loaded = loaded_options(
                self.plan_loader, self.context_hash, module, sharders, listed, inputs
            )
            call = PlanningCall(self._settings(), module, sharders, inputs, self._outcome)
            if loaded is not None:
                options = loaded
                call.rate(options)
            else:
                options = call.plan(listed)
        if not options:
            return ShardingPlan({})
        if self.estimates is not None:
            logger.info("%s", figures(self.estimates))
        for callback in self._callbacks:
            options = callback(options)
        result = to_sharding_plan(options, self._topology)
        check_finished(result, options, module, sharders, self._topology)
        self._best_plan = options
        self._log_stats(result, options, sharders, time.perf_counter() - start)
        return result

    def _enumerated(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> list[ShardingOption]:
        try:
            with self.seconds.counting("enumeration"):
                return self._enumerator.enumerate(module=module, sharders=sharders)
        except RuntimeError as error:  # sharding types and kernels of which nothing is left
            raise InputError(f"constraints: {error}") from error

    def _settings(self) -> PlanningSettings:
        return PlanningSettings(
            objective=self.objective,
            compare_with_torchrec=self._compare,
            measured=self._measured,
            runtime=self._runtime,
            reference=ReferenceSettings(
                proposers=self._proposers,
                partitioner=self._partitioner,
                performance_model=self._perf_model,
                timeout_seconds=self._timeout_seconds,
            ),
        )

    def _log_stats(
        self,
        plan: ShardingPlan,
        options: list[ShardingOption],
        sharders: list[ModuleSharder[nn.Module]],
        seconds: float,
    ) -> None:
        facts: dict[str, Any] = {
            "sharding_plan": plan,
            "topology": self._topology,
            "batch_size": self._batch_size,
            "storage_reservation": self._storage_reservation,
            "num_proposals": self._outcome.num_proposals,
            "num_plans": self._outcome.num_plans,
            "run_time": seconds,
            "best_plan": options,
            "constraints": self._constraints,
            "sharders": sharders,
            "debug": self._debug,
        }
        log_stats(
            self._stats,
            facts,
            enumerator=self._enumerator,
            planner_type=type(self).__name__,
            timeout_seconds=self._timeout_seconds,
        )
