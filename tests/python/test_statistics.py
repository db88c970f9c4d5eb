"""Statistics from batches of NumPy arrays, without PyTorch, against a count made row by row."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import neuroshard
from neuroshard import REUSE_BINS, InputError
from neuroshard.statistics import from_batches, from_lookups
from neuroshard.torch_versions import VersionError


def expected_histogram(rows_of_batches):
    """Shares of distinct rows by hits."""
    bins = Counter()
    for rows in rows_of_batches:
        for hits in Counter(rows).values():
            bins[min((hits - 1).bit_length(), REUSE_BINS - 1)] += 1
    return [bins[bin] / bins.total() for bin in range(REUSE_BINS)]


def draw(generator, rows, samples, mean):
    """Skewed lookups as (values, offsets)."""
    lengths = generator.poisson(mean, samples)
    values = (rows * generator.random(lengths.sum()) ** 4).astype(np.int64)
    return values, np.concatenate([[0], np.cumsum(lengths)])


def samples_of(pair):
    values, offsets = pair
    return [values[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])]


@pytest.mark.parametrize("batch_size", [1, 32, 64, 100, 256])
def test_batches_are_joined_and_divided(batch_size):
    generator = np.random.default_rng(1)
    batches = [
        {
            "a": draw(generator, 50, size, 3.0),
            "b": draw(generator, 1000, size, 0.5),
            "unused": None,
        }
        for size in (64, 0, 64, 128, 30)
    ]
    features = {"one": "a", "two": ["a", "b"], "none": []}
    found = from_batches(iter(batches), features, batch_size=batch_size)
    whole = 286 // batch_size
    for table, names in (("one", ["a"]), ("two", ["a", "b"])):
        rows = [[] for _ in range(whole)]
        for name in names:
            samples = [rows for batch in batches for rows in samples_of(batch[name])]
            for number in range(whole):
                rows[number] += sum(samples[number * batch_size : (number + 1) * batch_size], [])
        statistics = found[table]
        assert statistics.batch_size == batch_size
        assert statistics.num_batches == whole
        assert statistics.reuse_histogram == pytest.approx(expected_histogram(rows))
        assert statistics.pooling_factor == pytest.approx(
            sum(map(len, rows)) / (whole * batch_size)
        )
        assert statistics.max_index == max(max(batch) for batch in rows if batch)
    assert 0 < found["none"].pooling_factor < 1e-3
    assert found["none"].reuse_histogram == [1.0] + [0.0] * 16


def test_hits_of_every_bin():
    edges = [1, 2, 3, 4, 5, 8, 9, 32_768, 32_769, 70_000]
    values = np.repeat(np.arange(len(edges)), edges).astype(np.int32)
    found = from_batches([{"f": (values, [0, len(values)])}], {"t": ["f"]}, batch_size=1)["t"]
    expected = [0.0] * REUSE_BINS
    for bin in (0, 1, 2, 2, 3, 3, 4, 15, 16, 16):
        expected[bin] += 0.1
    assert found.reuse_histogram == pytest.approx(expected)
    assert found.pooling_factor == sum(edges)


def test_what_is_read_may_change_afterwards():
    values = np.array([1, 1, 2])
    offsets = np.array([0, 2, 3])

    def batches():
        yield {"f": (values, offsets)}
        values[:] = 9  # a loader that uses its buffer again
        yield {"f": (values, offsets)}

    found = from_batches(batches(), {"t": "f"}, batch_size=4)["t"]
    assert found.reuse_histogram[:4] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])


def test_lists_are_as_good_as_arrays():
    batch = {"f": ([5, 5], [0, 2, 2]), "g": ([], [0, 0, 0])}
    found = from_batches([batch], {"t": "f", "u": "g"}, batch_size=2)
    assert found["t"].pooling_factor == 1.0
    assert found["u"].max_index == 0


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ([1, 2], r"batches\[1\]\['f'\]: values: expected integers in 1 dimension"),
        (np.arange(3), r"batches\[1\]\['f'\]: expected \(values, offsets\), got ndarray"),
        (([1.5], [0, 1, 1]), "values: expected integers in 1 dimension, got float64 in 1"),
        (([[1]], [0, 1, 1]), "values: expected integers in 1 dimension, got int64 in 2"),
        (([1], [0.0, 1, 1]), "offsets: expected integers in 1 dimension, got float64"),
        (([1, 2], [0, 1]), "offsets: expected rising numbers from 0 to 2, got 0 to 1"),
        (([1, 2], [1, 2]), "offsets: expected rising numbers from 0 to 2, got 1 to 2"),
        (([1, 2], [0, 2, 1, 2]), "offsets: expected rising numbers from 0 to 2"),
        (([1, 2], []), "offsets: expected rising numbers from 0 to 2, got none"),
        (([1, -2], [0, 1, 2]), "values: expected rows from 0, got -2"),
        (([1, 2], [0, 2]), r"\['f'\]: offsets: expected one per sample and one more, 2 \+ 1, got"),
    ],
)
def test_bad_values_and_offsets(pair, text):
    good = {"e": ([1, 2], [0, 1, 2]), "f": ([1, 2], [0, 1, 2])}
    with pytest.raises(InputError, match=text):
        from_batches([good, {**good, "f": pair}], {"s": "e", "t": "f"}, batch_size=2)


def test_bad_arguments():
    batch = {"f": ([1, 2], [0, 1, 2])}
    for batches, features, batch_size, text in (
        ([batch], {"t": "g"}, 1, r"features\['t'\]: expected features of the batches, got 'g'"),
        ([batch], {"t": 5}, 1, r"features\['t'\]: expected a name or a list of names, got int"),
        ([batch], ["f"], 1, "features: expected a dict of each table's, got list"),
        ([batch], {"t": "f"}, 3, "batches: expected at least 3 samples, got 2"),
        ([batch], {"t": "f"}, 0, "batch_size: expected at least 1, got 0"),
        (batch, {"t": "f"}, 1, r"batches\[0\]: expected a dict .* or a KeyedJaggedTensor, got str"),
    ):
        with pytest.raises(InputError, match=text):
            from_batches(batches, features, batch_size=batch_size)


def test_lookup_files_ask_for_pytorch(tmp_path, monkeypatch):
    monkeypatch.setattr("neuroshard.torch_versions.installed_versions", dict)
    with pytest.raises(VersionError, match="expected PyTorch, got none; pip install torch"):
        from_lookups(tmp_path / "lookups.pt")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_numpy_is_loaded_only_for_statistics():
    assert run("import sys, neuroshard; assert 'numpy' not in sys.modules").returncode == 0
    assert run("import neuroshard; neuroshard.statistics.from_batches").returncode == 0
    without = run("import sys; sys.modules['numpy'] = None\nimport neuroshard.statistics")
    assert "neuroshard.statistics: expected NumPy, got none; pip install numpy" in without.stderr
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        neuroshard.no_such
