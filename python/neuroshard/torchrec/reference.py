"""TorchRec's own planner: for tables that are left to it, as a candidate and as the fallback."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torchrec.distributed.planner.planners import EmbeddingShardingPlanner
from torchrec.distributed.planner.types import PerfModel, ShardingOption, Topology

from .enumeration import GivenOptions, GivenReservation
from .inputs import PlanningInputs


@dataclass
class ReferenceSettings:
    """The planner's arguments that only TorchRec's planner uses."""

    proposers: Any
    partitioner: Any
    performance_model: PerfModel
    timeout_seconds: int | None


@dataclass
class ReferencePlan:
    """What TorchRec's planner found."""

    options: list[ShardingOption]
    num_proposals: int
    num_plans: int


def plan_of_torchrec(
    module: nn.Module,
    options: Sequence[ShardingOption],
    inputs: PlanningInputs,
    settings: ReferenceSettings,
) -> ReferencePlan:
    """Its plan for these options, which have their estimates. Raises PlannerError without one."""
    planner = EmbeddingShardingPlanner(
        topology=inputs.topology,
        batch_size=inputs.batch_size,
        enumerator=GivenOptions(list(options), inputs.enumerator),
        storage_reservation=GivenReservation(inputs.reserved),
        proposer=settings.proposers,
        partitioner=settings.partitioner,
        performance_model=settings.performance_model,
        stats=[],
        constraints=dict(inputs.constraints),
        debug=False,
        timeout_seconds=settings.timeout_seconds,
    )
    planner.plan(module, [])  # without sharders it does not ask for tables that are not in its plan
    return ReferencePlan(
        list(planner._best_plan or []), planner._num_proposals, planner._num_plans
    )


def without_taken(topology: Topology, taken: Sequence[ShardingOption]) -> Topology:
    """What tables that are placed already, with their estimates, leave of the devices: less memory,
    and devices that are busy."""
    if not taken:
        return topology
    left = copy.deepcopy(topology)
    for option in taken:
        for shard in option.shards:
            device = left.devices[shard.rank]
            device.storage -= shard.storage
            device.perf += shard.perf
    return left
