"""What TorchRec's options cost by the learned costs of its runtime, whole plans and single shards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from torch import nn
from torchrec.distributed.planner.types import Perf, ShardingOption
from torchrec.distributed.types import ModuleSharder
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

from ...runtime.costs import LayoutCosts, Price, RuntimeCosts
from ...runtime.operators import crowding, kind_of_operator, operator_work, table_work
from ...runtime.work import (
    BYTES,
    DATA_PARALLEL,
    ON_ALL,
    OPERATORS,
    OUTPUTS,
    POOLED,
    SEQUENCE,
    Setup,
    ShardedModule,
    ShardedTable,
    TableShard,
    bytes_of,
    units,
)
from ...types import Table
from ..estimator import NeuroShardPerfEstimator
from ..inputs import PlanningInputs
from ..measured import MeasuredSettings
from ..options import optimizer_of
from ..prediction import PRICED_KERNELS
from ..tables import COLUMN_WISE, PlannedTable, feature_counts, reason_to_leave, to_table


def reason_without_runtime_price(option: ShardingOption, layout: LayoutCosts) -> str:
    """Why the runtime's costs cannot price an option; empty if they can."""
    if option.compute_kernel not in PRICED_KERNELS:
        return f"its kernel is {option.compute_kernel}"
    if any(shard.size[1] % 4 for shard in option.shards):
        return "its columns are no multiple of 4"
    kind = kind_of(option)
    if kind is None:
        return "not a table of an EmbeddingBagCollection or an EmbeddingCollection"
    if option.sharding_type not in layout.types.get(kind, ()):
        return f"{option.sharding_type} was not measured on these processes"
    return reason_to_leave(option, is_known_module=True)


def kind_of(option: ShardingOption) -> str | None:
    """What its module puts out; None for other modules."""
    if isinstance(option.module[1], EmbeddingBagCollection):
        return POOLED
    return SEQUENCE if isinstance(option.module[1], EmbeddingCollection) else None


class ComputeShares(NeuroShardPerfEstimator):
    """Shares of the operators' time, of all options that the runtime's costs can price."""

    def _reason_not_priced(self, option: ShardingOption) -> str:
        return ""  # those that cannot be priced are left out before


