"""Random tasks planned by TorchRec's planner and by NeuroShard's, both by TorchRec's own estimate.

    build/torchrec/bin/python docs/experiments/torchrec_estimate.py -o estimate.jsonl

Continues a file that was begun. No GPU is needed: TorchRec's planner estimates those of a topology.
A task has 10 to 200 tables, of sizes, dimensions and pooling factors of usual jobs, on 4 to 64 CUDA
devices of one or several hosts, with ample or tight memory; in every fifth task some tables are
those of an `EmbeddingCollection` (sequences). Both planners get the same sharders, constraints and
topology, and may use every sharding type and kernel. Plans are rated by an enumerator that neither
has seen.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import sys
import time
import warnings

import torch
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

from neuroshard.documents import append_line, read_lines
from neuroshard.torchrec import NeuroShardPlanner

#: Of sums in another order.
ROUNDING = 1e-9
SHARDERS = [EmbeddingBagCollectionSharder(), EmbeddingCollectionSharder()]
#: Hosts and devices of each; the even tasks' are one host's.
ONE_HOST = [(1, 4), (1, 8), (1, 8), (1, 16)]
SEVERAL = [(2, 4), (2, 8), (2, 8), (4, 8), (8, 8)]
#: The devices' memory over what the weights take.
AMPLE = 4.0
TIGHT = (1.15, 0.7)


class Task:
    """A random module, its constraints and its topology."""

    def __init__(self, number: int) -> None:
        self.number = number
        draw = random.Random(f"torchrec estimate {number}")
        self.hosts, self.local = draw.choice(ONE_HOST if number % 2 == 0 else SEVERAL)
        self.batch_size = draw.choice([512, 1024, 4096])
        self.num_tables = round(10 * 20 ** draw.random())
        self.has_sequences = number % 5 == 0
        # Ample, tight, ample, and so tight that tables must leave the devices.
        factor = (AMPLE, TIGHT[0], AMPLE, TIGHT[1])[number // 2 % 4]
        bags, sequences = [], []
        self.constraints = {}
        weights = 0
        for t in range(self.num_tables):
            rows = round(10 ** draw.uniform(3, 7.3))
            columns = draw.choice([16, 32, 64, 128, 128, 256])
            weights += 4 * rows * columns
            name = f"t{t}"
            fields = {
                "name": name,
                "num_embeddings": rows,
                "embedding_dim": columns,
                "feature_names": [f"f{t}"],
            }
            if self.has_sequences and draw.random() < 0.3:
                # All tables of an EmbeddingCollection have one dimension.
                weights += 4 * rows * (64 - columns)
                sequences.append(EmbeddingConfig(**{**fields, "embedding_dim": 64}))
            else:
                bags.append(EmbeddingBagConfig(**fields))
            self.constraints[name] = self.constraint(draw)
        self.memory = round(factor * weights / (self.hosts * self.local)) + (1 << 30)
        meta = torch.device("meta")
        self.module = nn.ModuleDict({"bags": EmbeddingBagCollection(tables=bags, device=meta)})
        if sequences:
            self.module["sequences"] = EmbeddingCollection(tables=sequences, device=meta)

    def constraint(self, draw: random.Random) -> ParameterConstraints:
        """Mostly of pooling factors alone; some tables' narrowest pieces or types."""
        types = None
        if draw.random() < 0.1:
            types = ["table_wise", "row_wise", "table_row_wise", "grid_shard", "data_parallel"]
        return ParameterConstraints(
            pooling_factors=[draw.choice([1.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0])],
            min_partition=draw.choice([None, None, 32, 64]),
            sharding_types=types,
        )

    def topology(self) -> Topology:
        return Topology(
            world_size=self.hosts * self.local,
            local_world_size=self.local,
            compute_device="cuda",
            hbm_cap=self.memory,
            ddr_cap=256 << 30,
        )

    def options(self) -> dict:
        return {
            "topology": self.topology(),
            "batch_size": self.batch_size,
            "constraints": self.constraints,
            "storage_reservation": FixedPercentageStorageReservation(percentage=0.1),
            "debug": False,
            "stats": [],
        }

    def rating(self, plan: list) -> float:
        """The plan's cost by estimators that are asked anew; checks its memory."""
        topology = self.topology()
        enumerator = EmbeddingEnumerator(topology, self.batch_size, constraints=self.constraints)
        enumerator._last_stored_module = None
        enumerator.enumerate(nn.ModuleDict({}), SHARDERS)  # makes it know the sharders
        enumerator.populate_estimates(plan)
        hbm, ddr = [0] * topology.world_size, [0] * topology.world_size
        for option in plan:
            for shard in option.shards:
                hbm[shard.rank] += shard.storage.hbm
                ddr[shard.rank] += shard.storage.ddr
        room = FixedPercentageStorageReservation(percentage=0.1).reserve(
            topology, self.batch_size, self.module, SHARDERS, self.constraints
        )
        for device in room.devices:
            assert hbm[device.rank] <= device.storage.hbm, "the plan exceeds a device's memory"
            assert ddr[device.rank] <= device.storage.ddr, "the plan exceeds a host's memory"
        return NoopPerfModel(topology).rate(plan)


