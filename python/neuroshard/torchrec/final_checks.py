"""TorchRec's own checks of a finished plan, as far as its release has them."""

from __future__ import annotations

from torch import nn
from torchrec.distributed.planner import planners
from torchrec.distributed.planner.types import ShardingOption, Topology
from torchrec.distributed.types import ModuleSharder, ShardingPlan


def check_finished(
    plan: ShardingPlan,
    options: list[ShardingOption],
    module: nn.Module,
    sharders: list[ModuleSharder[nn.Module]],
    topology: Topology,
) -> None:
    """Raises PlannerError for what TorchRec's planner refuses after its callbacks: modules without
    a plan, shards without a rank, kernels that cannot be. The plan is that of the options."""
    for name, arguments in (
        ("validate_modules_inclusion_in_sharding_plan", (plan, module, sharders)),
        ("validate_rank_assignment", (plan, topology)),
        ("validate_compute_kernels", (options,)),
    ):
        check = getattr(planners, name, None)  # each came with another release
        if check is not None:
            check(*arguments)
