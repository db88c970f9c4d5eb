"""Arguments as users of TorchRec have them: NumPy's numbers, constraints that are None, statistics
of other tables."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import make_collection, make_topology
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints

from neuroshard import InputError, TableStatistics, list_models
from neuroshard.torchrec import NeuroShardPerfEstimator, NeuroShardPlanner, load_plan, save_plan

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")
SHARDERS = [EmbeddingBagCollectionSharder()]
SIZES = [(100_000, 128), (50_000, 64), (200_000, 32)]
NAMES = {"t0", "t1", "t2"}
HISTOGRAM = [1.0] + [0.0] * 16
OBJECTIVES = ["torchrec", "measured"]


def make_planner(objective, constraints=None, batch_size=512, device="cpu", **options):
    return NeuroShardPlanner(
        topology=make_topology(2, 8 << 30, device),
        batch_size=batch_size,
        constraints=constraints,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        objective=objective,
        debug=False,
        stats=[],
        **options,
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_numpys_numbers_are_numbers(tmp_path, objective):
    module = make_collection(SIZES)
    path = tmp_path / "plan.json"

    def hash_of(pooling_factor, batch_size):
        constraints = {"t0": ParameterConstraints(pooling_factors=[pooling_factor])}
        planner = make_planner(objective, constraints, batch_size)
        planner.plan(module, SHARDERS)
        save_plan(planner, path)
        assert load_plan(path).plan[""].keys() == NAMES
        assert json.loads(path.read_text())["batch_size"] == batch_size
        return planner.context_hash

    expected = hash_of(3.5, 512)
    assert hash_of(np.float32(3.5), 512) == expected
    assert hash_of(3.5, np.int64(512)) == expected
    assert hash_of(np.float64(3.5), np.int32(512)) == expected
    assert hash_of(np.float32(4.5), 512) != expected


@pytest.mark.parametrize("batch_size", [512.0, "512", -1, True])
def test_batch_sizes_that_are_none(batch_size):
    with pytest.raises(InputError, match="batch_size: expected .*at least 0, got "):
        make_planner("torchrec", batch_size=batch_size)


ESTIMATE = "analytic-a100-80gb"


@pytest.mark.parametrize(
    "form", [Path, str, lambda name: (each for each in [name])], ids=["path", "text", "generator"]
)
def test_models_in_any_form(tmp_path, monkeypatch, caplog, form):
    monkeypatch.chdir(tmp_path)
    [model] = [each for each in list_models() if each.name == "fbgemm-cpu-epyc"]
    Path("mine.safetensors").write_bytes(Path(model.origin).read_bytes())
    for name in ("mine.safetensors", ESTIMATE):
        planner = make_planner("measured", device="cuda", models=form(name))
        for _ in range(2):  # a generator gives its names once
            caplog.clear()
            assert planner.plan(make_collection(SIZES), SHARDERS).plan[""].keys() == NAMES
            is_said = f"costs are an estimate from data sheets ({ESTIMATE})" in caplog.text
            assert is_said == (name == ESTIMATE)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_constraint_that_is_none_is_none(objective):
    module = make_collection(SIZES)
    given = {"t1": ParameterConstraints(pooling_factors=[3.0])}
    found = []
    for constraints in (given, {"t0": None, **given}):
        planner = make_planner(objective, constraints)
        found.append((str(planner.plan(module, SHARDERS)), planner.context_hash))
    assert found[0] == found[1]
    NeuroShardPerfEstimator(make_topology(2, 8 << 30), {"t0": None})


def test_statistics_of_a_larger_table_name_the_table():
    module = make_collection(SIZES)
    statistics = {"t1": TableStatistics(2.0, HISTOGRAM, batch_size=1024, max_index=60_000)}
    text = (
        r"statistics\['t1'\]: num_embeddings: expected more than the largest row seen, 60000, "
        "got 50000"
    )
    for runtime in (None, "auto"):
        planner = make_planner("measured", statistics=statistics, runtime=runtime)
        with pytest.raises(InputError, match=text):
            planner.plan(module, SHARDERS)
    # By TorchRec's estimate there is a plan without them; only its price by our models is missing.
    planner = make_planner("torchrec", statistics=statistics)
    assert planner.plan(module, SHARDERS).plan[""].keys() == NAMES
    assert planner.estimates.chosen_ms > 0
    assert planner.estimates.by_models_ms is None and planner.neuroshard_plan is None


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("name", "batch_size", "text"),
    [
        ("no-such", 1024, "statistics: expected tables of the module, got 'no-such'"),
        ("t1", 512, r"statistics\['t1'\].batch_size: expected 1024 \(512 x 2 ranks\), got 512"),
    ],
)
def test_statistics_of_others_are_refused_by_both_objectives(objective, name, batch_size, text):
    statistics = {name: TableStatistics(1.0, HISTOGRAM, batch_size)}
    with pytest.raises(InputError, match=text):
        make_planner(objective, statistics=statistics).plan(make_collection(SIZES), SHARDERS)
