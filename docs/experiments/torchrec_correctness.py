#!/usr/bin/env python3
"""Plans of NeuroShardPlanner train as unsharded modules do: random tasks on gloo processes.

    OMP_NUM_THREADS=1 build/torchrec/bin/torchrun --nproc-per-node 2 \\
      docs/experiments/torchrec_correctness.py -o correct-2.jsonl
    OMP_NUM_THREADS=1 build/torchrec/bin/torchrun --nproc-per-node 4 \\
      docs/experiments/torchrec_correctness.py --local-world-size 2 -o correct-2x2.jsonl

Continues a file that was begun. The tasks go over all kinds of modules in turn, with the objectives
and SGD or row-wise Adagrad (TorchRec's and FBGEMM's: one state a row) in alternation. In each, some
tables may be of one sharding type alone, so that all types occur that can run; what cannot is in
torchrec_correctness_tasks.py with its reason. The reference is the same module, unsharded, on every
process, trained by PyTorch's SGD and a row-wise Adagrad written here, on the batches of all
processes. Outputs before training, every feature's loss on every process in each of 20 steps, and
the weights after them must be equal up to rounding, and the loss must fall.

Tables with Adagrad are those that may neither be cut by columns, as each piece has a state of its
own then, nor be data-parallel, whose optimizer is not TorchRec's.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping

import torch
import torch.distributed as dist

from neuroshard import InputError
from neuroshard.documents import append_line, read_lines
from neuroshard.torchrec.runtime.processes import gloo_processes
from torchrec_correctness_modules import Reference, Sharded
from torchrec_correctness_tasks import BATCH_SIZE, KINDS, Batch, Task

STEPS = 20
#: That steps take in turn.
BATCHES = 4
#: Of outputs, losses and weights. An output or a weight may differ by this share of it plus 0.1.
OUTPUTS, LOSSES, WEIGHTS = 1e-5, 1e-4, 1e-4


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest of |found - expected| / (|expected| + 0.1); infinite for what is no number."""
    if not found.numel():
        return 0.0
    off = (found - expected).abs() / (expected.abs() + 0.1)
    return float(off.nan_to_num(nan=torch.inf).max())


def losses_of(
    outputs: list[torch.Tensor], targets: list[torch.Tensor], task: Task
) -> torch.Tensor:
    """Of each feature: square distances from the targets."""
    weights = [table.importance / BATCH_SIZE for table in task.tables for _ in table.features]
    return torch.stack(
        [w * ((o - t) ** 2).sum() for o, t, w in zip(outputs, targets, weights, strict=True)]
    )


class Comparison:
    """A task's sharded modules and its reference, on the same batches."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.reference = Reference(task)
        self.sharded = Sharded(task, self.reference)
        self._batches = [Batch(task) for _ in range(BATCHES)]
        self._keys = [key for table in task.tables for key in table.features]
        #: By batch, process and feature.
        self._targets: list[list[list[torch.Tensor]]] = []

    def outputs(self) -> float:
        """The largest difference of an output; draws targets for them all."""
        largest = 0.0
        for batch in self._batches:
            expected = self.reference.outputs(batch)
            found = self.sharded.outputs(batch)
            assert found.keys() == expected.keys(), (found.keys(), expected.keys())
            for key in self._keys:
                largest = max(largest, difference(found[key], expected[key][dist.get_rank()]))
            of_ranks = zip(*(expected[key] for key in self._keys), strict=True)
            self._targets.append([[self._target(each) for each in outputs] for outputs in of_ranks])
        return largest

    def _target(self, output: torch.Tensor) -> torch.Tensor:
        return 2.0 * torch.rand(output.shape, generator=self.task.generator) - 1.0

    def train(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses of steps, processes and features: the reference's and the sharded modules'."""
        of_reference, of_sharded = [], []
        for step in range(STEPS):
            # The last step has the first one's batch, so that their losses are comparable.
            place = step % BATCHES if step < STEPS - 1 else 0
            batch, targets = self._batches[place], self._targets[place]
            expected = self.reference.outputs(batch)
            losses = torch.stack(
                [
                    losses_of([expected[key][rank] for key in self._keys], of_rank, self.task)
                    for rank, of_rank in enumerate(targets)
                ]
            )
            self.reference.step(losses)
            of_reference.append(losses.detach())
            found = self.sharded.outputs(batch)
            losses = losses_of(
                [found[key] for key in self._keys], targets[dist.get_rank()], self.task
            )
            self.sharded.step(losses)
            of_all = [torch.empty_like(losses) for _ in range(self.task.world_size)]
            dist.all_gather(of_all, losses.detach())
            of_sharded.append(torch.stack(of_all))
        return torch.stack(of_reference), torch.stack(of_sharded)

    def weights(self) -> float:
        """The largest difference of a weight."""
        return max(
            (difference(*pair) for pair in self.sharded.weights(self.reference)), default=0.0
        )


