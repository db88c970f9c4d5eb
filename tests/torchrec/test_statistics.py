"""Statistics from batches and from lookup files, against a count made row by row."""

import gzip
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter

import numpy as np
import pytest
import torch
from conftest import make_collection
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from neuroshard import REUSE_BINS, InputError
from neuroshard.statistics import (
    _load,
    features_of,
    from_batches,
    from_lookups,
    tables_of_lookups,
)


def expected_histogram(batches):
    """Shares of distinct rows by hits, over several batches' lists of rows."""
    rows = [0] * REUSE_BINS
    for batch in batches:
        for hits in Counter(batch).values():
            bin = 0 if hits == 1 else min((hits - 1).bit_length(), REUSE_BINS - 1)
            rows[bin] += 1
    return [count / sum(rows) for count in rows]


def draw(generator, rows, batch_size, mean):
    """Skewed lookups of one table: (indices, lengths)."""
    lengths = generator.poisson(mean, batch_size)
    indices = (rows * generator.random(lengths.sum()) ** 4).astype(np.int64)
    return indices, lengths


def keyed(parts):
    """A KeyedJaggedTensor of {feature: (indices, lengths)}."""
    return KeyedJaggedTensor(
        keys=list(parts),
        values=torch.tensor(np.concatenate([indices for indices, _ in parts.values()])),
        lengths=torch.tensor(np.concatenate([lengths for _, lengths in parts.values()])),
    )


def test_batches_are_joined_and_divided():
    generator = np.random.default_rng(1)
    collection = make_collection([(50, 16), (1000, 16)])
    features = features_of(collection)
    assert features == {"t0": ["f0"], "t1": ["f1"]}
    parts = [
        {"f0": draw(generator, 50, size, 3.0), "f1": draw(generator, 1000, size, 0.5)}
        for size in (64, 64, 128, 30)
    ]
    # The rows of every sample of a feature, one after the other.
    flat = {
        name: [
            rows.tolist()
            for part in parts
            for rows in np.split(part[name][0], np.cumsum(part[name][1])[:-1])
        ]
        for name in ("f0", "f1")
    }
    for batch_size in (32, 64, 100, 256):
        found = from_batches(map(keyed, parts), features, batch_size=batch_size)
        whole = len(flat["f0"]) // batch_size
        for table, name in (("t0", "f0"), ("t1", "f1")):
            batches = [
                sum(flat[name][i * batch_size : (i + 1) * batch_size], []) for i in range(whole)
            ]
            statistics = found[table]
            assert statistics.batch_size == batch_size
            assert statistics.num_batches == whole
            assert statistics.reuse_histogram == pytest.approx(expected_histogram(batches))
            lookups = sum(map(len, batches))
            assert statistics.pooling_factor == pytest.approx(lookups / (whole * batch_size))
            assert statistics.max_index == max(max(batch) for batch in batches if batch)


def test_a_table_with_two_features_counts_both():
    generator = np.random.default_rng(2)
    part = {"a": draw(generator, 20, 16, 2.0), "b": draw(generator, 20, 16, 5.0)}
    found = from_batches([keyed(part)], {"t": ["a", "b"]}, batch_size=16)["t"]
    rows = part["a"][0].tolist() + part["b"][0].tolist()
    assert found.reuse_histogram == pytest.approx(expected_histogram([rows]))
    assert found.pooling_factor == pytest.approx(len(rows) / 16)


def test_a_dict_of_tensors_is_as_good():
    generator = np.random.default_rng(5)
    indices, lengths = draw(generator, 100, 32, 2.0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    as_dict = {"f": (torch.tensor(indices), torch.tensor(offsets))}
    features = {"t": "f"}
    assert from_batches([as_dict], features, batch_size=16) == from_batches(
        [keyed({"f": (indices, lengths)})], features, batch_size=16
    )


def test_features_of_both_kinds_of_collections():
    sequences = EmbeddingCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingConfig(
                name="s0", num_embeddings=10, embedding_dim=16, feature_names=["g0", "g1"]
            )
        ],
    )
    assert features_of(sequences) == {"s0": ["g0", "g1"]}
    assert features_of(make_collection([(10, 16)])) == {"t0": ["f0"]}
    text = "collection: expected an EmbeddingBagCollection or an EmbeddingCollection, got Linear"
    with pytest.raises(InputError, match=text):
        features_of(torch.nn.Linear(2, 2))


def test_bad_batches():
    part = {"a": (np.array([1, 2]), np.array([1, 1]))}
    with pytest.raises(InputError, match=r"features\['t'\]: .* got 'no-such'"):
        from_batches([keyed(part)], {"t": ["no-such"]}, batch_size=1)
    with pytest.raises(InputError, match="expected at least 3 samples, got 2"):
        from_batches([keyed(part)], {"t": ["a"]}, batch_size=3)
    with pytest.raises(InputError, match="or a KeyedJaggedTensor, got Tensor"):
        from_batches([torch.zeros(2)], {"t": ["a"]}, batch_size=1)
    with pytest.raises(InputError, match="batch_size: expected at least 1"):
        from_batches([], {"t": ["a"]}, batch_size=0)


