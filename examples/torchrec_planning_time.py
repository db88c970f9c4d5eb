"""How long TorchRec's planner and NeuroShard's take, from tens to thousands of tables.

    python examples/torchrec_planning_time.py 50x4 200x8 1000x32 5000x128

TorchRec's planner takes the best plan that it has after --timeout seconds; one that has none after
--limit seconds is given up, and a line says so (">"). With `--objective torchrec` all sharding types
and kernels are allowed, and NeuroShard's time is told apart: TorchRec's enumeration, its estimates,
and the search.
"""

from __future__ import annotations

import argparse
import logging
import random
import signal
import time
import warnings

import torch
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from neuroshard.torchrec import NeuroShardPlanner


def make_problem(
    num_tables: int, min_partition: int, types: list[str] | None
) -> tuple[EmbeddingBagCollection, dict]:
    """Tables of mixed sizes and constraints with their pooling factors and sharding types."""
    generator = random.Random(num_tables)
    tables = []
    constraints = {}
    for number in range(num_tables):
        name = f"t{number}"
        tables.append(
            EmbeddingBagConfig(
                name=name,
                num_embeddings=round(10 ** generator.uniform(3, 6.5)),
                embedding_dim=generator.choice([16, 32, 64, 128]),
                feature_names=[f"f{number}"],
            )
        )
        constraints[name] = ParameterConstraints(
            pooling_factors=[generator.choice([1.0, 3.0, 10.0, 30.0])],
            sharding_types=types,
            min_partition=min_partition,
        )
    return EmbeddingBagCollection(device=torch.device("meta"), tables=tables), constraints


def seconds_of(planner, collection: EmbeddingBagCollection, limit: int) -> float | None:
    """The time of planning; None if it takes longer than the limit."""

    def give_up(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(limit)
    start = time.perf_counter()
    try:
        planner.plan(collection, [EmbeddingBagCollectionSharder()])
    except TimeoutError:
        return None
    finally:
        signal.alarm(0)
    return time.perf_counter() - start


def main() -> None:
    """Prints a line per size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sizes", nargs="+", help="tables x devices, as 200x8")
    parser.add_argument("--timeout", type=int, default=600, help="of TorchRec's planner, seconds")
    parser.add_argument("--limit", type=int, default=1800, help="of either planner, seconds")
    parser.add_argument(
        "--device",
        choices=["cuda", "cpu"],
        default="cuda",
        help="on cuda costs are estimates from data sheets, on cpu those of the shipped network",
    )
    parser.add_argument(
        "--objective", choices=["measured", "torchrec"], default="measured", help="NeuroShard's"
    )
    parser.add_argument(
        "--ours-alone", action="store_true", help="do not run TorchRec's planner"
    )
    parser.add_argument("--min-partition", type=int, default=16, help="narrowest piece, columns")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    is_estimated = options.objective == "torchrec"
    types = None if is_estimated else ["table_wise", "column_wise"]
    parts = "  enumeration s  estimates s  search s" if is_estimated else ""
    print("tables  devices  TorchRec s  NeuroShard s  ratio" + parts)
    for size in options.sizes:
        num_tables, num_devices = (int(part) for part in size.split("x"))
        collection, constraints = make_problem(num_tables, options.min_partition, types)
        seconds = []
        for kind in (EmbeddingShardingPlanner, NeuroShardPlanner):
            if kind is EmbeddingShardingPlanner and options.ours_alone:
                seconds.append(float("nan"))
                continue
            ours_alone = {"objective": options.objective, "compare_with_torchrec": "never"}
            planner = kind(
                topology=Topology(
                    world_size=num_devices,
                    local_world_size=min(8, num_devices),
                    compute_device=options.device,
                    hbm_cap=80 << 30,
                    ddr_cap=80 << 30,
                ),
                batch_size=512,
                constraints=constraints,
                storage_reservation=FixedPercentageStorageReservation(percentage=0.1),
                debug=False,
                timeout_seconds=options.timeout if kind is EmbeddingShardingPlanner else None,
                **(ours_alone if kind is NeuroShardPlanner else {}),
            )
            seconds.append(seconds_of(planner, collection, options.limit))
        shown = [f">{options.limit}" if s is None else f"{s:.2f}" for s in seconds]
        theirs, ours = seconds
        ratio = "" if ours is None else f"{(theirs or options.limit) / ours:.1f}"
        more = ">" if theirs is None and ratio else ""
        if is_estimated:
            of = planner.seconds
            parts = f"  {of.enumeration:13.2f}  {of.estimates:11.2f}  {of.search:8.2f}"
        print(
            f"{num_tables:6}  {num_devices:7}  {shown[0]:>10}  {shown[1]:>12}  {more + ratio:>5}{parts}",
            flush=True,
        )


if __name__ == "__main__":
    main()
