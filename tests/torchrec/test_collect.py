"""FBGEMM's operator: the same results as PyTorch's, and costs in the collector's format."""

import json
import signal
import subprocess
import sys
import time

import pytest
import torch

import neuroshard
from neuroshard import EXECUTABLE, collect
from neuroshard.fbgemm import Arena, Operator, Piece


def make_piece(rows, columns, batch, per_bag, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 2 * per_bag + 1, (batch,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    indices = torch.randint(0, rows, (int(offsets[-1]),), generator=generator)
    return Piece(rows, columns, indices, offsets)


@pytest.mark.parametrize("data_type", ["fp32", "fp16"])
@pytest.mark.parametrize("optimizer", ["sgd", "rowwise_adagrad"])
def test_what_is_timed_is_the_lookup_and_the_update(data_type, optimizer):
    arena = Arena(1 << 20, data_type, torch.device("cpu"))
    pieces = [make_piece(100, 16, 32, 3, 0), make_piece(50, 12, 32, 1, 1)]
    before = arena.weights.clone()
    operator = Operator(pieces, arena, optimizer, seed=5)
    output = operator.forward()
    assert output.shape == (32, 28)
    expected = []
    for piece, at in zip(pieces, operator.weights_places):
        table = before[at : at + piece.num_embeddings * piece.num_columns].float()
        expected.append(
            torch.nn.functional.embedding_bag(
                piece.indices,
                table.view(piece.num_embeddings, piece.num_columns),
                piece.offsets[:-1],
                mode="sum",
            )
        )
    torch.testing.assert_close(output.float(), torch.cat(expected, dim=1), atol=1e-3, rtol=1e-3)
    operator.backward()
    if optimizer == "rowwise_adagrad":  # its state has grown where rows were looked up
        looked_up = [
            place + piece.indices for piece, place in zip(pieces, operator.state_places)
        ]
        assert arena.state.nonzero().flatten().tolist() == torch.cat(looked_up).unique().tolist()


@pytest.mark.parametrize("optimizer", ["sgd", "rowwise_adagrad"])
def test_a_piece_has_all_of_the_memory_whatever_is_next_to_it(optimizer):
    arena = Arena(1 << 20, "fp32", torch.device("cpu"))
    rows = arena.weights.numel() // 16
    pieces = [make_piece(rows, 16, 64, 8, seed) for seed in range(3)]
    before = arena.weights.clone().view(rows, 16)
    operator = Operator(pieces, arena, optimizer)
    assert operator.weights_places == [0, 0, 0]
    output = operator.forward()
    for number, piece in enumerate(pieces):
        expected = torch.nn.functional.embedding_bag(
            piece.indices, before, piece.offsets[:-1], mode="sum"
        )
        torch.testing.assert_close(output[:, 16 * number : 16 * (number + 1)], expected)
    operator.backward()
    changed = (arena.weights.view(rows, 16) != before).any(dim=1).nonzero().flatten()
    looked_up = torch.cat([piece.indices for piece in pieces]).unique()
    assert set(changed.tolist()) <= set(looked_up.tolist())
    assert len(changed) > 0  # some: most updates are less than the last bit


def test_pieces_lie_where_the_seed_says():
    arena = Arena(1 << 20, "fp32", torch.device("cpu"))
    pieces = [make_piece(100, 16, 8, 2, seed) for seed in range(4)]
    places = [Operator(pieces, arena, "sgd", seed).weights_places for seed in (1, 1, 2)]
    assert places[0] == places[1] != places[2]
    assert len(set(places[0])) == 4


def collect_command(path, samples, *more):
    return subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "neuroshard.collect", "--samples", samples),
            *("--batch-size", "64", "--memory", "64MiB", "--in-flight", "4", "--tables", "1:4"),
            *("--threads", "1", "--seed", "3", "-o", path, *more),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_the_native_collectors_samples_and_format(tmp_path):
    path = str(tmp_path / "costs.jsonl")
    run = collect_command(path, "4")
    assert run.returncode == 0, run.stderr
    run = collect_command(path, "6")  # continues
    assert run.stderr.endswith("2 samples measured\n")
    header, *samples = [json.loads(line) for line in open(path)]
    assert header["operator"]["name"] == "fbgemm-split-tbe"
    assert header["operator"]["keeps_freed_memory"] is True
    assert sorted(sample["index"] for sample in samples) == list(range(6))

    native = tmp_path / "native.jsonl"
    subprocess.run(
        [
            *(EXECUTABLE, "collect", "compute", "--samples", "6", "--batch-size", "64"),
            *("--memory", "64MiB", "--arena", "64MiB", "--tables", "1:4", "--seed", "3"),
            *("--threads", "1", "--in-flight", "4", "-o", native),
        ],
        check=True,
        capture_output=True,
    )
    native_header, *native_samples = [json.loads(line) for line in open(native)]
    for field in ("format", "hardware", "batch_size", "optimizer", "sampling", "tables"):
        assert header[field] == native_header[field]
    shards = {sample["index"]: sample["shards"] for sample in samples}
    assert shards == {sample["index"]: sample["shards"] for sample in native_samples}

    # Another operator may not continue the file.
    run = collect_command(path, "7", "--optimizer", "rowwise_adagrad")
    assert run.returncode == 2
    assert "optimizer" in run.stderr


PLANS = ["--sets", "plans", "--planned-by", "analytic-cpu", "--workload", "criteo-kaggle"]
COVERAGE = ["--sets", "coverage", "--workload", "coverage", "--max-pass", "4MiB", "--large", "0.5"]


@pytest.mark.parametrize("sets", [PLANS, COVERAGE], ids=["plans", "coverage"])
def test_sets_are_those_of_the_native_collector(tmp_path, sets):
    path = str(tmp_path / "costs.jsonl")
    run = collect_command(path, "5", *sets)
    assert run.returncode == 0, run.stderr
    native = tmp_path / "native.jsonl"
    subprocess.run(
        [
            *(EXECUTABLE, "collect", "compute", "--samples", "5", "--batch-size", "64", *sets),
            *("--memory", "64MiB", "--arena", "64MiB", "--tables", "1:4", "--seed", "3"),
            *("--threads", "1", "--in-flight", "4", "-o", native),
        ],
        check=True,
        capture_output=True,
    )
    header, *samples = [json.loads(line) for line in open(path)]
    native_header, *native_samples = [json.loads(line) for line in open(native)]
    assert header["sampling"] == native_header["sampling"]
    assert header["sampling"]["kind"] == sets[1]
    assert {each["index"]: each["shards"] for each in samples} == {
        each["index"]: each["shards"] for each in native_samples
    }


def references_of(path):
    """Name of the reference sets, and what they took in each sample."""
    header, *samples = [json.loads(line) for line in open(path)]
    return header["reference_sets"], [sample["reference_ms"] for sample in samples]


def test_reference_sets_are_measured_next_to_samples_in_the_arenas_data_type(tmp_path):
    path = tmp_path / "costs.jsonl"
    run = collect_command(path, "3", "--reference-sets")
    assert run.returncode == 0, run.stderr
    name, times = references_of(path)
    assert name == "reference-1, fbgemm-split-tbe, arena_bytes 67108864, quantile 0.25"
    assert [len(each) for each in times] == [16] * 3
    assert all(ms > 0 for each in times for ms in each)
    run = collect_command(path, "4")  # without them it is another file
    assert run.returncode == 2
    assert "reference_sets" in run.stderr

    halves = tmp_path / "fp16.jsonl"
    run = collect_command(halves, "1", "--reference-sets", "--data-type", "fp16")
    assert run.returncode == 0, run.stderr
    assert references_of(halves)[0] == (
        "reference-1, fbgemm-split-tbe, arena_bytes 67108864, quantile 0.25, data_type fp16"
    )


FAULTS = """
import resource
import torch
from neuroshard.collect import keep_freed_memory

def faults():  # of 64 MiB that are given back at once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(16 << 20).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = min(faults() for _ in range(20))
assert before > 0, "glibc gives back large blocks"
keep_freed_memory()
after = [faults() for _ in range(100)]  # what is kept grows at first, mostly for one or two passes
assert max(after[-50:]) <= before // 10, after
"""


def test_memory_that_is_given_back_stays_with_the_process():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FAULTS], check=True)


