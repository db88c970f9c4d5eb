#!/usr/bin/env python3
"""Times PyTorch's EmbeddingBag, and FBGEMM's table-batched operator where it is installed, on the
cases that `cuda_throughput --dump FOLDER` has written, for comparison with cuda_throughput's table:

    embedding_bag.py FOLDER [EmbeddingBag|FBGEMM]

Forward, and backward with the optimizer's update; the median of 15 runs after 3, device events, four
times the second-level cache read before each pass. A case that runs out of memory is left out.
"""

import json
import pathlib
import statistics
import sys

import numpy as np
import torch

try:
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

    HAS_FBGEMM = True
except ImportError:
    HAS_FBGEMM = False

LEARNING_RATE = 1e-12
WARM_UPS = 3
RUNS = 15


class Timer:
    """Device time of passes that find other data in the caches."""

    def __init__(self):
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.disturbance = torch.rand(l2_bytes, device="cuda")  # of 4 bytes each

    def run(self, body):
        self.disturbance.sum()
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        result = body()
        end.record()
        return result, (start, end)


def medians(timer, forward, backward):
    """(forward, backward) in ms; `forward` returns the argument of `backward`."""
    events = []
    for _ in range(WARM_UPS + RUNS):
        output, forward_events = timer.run(forward)
        _, backward_events = timer.run(lambda: backward(output))
        events.append((forward_events, backward_events))
    torch.cuda.synchronize()
    return tuple(
        statistics.median(run[which][0].elapsed_time(run[which][1]) for run in events[WARM_UPS:])
        for which in (0, 1)
    )


def read_case(path):
    case = json.loads(path.read_text())
    case["indices"] = torch.from_numpy(np.fromfile(path.with_suffix(".indices"), np.int64)).cuda()
    case["offsets"] = torch.from_numpy(np.fromfile(path.with_suffix(".offsets"), np.int64)).cuda()
    return case


def time_embedding_bag(case, timer):
    """One nn.EmbeddingBag a table, sparse gradients, and PyTorch's sparse optimizers. (Its Adagrad
    keeps a state per element, not per row.)"""
    batch = case["batch_size"]
    bags, inputs = [], []
    for t, table in enumerate(case["tables"]):
        dtype = torch.float32 if table["data_type"] == "fp32" else torch.float16
        weight = torch.empty(
            table["num_embeddings"], table["embedding_dim"], dtype=dtype, device="cuda"
        ).uniform_(0.5, 1.0)
        bags.append(torch.nn.EmbeddingBag.from_pretrained(
            weight, freeze=False, mode="sum", sparse=True, include_last_offset=True))
        offsets = case["offsets"][t * batch:(t + 1) * batch + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        inputs.append((case["indices"][first:last], offsets - first))
    parameters = [bag.weight for bag in bags]
    if case["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)
    else:
        optimizer = torch.optim.Adagrad(parameters, lr=LEARNING_RATE)
    gradients = [torch.rand(batch, bag.embedding_dim, dtype=bag.weight.dtype, device="cuda")
                 for bag in bags]

    def forward():
        return [bag(*given) for bag, given in zip(bags, inputs)]

    def backward(outputs):
        torch.autograd.backward(outputs, gradients)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return medians(timer, forward, backward)


def time_fbgemm(case, timer):
    tables = case["tables"]
    operator = SplitTableBatchedEmbeddingBagsCodegen(
        [(t["num_embeddings"], t["embedding_dim"], EmbeddingLocation.DEVICE, ComputeDevice.CUDA)
         for t in tables],
        optimizer=EmbOptimType.EXACT_SGD if case["optimizer"] == "sgd"
        else EmbOptimType.EXACT_ROWWISE_ADAGRAD,
        learning_rate=LEARNING_RATE,
        weights_precision=SparseType.FP32 if tables[0]["data_type"] == "fp32" else SparseType.FP16,
        output_dtype=SparseType.FP32,
        pooling_mode=PoolingMode.SUM,
        bounds_check_mode=BoundsCheckMode.NONE,  # which ours has not either
    ).cuda()
    for weight in operator.split_embedding_weights():
        weight.uniform_(0.5, 1.0)
    gradient = torch.rand(
        case["batch_size"], sum(t["embedding_dim"] for t in tables), device="cuda")
    return medians(
        timer,
        lambda: operator(case["indices"], case["offsets"]),
        lambda output: output.backward(gradient),
    )


def main(folder, only=None):
    timer = Timer()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"FBGEMM {'found' if HAS_FBGEMM else 'not installed'}")
    print(f"{'case':<36}{'operator':<14}{'forward ms':>12}{'backward ms':>13}")
    operators = [("EmbeddingBag", time_embedding_bag)]
    if HAS_FBGEMM:
        operators.append(("FBGEMM", time_fbgemm))
    operators = [each for each in operators if only in (None, each[0])]
    if not operators:
        sys.exit(f"embedding_bag.py: expected EmbeddingBag, or FBGEMM where it is installed, got {only}")
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        for name, measure in operators:
            try:
                forward, backward = measure(read_case(path), timer)
                print(f"{path.stem:<36}{name:<14}{forward:>12.3f}{backward:>13.3f}", flush=True)
            except torch.cuda.OutOfMemoryError:
                print(f"{path.stem:<36}{name:<14}{'no memory':>12}", flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if not torch.cuda.is_available():
        sys.exit("embedding_bag.py: expected a CUDA device that PyTorch can use, found none")
    main(*sys.argv[1:])
