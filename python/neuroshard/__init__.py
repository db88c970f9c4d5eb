"""NeuroShard: sharding of embedding tables with pre-trained cost models and search.

    from neuroshard import Table, Task, Topology, plan

    task = Task(
        tables=[Table("user", 4_000_000, 128, 3.0), Table("item", 9_000_000, 64, 20.0)],
        topology=Topology(world_size=4, local_world_size=1, memory_bytes=2 << 30),
        batch_size=4096,
        optimizer="rowwise_adagrad",
    )
    for shard in plan(task).shards:
        print(shard)

`neuroshard.torchrec` plans for TorchRec, `neuroshard.statistics` reads how tables are used from
data, `python -m neuroshard.collect` measures FBGEMM's operator; all three need PyTorch, this part
needs nothing.
"""

from . import _core
from .errors import (
    ExtrapolationWarning,
    InfeasibleError,
    InputError,
    MachineError,
    NeuroShardError,
)
from .executable import EXECUTABLE, MODEL_FOLDER, use_shipped_models
from .planning import (
    Comparison,
    ComparisonEntry,
    ComparisonSummary,
    Evaluation,
    Model,
    SimulatedDevice,
    SimulatedIteration,
    Workload,
    compare,
    evaluate,
    evaluate_on_cluster,
    list_algorithms,
    list_models,
    list_workloads,
    plan,
    price,
    reuse_histograms,
)
from .statistics import TableStatistics
from .types import REUSE_BINS, DeviceCost, Plan, PlanCost, Shard, Table, Task, Topology

__version__ = _core.__version__

__all__ = [
    "EXECUTABLE",
    "MODEL_FOLDER",
    "REUSE_BINS",
    "Comparison",
    "ComparisonEntry",
    "ComparisonSummary",
    "DeviceCost",
    "Evaluation",
    "ExtrapolationWarning",
    "InfeasibleError",
    "InputError",
    "MachineError",
    "Model",
    "NeuroShardError",
    "Plan",
    "PlanCost",
    "Shard",
    "SimulatedDevice",
    "SimulatedIteration",
    "Table",
    "TableStatistics",
    "Task",
    "Topology",
    "Workload",
    "compare",
    "evaluate",
    "evaluate_on_cluster",
    "list_algorithms",
    "list_models",
    "list_workloads",
    "plan",
    "price",
    "reuse_histograms",
]

use_shipped_models()
