"""Files of measured steps of TorchRec's runtime: `neuroshard/runtime-costs/1` (docs/formats.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments import path_of
from ..documents import Fields, described, read_lines, value_of_line
from ..errors import InputError
from .work import DATA_PARALLEL, KINDS, SHARDING_TYPES, Setup, ShardedModule, ShardedTable, TableShard

FORMAT = "neuroshard/runtime-costs/1"

#: As of tasks (docs/formats.md).
_MOST = 1 << 42
_MOST_LOOKUPS = 1e6


@dataclass(frozen=True)
class RuntimeSample:
    """One plan, measured."""

    index: int
    #: Plans of the same tables, measured in alternation, have the same number.
    task: int
    setup: Setup
    modules: tuple[ShardedModule, ...]
    #: Of the slowest process: from the lookups to the outputs, and from the outputs' gradients to
    #: the updated tables, all-reduced and dense ones included.
    forward_ms: float
    backward_ms: float
    #: Of each process, forward and backward: the time in FBGEMM's operators.
    operator_ms: tuple[tuple[float, float], ...]
    repetitions: int

    @property
    def plan(self) -> tuple[Setup, tuple[ShardedModule, ...]]:
        """What was measured."""
        return self.setup, self.modules

    @property
    def step_ms(self) -> float:
        """Both passes."""
        return self.forward_ms + self.backward_ms


@dataclass(frozen=True)
class SampleFile:
    """The content of a file."""

    header: Mapping[str, Any]
    samples: tuple[RuntimeSample, ...]
    #: Bytes up to the end of the last whole line.
    whole_bytes: int

    @property
    def layout(self) -> tuple[int, int]:
        """Processes, and those of a host."""
        return self.header["world_size"], self.header["local_world_size"]


def header_line(header: Mapping[str, Any]) -> str:
    """The first line of a file."""
    return json.dumps({"format": FORMAT, **header}, allow_nan=False) + "\n"


def sample_line(sample: RuntimeSample) -> str:
    """A sample's line."""
    content = {
        "index": sample.index,
        "task": sample.task,
        "batch_size": sample.setup.batch_size * sample.setup.world_size,
        "modules": [_module_content(module) for module in sample.modules],
        "forward_ms": sample.forward_ms,
        "backward_ms": sample.backward_ms,
        "operator_ms": [list(times) for times in sample.operator_ms],
        "repetitions": sample.repetitions,
    }
    return json.dumps(content, allow_nan=False) + "\n"


def read_samples(path: str | os.PathLike[str]) -> SampleFile:
    """A file's samples. A last line that a stopped collector left unfinished is ignored; InputError
    names the place of any other fault."""
    name = path_of(path, "path")
    lines, whole_bytes = read_lines(name)
    if not lines:
        raise InputError(f"{name}: expected a header, got an empty file")
    fields = Fields(value_of_line(lines[0], f"{name}: line 1"), f"{name}: line 1")
    found = fields.text("format")
    if found != FORMAT:
        raise InputError(f"{name}: format: expected {FORMAT!r}, got {described(found)}")
    header = _header_of(fields)
    samples = tuple(
        _sample_of(Fields(value_of_line(line, place), place), header)
        for line, place in (
            (line, f"{name}: line {number}") for number, line in enumerate(lines[1:], start=2)
        )
    )
    return SampleFile(header, samples, whole_bytes)


def _header_of(fields: Fields) -> dict[str, Any]:
    world_size = fields.integer("world_size", least=1, most=65536)
    header: dict[str, Any] = {
        "hardware": fields.free("hardware"),
        "software": fields.free("software"),
        "world_size": world_size,
        "local_world_size": fields.integer("local_world_size", least=1, most=world_size),
        "optimizer": fields.choice("optimizer", ("sgd", "rowwise_adagrad")),
        "sampling": fields.free("sampling"),
    }
    fields.end()
    if world_size % header["local_world_size"]:
        raise InputError(
            f"{fields.place}: local_world_size: expected a divisor of {world_size}, "
            f"got {header['local_world_size']}"
        )
    return header


