"""What there is: models, algorithms, workloads, and what a task's tables imply."""

from __future__ import annotations

import json
from dataclasses import dataclass

from . import _core
from .arguments import MOST_SEED, integer_of
from .types import Table, TaskLike, task_text


@dataclass(frozen=True)
class Model:
    """A cost model that can be asked for by name."""

    name: str
    #: "compute" or "communication"; "unreadable" for a broken file
    kind: str
    #: True if computed from data sheets, not learned from measurements.
    is_estimate: bool
    #: The file, or the source of the numbers.
    origin: str
    #: True if learned from a simulation: "pre-trained (simulated)".
    is_simulated: bool = False


def list_models() -> list[Model]:
    """The shipped models, those in the folders of $NEUROSHARD_MODELS, and the analytic presets.

    >>> from neuroshard import list_models
    >>> [model.name for model in list_models() if model.kind == "compute" and model.is_estimate]
    [...'analytic-a100-40gb'...]
    """
    return [Model(**model) for model in json.loads(_core.list_models())["models"]]


def list_algorithms() -> list[str]:
    """The names of algorithms for `plan` and `compare`, the search first.

    >>> from neuroshard import list_algorithms
    >>> list_algorithms()
    ['neuroshard', ...]
    """
    return _core.list_algorithms()


@dataclass(frozen=True)
class Workload:
    """The tables of one recommendation model with its training settings."""

    name: str
    source: str
    num_tables: int
    batch_size: int
    optimizer: str
    is_seeded: bool

    def tables(self, seed: int = 0) -> list[Table]:
        """Its tables; of a generated workload (`is_seeded`), those of this seed."""
        fields = json.loads(_core.workload_task(self.name, integer_of(seed, "seed", 0, MOST_SEED)))
        return [Table(**table) for table in fields["tables"]]


def list_workloads() -> list[Workload]:
    """The published workloads, then the generated ones.

    >>> from neuroshard import list_workloads
    >>> workloads = {workload.name: workload for workload in list_workloads()}
    >>> tables = workloads["mlperf-dlrm-dcnv2"].tables()
    >>> len(tables)
    26
    """
    return [Workload(**workload) for workload in json.loads(_core.list_workloads())["workloads"]]


def reuse_histograms(task: TaskLike) -> list[list[float]]:
    """Every table's reuse histogram at the task's batch size, from its distribution.

    >>> from neuroshard import Table, Task, Topology, reuse_histograms
    >>> table = Table("t", 1000, 64, 3.0, index_distribution={"zipf_exponent": 1.1})
    >>> [histogram] = reuse_histograms(Task([table], Topology(1, "1GiB"), batch_size=4096))
    >>> len(histogram), round(sum(histogram), 6)
    (17, 1.0)
    """
    return _core.reuse_histograms(task_text(task))