def test_sets_of_plans_need_the_model_that_makes_them(tmp_path):
    path = str(tmp_path / "costs.jsonl")
    for alone in (PLANS[:2], PLANS[2:]):
        run = collect_command(path, "5", *alone)
        assert run.returncode == 2
        assert "--sets plans and --planned-by go together" in run.stderr


def test_several_batch_sizes_and_optimizers_alternate_into_a_file_each(tmp_path):
    path = str(tmp_path / "b{batch_size}-{optimizer}.jsonl")
    run = collect_command(
        path, "3", "--batch-size", "32,64", "--optimizer", "sgd,rowwise_adagrad"
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.endswith("12 samples measured\n")
    for number, (batch_size, optimizer) in enumerate(
        [(32, "sgd"), (32, "rowwise_adagrad"), (64, "sgd"), (64, "rowwise_adagrad")]
    ):
        file = tmp_path / f"b{batch_size}-{optimizer}.jsonl"
        header, *samples = [json.loads(line) for line in open(file)]
        assert (header["batch_size"], header["optimizer"]) == (batch_size, optimizer)
        assert header["sampling"]["seed"] == 3 + number
        assert len(samples) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_goes_on(tmp_path, number):
    path = tmp_path / "costs.jsonl"
    options = [
        *("--batch-size", "64", "--memory", "64MiB", "--tables", "1:4", "--seed", "3"),
        *("--threads", "1", "-o", path),
    ]
    command = [sys.executable, "-W", "ignore", "-m", "neuroshard.collect", *options]
    with subprocess.Popen(
        [*command, "--samples", "100000"],
        stderr=subprocess.PIPE,
        text=True,
        # Shells start what is in the background with SIGINT ignored, and the tests may be there.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as run:
        while not (path.exists() and path.read_bytes().count(b"\n") > 3):
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.05)
        run.send_signal(number)
        said = run.communicate(timeout=60)[1]
    assert run.returncode == 128 + number
    assert said.splitlines()[-1] == f"neuroshard.collect: stopped by {number.name}"
    content = path.read_bytes()
    assert content.endswith(b"\n")
    done = content.count(b"\n") - 1
    run = subprocess.run(
        [*command, "--samples", str(done + 2)], check=True, capture_output=True, text=True
    )
    assert path.read_bytes().startswith(content)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--workload", "no-such"], "--workload: expected one of"),
        (["--batch-size", "32,64"], "--output: expected {batch_size} in the name"),
        (["--optimizer", "sgd,adam"], "expected sgd or rowwise_adagrad, got 'adam'"),
        (["--batch-size", "32,32"], "expected each value once"),
        (["--quantile", "nan"], "--quantile: expected a number from 0.01 to 0.99, got nan"),
        (["--quantile=-1"], "--quantile: expected a number from 0.01 to 0.99, got -1.0"),
        (["--samples", "0"], "--samples: expected an integer between 1 and 1000000000, got 0"),
        (["--seed=-1"], "--seed: expected an integer between 0 and"),
        (["--tables", "1:99999999999"], "--tables: expected an integer between 1 and"),
        (["--memory", "99999999999GiB"], "--memory: size: expected a size such as 80GiB"),
        (["--device", "cuda"], "--device: expected cpu, as there is no CUDA device"),
        (["--device", "gpu"], "--device: expected cpu, cuda or cuda:N, got 'gpu'"),
        (["--dims", "16", "10"], "--dims: expected multiples of 4, which FBGEMM takes, got 10"),
    ],
)
def test_refusals(tmp_path, more, text):
    if "cuda" in more and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    run = collect_command(str(tmp_path / "costs.jsonl"), "1", *more)
    assert run.returncode == 2
    assert text in run.stderr
    assert not (tmp_path / "costs.jsonl").exists()


