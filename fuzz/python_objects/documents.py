"""Documents of the formats that Python alone reads, as bytes: right ones, and nearly right ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from .damage import damage

Document = dict[str, Any]


def _layout(random: random.Random) -> tuple[int, int]:
    return random.choice(((1, 1), (2, 2), (2, 1), (4, 2)))


def _hardware(random: random.Random) -> Document:
    return random.choice(({}, {"kind": "cpu"}, {"kind": "cpu", "model": "Zen 4", "cores": [2, 4.5]}))


def _shares(total: int, parts: int) -> list[tuple[int, int]]:
    """First and number of each of some even parts, those of none left out."""
    each = -(-total // parts)
    return [(first, min(each, total - first)) for first in range(0, total, each)]


def runtime_costs(random: random.Random) -> list[Document]:
    """The lines of measured steps of TorchRec."""
    world_size, local_world_size = _layout(random)
    header = {
        "format": "neuroshard/runtime-costs/1",
        "hardware": _hardware(random),
        "software": {"torchrec": "1.8.0", "backend": "gloo"},
        "world_size": world_size,
        "local_world_size": local_world_size,
        "optimizer": random.choice(("sgd", "rowwise_adagrad")),
        "sampling": random.choice(({}, {"seed": 0, "quantile": 0.25})),
    }
    number = random.choice((0, 1, 2, 5))
    return [header, *(_sample(random, index, world_size) for index in range(number))]


def _sample(random: random.Random, index: int, world_size: int) -> Document:
    return {
        "index": index,
        "task": index // 2,
        "batch_size": world_size * random.choice((1, 512)),
        "modules": [
            {
                "kind": random.choice(("pooled", "sequence")),
                "tables": [_measured_table(random, world_size) for _ in range(random.choice((1, 3)))],
            }
            for _ in range(random.choice((1, 2)))
        ],
        "forward_ms": random.choice((1.25, 1, 0.001)),
        "backward_ms": random.choice((2.5, 2)),
        "operator_ms": [[random.choice((0.0, 0.5)), 1.0] for _ in range(world_size)],
        "repetitions": random.choice((1, 12)),
    }


def _measured_table(random: random.Random, world_size: int) -> Document:
    rows, columns = random.choice((1, 1001)), random.choice((4, 16))
    sharding_type = random.choice(("table_wise", "row_wise", "column_wise", "data_parallel"))
    shards: list[list[int]] = []
    if sharding_type == "table_wise":
        shards = [[random.randrange(world_size), 0, rows, 0, columns]]
    elif sharding_type == "row_wise":
        of_ranks = enumerate(_shares(rows, world_size))
        shards = [[rank, first, size, 0, columns] for rank, (first, size) in of_ranks]
    elif sharding_type == "column_wise":
        of_ranks = enumerate(_shares(columns, world_size))
        shards = [[rank, 0, rows, first, size] for rank, (first, size) in of_ranks]
    table = {
        "sharding_type": sharding_type,
        "num_embeddings": rows,
        "embedding_dim": columns,
        "pooling_factor": random.choice((3.0, 1, 0.5)),
        "shards": shards,
    }
    if random.random() < 0.5:
        table["num_features"] = random.choice((1, 2))
    return table


def runtime_model(random: random.Random) -> list[Document]:
    """The one document of what was learned from measured steps."""
    layouts = random.sample(((1, 1), (2, 2), (2, 1), (4, 2)), random.choice((1, 2)))
    return [
        {
            "format": "neuroshard/runtime-model/1",
            "operator_model": "fbgemm-cpu-epyc",
            "hardware": _hardware(random),
            "software": {"torchrec": "1.8.0"},
            "layouts": [
                {
                    "world_size": world_size,
                    "local_world_size": local_world_size,
                    "types": {"pooled": ["data_parallel", "row_wise"], "sequence": []},
                    "operators": random.choice(({}, {"pooled": 1.1, "replicated": 0})),
                    "forward": {"pooled_modules": 0.5, "all_to_alls": 0.2, "exchanged": 0.75},
                    "backward": random.choice(({}, {"all_reduced": 1.5, "exchanged": 1})),
                    "errors": random.choice(({}, {"held_out": {"step": 0.08, "tasks": 1}})),
                }
                for world_size, local_world_size in layouts
            ],
        }
    ]


def torchrec_plan(random: random.Random) -> list[Document]:
    """The one document of a plan of TorchRec."""
    world_size, local_world_size = _layout(random)
    plan: Document = {
        "format": "neuroshard/torchrec-plan/1",
        "compute_device": random.choice(("cpu", "cuda")),
        "world_size": world_size,
        "local_world_size": local_world_size,
        "batch_size": 512,
        "tables": [
            _planned_table(random, f"t{number}", world_size)
            for number in range(random.choice((1, 2, 3)))
        ],
    }
    if random.random() < 0.5:
        plan["context"] = "9a41f0"
    return [plan]


def _planned_table(random: random.Random, name: str, world_size: int) -> Document:
    rows, columns = random.choice((1, 8000)), random.choice((4, 64))
    sharding_type = random.choice(("table_wise", "row_wise", "column_wise", "data_parallel"))
    if sharding_type == "data_parallel":
        parts = [(rank, 0, rows, 0, columns) for rank in range(world_size)]
    elif sharding_type == "row_wise":
        of_ranks = enumerate(_shares(rows, world_size))
        parts = [(rank, first, size, 0, columns) for rank, (first, size) in of_ranks]
    elif sharding_type == "column_wise":
        of_ranks = enumerate(_shares(columns, world_size))
        parts = [(rank, 0, rows, first, size) for rank, (first, size) in of_ranks]
    else:
        parts = [(random.randrange(world_size), 0, rows, 0, columns)]
    table: Document = {
        "module": random.choice(("", "bags", "sparse.bags")),
        "table": name,
        "num_embeddings": rows,
        "embedding_dim": columns,
        "sharding_type": sharding_type,
        "compute_kernel": "dense" if sharding_type == "data_parallel" else "fused",
        "shards": [_planned_shard(random, part) for part in parts],
    }
    if random.random() < 0.3:
        table["output_dtype"] = random.choice(("FP16", "FP32"))
        table["bounds_check_mode"] = "WARNING"
        table["enforce_hbm"] = random.choice((True, False))
    if random.random() < 0.2:
        table["compute_kernel"] = "fused_uvm_caching"
        table["cache_params"] = {"algorithm": "LRU", "load_factor": 0.2, "precision": "FP16"}
    return table


def _planned_shard(random: random.Random, part: tuple[int, ...]) -> Document:
    names = ("device", "row_offset", "num_rows", "column_offset", "num_columns")
    shard: Document = dict(zip(names, part, strict=True))
    if random.random() < 0.5:
        shard["storage_bytes"] = {"hbm": 160000, "ddr": 0}
        shard["perf_ms"] = {"fwd_compute": 0.5, "bwd_compute": 1.0}
    return shard


# Of text, what a change of the objects does not make.


def _field_twice(random: random.Random, text: str) -> str:
    place = random.choice([i for i, each in enumerate(text) if each == "{"] or [0])
    return text[: place + 1] + '"world_size": 2, "world_size": 2, ' + text[place + 1 :]


def _other_number(random: random.Random, text: str) -> str:
    digits = [i for i, each in enumerate(text) if each.isdigit()] or [0]
    place = random.choice(digits)
    numbers = ("NaN", "Infinity", "-Infinity", "1e999", "-1", "1e308", "1e-320", "1" * 400, "0x7", "00")
    return text[:place] + random.choice(numbers) + text[place + 1 :]


def _cut(random: random.Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _deep(random: random.Random, text: str) -> str:
    levels = random.choice((60, 64, 65, 1000, 100_000))
    place = random.choice([i for i, each in enumerate(text) if each == ":"] or [0]) + 1
    return text[:place] + "[" * levels + random.choice(("", "]" * levels)) + text[place:]


def _characters(random: random.Random, text: str) -> str:
    place = random.randrange(len(text) + 1)
    odd = ("\0", "\ufeff", "\\ud800", "\n", "\r\n", "\x1b[2J", '"', "\\", "{", "]", ",", "\u2028")
    return text[:place] + random.choice(odd) + text[place + random.choice((0, 1)) :]


_CHANGES = (_field_twice, _other_number, _cut, _deep, _characters)


def _as_json(document: Any) -> str:
    """Also of what JSON has no text for, or not strictly: NaN, and other things by their names."""
    try:
        return json.dumps(document, skipkeys=True, default=lambda value: type(value).__name__)
    except Exception:  # an own method, or a value that contains itself
        return "[]"


def content(make: Callable[[random.Random], list[Document]], random: random.Random) -> bytes:
    """A file's bytes: of a right document, or of one that was changed as objects, as text, or as
    bytes."""
    lines = make(random)
    if random.random() < 0.4:
        for line in random.sample(lines, 1):
            damage(random, {"line": line}, frozenset(("line",)), frozenset())
    text = "".join(_as_json(line) + "\n" for line in lines)
    if random.random() < 0.3:
        text = random.choice(_CHANGES)(random, text)
    data = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.1 and data:
        place = random.randrange(len(data))
        data = data[:place] + bytes((random.randrange(256),)) + data[place + 1 :]
    return data
