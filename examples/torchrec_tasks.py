"""Many random tasks under TorchRec's plan and under NeuroShard's: the measured embedding time.

    torchrun --nproc-per-node 2 examples/torchrec_tasks.py --tasks 50 -o tasks.jsonl

A task is a random set of tables of the workload dlrm-2021. Both plans' steps (lookups, all-to-alls
and updates, without dense layers) take turns on the same batches. Continues a file that was begun.
With `--control`, TorchRec's plan runs a second time, and the summary has it against itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import sys
import warnings
from collections import Counter

import torch.distributed as dist
from process_group import process_group
from torchrec_dlrm import CONTROL, WORKLOADS
from torchrec_dlrm import run as run_both

from neuroshard.documents import append_line, read_lines


def task_options(number: int, options: argparse.Namespace) -> argparse.Namespace:
    """Task number `number`: the tables of a named workload, or 10 to 60 generated ones."""
    named = options.workloads
    seed = options.seed + number
    return argparse.Namespace(
        tables=named[number] if number < len(named) else "generated",
        tables_only=True,
        num_tables=random.Random(seed - 1000).randint(10, 60),
        max_rows=options.max_rows,
        batch_size=options.batch_size,
        steps=options.steps,
        warm_up=options.warm_up,
        num_batches=4,
        memory=options.memory,
        model=options.model,
        all_types=options.all_types,
        runtime=options.runtime,
        control=options.control,
        seed=seed,
    )


def summarize(results: list[dict]) -> str:
    """Shares and means over all tasks."""
    lines = [f"{len(results)} tasks, {dist.get_world_size()} ranks"]
    for key, name in (
        ("embedding_ms", "lookups and updates of the slowest rank"),
        ("step_ms", "whole embedding step with both all-to-alls"),
    ):
        lines.append(f"{name}:")
        for plan in ("neuroshard", CONTROL):
            ratios = [r[plan][key] / r["torchrec"][key] for r in results if plan in r]
            if not ratios:
                continue
            lines.append(
                f"  {plan}: at or below TorchRec's plan on {sum(x <= 1.0 for x in ratios)} of "
                f"{len(ratios)}, mean {100 * (statistics.mean(ratios) - 1):+.1f} %, "
                f"median {100 * (statistics.median(ratios) - 1):+.1f} %, "
                f"worst {100 * (max(ratios) - 1):+.1f} %"
            )
    for plan in PLANNERS:
        known = [r[plan] for r in results if r[plan].get("predicted_ms")]
        if known:
            errors = [each["predicted_ms"] / each["step_ms"] - 1 for each in known]
            lines.append(
                f"predicted steps of {plan}'s plans: mean error "
                f"{100 * statistics.mean(map(abs, errors)):.1f} %, "
                f"mean {100 * statistics.mean(errors):+.1f} %"
            )
    for plan in PLANNERS:
        types = sum((Counter(r[plan].get("types")) for r in results), Counter())
        if types:
            counts = ", ".join(f"{name} {number}" for name, number in types.most_common())
            lines.append(f"tables by type in {plan}'s plans: {counts}")
    seconds = [statistics.mean(r[n]["planning_seconds"] for r in results) for n in PLANNERS]
    lines.append(f"planning: TorchRec {seconds[0]:.3f} s, NeuroShard {seconds[1]:.3f} s (means)")
    lines.append(f"largest difference of a loss: {max(r['loss_difference'] for r in results):.1e}")
    return "\n".join(lines)


#: Options that do not change a task.
FREE = ("tasks", "output")


def asked(options: argparse.Namespace) -> dict:
    """What a task depends on."""
    given = {name: value for name, value in vars(options).items() if name not in FREE}
    return given | {"ranks": dist.get_world_size()}


def begun(options: argparse.Namespace) -> list[dict]:
    """The results of a file that was begun, if there is one, but for a line that was cut."""
    if not os.path.exists(options.output):
        return []
    results = [json.loads(line) for line in read_lines(options.output)[0]]
    for number, result in enumerate(results):
        if result.get("asked") != asked(options):
            raise SystemExit(
                f"{options.output}: line {number + 1}: expected tasks with the options "
                f"{asked(options)}, to go on with the file, got {result.get('asked')}"
            )
    return results


PLANNERS = ("torchrec", "neuroshard")


def main() -> int:
    """Exit code 1 if a loss differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1000, help="of the first task")
    parser.add_argument(
        "--workloads", nargs="*", choices=list(WORKLOADS), default=[], help="that come first"
    )
    parser.add_argument("--max-rows", type=int, default=200_000)
    parser.add_argument("--batch-size", type=int, default=512, help="samples per rank")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument("--memory", type=int, default=4 << 30, help="bytes of every rank")
    parser.add_argument("--model", help="NeuroShard's computation model; default the shipped one")
    parser.add_argument("--all-types", action="store_true", help="of sharding, for both planners")
    parser.add_argument("--runtime", help="its costs, for NeuroShard: a file or a name")
    parser.add_argument("--control", action="store_true", help="TorchRec's plan a second time")
    parser.add_argument("-o", "--output", required=True, help="file to write or to continue")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    logging.getLogger("torchrec").setLevel(logging.ERROR)
    with process_group():
        results = begun(options)
        dist.barrier()  # every rank has read before the first one writes
        for number in range(len(results), options.tasks):
            result = run_both(task_options(number, options))
            result["asked"] = asked(options)
            results.append(result)
            if dist.get_rank() == 0:
                append_line(options.output, json.dumps(result))
                times = [f"{name} {result[name]['embedding_ms']:.2f} ms" for name in PLANNERS]
                print(f"task {number}: {result['num_tables']} tables: {', '.join(times)}", flush=True)
        if dist.get_rank() == 0:
            print(summarize(results))
        dist.barrier()
    return 0 if all(r["loss_difference"] <= 1e-4 for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
