#!/usr/bin/env python3
"""Published times of embedding operators and rates of GPUs, and what data sheets estimate for them.

    docs/experiments/published_operators.py NEUROSHARD [--facts rates|operators]

The published figures, each with its source, are on the page gpu_estimates.md. A published time may
be of one pass, and the executable estimates both together: the formula that
neuroshard/cost/compute/analytic_compute.h documents is evaluated here by pass, and the sum of both
must be what the executable says.
"""

import argparse
import collections
import json
import math
import random
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

EFFECTIVE_SHARE = 0.75
OPERATOR_MS, TABLE_MS = 0.05, 0.001
SECTOR_BYTES = 32.0
BINS = 17


@dataclass
class Device:
    memory: float  # GB/s
    cache: float  # GB/s
    cache_bytes: float


DEVICES = {
    "v100": Device(900.0, 3133.0, 6e6),
    "a100-40gb": Device(1555.0, 7219.0, 40e6),
    "a100-80gb": Device(2039.0, 7219.0, 40e6),
    "h100-sxm": Device(3350.0, 10138.0, 50e6),
    "h200": Device(4800.0, 10138.0, 50e6),
    "mi300x": Device(5300.0, 17200.0, 256 * 2.0**20),
}

#: device, of which memory, measured GB/s, by what access, source
RATES = [
    ("v100", "memory", 809.0, "copy", "gpu-benches"),
    ("v100", "memory", 817.0, "not said", "ml_perf_model"),
    ("a100-40gb", "memory", 1382.0, "copy", "gpu-benches"),
    ("a100-40gb", "memory", 1391.1, "not said", "ml_perf_model"),
    ("a100-80gb", "memory", 1737.0, "copy", "gpu-benches"),
    ("h100-sxm", "memory", 2771.4, "gather, rows scaled", "FBGEMM"),
    ("h100-sxm", "memory", 2646.4, "gather", "FBGEMM"),
    ("h100-sxm", "memory", 2535.9, "scatter, rows added", "FBGEMM"),
    ("h200", "memory", 3888.2, "read", "gpu-benches"),
    ("mi300x", "memory", 3997.0, "copy", "gpu-benches"),
    ("v100", "cache", 2426.0, "read, 0.3 to 6.5 MB", "gpu-benches"),
    ("v100", "cache", 2847.5, "not said", "ml_perf_model"),
    ("a100-80gb", "cache", 5392.0, "read, 5 to 20 MB", "gpu-benches"),
    ("a100-80gb", "cache", 3004.0, "read, 38 MB", "gpu-benches"),
    ("a100-40gb", "cache", 2270.9, "not said", "ml_perf_model"),
    ("h200", "cache", 9769.1, "read, 31 MB", "gpu-benches"),
    ("h200", "cache", 9105.3, "read, 45 MB", "gpu-benches"),
]


@dataclass
class Operator:
    """Equal tables of fp32 under SGD."""

    source: str
    device: str
    num_tables: int
    num_embeddings: int
    embedding_dim: int
    batch_size: int
    pooling_factor: int
    power: float | None  # a row's density falls as row^-power; None: rows equally likely
    passes: str
    published_ms: float


def lin(passes, tables, rows, columns, batch, pooling, microseconds):
    shape = (tables, rows, columns, batch, pooling)
    return Operator("ml_perf_model", "v100", *shape, None, passes, microseconds / 1e3)


def dynamicemb(source, passes, tables, rows, batch, milliseconds):
    shape = (tables, rows, 128, batch, 1)
    return Operator(source, "h100-sxm", *shape, 1.05, passes, milliseconds)


OPERATORS = [
    dynamicemb("dynamicemb, 10 tables", "forward", 10, 1677721, 104857, 0.34497),
    dynamicemb("dynamicemb, 10 tables", "backward", 10, 1677721, 104857, 0.61372),
    dynamicemb("dynamicemb, 10 tables", "both", 10, 1677721, 104857, 0.95869),
    dynamicemb("dynamicemb, 1 table", "forward", 1, 24 << 20, 1 << 20, 0.35),
    dynamicemb("dynamicemb, 1 table", "both", 1, 24 << 20, 1 << 20, 0.99),
    dynamicemb("dynamicemb, 1 table", "both", 1, 24 << 20, 1 << 16, 0.22),
    lin("forward", 32, 1000, 32, 128, 8, 5.014),
    lin("forward", 32, 1000, 64, 128, 8, 7.531),
    lin("forward", 32, 1000, 128, 128, 8, 20.949),
    lin("forward", 32, 1000, 256, 128, 8, 40.397),
    lin("forward", 32, 1000, 32, 128, 16, 6.676),
    lin("backward", 32, 500000, 128, 4096, 16, 5136.5),
    lin("backward", 32, 500000, 128, 4096, 32, 9891.5),
    lin("backward", 32, 500000, 128, 4096, 64, 19622.0),
    lin("backward", 32, 500000, 128, 4096, 128, 38814.0),
]


def bin_of(hits):
    """Bin of the reuse histogram: hits of 2^(i-1) + 1 to 2^i are bin i."""
    return min((hits - 1).bit_length(), BINS - 1)


def power_law_rows(operator, lookups):
    """Rows drawn as the published benchmark draws them: its density falls as row^-power."""
    generator = random.Random(1)
    exponent = 1.0 - operator.power
    last = operator.num_embeddings**exponent
    for _ in range(lookups):
        row = (generator.random() * (last - 1.0) + 1.0) ** (1.0 / exponent)
        yield min(int(row), operator.num_embeddings - 1)


