"""The planner: TorchRec's options in, the search of the library, TorchRec's plan out."""

from __future__ import annotations

import logging
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.planners import EmbeddingShardingPlanner, to_sharding_plan
from torchrec.distributed.planner.shard_estimators import EmbeddingStorageEstimator
from torchrec.distributed.planner.stats import EmbeddingStats
from torchrec.distributed.planner.types import (
    Enumerator,
    ParameterConstraints,
    PlannerError,
    PlannerErrorType,
    ShardingOption,
    StorageReservation,
    Topology,
)
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder, ShardingPlan
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from .. import planning
from ..errors import ExtrapolationWarning, InfeasibleError, InputError
from ..statistics import TableStatistics
from ..types import Plan, Table, Task
from ..types import Shard as ShardOfPlan
from ..types import Topology as Devices
from .collective import transferable
from .enumeration import GivenOptions, GivenReservation, OptionEnumerator, sharded_modules
from .options import bytes_on, free_storage, optimizer_of, unite_groups
from .pieces import as_whole, cost_ms, joined
from .tables import (
    COLUMN_WISE,
    TABLE_WISE,
    PlannedTable,
    check_constraints,
    feature_counts,
    reason_to_leave,
    to_table,
)

logger = logging.getLogger(__name__)

#: Cost models by compute device; those of GPUs are estimates from data sheets.
DEFAULT_MODELS = {
    "cpu": ("fbgemm-cpu-xeon",),
    "cuda": ("analytic-a100-80gb", "a100-nvswitch"),
}

#: Neighbours that the improvement tries: a number, not a time, so that no clock can make plans
#: of the same inputs differ.
_STEPS = 30_000

#: Cut tables must be predicted to be cheaper than whole ones by this share. The cost of a cut
#: beyond the operator is in no model: the outputs' columns are put in order again, forward and
#: backward.
_LEAST_GAIN_OF_CUTS = 0.02