def run(task: Task, timeout: int, known: dict | None) -> dict:
    """Both planners' costs and times; TorchRec's from an earlier result, if there is one."""
    result = {
        "task": task.number,
        "tables": task.num_tables,
        "devices": f"{task.hosts} x {task.local}",
        "sequences": task.has_sequences,
        "memory": task.memory,
    }
    planner = NeuroShardPlanner(**task.options(), compare_with_torchrec="never")
    start = time.perf_counter()
    planner.plan(task.module, SHARDERS)
    result["neuroshard_seconds"] = time.perf_counter() - start
    result["enumeration_seconds"] = planner.seconds.enumeration
    result["estimate_seconds"] = planner.seconds.estimates
    result["search_seconds"] = planner.seconds.search
    result["neuroshard_ms"] = task.rating(planner._best_plan)
    result["lower_bound_ms"] = planner.estimates.lower_bound_ms
    result["is_fallback"] = planner.estimates.neuroshard_ms is None
    assert abs(planner.estimates.chosen_ms / result["neuroshard_ms"] - 1) < ROUNDING
    if known is not None:
        return result | {name: known[name] for name in ("torchrec_ms", "torchrec_seconds")}
    theirs = EmbeddingShardingPlanner(**task.options(), timeout_seconds=timeout)
    start = time.perf_counter()
    try:
        theirs.plan(task.module, SHARDERS)
    except PlannerError:
        result["torchrec_ms"] = None
    result["torchrec_seconds"] = time.perf_counter() - start
    if "torchrec_ms" not in result:
        result["torchrec_ms"] = task.rating(theirs._best_plan)
    return result


def read(path: str) -> list[dict]:
    return [json.loads(text) for text in read_lines(path)[0]]


def line(result: dict) -> str:
    theirs = result["torchrec_ms"]
    ratio = f"{100 * (result['neuroshard_ms'] / theirs - 1):+7.2f} %" if theirs else "no plan"
    gap = 100 * (result["neuroshard_ms"] / max(result["lower_bound_ms"] or 0.0, 1e-12) - 1)
    return (
        f"task {result['task']:3}: {result['tables']:3} tables, {result['devices']:>6}: "
        f"TorchRec {theirs or 0:9.3f} ms in {result['torchrec_seconds']:7.1f} s, NeuroShard "
        f"{result['neuroshard_ms']:9.3f} ms in {result['neuroshard_seconds']:5.2f} s, {ratio}, "
        f"{gap:5.2f} % above the bound"
    )


def summarize(results: list[dict]) -> str:
    lines = []
    for name, is_ours in (("one host", True), ("several hosts", False)):
        ratios = [
            r["neuroshard_ms"] / r["torchrec_ms"] - 1
            for r in results
            if r["torchrec_ms"] and r["devices"].startswith("1 ") == is_ours
        ]
        if ratios:
            lines.append(
                f"{name}: at or below TorchRec's on {sum(x <= ROUNDING for x in ratios)} of "
                f"{len(ratios)}, mean {100 * statistics.mean(ratios):+.1f} %, "
                f"worst {100 * max(ratios):+.2f} %"
            )
    gaps = [r["neuroshard_ms"] / r["lower_bound_ms"] - 1 for r in results if r["lower_bound_ms"]]
    lines.append(
        f"above the proven bound: mean {100 * statistics.mean(gaps):.2f} %, "
        f"most {100 * max(gaps):.2f} %"
    )
    alone = sum(1 for r in results if r["torchrec_ms"] is None)
    lines.append(f"no plan by TorchRec's planner: {alone} of {len(results)}")
    large = [r["neuroshard_seconds"] / r["torchrec_seconds"] for r in results if r["tables"] >= 100]
    if large:
        lines.append(
            f"planning time from 100 tables on: at most {max(large):.3f} of TorchRec's, "
            f"mean {statistics.mean(large):.3f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Exit code 1 if a plan costs more than TorchRec's."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--timeout", type=int, default=600, help="of TorchRec's planner, seconds")
    parser.add_argument("--again", help="a file whose results of TorchRec's planner are taken over")
    parser.add_argument("-o", "--output", required=True, help="file to write or to continue")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    results = read(options.output) if os.path.exists(options.output) else []
    done = {result["task"] for result in results}
    known = {result["task"]: result for result in read(options.again)} if options.again else {}
    for number in range(options.first, options.first + options.tasks):
        if number in done:
            continue
        results.append(run(Task(number), options.timeout, known.get(number)))
        append_line(options.output, json.dumps(results[-1]))
        print(line(results[-1]), flush=True)
    print(summarize(results))
    is_worse = any(
        r["torchrec_ms"] and r["neuroshard_ms"] > r["torchrec_ms"] * (1 + ROUNDING) for r in results
    )
    return 1 if is_worse else 0


if __name__ == "__main__":
    sys.exit(main())