def run(task: Task) -> dict:
    """The result of a task, the same on all processes."""
    start = time.perf_counter()
    comparison = Comparison(task)
    outputs = comparison.outputs()
    expected, found = comparison.train()
    off = ((found - expected).abs() / expected.abs().clamp(min=1e-12)).nan_to_num(nan=torch.inf)
    differences = torch.tensor([outputs, float(off.max()), comparison.weights()])
    dist.all_reduce(differences, dist.ReduceOp.MAX)
    of_outputs, of_losses, of_weights = differences.tolist()
    losses = found.sum(2).mean(1).tolist()
    sharded = comparison.sharded
    return {
        "task": task.number,
        "seed": task.seed,
        "processes": processes_of(task.world_size, task.local_world_size),
        "kind": task.kind,
        "objective": task.objective,
        "adagrad": sum(table.has_adagrad for table in task.tables),
        "tables": len(task.tables),
        "types": Counter(sharded.types().values()),
        "widths": sharded.widths(),
        "output_difference": of_outputs,
        "loss_difference": of_losses,
        "weight_difference": of_weights,
        "losses": losses,
        "planning_seconds": round(sharded.planning_seconds, 3),
        "seconds": round(time.perf_counter() - start, 3),
        "is_equal": of_outputs <= OUTPUTS
        and of_losses <= LOSSES
        and of_weights <= WEIGHTS
        and losses[-1] < losses[0],
    }


def processes_of(world_size: int, local_world_size: int) -> str:
    return f"{world_size // local_world_size} x {local_world_size}"


def counted(numbers: Mapping[str, int]) -> str:
    """ "2 row_wise, 1 table_wise"."""
    return ", ".join(f"{number} {name}" for name, number in sorted(numbers.items()))


def line(result: dict) -> str:
    """Of one task."""
    return (
        f"task {result['task']:2}: {result['kind']}, {result['objective']}, "
        f"{result['tables']} tables ({counted(result['types'])}), {result['adagrad']} by Adagrad: "
        f"differences of outputs {result['output_difference']:.0e}, "
        f"losses {result['loss_difference']:.0e}, weights {result['weight_difference']:.0e}; "
        f"loss {result['losses'][0]:.3f} to {result['losses'][-1]:.3f}: "
        f"{'equal' if result['is_equal'] else 'DIFFERS'}"
    )


def summarize(results: list[dict]) -> str:
    """How many tables each kind of module had of each type, and how far apart results were."""
    lines = []
    for kind in KINDS:
        of_kind = [result for result in results if result["kind"] == kind]
        types = sum((Counter(result["types"]) for result in of_kind), Counter())
        lines.append(f"{kind}: {len(of_kind)} tasks, {counted(types)}")
    objectives = Counter(result["objective"] for result in results)
    lines.append(f"tasks by objective: {counted(objectives)}")
    for name in ("output", "loss", "weight"):
        most = max(result[f"{name}_difference"] for result in results)
        lines.append(f"largest difference of a {name}: {most:.1e}")
    falls = [1.0 - result["losses"][-1] / result["losses"][0] for result in results]
    lines.append(f"losses fell by {100 * min(falls):.0f} to {100 * max(falls):.0f} %")
    equal = sum(result["is_equal"] for result in results)
    lines.append(f"{equal} of {len(results)} tasks train as unsharded modules do")
    return "\n".join(lines)


def results_in(path: str, processes: str) -> list[dict]:
    """Those of a file that was begun, if there is one, but for a line that was cut."""
    if not os.path.exists(path):
        return []
    results = [json.loads(text) for text in read_lines(path)[0]]
    for result in results:
        if result["processes"] != processes:
            raise InputError(
                f"{path}: expected tasks on {processes} processes, got {result['processes']}"
            )
    return results


def main() -> int:
    """Exit code 1 if a task differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first task")
    parser.add_argument("--seed", type=int, default=0, help="of the sequence of tasks")
    parser.add_argument("--local-world-size", type=int, default=0, help="default: torchrun's")
    parser.add_argument("-o", "--output", required=True, help="file to write or to continue")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with gloo_processes(options.local_world_size, 1) as layout:
        is_first = dist.get_rank() == 0
        results = results_in(options.output, processes_of(*layout))
        dist.barrier()  # every process has read before the first one writes
        done = {(result["seed"], result["task"]) for result in results}
        for number in range(options.first, options.first + options.tasks):
            if (options.seed, number) in done:
                continue
            results.append(run(Task(number, options.seed, *layout)))
            gc.collect()  # sharded modules are held in cycles
            if is_first:
                append_line(options.output, json.dumps(results[-1]))
                print(line(results[-1]), flush=True)
        if is_first:
            print(summarize(results))
        dist.barrier()
    return 0 if all(result["is_equal"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
