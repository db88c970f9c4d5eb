"""`python -m neuroshard.collect`: measures FBGEMM's operator as `neuroshard collect compute` does
ours: the same samples of the same seed, the same file format, the same loop that measures.

    python -m neuroshard.collect --samples 4000 --batch-size 1024 --in-flight 64 -o costs.jsonl
    neuroshard train compute costs.jsonl -o mine.safetensors

A run that is stopped (exit code 130 by SIGINT, 143 by SIGTERM) goes on with the same command.

With `--communication`, under torchrun, it measures steps of TorchRec's sharded tables instead
(`torchrec/runtime/collecting.py`):

    torchrun --nproc-per-node 2 -m neuroshard.collect --communication -o runtime-costs.jsonl
    python -m neuroshard.runtime runtime-costs.jsonl -o runtime.json
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .arguments import MOST_SEED, MOST_THREADS, integer_of, text_of
from .catalog import list_workloads
from .errors import InputError, NeuroShardError
from .progress import ProgressLine
from .stopping import Stopped, signals_call, stop_now
from .torch_versions import check_versions, installed_versions
from .types import Task, Topology, task_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    from .fbgemm import Operator

    #: Rows, columns, indices and batch_size + 1 offsets of a piece.
    Lookups = tuple[int, int, npt.NDArray[np.int64], npt.NDArray[np.int64]]

#: Of mallopt(), in glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4

#: What `--device` takes, with a GPU's number.
_DEVICE = re.compile("cpu|cuda(?::(0|[1-9][0-9]{0,3}))?")


def parse_bytes(text: str) -> int:
    """"4GiB" as bytes."""
    try:
        return _core.parse_bytes(text_of(text, "size"), "size")
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_range(text: str) -> tuple[int, int]:
    """"1:15" as (1, 15), "8" as (8, 8)."""
    low, _, high = text.partition(":")
    try:
        return int(low), int(high or low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected MIN:MAX, got {text!r}") from None


def parse_list(parse: Callable[[str], Any], known: Sequence[str] = ()) -> Callable[[str], Any]:
    """A parser of values separated by commas."""

    def parsed(text: str) -> list[Any]:
        values = text.split(",")
        if len(set(values)) < len(values):
            raise argparse.ArgumentTypeError(f"expected each value once, got {text!r}")
        for value in values:
            if known and value not in known:
                raise argparse.ArgumentTypeError(f"expected {' or '.join(known)}, got {value!r}")
        try:
            return [parse(value) for value in values]
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected numbers, got {text!r}") from None

    return parsed


def parser() -> argparse.ArgumentParser:
    """The options of `neuroshard collect compute`."""
    result = argparse.ArgumentParser(
        prog="python -m neuroshard.collect",
        description="Measure forward and backward time of FBGEMM's table-batched embedding",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        epilog="--communication measures steps of TorchRec's sharded tables instead: "
        "torchrun --nproc-per-node 2 -m neuroshard.collect --communication --help",
    )
    add = result.add_argument
    add("--workload", default="dlrm-2021", help="tables to draw from")
    add("--workload-seed", type=int, default=0, help="seed of a generated workload")
    add("--samples", type=int, default=10_000, help="samples a file should have in the end")
    add(
        "--batch-size",
        type=parse_list(int),
        default="4096",
        help="samples per batch; several, separated by commas, are measured into a file each, with "
        "the next seeds, and alternate",
    )
    add(
        "--optimizer",
        type=parse_list(str, ["sgd", "rowwise_adagrad"]),
        default="sgd",
        help="exact and fused: sgd or rowwise_adagrad; or both, separated by a comma, into a file "
        "each",
    )
    add("--data-type", choices=["fp32", "fp16"], default="fp32", help="of the tables")
    add(
        "--sets",
        choices=["uniform", "coverage", "plans"],
        default="uniform",
        help="coverage: sets that cover every order of magnitude of bytes moved, with slices of "
        "rows; plans: those of the devices of plans of random tasks; of both, pieces larger than "
        "--memory wrap around it",
    )
    add("--planned-by", help="with plans: computation model, by name or file, that makes them")
    add("--max-pass", type=parse_bytes, default=4 << 30, help="with coverage: bytes of a pass")
    add(
        "--large",
        type=float,
        default=0.05,
        help="with coverage: share of sets that move more than a tenth of --max-pass",
    )
    add("--slices", type=float, default=0.2, help="with coverage: share of slices of rows")
    add("--tables", type=parse_range, default=(1, 15), help="pieces in a sample, MIN:MAX; plans have their own")
    add("--dims", type=int, nargs="+", default=[], help="columns; all multiples of 4 to 128 if none")
    add("--held-out", type=float, default=0.1, help="share of tables and samples kept for testing")
    add("--memory", type=parse_bytes, default=4 << 30, help="memory that pieces lie in")
    add("--in-flight", type=int, default=1, help="samples that alternate")
    add(
        "--reference-sets",
        action="store_true",
        help="on a CPU: measure sixteen sets, always the same ones, all along and record with each "
        "sample what they took meanwhile: training then tells the machine's slow minutes from costs",
    )
    add(
        "--quantile",
        type=float,
        help="of a sample's repetitions; if none is given, 0.25 on a CPU and 0.5, the median, on a "
        "GPU",
    )
    add("--threads", type=int, default=0, help="on a CPU; 0: as many as PyTorch takes")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add("--seed", type=int, default=0, help="seed of the sequence of samples")
    add(
        "-o",
        "--output",
        required=True,
        help="file to write or to continue (.jsonl); {batch_size} and {optimizer} in it stand for "
        "these",
    )
    return result


class PreparedSet:
    """An operator with its batch, as the loop that measures runs it."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.bytes_touched = operator.bytes_touched
        self.bytes_held = operator.bytes_held

    def forward(self) -> float:
        """Milliseconds of the pass."""
        return self._operator.time_ms(self._operator.forward)

    def backward(self) -> float:
        """Milliseconds of the pass, which follows a forward pass."""
        return self._operator.time_ms(self._operator.backward)