class NeuroShardPlanner(EmbeddingShardingPlanner):
    """Takes the place of TorchRec's `EmbeddingShardingPlanner`, with its constructor arguments.

    Places the tables of every `EmbeddingBagCollection` (weighted ones too) table-wise and
    column-wise, by predicted cost. Tables that may be sharded in neither way, other modules, and
    kernels other than `fused` are left to TorchRec's own planner, for which `proposer`,
    `partitioner` and `performance_model` are. They come first, and their memory is not available to
    ours. After `plan`, `left_to_torchrec` and the log say which they are and why.

    Constraints, the topology's memory and the storage reservation are checked with TorchRec's own
    storage estimator, by which every returned plan fits. `timeout_seconds` is for TorchRec's
    planner; ours runs a number of steps, not a time.

    Beyond TorchRec's arguments:
        models: cost models by name or file, as of `neuroshard.plan`. Default: on CPUs the shipped
            model of FBGEMM's operator, on GPUs an estimate from data sheets; measure your own
            (`python -m neuroshard.collect`).
        statistics: how tables are used, by table name (`neuroshard.statistics`); default: the
            constraints' pooling factors, and every row equally likely.
        optimizer: "sgd" or "rowwise_adagrad"; default: what the sharders' fused parameters or the
            tables say.
        interconnect: one that the communication model knows.
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
        models: Sequence[str] | None = None,
        statistics: Mapping[str, TableStatistics] | None = None,
        optimizer: str | None = None,
        interconnect: str = "",
        seed: int = 0,
        num_threads: int = 0,
    ) -> None:
        if plan_loader is not None:
            raise InputError(
                "plan_loader: expected None, as plans are made here, not loaded, "
                f"got {type(plan_loader).__name__}"
            )
        check_constraints(constraints or {})
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
        if enumerator is None:
            self._enumerator = OptionEnumerator(
                topology=self._topology, batch_size=self._batch_size, constraints=constraints
            )
        self._models = models
        self._statistics = dict(statistics or {})
        self._optimizer = optimizer
        self._interconnect = interconnect
        self._seed = seed
        self._num_threads = num_threads
        #: Of the last `plan`: our part as a plan of the library, with its predicted cost.
        self.neuroshard_plan: Plan | None = None
        #: Of the last `plan`: tables that TorchRec's planner placed, and why.
        self.left_to_torchrec: dict[str, str] = {}

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
        self.neuroshard_plan = None
        reserved = self._storage_reservation.reserve(
            topology=self._topology,
            batch_size=self._batch_size,
            module=module,
            sharders=sharders,
            constraints=self._constraints,
        )
        ours, others = self._divided(module, sharders)
        self._check_statistics(ours)
        options = self._placed_by_torchrec(module, sharders, others, reserved)
        if ours:
            options += self._placed_by_us(ours, options, sharders, reserved)
        if not options:
            return ShardingPlan({})
        for callback in self._callbacks:
            options = callback(options)
        self._best_plan = options
        result = to_sharding_plan(options, self._topology)
        for stats in self._stats:
            stats.log(
                sharding_plan=result,
                topology=self._topology,
                batch_size=self._batch_size,
                storage_reservation=self._storage_reservation,
                num_proposals=self._num_proposals,
                num_plans=self._num_plans,
                run_time=time.perf_counter() - start,
                best_plan=options,
                constraints=self._constraints,
                sharders=sharders,
                debug=self._debug,
            )
        return result

    def _divided(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> tuple[list[PlannedTable], list[ShardingOption]]:
        """Tables that we place, and the options of those that TorchRec's planner places."""
        tables_of_others = {
            name
            for child, sharder in sharded_modules(module, sharders)
            if not isinstance(child, EmbeddingBagCollection)
            for name in sharder.shardable_parameters(child)
        }
        if isinstance(self._enumerator, OptionEnumerator):
            self._enumerator.tables_of_others = tables_of_others
        try:
            options = self._enumerator.enumerate(module=module, sharders=sharders)
        except RuntimeError as error:  # sharding types and kernels of which nothing is left
            raise InputError(f"constraints: {error}") from error
        by_table: dict[str, list[ShardingOption]] = defaultdict(list)
        for option in options:
            by_table[option.fqn].append(option)
        ours = []
        others = []
        self.left_to_torchrec = {}
        counts: dict[int, dict[str, int]] = {}  # by collection
        for fqn, choices in by_table.items():
            column_like = [
                option
                for option in choices
                if option.sharding_type in (TABLE_WISE, COLUMN_WISE)
                and option.compute_kernel == EmbeddingComputeKernel.FUSED.value
            ]
            reason = (
                reason_to_leave(
                    column_like[0], isinstance(choices[0].module[1], EmbeddingBagCollection)
                )
                if column_like
                else "may be neither table-wise nor column-wise with the fused kernel"
            )
            if reason:
                others += choices
                self.left_to_torchrec[fqn] = reason
            else:
                types = {option.sharding_type for option in column_like}
                option = column_like[0]
                collection = option.module[1]
                if id(collection) not in counts:
                    counts[id(collection)] = feature_counts(collection)
                num_features = counts[id(collection)].get(option.name, 1)
                ours.append(PlannedTable(option, sorted(types), num_features))
        self._say_what_is_left()
        return ours, others

    def _say_what_is_left(self) -> None:
        by_reason: dict[str, list[str]] = defaultdict(list)
        for fqn, reason in self.left_to_torchrec.items():
            by_reason[reason].append(fqn)
        for reason, tables in by_reason.items():
            shown = ", ".join(tables[:3]) + (", ..." if len(tables) > 3 else "")
            logger.warning(
                "left to TorchRec's planner: %d tables (%s): %s", len(tables), shown, reason
            )

    def _check_statistics(self, ours: Sequence[PlannedTable]) -> None:
        known = {planned.option.name for planned in ours}
        known |= {fqn.rsplit(".", 1)[-1] for fqn in self.left_to_torchrec}
        for name in self._statistics:
            if name not in known:
                raise InputError(f"statistics: expected tables of the module, got {name!r}")
        samples = self._batch_size * self._topology.world_size
        for name, of_table in self._statistics.items():
            if of_table.batch_size != samples:
                raise InputError(
                    f"statistics[{name!r}].batch_size: expected {samples} "
                    f"({self._batch_size} x {self._topology.world_size} ranks), "
                    f"got {of_table.batch_size}"
                )

    def _placed_by_torchrec(
        self,
        module: nn.Module,
        sharders: list[ModuleSharder[nn.Module]],
        others: list[ShardingOption],
        reserved: Topology,
    ) -> list[ShardingOption]:
        self._num_proposals = 0
        self._num_plans = 0
        if not others:
            return []
        self._enumerator.populate_estimates(others)
        planner = EmbeddingShardingPlanner(
            topology=self._topology,
            batch_size=self._batch_size,
            enumerator=GivenOptions(others, self._enumerator),
            storage_reservation=GivenReservation(reserved),
            proposer=self._proposers,
            partitioner=self._partitioner,
            performance_model=self._perf_model,
            stats=[],
            constraints=self._constraints,
            debug=False,
            timeout_seconds=self._timeout_seconds,
        )
        planner.plan(module, [])  # without sharders it does not ask for the tables that are ours
        self._num_proposals = planner._num_proposals
        self._num_plans = planner._num_plans
        return list(planner._best_plan)

    def _placed_by_us(
        self,
        ours: Sequence[PlannedTable],
        taken_by: Sequence[ShardingOption],
        sharders: Sequence[ModuleSharder[nn.Module]],
        reserved: Topology,
    ) -> list[ShardingOption]:
        self._say_what_is_estimated()
        found = self._found(self._task(ours, taken_by, sharders, reserved))
        self.neuroshard_plan = found
        pieces = defaultdict(list)
        for shard in found.shards:
            pieces[shard.table].append((shard.column_offset, shard.num_columns, shard.device))
        options = [planned.with_shards(pieces[planned.fqn]) for planned in ours]
        unite_groups(ours, options)
        self._enumerator.populate_estimates(options)
        room = free_storage([*taken_by, *options], reserved)
        for rank, bytes_ in enumerate(room):
            if bytes_ < 0:
                raise PlannerError(
                    error_type=PlannerErrorType.INSUFFICIENT_STORAGE,
                    message=f"device {rank}: its tables exceed its memory by {-bytes_} bytes",
                )
        return options

    def _say_what_is_estimated(self) -> None:
        names = set(self._model_names())
        for model in planning.list_models():
            if model.name in names and model.kind == "compute" and model.is_estimate:
                logger.warning(
                    "costs are an estimate from data sheets (%s), measured on nothing: "
                    "python -m neuroshard.collect measures your hardware",
                    model.name,
                )

    def _found(self, task: Task) -> Plan:
        """The plan, whose warnings are given once, however often the search ran."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            found = self._cheapest(task)
        for reason in found.warnings:
            warnings.warn(reason, ExtrapolationWarning, stacklevel=2)
        return found

    def _cheapest(self, task: Task) -> Plan:
        """The plan of the search; whole tables are preferred where cuts promise almost no gain."""
        try:
            found = self._search(task)
        except InfeasibleError as error:
            raise PlannerError(
                error_type=PlannerErrorType.INSUFFICIENT_STORAGE, message=str(error)
            ) from error
        if len(found.shards) > len(task.tables):
            whole = replace(task, tables=[as_whole(table) for table in task.tables])
            try:
                uncut = self._search(whole)
            except InfeasibleError:
                return self._with_pieces_joined(found)
            if cost_ms(uncut) <= (1.0 + _LEAST_GAIN_OF_CUTS) * cost_ms(found):
                return replace(uncut, task=task)
        return self._with_pieces_joined(found)

    def _search(self, task: Task) -> Plan:
        found = planning.plan(
            task,
            models=self._model_names(),
            seed=self._seed,
            num_threads=self._num_threads,
            steps=_STEPS,
            improvement="brief",
            cuts="columns",
            lower_bound=False,
        )
        self._num_proposals += found.search["plans_priced"]
        self._num_plans += found.search["plans_priced"]
        return found

    def _with_pieces_joined(self, found: Plan) -> Plan:
        """The plan, one piece of a table per device at most: FBGEMM looks up every piece anew."""
        shards = joined(found.shards)
        if len(shards) == len(found.shards):
            return found
        priced = planning.price(
            replace(found, shards=shards), models=self._model_names(), lower_bound=False
        )
        return replace(
            found, shards=shards, predicted=priced.predicted, warnings=priced.warnings
        )

    def _task(
        self,
        ours: Sequence[PlannedTable],
        taken_by: Sequence[ShardingOption],
        sharders: Sequence[ModuleSharder[nn.Module]],
        reserved: Topology,
    ) -> Task:
        room = free_storage(taken_by, reserved)
        for rank, bytes_ in enumerate(room):
            if bytes_ < 1:
                raise PlannerError(
                    error_type=PlannerErrorType.INSUFFICIENT_STORAGE,
                    message=f"device {rank}: the reservation and what is left to TorchRec's "
                    f"planner leave no memory: {bytes_} bytes",
                )
        optimizer = self._optimizer or optimizer_of(ours, sharders)
        constraints = self._constraints or {}
        tables = [
            to_table(
                planned,
                constraints.get(planned.option.name),
                self._statistics.get(planned.option.name),
                self._batch_size,
                self._storage_bytes,
                optimizer == "rowwise_adagrad",
            )
            for planned in ours
        ]
        world_size = self._topology.world_size
        return Task(
            tables=tables,
            topology=Devices(
                world_size=world_size,
                local_world_size=self._topology.local_world_size,
                memory_bytes=room,
                interconnect=self._interconnect,
            ),
            batch_size=self._batch_size * world_size,
            optimizer=optimizer,
        )

    def _storage_bytes(self, option: ShardingOption) -> list[int]:
        """Bytes of each shard by TorchRec's storage estimator."""
        estimators = [
            estimator
            for estimator in getattr(self._enumerator, "_estimators", [])
            if isinstance(estimator, EmbeddingStorageEstimator)
        ]
        if estimators:
            estimators[-1].estimate([option], self._sharder_data())
        else:
            self._enumerator.populate_estimates([option])
        device = self._topology.compute_device
        return [bytes_on(shard.storage, device) for shard in option.shards]

    def _sharder_data(self) -> Any:
        enumerator = self._enumerator
        return getattr(enumerator, "_sharder_data_map", None) or enumerator._sharder_map

    def _model_names(self) -> Sequence[str]:
        if self._models is not None:
            return self._models
        return DEFAULT_MODELS.get(self._topology.compute_device, ())
