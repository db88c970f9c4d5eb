"""Fixtures of the Python package's tests: small tasks."""

import subprocess
from pathlib import Path

import pytest

from neuroshard import EXECUTABLE, Table, Task, Topology

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def golden() -> Path:
    """The folder of the files that the C++ tests compare byte for byte."""
    return ROOT / "tests" / "io" / "golden"


@pytest.fixture(scope="session")
def simgrid(tmp_path_factory) -> None:
    """Skips where the executable simulates no clusters, as that of a self-contained wheel."""
    costs = tmp_path_factory.mktemp("simgrid") / "costs.jsonl"
    command = [EXECUTABLE, "collect", "communication", "--backend", "simgrid"]
    options = ["--platform", "pcie4", "--devices", "2", "--samples", "1", "-o", costs]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if "expected an executable built with SimGrid" in run.stderr:
        pytest.skip("the executable is built without SimGrid")
    assert run.returncode == 0, run.stderr


@pytest.fixture
def task() -> Task:
    """Two tables that fit onto two devices in many ways."""
    return Task(
        tables=[
            Table("user", 100_000, 64, 3.0, index_distribution={"zipf_exponent": 1.1}),
            Table("item", 200_000, 32, 20.0),
        ],
        topology=Topology(world_size=2, local_world_size=1, memory_bytes=64 << 20),
        batch_size=4096,
        optimizer="rowwise_adagrad",
    )
