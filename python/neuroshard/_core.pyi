# The extension module: text in the documented formats in, text out.
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

__version__: str

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
def plan(
    task: str,
    models: Sequence[str],
    algorithm: str,
    seed: int,
    num_threads: int,
    time_limit_seconds: float,
    steps: int,
    with_bound: bool,
) -> tuple[str, list[str]]: ...
def price(plan: str, models: Sequence[str]) -> tuple[str, list[str]]: ...
def compare(
    tasks: Sequence[tuple[str, str]],
    models: Sequence[str],
    algorithms: Sequence[str],
    seed: int,
    num_threads: int,
    time_limit_seconds: float,
    steps: int,
    arena_bytes: int,
    reference: str,
    journal: str,
    controls: Sequence[str],
) -> str: ...
def evaluate(
    plan: str, models: Sequence[str], arena_bytes: int, num_threads: int, seed: int
) -> tuple[str, list[str]]: ...

Sample = tuple[int, list[tuple[int, int]], int]

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
    def pieces(self, index: int) -> list[tuple[int, int]]: ...
    def draw(
        self, table: int, seed: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def collect(
        self,
        path: str,
        num_samples: int,
        hardware: str,
        operator_info: str,
        prepare: Callable[[], None],
        measure: Callable[
            [
                Callable[[], Sample | None],
                Callable[[int, float, float, int, float, str], None],
            ],
            None,
        ],
        on_progress: Callable[[int, int, float], None],
    ) -> int: ...

class RepeatedTiming:
    def __init__(self, quantile: float) -> None: ...
    def add(self, value: float, seconds: float) -> None: ...
    def done(self) -> bool: ...
    def warming_up(self) -> bool: ...
    def interval(self) -> float: ...

def quantile(values: Sequence[float], quantile: float) -> float: ...
def cpu_hardware() -> str: ...
def beyond_any_cache() -> int: ...
