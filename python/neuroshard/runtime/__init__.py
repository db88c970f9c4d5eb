"""What TorchRec's runtime takes beyond its operator: measured, learned and priced. Needs no PyTorch;
what measures is in `neuroshard.torchrec.runtime`.

    python -m neuroshard.runtime costs-2.jsonl costs-2x2.jsonl -o runtime.json
"""

from .costs import LayoutCosts, Price, RuntimeCosts, read_runtime_costs
from .fitting import Fit, fit_layout
from .samples import RuntimeSample, SampleFile, read_samples
from .work import Setup, ShardedModule, ShardedTable, TableShard, work_of

__all__ = [
    "Fit",
    "LayoutCosts",
    "Price",
    "RuntimeCosts",
    "RuntimeSample",
    "SampleFile",
    "Setup",
    "ShardedModule",
    "ShardedTable",
    "TableShard",
    "fit_layout",
    "read_runtime_costs",
    "read_samples",
    "work_of",
]