def keep_freed_memory() -> None:
    """Makes glibc keep the memory that passes give back, as allocators made for training do. By
    itself it returns large blocks to the system, at times: a pass that has to fault in the pages of
    its output anew takes up to eight times as long."""
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, -1)


class Device:
    """The device that runs FBGEMM: prepares sets and disturbs caches for the library's loop that
    measures (collect/compute/measure_sets.h)."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        from .fbgemm import Arena

        # Reference sets have tables of up to 1 GB, whatever --memory is.
        self._wraps = options.sets != "uniform" or options.reference_sets
        device = torch.device(options.device)
        if device.type == "cuda" and device.index is not None:
            # Passes are timed by events of the current device, which also waits before them.
            torch.cuda.set_device(device)
        self._arena = Arena(options.memory, options.data_type, device)
        on_cpu = device.type == "cpu"
        if on_cpu:
            keep_freed_memory()
        self.bytes_between_passes = _core.beyond_any_cache() if on_cpu else 8 * (64 << 20)
        self._others: torch.Tensor | None = None
        self._ready: weakref.WeakSet[PreparedSet] = weakref.WeakSet()
        free = _core.available_memory_bytes() if on_cpu else torch.cuda.mem_get_info(device)[0]
        self._most_bytes_held: int = free // 3

    def prepare(self, pieces: Sequence[Lookups], optimizer: str, seed: int) -> PreparedSet:
        """The operator of pieces with their batch."""
        import torch

        from .fbgemm import Operator, Piece

        room = self._arena.weights.numel()
        with_lookups = []
        for num_embeddings, num_columns, *drawn in pieces:
            indices, offsets = (torch.from_numpy(array) for array in drawn)
            indices = indices.to(self._arena.device)
            rows = num_embeddings
            if self._wraps and rows * num_columns > room:
                rows = max(room // num_columns, 1)
                indices %= rows
            with_lookups.append(Piece(rows, num_columns, indices, offsets))
        prepared = PreparedSet(Operator(with_lookups, self._arena, optimizer, seed))
        self._ready.add(prepared)
        return prepared

    def has_room(self) -> bool:
        """Whether there is memory to have another set ready, next to those that are."""
        held: int = sum(prepared.bytes_held for prepared in self._ready)
        return held < self._most_bytes_held

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
    """The machine's description for the header of a file. InputError for a device it has not."""
    import torch

    known = _DEVICE.fullmatch(device)
    if known is None:
        raise InputError(f"--device: expected cpu, cuda or cuda:N, got {device!r}")
    if device == "cpu":
        return dict(json.loads(_core.cpu_hardware()))
    if not torch.cuda.is_available():
        raise InputError(f"--device: expected cpu, as there is no CUDA device, got {device!r}")
    devices = torch.cuda.device_count()
    if int(known[1] or 0) >= devices:
        raise InputError(f"--device: expected cuda:N with N below {devices}, got {device!r}")
    properties = torch.cuda.get_device_properties(device)
    return {
        "kind": "cuda",
        "name": properties.name,
        "num_multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
    }


def quantile_of(options: argparse.Namespace) -> float:
    """`--quantile`, or what the executable takes if none is given: on a GPU that nobody else uses,
    times scatter by less than a percent, so that the median does; six of them give it an interval,
    where a first quartile needs 13."""
    if options.quantile is None:
        return 0.25 if options.device == "cpu" else 0.5
    return float(options.quantile)


