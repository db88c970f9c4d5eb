"""Fixtures of the Python package's tests: small tasks."""

from pathlib import Path

import pytest

from neuroshard import Table, Task, Topology

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def golden() -> Path:
    """The folder of the files that the C++ tests compare byte for byte."""
    return ROOT / "tests" / "io" / "golden"


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