class RuntimePricing:
    """Prices options on the processes that `costs` are of."""

    def __init__(
        self,
        costs: RuntimeCosts,
        layout: LayoutCosts,
        inputs: PlanningInputs,
        settings: MeasuredSettings,
        sharders: Sequence[ModuleSharder[nn.Module]],
    ) -> None:
        self._inputs = inputs
        self._settings = settings
        self._sharders = sharders
        self._setup = Setup(layout.world_size, layout.local_world_size, inputs.batch_size)
        self._models: Sequence[str] = settings.models or [costs.operator_model]
        self._layout = layout
        self._tables: dict[str, Table] = {}
        self._feature_counts: dict[int, dict[str, int]] = {}
        self._optimizer = settings.optimizer or "sgd"

    def know(self, options: Sequence[ShardingOption]) -> None:
        """Takes in how the options' tables are used, and their optimizer."""
        planned: dict[str, PlannedTable] = {}
        for option in options:
            if option.fqn not in planned:
                collection = option.module[1]
                if id(collection) not in self._feature_counts:
                    self._feature_counts[id(collection)] = feature_counts(collection)
                count = self._feature_counts[id(collection)].get(option.name, 1)
                planned[option.fqn] = PlannedTable(option, [COLUMN_WISE], count)
        if self._settings.optimizer is None:
            self._optimizer = optimizer_of(list(planned.values()), self._sharders)
        for fqn, table in planned.items():
            name = table.option.name
            self._tables[fqn] = to_table(
                table,
                self._inputs.constraints.get(name),
                self._settings.statistics.get(name),
                self._inputs.batch_size,
                lambda option: [0] * len(option.shards),
                self._optimizer == "rowwise_adagrad",
            )

    def price(self, options: Sequence[ShardingOption]) -> Price:
        """Of a plan, whose tables were made known and whose shards have their ranks."""
        modules, tables, _ = self._modules(options)
        return self._layout.price(modules, self._setup, self._models, self._optimizer, tables)

    def reason_outside(self, options: Sequence[ShardingOption]) -> str:
        """What of such a plan is more work than the runtime's costs were learned from; empty if
        nothing is."""
        modules, tables, names = self._modules(options)
        found = operator_work(modules, self._setup, self._models, self._optimizer, tables)
        operators_ms = self._layout.operators_ms(found)
        trained = self._layout.trained
        return trained.reason_outside(modules, self._setup, found, operators_ms, names, tables)

    def _modules(
        self, options: Sequence[ShardingOption]
    ) -> tuple[list[ShardedModule], list[list[Table]], list[list[str]]]:
        """The modules of a plan, and of the tables of each how they are used, and their names."""
        by_module: dict[str, list[ShardingOption]] = {}
        for option in options:
            by_module.setdefault(option.module[0], []).append(option)
        modules = []
        for of_module in by_module.values():
            kind = kind_of(of_module[0])
            assert kind is not None
            modules.append(
                ShardedModule(
                    kind,
                    tuple(
                        self._sharded(option, [shard.rank for shard in option.shards])
                        for option in of_module
                    ),
                )
            )
        tables = [[self._tables[option.fqn] for option in of] for of in by_module.values()]
        return modules, tables, [[option.fqn for option in of] for of in by_module.values()]

    def set_shares(self, options: Sequence[ShardingOption]) -> None:
        """Gives each shard what it adds to its process, for a search that adds shards up: its share
        of the operators and the bytes that it is. A plan's price has the mean of all processes'
        bytes; each counts on its own here, which is the same where all have as many. What an
        operator, its collectives and a module cost by themselves is in no share, and neither are
        outputs, which every plan has."""
        shares = ComputeShares(
            self._inputs.topology,
            dict(self._inputs.constraints),
            models=self._models,
            statistics=self._settings.statistics,
            optimizer=self._optimizer,
        )
        shares.estimate(list(options), self._inputs.sharder_data)
        parts = [self._parts(option) for option in options]
        crowds = self._crowds(options, parts)
        for option, of_option in zip(options, parts, strict=True):
            self._set_shares_of(option, of_option, crowds[_operator_of(option)])

    def _parts(self, option: ShardingOption) -> list[tuple[int, dict[str, float]]]:
        """The operators' work of an option whose shards lie on one process after another."""
        table = self._sharded(option, self._ranks(option))
        return table_work(table, self._tables[option.fqn], self._setup)

    def _ranks(self, option: ShardingOption) -> list[int]:
        return [i % self._setup.world_size for i in range(len(option.shards))]

    def _crowds(
        self,
        options: Sequence[ShardingOption],
        parts: Sequence[Sequence[tuple[int, dict[str, float]]]],
    ) -> dict[tuple[str, str], float]:
        """How crowded the operators of each module and kind are where a process has its even share
        of all their tables, each by its option of the fewest different rows: every range of columns
        has all of them."""
        least: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for option, of_option in zip(options, parts, strict=True):
            rows = sum(work["distinct_rows"] for _, work in of_option)
            of_tables = least[_operator_of(option)]
            of_tables[option.fqn] = min(rows, of_tables.get(option.fqn, rows))
        return {
            operator: crowding(sum(of_tables.values()) / self._setup.world_size)
            for operator, of_tables in least.items()
        }

    def _set_shares_of(
        self,
        option: ShardingOption,
        parts: Sequence[tuple[int, dict[str, float]]],
        crowd: float,
    ) -> None:
        kind = kind_of(option)
        assert kind is not None
        ranks = self._ranks(option)
        table = self._sharded(option, ranks)
        moved = bytes_of(table, kind, self._setup)
        _, operator = _operator_of(option)
        factor = self._layout.operators[operator].get("model", 0.0)
        # What a millisecond in operators costs all of them.
        slowing = 1.0 + (
            self._layout.forward.get(OPERATORS, 0.0) + self._layout.backward.get(OPERATORS, 0.0)
        )
        done = iter(parts)
        for shard, rank in zip(option.shards, ranks, strict=True):
            work: dict[str, Any] = dict.fromkeys(BYTES, 0.0)
            beyond_model_ms = 0.0
            if 0 not in shard.size:
                work |= {
                    name: sum(of) / len(parts) if name in ON_ALL else of[rank] / ranks.count(rank)
                    for name, of in moved.items()
                    if name not in OUTPUTS
                }
                _, of_shard = next(done)
                beyond_model_ms = self._layout.operator_ms(
                    operator, of_shard | {"crowded": crowd * of_shard["distinct_rows"]}
                )
            work["features"] = table.num_features
            shard.perf = Perf(
                fwd_compute=slowing * factor * shard.perf.fwd_compute,
                fwd_comms=_weighed(self._layout.forward, work),
                bwd_compute=slowing * (factor * shard.perf.bwd_compute + beyond_model_ms),
                bwd_comms=_weighed(self._layout.backward, work),
            )

    def _sharded(self, option: ShardingOption, ranks: Sequence[int]) -> ShardedTable:
        table = self._tables[option.fqn]
        shards = tuple(
            TableShard(rank, shard.offset[0], shard.size[0], shard.offset[1], shard.size[1])
            for shard, rank in zip(option.shards, ranks, strict=True)
            if 0 not in shard.size
        )
        return ShardedTable(
            option.sharding_type,
            table.num_embeddings,
            table.embedding_dim,
            table.pooling_factor,
            () if option.sharding_type == DATA_PARALLEL else shards,
            table.num_features,
        )


def _operator_of(option: ShardingOption) -> tuple[str, str]:
    """The module of an option, and the kind of operator that its table is in."""
    kind = kind_of(option)
    assert kind is not None
    return option.module[0], kind_of_operator(option.sharding_type, kind)


def _weighed(costs: Any, work: Any) -> float:
    """Of the work that a single shard has."""
    return float(sum(cost * units(name, work) for name, cost in costs.items() if name in work))