def check_numbers(options: argparse.Namespace) -> None:
    """Raises InputError for those that are out of the executable's ranges."""
    ranges = (
        ("workload_seed", 0, MOST_SEED),
        ("samples", 1, 1_000_000_000),
        ("batch_size", 1, 1 << 30),
        ("tables", 1, (1 << 31) - 1),
        ("dims", 1, 65536),
        ("in_flight", 1, 4096),
        ("threads", 0, MOST_THREADS),
        ("seed", 0, MOST_SEED),
    )
    for name, least, most in ranges:
        value = getattr(options, name)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            integer_of(each, f"--{name.replace('_', '-')}", least, most)
    for dim in options.dims:
        if dim % 4:
            raise InputError(f"--dims: expected multiples of 4, which FBGEMM takes, got {dim}")
    if not 0.01 <= quantile_of(options) <= 0.99:
        raise InputError(
            f"--quantile: expected a number from 0.01 to 0.99, got {options.quantile}"
        )


def files_of(options: argparse.Namespace) -> list[tuple[int, str, str]]:
    """Batch size, optimizer and path of each file."""
    for field, values in (("batch_size", options.batch_size), ("optimizer", options.optimizer)):
        if len(values) > 1 and f"{{{field}}}" not in options.output:
            raise InputError(
                f"--output: expected {{{field}}} in the name, as there are several, "
                f"got {options.output}"
            )
    return [
        (
            batch_size,
            optimizer,
            options.output.replace("{batch_size}", str(batch_size)).replace(
                "{optimizer}", optimizer
            ),
        )
        for batch_size, optimizer in itertools.product(options.batch_size, options.optimizer)
    ]


def collection_of(
    options: argparse.Namespace, number: int, batch_size: int, optimizer: str
) -> _core.Collection:
    """The samples of a file, with seeds of its own."""
    workload = next(each for each in list_workloads() if each.name == options.workload)
    tables = workload.tables((options.workload_seed + number) & MOST_SEED)
    for table in tables:
        table.data_type = options.data_type
    task = Task(tables, Topology(1, 1 << 60), batch_size, optimizer)
    collection = _core.Collection(
        task_text(task),
        options.workload,
        options.dims,
        options.tables[0],
        options.tables[1],
        options.memory,
        options.held_out,
        (options.seed + number) & MOST_SEED,
    )
    if options.sets == "coverage":
        collection.cover(options.slices, options.max_pass, options.large)
    if options.sets == "plans":
        collection.plan(options.planned_by)
    if options.reference_sets:
        collection.measure_reference_sets()
    return collection


def collect(options: argparse.Namespace) -> int:
    """Measures the samples that the files do not have yet; returns their number."""
    check_versions("neuroshard.collect", ("torch", "fbgemm-gpu"))
    import torch

    check_numbers(options)
    if (options.sets == "plans") != bool(options.planned_by):
        raise InputError("--sets plans and --planned-by go together")
    if options.threads:
        torch.set_num_threads(options.threads)
    workloads = [workload.name for workload in list_workloads()]
    if options.workload not in workloads:
        raise InputError(
            f"--workload: expected one of {', '.join(workloads)}, got {options.workload!r}"
        )
    hardware = hardware_of(options.device)
    if options.reference_sets and options.device != "cpu":
        raise InputError(f"--reference-sets: expected --device cpu, got {options.device!r}")
    collections = [
        (collection_of(options, number, batch_size, optimizer), path)
        for number, (batch_size, optimizer, path) in enumerate(files_of(options))
    ]
    quantile = quantile_of(options)
    operator = {
        "name": "fbgemm-split-tbe",
        "version": installed_versions().get("fbgemm-gpu", "unknown"),
        "num_threads": torch.get_num_threads(),
        "quantile": quantile,
        "in_flight": options.in_flight,
        "arena_bytes": options.memory,
    }
    if torch.device(options.device).type == "cpu":
        operator["keeps_freed_memory"] = True
    with ProgressLine() as line:

        def on_progress(done: int, requested: int, seconds_left: float) -> None:
            line.show(f"{done} of {requested} samples, {seconds_left:.0f} s left")

        return _core.collect(
            collections,
            options.samples,
            json.dumps(hardware),
            json.dumps(operator),
            quantile,
            torch.device(options.device).type != "cpu",
            options.in_flight,
            lambda: Device(options),
            on_progress,
        )


def _collect_communication(arguments: Sequence[str]) -> int:
    """Steps of sharded tables, for which TorchRec is needed."""
    try:
        check_versions("neuroshard.collect --communication")
    except NeuroShardError as error:
        print(f"neuroshard.collect: {error}", file=sys.stderr)
        return error.exit_code
    from .torchrec.runtime import collecting

    return collecting.main(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code, the same as the executable's."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if "--communication" in given:
        return _collect_communication(given)
    options = parser().parse_args(given)
    try:
        with signals_call(stop_now):
            measured = collect(options)
    except (NeuroShardError, Stopped) as error:
        print(f"neuroshard.collect: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{options.output}: {measured} samples measured", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
