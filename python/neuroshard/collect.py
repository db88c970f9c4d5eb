"""`python -m neuroshard.collect`: measures FBGEMM's operator as `neuroshard collect compute` does
ours: the same samples of the same seed, the same file format, the same loop that measures.

    python -m neuroshard.collect --samples 4000 --batch-size 1024 --in-flight 64 -o costs.jsonl
    neuroshard train compute costs.jsonl -o mine.safetensors
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InputError, NeuroShardError
from .planning import list_workloads
from .torch_versions import check_versions, installed_versions
from .types import Task, Topology, task_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    from .fbgemm import Operator

    #: Rows, columns, indices and batch_size + 1 offsets of a piece.
    Lookups = tuple[int, int, npt.NDArray[np.int64], npt.NDArray[np.int64]]


def parse_bytes(text: str) -> int:
    """"4GiB" as bytes."""
    for suffix, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)):
        if text.endswith(suffix) and text.removesuffix(suffix).isdigit():
            return int(text.removesuffix(suffix)) * factor
    raise argparse.ArgumentTypeError(f"expected a size such as 4GiB, got {text!r}")


def parse_range(text: str) -> tuple[int, int]:
    """"1:15" as (1, 15), "8" as (8, 8)."""
    low, _, high = text.partition(":")
    try:
        return int(low), int(high or low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected MIN:MAX, got {text!r}") from None


def parser() -> argparse.ArgumentParser:
    """The options of `neuroshard collect compute`."""
    result = argparse.ArgumentParser(
        prog="python -m neuroshard.collect",
        description="Measure forward and backward time of FBGEMM's table-batched embedding",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = result.add_argument
    add("--workload", default="dlrm-2021", help="tables to draw from")
    add("--workload-seed", type=int, default=0, help="seed of a generated workload")
    add("--samples", type=int, default=10_000, help="samples the file should have in the end")
    add("--batch-size", type=int, default=4096, help="samples per batch, over all devices")
    add("--optimizer", choices=["sgd", "rowwise_adagrad"], default="sgd", help="exact, fused")
    add("--data-type", choices=["fp32", "fp16"], default="fp32", help="of the tables")
    add(
        "--sets",
        choices=["uniform", "coverage"],
        default="uniform",
        help="coverage: sets that cover every order of magnitude of bytes moved, with slices of "
        "rows; pieces beyond their part of --memory wrap around it",
    )
    add("--max-pass", type=parse_bytes, default=4 << 30, help="with coverage: bytes of a pass")
    add("--slices", type=float, default=0.2, help="with coverage: share of slices of rows")
    add("--tables", type=parse_range, default=(1, 15), help="pieces in a sample, MIN:MAX")
    add("--dims", type=int, nargs="+", default=[], help="columns; all multiples of 4 to 128 if none")
    add("--held-out", type=float, default=0.1, help="share of tables and samples kept for testing")
    add("--memory", type=parse_bytes, default=4 << 30, help="memory of a sample's pieces")
    add("--in-flight", type=int, default=1, help="samples that alternate")
    add("--quantile", type=float, default=0.25, help="of a sample's repetitions")
    add("--threads", type=int, default=0, help="on a CPU; 0: as many as PyTorch takes")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add("--seed", type=int, default=0, help="seed of the sequence of samples")
    add("-o", "--output", required=True, help="file to write or to continue (.jsonl)")
    return result


class PreparedSet:
    """An operator with its batch, as the loop that measures runs it."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.bytes_touched = operator.bytes_touched

    def forward(self) -> float:
        """Milliseconds of the pass."""
        return self._operator.time_ms(self._operator.forward)

    def backward(self) -> float:
        """Milliseconds of the pass, which follows a forward pass."""
        return self._operator.time_ms(self._operator.backward)


