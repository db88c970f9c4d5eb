"""`python -m neuroshard.collect`: measures FBGEMM's operator as `neuroshard collect compute` does
ours: the same samples of the same seed, the same file format, the same rule for when to stop.

    python -m neuroshard.collect --samples 4000 --batch-size 1024 --in-flight 64 -o costs.jsonl
    neuroshard train compute costs.jsonl -o mine.safetensors
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InputError, NeuroShardError
from .planning import list_workloads
from .torch_versions import check_versions, installed_versions
from .types import Table, Task, Topology, task_text

if TYPE_CHECKING:
    import torch

    from .fbgemm import Arena, Operator


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
    """Options as of `neuroshard collect compute`."""
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
    add("--tables", type=parse_range, default=(1, 15), help="pieces in a sample, MIN:MAX")
    add("--dims", type=int, nargs="+", default=[], help="columns; all multiples of 4 to 128 if none")
    add("--held-out", type=float, default=0.1, help="share of tables and samples kept for testing")
    add("--memory", type=parse_bytes, default=4 << 30, help="what a sample's pieces lie in")
    add("--in-flight", type=int, default=1, help="samples measured in turns")
    add("--quantile", type=float, default=0.25, help="of a sample's repetitions")
    add("--threads", type=int, default=0, help="on a CPU; 0: as many as PyTorch takes")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add("--seed", type=int, default=0, help="seed of the sequence of samples")
    add("-o", "--output", required=True, help="file to write or to continue (.jsonl)")
    return result


@dataclass
class Run:
    """A sample between its passes."""

    index: int
    operator: Operator
    timing: _core.RepeatedTiming
    #: The disturbance's bytes when its last pass ended.
    last_pass: int = 0
    round_forward_ms: float = 0.0
    round_seconds: float = 0.0
    forward_ms: list[float] = field(default_factory=list)
    backward_ms: list[float] = field(default_factory=list)


class Disturbance:
    """Sees to it that a pass finds the caches full of other things: other samples', or a buffer's
    where these are too few."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._needed = _core.beyond_any_cache() if device.type == "cpu" else 8 * (64 << 20)
        self._buffer: torch.Tensor | None = None
        self.touched = 0

    def displace_since(self, then: int) -> None:
        """Reads until enough was touched since `then`."""
        import torch

        missing = then + self._needed - self.touched
        if missing <= 0:
            return
        if self._buffer is None:
            self._buffer = torch.ones(self._needed // 8, dtype=torch.int64, device=self._device)
        self._buffer[: (missing + 7) // 8].sum().item()
        self.touched += missing


class Measurement:
    """Measures sets of pieces in turns, each running forward once, then each backward once."""

    def __init__(self, options: argparse.Namespace, tables: Sequence[Table]) -> None:
        self._options = options
        self._tables = tables
        self._arena: Arena | None = None

    def prepare(self) -> None:
        """Takes the memory, before a file is begun."""
        import torch

        from .fbgemm import Arena

        device = torch.device(self._options.device)
        self._arena = Arena(self._options.memory, self._options.data_type, device)

    def make_run(self, collection: _core.Collection, sample: _core.Sample) -> Run:
        """The operator of a sample, its batch drawn."""
        import torch

        from .fbgemm import Operator, Piece

        assert self._arena is not None
        index, chosen, seed = sample
        pieces = []
        for number, (table, num_columns) in enumerate(chosen):
            drawn = collection.draw(table, (seed + number) % (1 << 64))
            indices, offsets = (torch.from_numpy(array) for array in drawn)
            rows = self._tables[table].num_embeddings
            pieces.append(Piece(rows, num_columns, indices, offsets))
        operator = Operator(pieces, self._arena, self._options.optimizer, seed)
        return Run(index, operator, _core.RepeatedTiming(self._options.quantile))

    def measure(
        self,
        collection: _core.Collection,
        next_sample: Callable[[], _core.Sample | None],
        on_done: Callable[[int, float, float, int, float, str], None],
    ) -> None:
        """Until `next_sample` gives nothing."""
        assert self._arena is not None
        disturbance = Disturbance(self._arena.device)
        order = random.Random(0)
        runs: list[Run] = []
        more = True
        while True:
            while more and len(runs) < max(1, self._options.in_flight):
                sample = next_sample()
                if sample is None:
                    more = False
                    break
                try:
                    runs.append(self.make_run(collection, sample))
                except (MemoryError, NeuroShardError, RuntimeError) as error:
                    on_done(sample[0], 0.0, 0.0, 0, 0.0, str(error).split("\n")[0] or "no memory")
            if not runs:
                return
            # Nobody is always behind the same one.
            order.shuffle(runs)
            for run in runs:
                start = time.perf_counter()
                run.round_forward_ms = self._pass(run, run.operator.forward, disturbance)
                run.round_seconds = time.perf_counter() - start
            for run in runs:
                start = time.perf_counter()
                backward_ms = self._pass(run, run.operator.backward, disturbance)
                seconds = run.round_seconds + time.perf_counter() - start
                if not run.timing.warming_up():
                    run.forward_ms.append(run.round_forward_ms)
                    run.backward_ms.append(backward_ms)
                run.timing.add(run.round_forward_ms + backward_ms, seconds)
            for run in [run for run in runs if run.timing.done()]:
                runs.remove(run)
                on_done(
                    run.index,
                    _core.quantile(run.forward_ms, self._options.quantile),
                    _core.quantile(run.backward_ms, self._options.quantile),
                    len(run.forward_ms),
                    run.timing.interval(),
                    "",
                )

    def _pass(self, run: Run, one: Callable[[], object], disturbance: Disturbance) -> float:
        disturbance.displace_since(run.last_pass)
        elapsed = run.operator.time_ms(one)
        disturbance.touched += run.operator.bytes_touched
        run.last_pass = disturbance.touched
        return elapsed


def hardware_of(device: str) -> dict[str, Any]:
    """The machine, as it stands in the header of a file."""
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
    """Measures what the file does not have yet; the number of samples measured."""
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
    operator = {
        "name": "fbgemm-split-tbe",
        "version": installed_versions().get("fbgemm-gpu", "unknown"),
        "num_threads": torch.get_num_threads(),
        "quantile": options.quantile,
        "in_flight": options.in_flight,
    }
    measurement = Measurement(options, tables)
    shows_progress = sys.stderr.isatty()

    def on_progress(done: int, requested: int, seconds_left: float) -> None:
        if shows_progress:
            sys.stderr.write(f"\r{done} of {requested} samples, {seconds_left:.0f} s left \x1b[K")

    measured = collection.collect(
        options.output,
        options.samples,
        json.dumps(hardware),
        json.dumps(operator),
        measurement.prepare,
        lambda next_sample, on_done: measurement.measure(collection, next_sample, on_done),
        on_progress,
    )
    if shows_progress:
        sys.stderr.write("\r\x1b[K")
    return measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code as of the executable."""
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
