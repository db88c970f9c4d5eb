"""`python -m neuroshard.collect --communication`, under torchrun: measures steps of random plans of
all of TorchRec's sharding types, on gloo and CPUs.

    torchrun --nproc-per-node 2 -m neuroshard.collect --communication -o costs-2.jsonl

Stopped by SIGINT or SIGTERM (exit code 130 or 143), it finishes the task that has begun; the same
command goes on with the file.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from ... import _core
from ...arguments import MOST_SEED, MOST_THREADS, integer_of, path_of, seconds_of
from ...errors import InputError, NeuroShardError
from ...progress import ProgressLine
from ...runtime.drawing import PLANS_OF_A_TASK, DrawnTask, draw_task
from ...runtime.samples import (
    RuntimeSample,
    header_line,
    read_samples,
    same_header,
    sample_line,
)
from ...stopping import Stopped, signals_call
from ...torch_versions import installed_versions
from .measuring import MeasuredModel
from .processes import gloo_processes

_WARM_UP = 3

#: Of a process's repetitions, the decile below which a tenth lie: what else the host does lengthens
#: steps, and of the statistics tried this one differs least when a plan is measured again (by 4 %
#: with 25 repetitions, where the quartile differs by 6 %).
_QUANTILE = 0.1


def parse_sizes(text: str) -> list[int]:
    """ "512,1024" as [512, 1024]."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers separated by commas, got {text!r}"
        ) from None