def test_a_gpu_has_no_reference_sets(monkeypatch, tmp_path):
    monkeypatch.setattr(collect, "hardware_of", lambda device: {"kind": "cuda"})
    words = ["--samples", "1", "--device", "cuda", "--reference-sets", "-o", str(tmp_path / "c.jsonl")]
    with pytest.raises(neuroshard.InputError, match="--reference-sets: expected --device cpu, got 'cuda'"):
        collect.collect(collect.parser().parse_args(words))


def test_devices_that_there_are_not(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("gpu", "mps", "", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cuda:99999999999"):
        with pytest.raises(neuroshard.InputError) as caught:
            collect.hardware_of(name)
        assert str(caught.value) == f"--device: expected cpu, cuda or cuda:N, got {name!r}"
    for name in ("cuda:2", "cuda:256"):
        with pytest.raises(neuroshard.InputError) as caught:
            collect.hardware_of(name)
        assert str(caught.value) == f"--device: expected cuda:N with N below 2, got {name!r}"


@pytest.mark.parametrize(("name", "made_current"), [("cuda:1", [1]), ("cuda", []), ("cpu", [])])
def test_passes_are_timed_on_the_device_of_their_tables(monkeypatch, name, made_current):
    """Events are recorded on the current device, and it is that which waits."""
    current = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: current.append(device.index))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 30, 1 << 30))
    monkeypatch.setattr("neuroshard.fbgemm.Arena", lambda *arguments: None)
    monkeypatch.setattr(collect, "keep_freed_memory", lambda: None)
    collect.Device(collect.parser().parse_args(["--device", name, "-o", "costs.jsonl"]))
    assert current == made_current


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], 0.25),
        (["--device", "cuda"], 0.5),
        (["--device", "cuda:1"], 0.5),
        (["--device", "cuda", "--quantile", "0.25"], 0.25),
        (["--quantile", "0.5"], 0.5),
    ],
)
def test_repetitions_on_a_gpu_have_their_median_taken(monkeypatch, words, expected):
    calls = []
    monkeypatch.setattr(collect, "hardware_of", lambda device: {})
    monkeypatch.setattr(collect._core, "collect", lambda *arguments: calls.append(arguments) or 0)
    collect.collect(collect.parser().parse_args([*words, "-o", "costs.jsonl"]))
    [(_, _, _, operator, quantile, on_gpu, *_)] = calls
    assert quantile == json.loads(operator)["quantile"] == expected
    assert on_gpu == ("--device" in words)


def test_columns_that_fbgemm_does_not_take():
    arena = Arena(1 << 20, "fp32", torch.device("cpu"))
    with pytest.raises(neuroshard.InputError, match="multiple of 4"):
        Operator([make_piece(10, 6, 4, 1, 0)], arena, "sgd")
    with pytest.raises(neuroshard.MachineError, match="expected room for"):
        Operator([make_piece(1 << 20, 64, 4, 1, 0)], arena, "sgd")


def test_sizes_and_ranges():
    parsed = collect.parser().parse_args(["--memory", "3MiB", "--tables", "2:5", "-o", "x"])
    assert (parsed.memory, parsed.tables) == (3 << 20, (2, 5))
    assert collect.parser().parse_args(["--tables", "8", "-o", "x"]).tables == (8, 8)
