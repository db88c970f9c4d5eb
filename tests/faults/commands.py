"""The commands that are tried: every subcommand that writes, over inputs small enough for a second."""

from dataclasses import dataclass

# Models that are computed, not read; most commands need no others.
ANALYTIC = "--model a100-40gb --model analytic-a100-nvswitch"

TASK = """{"format": "neuroshard/task/1", "batch_size": 1024, "optimizer": "sgd",
 "tables": [
  {"name": "user", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 3.0, "data_type": "fp32", "index_distribution": {"zipf_exponent": 1.1}},
  {"name": "item", "num_embeddings": 2000, "embedding_dim": 32, "pooling_factor": 1.5, "data_type": "fp32"},
  {"name": "ad", "num_embeddings": 500, "embedding_dim": 10, "pooling_factor": 20.0, "data_type": "fp32", "reuse_histogram": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}],
 "topology": {"world_size": 2, "local_world_size": 2, "memory_bytes": 1048576}}
"""

# Pieces so small that a sample of them takes milliseconds.
SMALL = "--tables 1:2 --dims 4 --arena 1MiB --memory 64MiB --threads 2"
TINY = f"{SMALL} --batch-size 16"


@dataclass(frozen=True)
class Command:
    """A command line, run in a folder of its own that holds `inputs`."""

    name: str
    line: str
    inputs: tuple[str, ...] = ()
    """Names in the folder of inputs."""
    outputs: tuple[str, ...] = ()
    """Files that it makes; folders end in "/". Those of lines (.jsonl) are continued."""
    is_timed: bool = False
    """Whether its results are measured: then two runs agree in all but the numbers."""
    replaced: tuple[str, ...] = ()
    """Outputs of lines that are written at once instead."""


# What makes the inputs, in this order.
INPUTS = (
    Command("plan.json", f"plan task.json {ANALYTIC} --steps 50 -o plan.json", ("task.json",)),
    Command(
        "costs.jsonl", f"collect compute --samples 40 {TINY} --held-out 0.3 --seed 1 -o costs.jsonl"
    ),
    Command(
        "links.jsonl",
        "collect communication --backend simgrid --platform pcie4 --devices 2 --samples 40"
        " -o links.jsonl",
    ),
    Command("evaluation.json", "evaluate plan.json --arena 4MiB -o evaluation.json", ("plan.json",)),
    Command(
        "tiny.safetensors",
        "train compute costs.jsonl --epochs 2 --members 2 -o tiny.safetensors",
        ("costs.jsonl",),
    ),
)