def parse_time_limit(text: str) -> float:
    """ "10min" or "600" as 600 seconds; "0" is no limit."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    try:
        if seconds == 0:
            return seconds
        return seconds_of(text if math.isnan(seconds) else seconds, "time limit")
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(
        prog="torchrun --nproc-per-node N -m neuroshard.collect --communication",
        description="Measure steps of TorchRec's sharded tables, of all sharding types, on gloo",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = result.add_argument
    add("--communication", action="store_true", help=argparse.SUPPRESS)
    add(
        "--samples",
        type=int,
        default=320,
        help=f"samples the file should have in the end, {PLANS_OF_A_TASK} plans of each task",
    )
    add(
        "--time-limit",
        type=parse_time_limit,
        default=0.0,
        help="time after which no task is begun, such as 10min, or in seconds; 0: none",
    )
    add(
        "--batch-size",
        type=parse_sizes,
        default="512,1024,2048",
        help="samples of all processes, to draw from",
    )
    add("--max-rows", type=int, default=100_000, help="of the largest table")
    add("--repetitions", type=int, default=24, help="timed steps of each plan")
    add("--optimizer", choices=["sgd", "rowwise_adagrad"], default="sgd")
    add("--local-world-size", type=int, default=0, help="processes of a host; 0: torchrun's")
    add("--threads", type=int, default=1, help="of each process")
    add("--seed", type=int, default=0, help="of the sequence of tasks")
    add("-o", "--output", required=True, help="file to write or to continue (.jsonl)")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        _check(options)
        with gloo_processes(options.local_world_size, options.threads) as layout:
            return _collected_by_all(options, layout)
    except (NeuroShardError, Stopped) as error:
        if os.environ.get("RANK", "0") == "0":
            print(f"neuroshard.collect: {error}", file=sys.stderr)
        return error.exit_code


def _collected_by_all(options: argparse.Namespace, layout: tuple[int, int]) -> int:
    measured, stopped_by = collect(options, layout)
    if dist.get_rank() == 0:
        print(f"{options.output}: {measured} samples measured", file=sys.stderr)
    dist.barrier()
    if stopped_by:
        raise Stopped(stopped_by)
    return 0


def _check(options: argparse.Namespace) -> None:
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    for size in options.batch_size:
        if size < world_size or size % world_size:
            raise InputError(
                f"--batch-size: expected a multiple of {world_size} processes, got {size}"
            )
        integer_of(size, "--batch-size", 1, 1 << 30)
    for name, least, most in (
        ("samples", 1, 1_000_000_000),
        ("max_rows", 1000, 1 << 42),
        ("repetitions", 4, 1_000_000),
        ("local_world_size", 0, 65536),
        ("threads", 1, MOST_THREADS),
        ("seed", 0, MOST_SEED),
    ):
        integer_of(getattr(options, name), f"--{name.replace('_', '-')}", least, most)


def collect(options: argparse.Namespace, layout: tuple[int, int]) -> tuple[int, int]:
    """Measures the tasks that the file does not have yet; returns the number of samples, and that of
    the signal which ended it before, or 0."""
    begin = time.monotonic()
    file = _CostsFile(path_of(options.output, "--output"))  # the first process's
    done = _from_first(lambda: file.open(_header_of(options, layout)))
    tasks = -(-options.samples // PLANS_OF_A_TASK)
    measured = stopped_by = 0
    signals: list[int] = []
    # A task that has begun is finished: processes that wait for each other end together.
    with signals_call(signals.append), ProgressLine() as line:
        for number in range(done, tasks):
            # One clock decides for all, and any one's signal.
            has_time = _from_first(
                lambda: not options.time_limit or time.monotonic() - begin < options.time_limit
            )
            stopped_by = _largest(signals)
            if stopped_by or not has_time:
                break
            task = draw_task(number, options.seed, layout, options.batch_size, options.max_rows)
            samples = measure_task(task, options.optimizer, options.repetitions)
            _from_first(lambda: file.append(samples))
            measured += len(samples)
            if dist.get_rank() == 0:
                line.show(f"{number + 1} of {tasks} tasks")
    return measured, stopped_by


def _largest(signals: list[int]) -> int:
    """The number of a signal that any of the processes got, or 0: the same on all of them."""
    number = torch.tensor([signals[0] if signals else 0])
    dist.all_reduce(number, dist.ReduceOp.MAX)
    return int(number)


def measure_task(task: DrawnTask, optimizer: str, repetitions: int) -> list[RuntimeSample]:
    """All plans of a task, step by step in alternation: what disturbs one disturbs all."""
    models = [
        MeasuredModel(plan, task.setup, optimizer, task.number) for plan in task.plans
    ]
    for _ in range(_WARM_UP + repetitions):
        for model in models:
            model.step()
    samples = []
    for place, (model, plan) in enumerate(zip(models, task.plans, strict=True)):
        forward, backward, *operator = (
            statistics.quantiles(times, n=round(1 / _QUANTILE), method="inclusive")[0]
            for times in zip(*model.times[_WARM_UP:], strict=True)
        )
        of_ranks: list[Any] = [None] * task.setup.world_size
        dist.all_gather_object(of_ranks, (forward, backward, tuple(operator)))
        samples.append(
            RuntimeSample(
                index=task.number * PLANS_OF_A_TASK + place,
                task=task.number,
                setup=task.setup,
                modules=plan,
                forward_ms=round(max(times[0] for times in of_ranks), 6),
                backward_ms=round(max(times[1] for times in of_ranks), 6),
                operator_ms=tuple(
                    (round(times[2][0], 6), round(times[2][1], 6)) for times in of_ranks
                ),
                repetitions=repetitions,
            )
        )
    del models, model
    gc.collect()  # sharded modules are held in cycles
    return samples


def _from_first(answer: Any) -> Any:
    """What the first process answers, or the error that it raises, on all of them."""
    found: list[Any] = [None]
    if dist.get_rank() == 0:
        try:
            found = [answer()]
        except NeuroShardError as error:
            found = [error]
    dist.broadcast_object_list(found, src=0)
    if isinstance(found[0], NeuroShardError):
        raise found[0]
    return found[0]


class _CostsFile:
    """The file that samples go to, task by task; no other process may append to it meanwhile."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: _core.LineFile | None = None

    def open(self, header: dict[str, Any]) -> int:
        """The number of whole tasks in the file, which is made if there is none, and cut off behind
        them."""
        if self._path.endswith(".gz"):
            raise InputError(
                f"{self._path}: expected an uncompressed file to append to, "
                "got a name that ends in .gz"
            )
        self._file = _core.LineFile(self._path)
        first_line = header_line(header)
        content = _core.read_file(self._path) if os.path.isfile(self._path) else b""
        # Stopped while the very first line was being written: nothing is lost by starting again.
        if b"\n" not in content and first_line.encode().startswith(content):
            self._file.cut_to(0)
            self._append(first_line)
            return 0
        found = read_samples(self._path)
        same_header(found.header, header, self._path)
        for place, sample in enumerate(found.samples):
            if sample.index != place:
                raise InputError(
                    f"{self._path}: sample {place}: expected index {place}, got {sample.index}"
                )
        tasks = len(found.samples) // PLANS_OF_A_TASK
        lines = content[: found.whole_bytes].split(b"\n")[: 1 + tasks * PLANS_OF_A_TASK]
        self._file.cut_to(sum(len(line) + 1 for line in lines))
        return tasks

    def append(self, samples: Sequence[RuntimeSample]) -> None:
        """A task's, which are in the file for good then."""
        self._append(*map(sample_line, samples))

    def _append(self, *lines: str) -> None:
        assert self._file is not None
        for line in lines:
            self._file.append(line.removesuffix("\n"))
        self._file.sync()


def _header_of(options: argparse.Namespace, layout: tuple[int, int]) -> dict[str, Any]:
    versions = installed_versions()
    return {
        "hardware": json.loads(_core.cpu_hardware()),
        "software": {
            "torch": torch.__version__,
            "torchrec": versions.get("torchrec", "unknown"),
            "fbgemm-gpu": versions.get("fbgemm-gpu", "unknown"),
            "backend": "gloo",
            "num_threads": options.threads,
        },
        "world_size": layout[0],
        "local_world_size": layout[1],
        "optimizer": options.optimizer,
        "sampling": {
            "seed": options.seed,
            "batch_sizes": options.batch_size,
            "max_rows": options.max_rows,
            "quantile": _QUANTILE,
            "repetitions": options.repetitions,
            "plans_of_a_task": PLANS_OF_A_TASK,
        },
    }
