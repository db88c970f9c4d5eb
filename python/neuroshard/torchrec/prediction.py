"""What a plan of TorchRec's types costs by our models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import ShardingOption
from torchrec.distributed.types import ModuleSharder, ShardingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from .. import planning
from ..errors import ExtrapolationWarning, InfeasibleError, InputError
from ..plans import Plan, Shard
from ..types import Table
from .inputs import PlanningInputs
from .measured import MeasuredSettings, task_of
from .tables import COLUMN_WISE, PlannedTable, feature_counts, reason_to_leave

#: Of which our models know the operator.
PRICED_KERNELS = {EmbeddingComputeKernel.FUSED.value, EmbeddingComputeKernel.DENSE.value}

#: Of each device, as the plan has been found to fit.
ANY_MEMORY = 1 << 60


def plan_by_models(
    options: Sequence[ShardingOption],
    sharders: Sequence[ModuleSharder[nn.Module]],
    inputs: PlanningInputs,
    settings: MeasuredSettings,
) -> Plan | None:
    """The plan with its cost by the models that were given or, on CPUs, the shipped ones; None
    where there are none, where they know nothing of a table's module or kernel, where the
    statistics are not of these tables, and where the plan breaks the pins. Its `warnings` are left
    to the caller, who may price several plans of the same tables."""
    is_measured = settings.models is not None or inputs.topology.compute_device == "cpu"
    if not is_measured or any(map(reason_not_priced, options)):
        return None
    planned = []
    for option in options:
        count = feature_counts(option.module[1]).get(option.name, 1)
        planned.append(PlannedTable(option, [COLUMN_WISE], count))
    memory = [ANY_MEMORY] * inputs.topology.world_size
    models = settings.model_names(inputs.topology.compute_device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        try:
            task = task_of(
                planned, memory, sharders, inputs, settings, lambda option: [0] * len(option.shards)
            )
            # Rows are cut into equal ranges, however few; nothing is searched here.
            task = replace(task, tables=[_with_any_piece(table) for table in task.tables])
            plan = Plan(
                task,
                [shard for option in options for shard in _shards(option)],
                replicated_tables=[option.fqn for option in options if is_replicated(option)],
            )
            return planning.price(plan, models=models, lower_bound=False)
        except (InputError, InfeasibleError):
            # What tasks cannot have, as columns that are no multiple of 4 or statistics of a larger
            # table; and a plan that is none of the task, as TorchRec's is that knows of no pins.
            return None


def warn_of_extrapolation(reasons: Iterable[str]) -> None:
    """Warns of what lies outside what models were trained on, as pricing found it."""
    for reason in reasons:
        warnings.warn(reason, ExtrapolationWarning, stacklevel=2)


def _with_any_piece(table: Table | Mapping[str, Any]) -> Table:
    assert isinstance(table, Table)
    return replace(table, min_shard_columns=0)


def reason_not_priced(option: ShardingOption) -> str:
    """Why our models cannot price an option; empty if they can."""
    if option.compute_kernel not in PRICED_KERNELS:
        return f"its kernel is {option.compute_kernel}"
    return reason_to_leave(option, isinstance(option.module[1], EmbeddingBagCollection))


def is_replicated(option: ShardingOption) -> bool:
    """Whether the whole table is on every rank."""
    return bool(option.sharding_type == ShardingType.DATA_PARALLEL.value)


def _shards(option: ShardingOption) -> list[Shard]:
    if is_replicated(option):
        return []
    rows = option.tensor.shape[0]
    result = []
    for shard in option.shards:
        if 0 in shard.size:
            continue
        is_slice = shard.size[0] != rows
        result.append(
            Shard(
                option.fqn,
                shard.offset[1],
                shard.size[1],
                shard.rank,
                row_offset=shard.offset[0] if is_slice else None,
                num_rows=shard.size[0] if is_slice else None,
            )
        )
    return result