class Device:
    """The device that runs FBGEMM: prepares sets and disturbs caches for the library's loop that
    measures (collect/compute/measure_sets.h)."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        from .fbgemm import Arena

        self._optimizer = options.optimizer
        self._wraps = options.sets == "coverage"
        device = torch.device(options.device)
        self._arena = Arena(options.memory, options.data_type, device)
        on_cpu = device.type == "cpu"
        self.bytes_between_passes = _core.beyond_any_cache() if on_cpu else 8 * (64 << 20)
        self._others: torch.Tensor | None = None

    def prepare(self, pieces: Sequence[Lookups], seed: int) -> PreparedSet:
        """The operator of pieces with their batch."""
        import torch

        from .fbgemm import Operator, Piece

        # A piece's part of the memory, with the gap that may come before it.
        room = self._arena.weights.numel() // len(pieces) - 64
        with_lookups = []
        for num_embeddings, num_columns, *drawn in pieces:
            indices, offsets = (torch.from_numpy(array) for array in drawn)
            rows = num_embeddings
            if self._wraps and rows * num_columns > room:
                rows = max(room // num_columns, 1)
                indices %= rows
            with_lookups.append(Piece(rows, num_columns, indices, offsets))
        return PreparedSet(Operator(with_lookups, self._arena, self._optimizer, seed))

    def disturb_caches(self, num_bytes: int) -> int:
        """Reads memory that belongs to no set; the number of bytes read."""
        import torch

        if self._others is None:
            self._others = torch.ones(
                self.bytes_between_passes // 8, dtype=torch.int64, device=self._arena.device
            )
        self._others[: (num_bytes + 7) // 8].sum().item()
        return num_bytes


def hardware_of(device: str) -> dict[str, Any]:
    """The machine's description for the header of a file."""
    import torch

    if torch.device(device).type == "cpu":
        return dict(json.loads(_core.cpu_hardware()))
    if not torch.cuda.is_available():
        raise InputError(f"--device: expected cpu, as there is no CUDA device, got {device!r}")
    properties = torch.cuda.get_device_properties(device)
    return {
        "kind": "cuda",
        "name": properties.name,
        "num_multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
    }


def collect(options: argparse.Namespace) -> int:
    """Measures the samples that the file does not have yet; returns their number."""
    check_versions("neuroshard.collect", ("torch", "fbgemm-gpu"))
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    workloads = {workload.name: workload for workload in list_workloads()}
    if options.workload not in workloads:
        raise InputError(
            f"--workload: expected one of {', '.join(workloads)}, got {options.workload!r}"
        )
    hardware = hardware_of(options.device)
    tables = workloads[options.workload].tables(options.workload_seed)
    for table in tables:
        table.data_type = options.data_type
    task = Task(tables, Topology(1, 1 << 60), options.batch_size, options.optimizer)
    collection = _core.Collection(
        task_text(task),
        options.workload,
        options.dims,
        options.tables[0],
        options.tables[1],
        options.memory,
        options.held_out,
        options.seed,
    )
    if options.sets == "coverage":
        collection.cover(options.slices, options.max_pass)
    operator = {
        "name": "fbgemm-split-tbe",
        "version": installed_versions().get("fbgemm-gpu", "unknown"),
        "num_threads": torch.get_num_threads(),
        "quantile": options.quantile,
        "in_flight": options.in_flight,
    }
    shows_progress = sys.stderr.isatty()

    def on_progress(done: int, requested: int, seconds_left: float) -> None:
        if shows_progress:
            sys.stderr.write(f"\r{done} of {requested} samples, {seconds_left:.0f} s left \x1b[K")

    measured = collection.collect(
        options.output,
        options.samples,
        json.dumps(hardware),
        json.dumps(operator),
        options.quantile,
        max(1, options.in_flight),
        lambda: Device(options),
        on_progress,
    )
    if shows_progress:
        sys.stderr.write("\r\x1b[K")
    return measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code, the same as the executable's."""
    options = parser().parse_args(arguments)
    try:
        measured = collect(options)
    except NeuroShardError as error:
        print(f"neuroshard.collect: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{options.output}: {measured} samples measured", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
