# The extension module: text in the documented formats in, text out.
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

__version__: str

def parse_bytes(text: str, place: str) -> int: ...
def parse_seconds(text: str, place: str) -> float: ...
def parse_share(text: str, place: str) -> float: ...
def check_task(text: str) -> str: ...
def read_task(path: str) -> str: ...
def write_task(text: str, path: str) -> None: ...
def read_plan(path: str) -> str: ...
def write_plan(text: str, path: str) -> None: ...
def plan_violations(text: str) -> list[str]: ...
def list_models() -> str: ...
def list_workloads() -> str: ...
def list_algorithms() -> list[str]: ...
def workload_task(name: str, seed: int) -> str: ...
def reuse_histograms(text: str) -> list[list[float]]: ...
def plan(task: str, request: str) -> tuple[str, list[str], list[str]]: ...
def replan(
    task: str, plan: str, max_move: float, request: str
) -> tuple[str, list[str], list[str]]: ...
def plan_like(plan: str, models: Sequence[str]) -> tuple[str, list[str], list[str]]: ...
def explain(
    plan: str, table: str, choice: str, models: Sequence[str], num_threads: int, seconds: float
) -> tuple[str, str, list[str], list[str]]: ...
def capacity(
    task: str,
    devices: Sequence[int],
    memory_bytes: Sequence[int],
    models: Sequence[str],
    options: str,
) -> tuple[str, str, list[str], list[str]]: ...
def parse_device_numbers(text: str, place: str) -> list[int]: ...
def price(plan: str, models: Sequence[str], lower_bound: bool) -> tuple[str, list[str], list[str]]: ...
def cost_shares(
    task: str, pieces: Sequence[tuple[int, int, int, int, int]], models: Sequence[str]
) -> tuple[list[tuple[float, float, float]], list[str], list[str]]: ...
def choose_options(task: str, steps: int, seed: int, num_threads: int) -> str: ...
def compare(
    tasks: Sequence[tuple[str, str]],
    models: Sequence[str],
    algorithms: Sequence[str],
    options: str,
    arena_bytes: int,
    reference: str,
    journal: str,
    controls: Sequence[str],
) -> str: ...
def evaluate(
    plan: str, models: Sequence[str], arena_bytes: int, num_threads: int, seed: int
) -> tuple[str, list[str], list[str]]: ...

def write_report(
    plans: Sequence[tuple[str, str]],
    evaluations: Sequence[tuple[str, str]],
    inputs: Sequence[str],
    path: str,
) -> None: ...
def write_evaluation(text: str, path: str) -> None: ...
def plan_summary_html(plan: str) -> str: ...

class PreparedSet(Protocol):
    """A set with its batch, ready to run."""

    @property
    def bytes_touched(self) -> int:
        """Of distinct memory, by a pass, about."""
    def forward(self) -> float:
        """Milliseconds of the pass."""
    def backward(self) -> float: ...

class Device(Protocol):
    """What measures; `prepare` raises MemoryError, RuntimeError or NeuroShardError for a set that
    there is no memory for."""

    @property
    def bytes_between_passes(self) -> int:
        """To be touched between two passes of a set, so that the caches are full of other things."""
    def prepare(
        self,
        pieces: Sequence[tuple[int, int, npt.NDArray[np.int64], npt.NDArray[np.int64]]],
        optimizer: str,
        seed: int,
    ) -> PreparedSet:
        """The operator of pieces, each with its rows, its columns and its indices and offsets."""
    def has_room(self) -> bool:
        """Whether there is memory to have another set ready, next to those that are."""
    def disturb_caches(self, num_bytes: int) -> int:
        """Reads as many bytes or a little more that belong to no set; returns how many."""

class Collection:
    def __init__(
        self,
        task: str,
        workload: str,
        dims: Sequence[int],
        min_tables: int,
        max_tables: int,
        memory_bytes: int,
        held_out_share: float,
        seed: int,
    ) -> None: ...
    def cover(self, slice_share: float, max_pass_bytes: int) -> None: ...
    def pieces(self, id: int) -> list[tuple[int, int, float]]: ...
    def draw(
        self, table: int, seed: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...

def collect(
    collections: Sequence[tuple[Collection, str]],
    num_samples: int,
    hardware: str,
    operator_info: str,
    quantile: float,
    in_flight: int,
    make_device: Callable[[], Device],
    on_progress: Callable[[int, int, float], None],
) -> int: ...
def cpu_hardware() -> str: ...
def beyond_any_cache() -> int: ...
def available_memory_bytes() -> int: ...