def lookups(seed=3, batch_size=64, sizes=(10, 100_000, 300), means=(4.0, 1.0, 0.0)):
    """(indices, offsets, lengths) of the public layout, and the rows of each table."""
    generator = np.random.default_rng(seed)
    drawn = [draw(generator, rows, batch_size, mean) for rows, mean in zip(sizes, means)]
    lengths = np.stack([part[1] for part in drawn])
    offsets = np.concatenate([[0], np.cumsum(lengths.reshape(-1))])
    tensors = tuple(
        torch.tensor(array)
        for array in (np.concatenate([part[0] for part in drawn]), offsets, lengths)
    )
    return tensors, drawn


@pytest.mark.parametrize("suffix", [".pt", ".pt.gz"])
@pytest.mark.parametrize("zipped", [True, False])
def test_lookup_files(tmp_path, suffix, zipped):
    tensors, drawn = lookups()
    path = tmp_path / f"lookups{suffix}"
    torch.save(tensors, tmp_path / "plain.pt", _use_new_zipfile_serialization=zipped)
    plain = (tmp_path / "plain.pt").read_bytes()
    path.write_bytes(gzip.compress(plain) if suffix.endswith("gz") else plain)
    found = from_lookups(path)
    assert len(found) == 3
    for statistics, (indices, lengths) in zip(found, drawn):
        if len(indices):
            assert statistics.reuse_histogram == pytest.approx(expected_histogram([indices]))
            assert statistics.pooling_factor == pytest.approx(lengths.mean())
        else:
            assert 0 < statistics.pooling_factor < 1e-3
    tables = tables_of_lookups([path, path], embedding_dim=64, batch_size=16)
    assert [table.name for table in tables] == ["t0", "t1", "t2"]
    assert tables[1].num_embeddings == drawn[1][0].max() + 1
    split = np.split(drawn[0][0], np.cumsum(drawn[0][1])[:-1])
    batches = [np.concatenate(split[i : i + 16]) for i in range(0, 64, 16)] * 2
    assert tables[0].reuse_histogram == pytest.approx(expected_histogram(batches))
    rows = tables[0].num_embeddings
    for share_of_rows, share in tables[0].row_access:
        end = round(share_of_rows * rows)
        assert share == pytest.approx(np.count_nonzero(drawn[0][0] < end) / drawn[0][0].size)


class Bomb:
    """Unpickled, it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_damaged_files(tmp_path):
    tensors, _ = lookups()
    good = tmp_path / "good.pt"
    torch.save(tensors, good)
    content = good.read_bytes()

    def refusal(data, name="bad.pt"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError) as error:
            from_lookups(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}: ")
        assert "\n" not in str(error.value)
        return str(error.value)

    for end in (0, 1, 100, len(content) // 2, len(content) - 1):
        refusal(content[:end])
    refusal(b"not a tensor at all")
    refusal(gzip.compress(content)[:-10], "bad.pt.gz")
    packed = gzip.compress(content)
    refusal(packed[:100] + bytes(300) + packed[400:], "bad.pt.gz")
    refusal(content, "not-packed.pt.gz")
    with pytest.raises(InputError, match="expected a file, got none"):
        from_lookups(tmp_path / "missing.pt")


def test_files_that_cannot_be_read(tmp_path):
    """For root all files can be opened; this one still cannot be read."""
    for name in ("lookups.pt", "lookups.pt.gz"):
        (tmp_path / name).symlink_to("/proc/self/mem")
        with pytest.raises(InputError) as error:
            from_lookups(tmp_path / name)
        assert str(error.value) == (
            f"{tmp_path / name}: expected a readable file, got Input/output error"
        )
    for path in (3, None, 2.5):
        with pytest.raises(InputError, match="^paths: expected paths of files, got "):
            from_lookups([path])
    torch.save(lookups()[0], tmp_path / "plain.pt")
    assert len(from_lookups([os.fsencode(tmp_path / "plain.pt")])) == 3


def test_what_is_unpacked_is_in_no_folder(tmp_path, monkeypatch):
    """Nothing is left where the process is killed."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    seen = []

    def watched(*arguments):
        seen.append(os.listdir(folder))
        return _load(*arguments)

    monkeypatch.setattr("neuroshard.statistics._load", watched)
    torch.save(lookups()[0], tmp_path / "plain.pt")
    packed = tmp_path / "lookups.pt.gz"
    packed.write_bytes(gzip.compress((tmp_path / "plain.pt").read_bytes()))
    assert from_lookups(packed) == from_lookups(tmp_path / "plain.pt")
    assert seen == [[], []]