def _sample_of(fields: Fields, header: Mapping[str, Any]) -> RuntimeSample:
    world_size = header["world_size"]
    batch_size = fields.integer("batch_size", least=1, most=1 << 30)
    if batch_size % world_size:
        raise InputError(
            f"{fields.place}: batch_size: expected a multiple of {world_size}, got {batch_size}"
        )
    modules = tuple(_module_of(module, world_size) for module in fields.parts("modules"))
    operator_ms = fields.time_rows("operator_ms", 2)
    if len(operator_ms) != world_size:
        raise InputError(
            f"{fields.place}: operator_ms: expected {world_size} pairs, got {len(operator_ms)}"
        )
    sample = RuntimeSample(
        index=fields.integer("index", least=0),
        task=fields.integer("task", least=0),
        setup=Setup(world_size, header["local_world_size"], batch_size // world_size),
        modules=modules,
        forward_ms=fields.milliseconds("forward_ms"),
        backward_ms=fields.milliseconds("backward_ms"),
        operator_ms=tuple((float(forward), float(backward)) for forward, backward in operator_ms),
        repetitions=fields.integer("repetitions", least=1),
    )
    fields.end()
    if sample.forward_ms <= 0 or sample.backward_ms <= 0:
        raise InputError(f"{fields.place}: expected times above 0")
    return sample


def _module_of(fields: Fields, world_size: int) -> ShardedModule:
    module = ShardedModule(
        fields.choice("kind", KINDS),
        tuple(_table_of(table, world_size) for table in fields.parts("tables")),
    )
    fields.end()
    return module


def _table_of(fields: Fields, world_size: int) -> ShardedTable:
    rows = fields.integer("num_embeddings", least=1, most=_MOST)
    columns = fields.integer("embedding_dim", least=1, most=65536)
    sharding_type = fields.choice("sharding_type", SHARDING_TYPES)
    shards = tuple(TableShard(*values) for values in fields.integer_rows("shards", 5))
    table = ShardedTable(
        sharding_type=sharding_type,
        num_embeddings=rows,
        embedding_dim=columns,
        pooling_factor=fields.number_above_0("pooling_factor", most=_MOST_LOOKUPS),
        shards=shards,
        num_features=fields.integer("num_features", least=1, most=1024, default=1),
    )
    fields.end()
    _check_shards(table, world_size, fields.place)
    return table


def _check_shards(table: ShardedTable, world_size: int, place: str) -> None:
    """Raises InputError unless the shards are the whole table on processes that there are."""
    expected = 0 if table.sharding_type == DATA_PARALLEL else (
        table.num_embeddings * table.embedding_dim
    )
    found = 0
    for shard in table.shards:
        inside = (
            shard.rank < world_size
            and shard.num_rows >= 1
            and shard.num_columns >= 1
            and shard.row_offset + shard.num_rows <= table.num_embeddings
            and shard.column_offset + shard.num_columns <= table.embedding_dim
        )
        if not inside:
            raise InputError(f"{place}: shards: expected parts of the table, got {shard}")
        found += shard.num_rows * shard.num_columns
    if found != expected:
        raise InputError(f"{place}: shards: expected {expected} elements, got {found}")


def _module_content(module: ShardedModule) -> dict[str, Any]:
    return {
        "kind": module.kind,
        "tables": [
            {
                "sharding_type": table.sharding_type,
                "num_embeddings": table.num_embeddings,
                "embedding_dim": table.embedding_dim,
                "pooling_factor": table.pooling_factor,
                "num_features": table.num_features,
                "shards": [
                    [
                        shard.rank,
                        shard.row_offset,
                        shard.num_rows,
                        shard.column_offset,
                        shard.num_columns,
                    ]
                    for shard in table.shards
                ],
            }
            for table in module.tables
        ],
    }


def numbered(files: Sequence[SampleFile]) -> list[RuntimeSample]:
    """The samples of several files, with numbers and tasks of their own."""
    result: list[RuntimeSample] = []
    for file in files:
        first_task = max((sample.task for sample in result), default=-1) + 1
        for sample in file.samples:
            result.append(
                RuntimeSample(
                    **{
                        **sample.__dict__,
                        "index": len(result),
                        "task": first_task + sample.task,
                    }
                )
            )
    if not result:
        raise InputError("expected samples, got files without any")
    return result


def measured_operators_ms(sample: RuntimeSample) -> list[float]:
    """Of each process, both passes in its operators."""
    return [forward + backward for forward, backward in sample.operator_ms]


def same_header(found: Mapping[str, Any], expected: Mapping[str, Any], path: str) -> None:
    """Raises InputError, which names the first field that differs, where a file is another's."""
    for name, value in expected.items():
        if found.get(name) != value:
            raise InputError(
                f"{path}: {name}: expected {value!r}, to go on with the file, "
                f"got {described(found.get(name))}"
            )
