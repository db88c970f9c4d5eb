"""NeuroShard: sharding of embedding tables with pre-trained cost models and search.

    >>> from neuroshard import Table, Task, Topology, plan
    >>> task = Task(
    ...     tables=[Table("user", 4_000_000, 128, 3.0), Table("item", 9_000_000, 64, 20.0)],
    ...     topology=Topology(world_size=4, memory_bytes="2GiB"),
    ...     batch_size=4096,
    ...     optimizer="rowwise_adagrad",
    ... )
    >>> found = plan(task, models=["analytic-a100-40gb", "analytic-a100-nvswitch"])
    >>> found
    <Plan: 2 tables in ... shards on 4 devices, batch size 4096, predicted cost ... ms>
    >>> found.shards[0]
    Shard(table='...', column_offset=..., num_columns=..., device=...)

`neuroshard.torchrec` plans for TorchRec, `neuroshard.statistics` reads how tables are used from
data, `python -m neuroshard.collect` measures FBGEMM's operator. Statistics need NumPy, the other
two PyTorch, and everything else needs nothing.
"""

import importlib
from typing import Any

from . import _core
from .catalog import (
    Model,
    Workload,
    list_algorithms,
    list_models,
    list_workloads,
    reuse_histograms,
)
from .comparison import Comparison, ComparisonEntry, ComparisonSummary, compare
from .deciding import Capacity, CapacityPoint, Explanation, capacity, explain
from .errors import (
    ExtrapolationWarning,
    InfeasibleError,
    InputError,
    MachineError,
    NeuroShardError,
)
from .evaluation import (
    Evaluation,
    SimulatedDevice,
    SimulatedIteration,
    evaluate,
    evaluate_on_cluster,
)
from .executable import EXECUTABLE, MODEL_FOLDER, use_shipped_models
from .moves import DeviceMove, PlanMoves
from .planning import plan, plan_like, price, replan
from .plans import DeviceCost, Plan, PlanCost, Shard
from .search_options import SearchOptions
from .types import REUSE_BINS, Table, TableStatistics, Task, Topology

__version__ = _core.__version__

__all__ = [
    "EXECUTABLE",
    "MODEL_FOLDER",
    "REUSE_BINS",
    "Capacity",
    "CapacityPoint",
    "Comparison",
    "ComparisonEntry",
    "ComparisonSummary",
    "DeviceCost",
    "DeviceMove",
    "Evaluation",
    "Explanation",
    "ExtrapolationWarning",
    "InfeasibleError",
    "InputError",
    "MachineError",
    "Model",
    "NeuroShardError",
    "Plan",
    "PlanCost",
    "PlanMoves",
    "SearchOptions",
    "Shard",
    "SimulatedDevice",
    "SimulatedIteration",
    "Table",
    "TableStatistics",
    "Task",
    "Topology",
    "Workload",
    "capacity",
    "compare",
    "evaluate",
    "evaluate_on_cluster",
    "explain",
    "list_algorithms",
    "list_models",
    "list_workloads",
    "plan",
    "plan_like",
    "price",
    "replan",
    "reuse_histograms",
]

use_shipped_models()


def __getattr__(name: str) -> Any:
    """`neuroshard.statistics` without an import of its own; NumPy is loaded only then."""
    if name == "statistics":
        return importlib.import_module(".statistics", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