COMMANDS = (
    Command("completion", "completion bash"),
    Command("completion-file", "completion bash -o out.bash", (), ("out.bash",)),
    Command("model-list", "model list --json"),
    Command("model-show", "model show tiny.safetensors", ("tiny.safetensors",)),
    Command("workload-export", "workload export criteo-kaggle -o out.json", (), ("out.json",)),
    Command(
        "workload-tasks",
        "workload tasks dlrm-2021 --count 2 --tables 2:4 --max-dim 16 --devices 2 -o out",
        (),
        ("out/",),
    ),
    Command("check", "check plan.json", ("plan.json",)),
    Command("price", f"price plan.json {ANALYTIC} -o out.json", ("plan.json",), ("out.json",)),
    Command("price-stdout", "price plan.json --json", ("plan.json",)),
    Command(
        "plan",
        f"plan task.json {ANALYTIC} --steps 50 --threads 2 --baselines -o out.json",
        ("task.json",),
        ("out.json",),
    ),
    Command(
        "plan-trained",
        "plan task.json --model cpu-xeon-2core --model pcie4 --steps 20 --threads 2 -o out.json",
        ("task.json",),
        ("out.json",),
    ),
    Command(
        "plan-from",
        "plan task.json --from plan.json --max-move 50% --steps 20 --threads 2 -o out.json",
        ("task.json", "plan.json"),
        ("out.json",),
    ),
    Command("explain", "explain plan.json --threads 2 --json", ("plan.json",)),
    Command("why-not", "explain plan.json --why-not user:columns=2", ("plan.json",)),
    Command(
        "capacity",
        f"capacity task.json {ANALYTIC} --devices 1:2 --memory 1MiB --steps 20 --threads 2"
        " -o out.json",
        ("task.json",),
        ("out.json",),
    ),
    Command(
        "compare",
        f"compare task.json {ANALYTIC} --algorithms neuroshard,greedy-size --steps 20 --threads 2"
        " --journal journal.jsonl -o out.json",
        ("task.json",),
        ("out.json", "journal.jsonl"),
    ),
    Command(
        "compare-measure",
        f"compare task.json {ANALYTIC} --algorithms greedy-size,random --measure --arena 4MiB"
        " --threads 2 --journal journal.jsonl -o out.json",
        ("task.json",),
        ("out.json", "journal.jsonl"),
        is_timed=True,
    ),
    Command(
        "paper-table",
        f"paper-table --folder table --count 1 --devices 2 --max-dims 4 {ANALYTIC}"
        " --algorithms greedy-dim,random --steps 20 --threads 2 -o out.json",
        (),
        ("table/", "out.json"),
    ),
    Command(
        "report",
        "report plan.json --evaluation evaluation.json -o out.html",
        ("plan.json", "evaluation.json"),
        ("out.html",),
    ),
    Command(
        "evaluate",
        "evaluate plan.json --arena 4MiB --threads 2 -o out.json",
        ("plan.json",),
        ("out.json",),
        is_timed=True,
    ),
    Command(
        "evaluate-platform",
        "evaluate plan.json --platform pcie4 -o out.json",
        ("plan.json",),
        ("out.json",),
    ),
    Command(
        "collect-compute",
        f"collect compute --samples 4 {TINY} --seed 3 -o out.jsonl",
        (),
        ("out.jsonl",),
        is_timed=True,
    ),
    Command(
        "collect-compute-sizes",
        f"collect compute --samples 4 {SMALL} --batch-size 16,32 --seed 3"
        " -o out-{batch_size}.jsonl",
        (),
        ("out-16.jsonl", "out-32.jsonl"),
        is_timed=True,
    ),
    Command(
        "collect-communication",
        "collect communication --backend simgrid --platform pcie4 --devices 2 --samples 3"
        " -o out.jsonl",
        (),
        ("out.jsonl",),
    ),
    Command(
        "collect-merge",
        "collect merge part-0.jsonl part-1.jsonl -o out.jsonl.gz",
        ("part-0.jsonl", "part-1.jsonl"),
        ("out.jsonl.gz",),
    ),
    Command(
        "model-test",
        "model test tiny.safetensors costs.jsonl --samples out.jsonl",
        ("tiny.safetensors", "costs.jsonl"),
        ("out.jsonl",),
        replaced=("out.jsonl",),
    ),
    Command(
        "train-compute",
        "train compute costs.jsonl --epochs 2 --members 2 --threads 2 --report out.html"
        " -o out.safetensors",
        ("costs.jsonl",),
        ("out.safetensors", "out.html"),
    ),
    Command(
        "train-communication",
        "train communication links.jsonl --epochs 2 --threads 2 --report out.html"
        " -o out.safetensors",
        ("links.jsonl",),
        ("out.safetensors", "out.html"),
    ),
    Command(
        "calibrate",
        "calibrate --model tiny.safetensors --samples 40 --arena 16MiB --time-limit 60s --threads 2"
        " --folder kept -o out.safetensors",
        ("tiny.safetensors",),
        ("out.safetensors", "kept/"),
        is_timed=True,
    ),
    Command(
        "refine-model",
        f"refine-model costs.jsonl --folder kept --rounds 1 --tasks 1 --controls 1 --devices 2"
        " --tables 2:3 --max-dim 4 --batch-size 16 --members 2 --epochs 1 --steps 20 --arena 64MiB"
        " --threads 2 -o out.safetensors",
        ("costs.jsonl",),
        ("out.safetensors", "kept/"),
        is_timed=True,
    ),
)
