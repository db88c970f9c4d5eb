"""Plans after the search: TorchRec's own checks of them, what is saved where none was found, and
the settings of those that are loaded."""

import pytest
from conftest import make_collection, make_topology
from torch import nn
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import planners
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.distributed.types import (
    BoundsCheckMode,
    CacheAlgorithm,
    CacheParams,
    CacheStatistics,
)
from torchrec.modules.embedding_configs import DataType

from neuroshard import InputError
from neuroshard.torchrec import NeuroShardPlanner, SavedPlan, save_plan

pytestmark = pytest.mark.filterwarnings("ignore::neuroshard.ExtrapolationWarning")
SHARDERS = [EmbeddingBagCollectionSharder()]
SIZES = [(100_000, 128), (50_000, 64), (200_000, 32)]


def make_planner(topology, constraints=None, **options):
    return NeuroShardPlanner(
        topology=topology,
        batch_size=512,
        constraints=constraints,
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        debug=False,
        stats=[],
        **options,
    )


def without_b(options):
    return [option for option in options if option.path != "b"]


def by_magic(options):
    options[0].compute_kernel = "by_magic"
    return options


@pytest.mark.parametrize(
    ("check", "callback", "text"),
    [
        ("validate_modules_inclusion_in_sharding_plan", without_b, r"not present .*\['b'\]"),
        ("validate_compute_kernels", by_magic, "unknown compute kernel 'by_magic'"),
    ],
)
def test_torchrecs_final_checks(tmp_path, check, callback, text):
    """Of what callbacks make of a plan."""
    if not hasattr(planners, check):
        pytest.skip("not in this release of TorchRec")
    model = nn.ModuleDict({"a": make_collection(SIZES[:1]), "b": make_collection(SIZES[1:2])})
    planner = make_planner(make_topology(2, 1 << 30), runtime=None, callbacks=[callback])
    with pytest.raises(PlannerError, match=text):
        planner.plan(model, SHARDERS)
    with pytest.raises(InputError, match="save_plan: expected a planner that has planned"):
        save_plan(planner, tmp_path / "plan.json")


def test_where_no_plan_was_found_none_is_saved(tmp_path):
    """Not the one of the module before, in the context of this one."""
    planner = make_planner(make_topology(2, 64 << 20))
    planner.plan(make_collection([(10_000, 64)]), SHARDERS)
    with pytest.raises(PlannerError):
        planner.plan(make_collection([(1_000_000, 64)]), SHARDERS)
    with pytest.raises(InputError, match="save_plan: expected a planner that has planned"):
        save_plan(planner, tmp_path / "plan.json")
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_enumerated_there_is_no_hash():
    rows = {"t1": ParameterConstraints(sharding_types=["row_wise"])}  # which CPUs have not
    planner = make_planner(make_topology(2, 1 << 30), rows)
    planner.plan(make_collection(SIZES[:1]), SHARDERS)
    assert planner.hash_planner_context_inputs_str()
    with pytest.raises(InputError, match="constraints: No available sharding type"):
        planner.plan(make_collection(SIZES[:2]), SHARDERS)
    with pytest.raises(InputError, match="context_hash: expected a planner that has planned"):
        planner.hash_planner_context_inputs_str()


class Statistics(CacheStatistics):
    """Of a cache, as planners are told of them."""

    expected_lookups = 100.0
    cacheability = 0.5

    def expected_miss_rate(self, clf):
        return 1.0 - clf


#: By name, a value and another.
SETTINGS = {
    "bounds_check_mode": (BoundsCheckMode.WARNING, BoundsCheckMode.FATAL),
    "stochastic_rounding": (False, True),
    "enforce_hbm": (True, False),
    "output_dtype": (DataType.FP16, DataType.FP32),
}
GIVEN = {
    "t0": ParameterConstraints(**{name: value for name, (value, _) in SETTINGS.items()}),
    "t1": ParameterConstraints(
        compute_kernels=["fused_uvm_caching"], cache_params=CacheParams(load_factor=0.3)
    ),
}


@pytest.fixture
def loaded(tmp_path):
    """What loads a plan that was made with GIVEN under other constraints: {table: its sharding}."""
    topology = make_topology(2, 8 << 30, "cuda")
    module = make_collection(SIZES)
    planner = make_planner(topology, GIVEN)
    planner.plan(module, SHARDERS)
    save_plan(planner, tmp_path / "plan.json")

    def load(constraints=None, **options):
        loader = SavedPlan(tmp_path / "plan.json")
        planner = make_planner(topology, constraints, plan_loader=loader, **options)
        return planner.plan(module, SHARDERS).plan[""]

    return load


@pytest.mark.parametrize("objective", ["torchrec", "measured"])
@pytest.mark.parametrize("constraints", [None, GIVEN], ids=["none", "the same"])
def test_settings_of_a_loaded_plan_are_its_own(loaded, objective, constraints):
    plan = loaded(constraints, objective=objective)
    for name, (value, _) in SETTINGS.items():
        assert getattr(plan["t0"], name) == value
        assert getattr(plan["t2"], name) is None
    assert plan["t1"].cache_params == CacheParams(load_factor=0.3)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_the_constraints_have_otherwise(loaded, name):
    _, other = SETTINGS[name]
    with pytest.raises(PlannerError, match=rf"\.t0: {name}: expected .*, as its constraint says"):
        loaded({"t0": ParameterConstraints(**{name: other})})
    # Where the plan says nothing, it is the constraint's.
    assert getattr(loaded({"t2": ParameterConstraints(**{name: other})})["t2"], name) == other


def test_settings_of_caches(loaded):
    cache = CacheParams(algorithm=CacheAlgorithm.LRU, stats=Statistics())
    found = loaded({"t1": ParameterConstraints(cache_params=cache)})["t1"].cache_params
    assert (found.algorithm, found.load_factor) == (CacheAlgorithm.LRU, 0.3)
    assert isinstance(found.stats, Statistics)
    text = r"\.t1: cache_params\.load_factor: expected 0\.2, as its constraint says, got 0\.3"
    with pytest.raises(PlannerError, match=text):
        loaded({"t1": ParameterConstraints(cache_params=CacheParams(load_factor=0.2))})