def reuse_histogram(operator):
    """Shares of the rows that a batch hits, by how often it hits them; and the number of them."""
    lookups = operator.batch_size * operator.pooling_factor
    shares = [0.0] * BINS
    if operator.power is not None:
        hits = collections.Counter(power_law_rows(operator, lookups))
        for count in hits.values():
            shares[bin_of(count)] += 1.0 / len(hits)
        return shares, float(len(hits))
    mean = lookups / operator.num_embeddings  # of a Poisson number of hits
    probability = math.exp(-mean)
    hit_at_all = 1.0 - probability
    for count in range(1, 200):
        probability *= mean / count
        shares[bin_of(count)] += probability / hit_at_all
    return shares, operator.num_embeddings * hit_at_all


def moved(num_bytes):
    return math.ceil(num_bytes / SECTOR_BYTES) * SECTOR_BYTES


def pass_ms(operator, histogram):
    """Milliseconds of the forward pass, and of the backward pass with its update; no overheads."""
    device = DEVICES[operator.device]
    of_bin = [1.0] + [0.75 * 2**i + 0.5 for i in range(1, BINS - 1)] + [49152.0]
    lookups = float(operator.batch_size * operator.pooling_factor)
    mean_hits = sum(share * hits for share, hits in zip(histogram, of_bin))
    distinct = min(lookups / max(mean_hits, 1.0), lookups, operator.num_embeddings)
    row = moved(4.0 * operator.embedding_dim)
    room, served, all_repeats = device.cache_bytes / row, 0.0, 0.0
    for share, hits in list(zip(histogram, of_bin))[:0:-1]:
        kept = min(distinct * share, room)
        room -= kept
        served += kept * (hits - 1.0)
        all_repeats += distinct * share * (hits - 1.0)
    repeated = lookups - distinct
    cached = repeated * served / all_repeats if all_repeats else 0.0
    output = 4.0 * operator.batch_size * operator.embedding_dim

    forward = (distinct + repeated - cached) * row + output + 8.0 * lookups
    forward_cache = cached * row

    further = (lookups - operator.batch_size) * 4.0 * operator.embedding_dim
    in_cache = min(1.0, device.cache_bytes / output)
    sort_passes = (int(operator.num_embeddings - 1).bit_length() + 7) // 8
    backward = output + (1.0 - in_cache) * further + 2.0 * distinct * row
    backward += 2.0 * 12.0 * lookups * sort_passes
    backward_cache = in_cache * further

    def milliseconds(memory_bytes, cache_bytes):
        seconds = memory_bytes / device.memory + cache_bytes / device.cache
        return operator.num_tables * seconds / (1e6 * EFFECTIVE_SHARE)

    return milliseconds(forward, forward_cache), milliseconds(backward, backward_cache)


def executable_ms(neuroshard, operator, histogram, folder):
    """The executable's estimate of both passes on one device that has all the tables."""
    table = {
        "num_embeddings": operator.num_embeddings,
        "embedding_dim": operator.embedding_dim,
        "pooling_factor": float(operator.pooling_factor),
        "reuse_histogram": histogram,
    }
    task = {
        "format": "neuroshard/task/1",
        "batch_size": operator.batch_size,
        "optimizer": "sgd",
        "tables": [{"name": f"t{i}"} | table for i in range(operator.num_tables)],
        "topology": {"world_size": 1, "local_world_size": 1, "memory_bytes": 1 << 46},
        "allow": [],
    }
    path = folder / "task.json"
    path.write_text(json.dumps(task))
    done = subprocess.run(
        [neuroshard, "plan", path, "--quiet", "--json"]
        + ["--model", f"analytic-{operator.device}", "--model", "analytic-a100-nvswitch"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)["predicted"]["devices"][0]["compute_ms"]


def print_rates():
    print("| GPU | of | stated GB/s | measured GB/s | by | share | source |")
    print("|---|---|---|---|---|---|---|")
    for name, kind, measured, access, source in RATES:
        stated = getattr(DEVICES[name], kind)
        print(
            f"| `{name}` | {kind} | {stated:,.0f} | {measured:,.0f} | {access} "
            f"| {measured / stated:.2f} | {source} |"
        )


def print_operators(neuroshard):
    print(
        "| source | tables × rows × columns | batch size | pooling factor | distinct rows | passes "
        "| published ms | estimate ms | estimate/published |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for operator in OPERATORS:
            histogram, distinct = reuse_histogram(operator)
            forward, backward = pass_ms(operator, histogram)
            both = OPERATOR_MS + operator.num_tables * TABLE_MS + forward + backward
            reported = executable_ms(neuroshard, operator, histogram, Path(name))
            if abs(reported / both - 1.0) > 1e-4:
                raise SystemExit(
                    f"{operator}: {reported} ms by the executable, {both} ms by the formula"
                )
            estimate = {"forward": forward, "backward": backward, "both": both}[operator.passes]
            print(
                f"| {operator.source} | {operator.num_tables} × {operator.num_embeddings:,} "
                f"× {operator.embedding_dim} | {operator.batch_size:,} | {operator.pooling_factor} "
                f"| {distinct:,.0f} | {operator.passes} | {operator.published_ms:.3g} "
                f"| {estimate:.3g} | {estimate / operator.published_ms:.2f} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard", help="executable")
    parser.add_argument("--facts", choices=["rates", "operators"])
    options = parser.parse_args()
    if options.facts != "operators":
        print_rates()
    if options.facts is None:
        print()
    if options.facts != "rates":
        print_operators(options.neuroshard)


if __name__ == "__main__":
    main()
