"""The loop that measures, on a device that Python has."""

import json

import pytest

from neuroshard import InputError, MachineError, Table, Task, Topology, _core
from neuroshard.types import task_text


class FakeSet:
    """Takes as many milliseconds as it has pieces, forward; twice that, backward."""

    bytes_touched = 10

    def __init__(self, device, pieces):
        self._device = device
        self._pieces = pieces

    def forward(self):
        self._device.log.append("forward")
        return 1.0 * len(self._pieces)

    def backward(self):
        self._device.log.append("backward")
        return 2.0 * len(self._pieces)


class FakeDevice:
    bytes_between_passes = 100

    def __init__(self, failures=()):
        self.log = []
        self.disturbed = []
        self._failures = list(failures)

    def prepare(self, pieces, optimizer, seed):
        assert 0 <= seed < 1 << 64
        assert optimizer == "sgd"
        failure = self._failures.pop(0) if self._failures else None
        if failure:
            raise failure
        return FakeSet(self, pieces)

    def has_room(self):
        return True

    def disturb_caches(self, num_bytes):
        self.disturbed.append(num_bytes)
        return num_bytes


def collect(path, samples, make_device, in_flight=3, slices=None):
    tables = [Table(f"t{i}", 1000, 16, 2.0) for i in range(20)]
    task = Task(tables, Topology(1, 1 << 60), 64, "sgd")
    collection = _core.Collection(task_text(task), "tiny", [], 1, 3, 1 << 24, 0.1, 5)
    if slices is not None:
        collection.cover(slices, 1 << 20, 0.05)
    measured = _core.collect(
        [(collection, str(path))],
        samples,
        "{}",
        "{}",
        0.25,
        False,
        in_flight,
        make_device,
        lambda *_: None,
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return measured, {line["index"]: line for line in lines}, collection


def test_samples_are_those_of_the_sequence_with_the_times_of_the_device(tmp_path):
    device = FakeDevice()
    measured, samples, collection = collect(tmp_path / "costs.jsonl", 8, lambda: device)
    assert measured == 8
    for index, sample in samples.items():
        pieces = collection.pieces(index)
        assert sample["shards"] == [[table, columns] for table, columns, _ in pieces]
        assert all(row_share == 1.0 for *_, row_share in pieces)
        assert sample["forward_ms"] == len(pieces)
        assert sample["backward_ms"] == 2 * len(pieces)
        assert sample["repetitions"] == 13
    assert device.log[:6] == ["forward"] * 3 + ["backward"] * 3
    assert device.log.count("forward") == device.log.count("backward") == 8 * 14
    assert 0 < max(device.disturbed) <= 100


def test_a_device_is_given_each_slice_of_rows_with_its_own_lookups(tmp_path):
    class Recording(FakeDevice):
        def prepare(self, pieces, optimizer, seed):
            prepared.append([(rows, columns, len(indices)) for rows, columns, indices, _ in pieces])
            assert all(len(offsets) == 64 + 1 for *_, offsets in pieces)
            assert all(max(indices, default=0) < rows for rows, _, indices, _ in pieces)
            return super().prepare(pieces, optimizer, seed)

    prepared = []
    _, samples, collection = collect(tmp_path / "costs.jsonl", 12, Recording, 1, slices=0.9)
    shares = []
    for index in range(12):
        for (table, columns, share), shard, given in zip(
            collection.pieces(index), samples[index]["shards"], prepared[index], strict=True
        ):
            assert shard == ([table, columns] if share == 1.0 else [table, columns, share])
            assert given[:2] == (max(round(1000 * share), 1), columns)
            assert abs(given[2] - 64 * 2.0 * share) <= 32  # a fraction of a lookup is drawn
            shares.append(share)
    assert sum(share < 1.0 for share in shares) > 0.7 * len(shares)


def test_sets_can_be_given(tmp_path):
    def collection():
        tables = [Table(f"t{i}", 1000, 16, 2.0) for i in range(3)]
        task = Task(tables, Topology(1, 1 << 60), 64, "sgd")
        return _core.Collection(task_text(task), "given", [], 1, 1, 1 << 60, 0.0, 5)

    class Recording(FakeDevice):
        def prepare(self, pieces, optimizer, seed):
            prepared.append([(rows, columns) for rows, columns, *_ in pieces])
            return super().prepare(pieces, optimizer, seed)

    prepared = []
    sets = [[(2, 8, 1.0)], [(0, 16, 0.25), (1, 4, 1.0)], [(1, 12, 1.0)]]
    given = collection()
    given.give(sets, "plans", "a test")
    path = tmp_path / "costs.jsonl"
    device = lambda: Recording()  # noqa: E731
    for on_gpu, counts in [(True, range(6, 22)), (False, range(13, 17))]:
        path.unlink(missing_ok=True)
        _core.collect(
            [(given, str(path))], 3, "{}", "{}", 0.25, on_gpu, 1, device, lambda *_: None
        )
        header, *samples = [json.loads(line) for line in path.read_text().splitlines()]
        assert all(sample["repetitions"] in counts for sample in samples)
        shards = {sample["index"]: sample["shards"] for sample in samples}
        assert shards == {0: [[2, 8]], 1: [[0, 16, 0.25], [1, 4]], 2: [[1, 12]]}
    assert prepared == 2 * [[(1000, 8)], [(250, 16), (1000, 4)], [(1000, 12)]]
    with pytest.raises(InputError, match="table: expected an index below 3, got 3"):
        collection().give([[(3, 4, 1.0)]], "plans", "a test")


def test_a_finished_file_needs_no_device(tmp_path):
    collect(tmp_path / "costs.jsonl", 2, FakeDevice)
    measured, samples, _ = collect(tmp_path / "costs.jsonl", 2, pytest.fail)
    assert (measured, len(samples)) == (0, 2)


OUT_OF_MEMORY = RuntimeError("CUDA out of memory. Tried to allocate\n2 GiB")
ON_CPU = RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes")


def test_sets_without_memory_are_skipped(tmp_path):
    failures = [MemoryError(), OUT_OF_MEMORY, ON_CPU, MachineError("memory: full")]
    _, samples, _ = collect(tmp_path / "costs.jsonl", 6, lambda: FakeDevice(failures))
    assert [samples[i].get("skipped") for i in range(6)] == [
        *("no memory", "CUDA out of memory. Tried to allocate", str(ON_CPU), "memory: full"),
        *(None, None),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        KeyError("pieces"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        MachineError("cuda: no device"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_other_errors_end_the_run_and_skip_no_set(tmp_path, failure):
    path = tmp_path / "costs.jsonl"
    collect(path, 2, FakeDevice)
    with pytest.raises(type(failure)):
        collect(path, 9, lambda: FakeDevice([None, failure, *([failure] * 99)]))
    assert "skipped" not in path.read_text()
    collect(path, 9, FakeDevice)
    lines = path.read_text().splitlines()[1:]
    assert sorted(json.loads(line)["index"] for line in lines) == list(range(9))


@pytest.mark.parametrize("failing", ["forward", "backward"])
def test_a_set_whose_pass_has_no_memory_is_skipped_alone(tmp_path, failing):
    class Failing(FakeDevice):
        def prepare(self, pieces, optimizer, seed):
            prepared = super().prepare(pieces, optimizer, seed)
            self.number = getattr(self, "number", 0) + 1
            if self.number == 2:

                def fail():
                    raise OUT_OF_MEMORY

                setattr(prepared, failing, fail)
            return prepared

    _, samples, _ = collect(tmp_path / "costs.jsonl", 5, Failing)
    assert [index for index in range(5) if "skipped" in samples[index]] == [1]
    assert all(samples[index]["forward_ms"] > 0.0 for index in (0, 2, 3, 4))

