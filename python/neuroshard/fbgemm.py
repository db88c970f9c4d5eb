"""FBGEMM's table-batched embedding, the operator that TorchRec runs, on sets of table pieces."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import fbgemm_gpu
import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
    BoundsCheckMode,
    EmbeddingLocation,
    PoolingMode,
)
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)

from .errors import InputError, MachineError

#: Its description in the header of measured costs.
OPERATOR_NAME = "fbgemm-split-tbe"
OPERATOR_VERSION = getattr(fbgemm_gpu, "__version__", "unknown")

_OPTIMIZERS = {
    "sgd": EmbOptimType.EXACT_SGD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
}
_PRECISIONS = {"fp32": SparseType.FP32, "fp16": SparseType.FP16}
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16}

#: Cycles of a GPU: more than a millisecond, in which the host can start a pass.
_CYCLES_AHEAD = 2_500_000

#: Small enough that weights and optimizer state hardly change, however long it runs.
_LEARNING_RATE = 1e-7


@dataclass(frozen=True)
class Piece:
    """Columns of a table and one batch of lookups in it."""

    num_embeddings: int
    num_columns: int
    indices: torch.Tensor
    #: batch_size + 1 offsets, the first 0.
    offsets: torch.Tensor


class Arena:
    """Memory that all tables of all sets lie in, at random places where they may overlap: the
    values in a table do not change its cost, and a set of several GiB would take longer to make
    than to measure. Any table may be as large as the arena, whatever others are in its set: tables
    that shared the memory would be the smaller, and the cheaper, the more of them there are."""

    def __init__(self, memory_bytes: int, data_type: str, device: torch.device) -> None:
        self.data_type = data_type
        self.device = device
        dtype = _DTYPES[data_type]
        try:
            self.weights = torch.empty(memory_bytes // dtype.itemsize, dtype=dtype, device=device)
            # Row-wise state: at most one float per four columns, the narrowest piece.
            self.state = torch.zeros(self.weights.numel() // 4, device=device)
            step = 1 << 24
            for first in range(0, self.weights.numel(), step):
                self.weights[first : first + step].uniform_(-0.05, 0.05)
        except (MemoryError, RuntimeError) as error:
            raise MachineError(f"memory: expected {memory_bytes} bytes, got {error}") from error
        self._gradients = torch.empty(0, device=device)

    def gradient(self, batch_size: int, num_columns: int) -> torch.Tensor:
        """Gradients of a pooled output, in memory that all sets share."""
        size = batch_size * num_columns
        if self._gradients.numel() < size:
            self._gradients = torch.full((size,), 1e-3, device=self.device)
        return self._gradients[:size].view(batch_size, num_columns)

    def place(self, buffer: torch.Tensor, size: int, generator: random.Random) -> int:
        """Where a part of that many elements begins: anywhere at a multiple of 64."""
        room = (buffer.numel() - size) // 64
        if room < 0:
            raise MachineError(f"memory: expected room for {size} values, got {buffer.numel()}")
        return generator.randrange(room + 1) * 64


class Operator:
    """One fused operator over all pieces of a set, with its batch, ready to run."""

    def __init__(
        self, pieces: Sequence[Piece], arena: Arena, optimizer: str, seed: int = 0
    ) -> None:
        on_cpu = arena.device.type == "cpu"
        location = EmbeddingLocation.HOST if on_cpu else EmbeddingLocation.DEVICE
        compute = ComputeDevice.CPU if on_cpu else ComputeDevice.CUDA
        for piece in pieces:
            if piece.num_columns % 4:
                raise InputError(
                    f"columns: expected a multiple of 4, as FBGEMM does, got {piece.num_columns}"
                )
        # With tables of a row, or it would make memory for all of them.
        self._module = SplitTableBatchedEmbeddingBagsCodegen(
            [(1, piece.num_columns, location, compute) for piece in pieces],
            optimizer=_OPTIMIZERS[optimizer],
            learning_rate=_LEARNING_RATE,
            weights_precision=_PRECISIONS[arena.data_type],
            output_dtype=SparseType.FP32,
            pooling_mode=PoolingMode.SUM,
            bounds_check_mode=BoundsCheckMode.NONE,
            device=arena.device,
        )
        self._lay_out(pieces, arena, optimizer, random.Random(seed))
        self.device = arena.device
        self.batch_size = pieces[0].offsets.numel() - 1
        self.num_columns = sum(piece.num_columns for piece in pieces)
        self._indices = torch.cat([piece.indices.to(arena.device) for piece in pieces])
        starts = [0]
        for piece in pieces:
            starts.append(starts[-1] + piece.indices.numel())
        offsets = [piece.offsets[:-1] + start for piece, start in zip(pieces, starts)]
        self._offsets = torch.cat([*offsets, torch.tensor([starts[-1]])]).to(arena.device)
        self._output: torch.Tensor | None = None
        self._arena = arena
        # Most bytes that a pass touches: each looked-up row, and the indices.
        width = arena.weights.element_size()
        self.bytes_touched = sum(
            min(piece.indices.numel(), piece.num_embeddings) * piece.num_columns * width
            + piece.indices.numel() * 8
            for piece in pieces
        )
        #: While it is ready: the lookups, and the output between the passes.
        self.bytes_held = (
            8 * (self._indices.numel() + self._offsets.numel())
            + 4 * self.batch_size * self.num_columns
        )

    def _lay_out(
        self, pieces: Sequence[Piece], arena: Arena, optimizer: str, generator: random.Random
    ) -> None:
        """Gives the module its pieces' rows, at places of the arena."""
        rows = [piece.num_embeddings for piece in pieces]
        values = [piece.num_embeddings * piece.num_columns for piece in pieces]
        #: Of each piece, the first element of its weights, and of its optimizer's state.
        self.weights_places = [arena.place(arena.weights, size, generator) for size in values]
        self.state_places: list[int] = []
        module = self._module
        starts = torch.tensor([0, *itertools.accumulate(rows)])
        module.hash_size_cumsum.copy_(starts)
        module.rows_per_table.copy_(starts.diff())
        module.total_hash_size = sum(rows)
        module.total_hash_size_bits = module.total_hash_size.bit_length()
        module.weights_offsets.copy_(torch.tensor(self.weights_places))
        on_cpu = arena.device.type == "cpu"
        weights = torch.nn.Parameter(arena.weights)
        if on_cpu:
            module.weights_host = weights
        else:
            module.weights_dev = weights
        if optimizer != "rowwise_adagrad":
            return
        self.state_places = [arena.place(arena.state, size, generator) for size in rows]
        module.momentum1_offsets.copy_(torch.tensor(self.state_places))
        if on_cpu:
            module.momentum1_host = torch.nn.Parameter(arena.state)
        else:
            module.momentum1_dev = arena.state

    def forward(self) -> torch.Tensor:
        """Pools; the output is kept for `backward`."""
        self._output = self._module(self._indices, self._offsets)
        return self._output

    def backward(self) -> None:
        """Backward with the optimizer's update of the last forward pass."""
        assert self._output is not None, "backward comes after forward"
        self._output.backward(self._arena.gradient(self.batch_size, self.num_columns))
        self._output = None

    def time_ms(self, run: Callable[[], object]) -> float:
        """Time of a pass [ms], on a GPU until it has finished."""
        if self.device.type == "cpu":
            start = time.perf_counter()
            run()
            return 1e3 * (time.perf_counter() - start)
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(self.device)
        # Training queues its passes ahead of the device. While the device waits, the host gets
        # ahead here too, and what Python takes is not counted.
        torch.cuda._sleep(_CYCLES_AHEAD)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize(self.device)
        return float(begin.elapsed_time(end))