def test_what_unpacks_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSHARD_MAX_INPUT", "1MiB")
    bomb = tmp_path / "bomb.pt.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    assert bomb.stat().st_size < 1 << 17
    with pytest.raises(InputError) as error:
        from_lookups(bomb)
    expected = "expected at most 1.00 MiB (NEUROSHARD_MAX_INPUT), got more when decompressed"
    assert str(error.value) == f"{bomb}: {expected}"


def test_files_that_cannot_be_mapped_have_the_limit_too(tmp_path, monkeypatch):
    tensors, _ = lookups(batch_size=4096)
    torch.save(tensors, tmp_path / "mapped.pt")
    torch.save(tensors, tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    monkeypatch.setenv("NEUROSHARD_MAX_INPUT", "64KiB")
    assert len(from_lookups(tmp_path / "mapped.pt")) == 3
    with pytest.raises(InputError, match="legacy.pt: expected at most 64.00 KiB .* cannot be mapped"):
        from_lookups(tmp_path / "legacy.pt")


def test_files_packed_inside_are_refused(tmp_path):
    tensors, _ = lookups()
    torch.save(tensors, tmp_path / "good.pt")
    with (
        zipfile.ZipFile(tmp_path / "good.pt") as good,
        zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in good.namelist():
            packed.writestr(name, good.read(name))
    with pytest.raises(InputError, match="expected tensors as torch.save stores them, got some comp"):
        from_lookups(tmp_path / "packed.pt")


def test_only_tensors_are_unpickled(tmp_path):
    marker = tmp_path / "exploded"
    legacy = tmp_path / "legacy.pt"
    legacy.write_bytes(pickle.dumps(Bomb(str(marker))))
    zipped = tmp_path / "zipped.pt"
    torch.save((Bomb(str(marker)),), zipped)
    assert zipfile.is_zipfile(zipped)
    for path in (legacy, zipped):
        with pytest.raises(InputError):
            from_lookups(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda i, o, l: (i, o), "expected the tensors indices, offsets, lengths, got tuple"),
        (lambda i, o, l: {"a": i}, "got dict"),
        (lambda i, o, l: (i.float(), o, l), "indices: expected integers"),
        (lambda i, o, l: (i, o[:-1], l), "offsets: expected one per table and sample"),
        (lambda i, o, l: (i, o.max() - o, l), "offsets: expected rising numbers"),
        (lambda i, o, l: (i, o + 1000, l), "offsets: expected rising numbers"),
        (lambda i, o, l: (i - 5, o, l), "indices: expected rows from 0 for table 0"),
        (lambda i, o, l: (i, o, l + 1), "lengths: expected the differences of the offsets"),
        (lambda i, o, l: (i, o, l.reshape(-1)), "lengths: expected integers in 2 dimensions"),
    ],
)
def test_tensors_that_do_not_belong_together(tmp_path, change, text):
    tensors, _ = lookups()
    torch.save(change(*tensors), tmp_path / "lookups.pt")
    with pytest.raises(InputError, match=text):
        from_lookups(tmp_path / "lookups.pt")


def test_files_of_other_tables(tmp_path):
    torch.save(lookups()[0], tmp_path / "a.pt")
    torch.save(lookups(sizes=(10, 20), means=(1.0, 1.0))[0], tmp_path / "b.pt")
    with pytest.raises(InputError, match="expected 3 tables as in .*a.pt, got 2"):
        from_lookups([tmp_path / "a.pt", tmp_path / "b.pt"])
    with pytest.raises(InputError, match="batch_size: expected 1 to 64, got 65"):
        from_lookups(tmp_path / "a.pt", batch_size=65)


def test_files_of_other_batch_sizes(tmp_path):
    """Statistics are of one batch size: that of all files, or one that is asked for."""
    paths = [tmp_path / "a.pt", tmp_path / "b.pt"]
    for path, batch_size in zip(paths, (64, 96)):
        torch.save(lookups(batch_size=batch_size)[0], path)
    text = "b.pt: expected batches of 64 samples as in .*a.pt, or batch_size, got 96"
    with pytest.raises(InputError, match=text):
        from_lookups(paths)
    assert [table.num_batches for table in from_lookups(paths, batch_size=32)] == [5, 5, 5]


STREAMING = """
import resource
import sys

import numpy as np

from neuroshard.statistics import from_batches


def batches(number):
    draw = np.random.default_rng(1)
    for _ in range(number):
        yield {"f": (draw.integers(0, 1 << 40, 20 * 4096), 20 * np.arange(4097))}


from_batches(batches(int(sys.argv[1])), {"t": "f"}, batch_size=4096)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_batches():
    """Each has 0.6 MiB of rows that no other has."""

    def peak_kib(number):
        run = subprocess.run(
            [sys.executable, "-c", STREAMING, str(number)],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(run.stdout)

    assert peak_kib(160) < peak_kib(10) + (16 << 10)
