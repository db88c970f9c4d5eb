"""Plans for TorchRec: `NeuroShardPlanner` takes the place of `EmbeddingShardingPlanner`.

    from neuroshard.torchrec import NeuroShardPlanner

    planner = NeuroShardPlanner(topology=topology, batch_size=512, constraints=constraints)
    plan = planner.collective_plan(model, sharders, dist.GroupMember.WORLD)
    model = DistributedModelParallel(model, plan=plan, sharders=sharders)

Needs PyTorch, FBGEMM and TorchRec of one release (`torch_versions.py`).
"""

from ..torch_versions import check_versions

check_versions("neuroshard.torchrec")

from .estimator import NeuroShardPerfEstimator  # noqa: E402
from .planner import NeuroShardPlanner  # noqa: E402
from .plans.checkpoint import check_resumable  # noqa: E402
from .plans.plan_files import SavedPlan, load_plan, save_plan  # noqa: E402

__all__ = [
    "NeuroShardPerfEstimator",
    "NeuroShardPlanner",
    "SavedPlan",
    "check_resumable",
    "load_plan",
    "save_plan",
]
