"""Usual jobs by our models: batch sizes, optimizers and data types without a warning; what no model
knows is refused or said, with the model's name."""

import warnings

import pytest
import torch
from conftest import make_collection, make_topology
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError, PlannerErrorType
from torchrec.modules.embedding_configs import DataType, EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from neuroshard import ExtrapolationWarning, InputError
from neuroshard.torchrec import NeuroShardPlanner, SavedPlan, save_plan
from neuroshard.torchrec.measured import MeasuredSearch

DISAGREE = "networks disagree"

SIZES = [(2_000 * 3**i, (16, 32, 64, 128)[i % 4]) for i in range(6)]


def plan(collection, sharder=None, **options):
    """A planner that has planned, and what it warned of, but for how sure the networks are."""
    planner, said = plan_and_warnings(collection, sharder, **options)
    return planner, [text for text in said if DISAGREE not in text]


def plan_and_warnings(
    collection,
    sharder=None,
    *,
    more_sharders=(),
    world=2,
    batch_size=2048,
    device="cpu",
    constraints=None,
    objective="measured",
    **options,
):
    """A planner that has planned, and all that it warned of."""
    usual = {f"t{i}": ParameterConstraints(pooling_factors=[1.0 + 9 * i]) for i in range(6)}
    planner = NeuroShardPlanner(
        topology=make_topology(world, 8 << 30, device, min(world, 4)),
        batch_size=batch_size,
        constraints=usual | (constraints or {}),
        storage_reservation=FixedPercentageStorageReservation(percentage=0.0),
        objective=objective,
        debug=False,
        stats=[],
        **options,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        planner.plan(collection, [sharder or EmbeddingBagCollectionSharder(), *more_sharders])
    return planner, [
        str(w.message) for w in caught if issubclass(w.category, ExtrapolationWarning)
    ]


@pytest.mark.parametrize("data_type", [DataType.FP32, DataType.FP16, DataType.BF16])
@pytest.mark.parametrize(
    ("optimizer", "ours"),
    [
        (EmbOptimType.EXACT_SGD, "sgd"),
        (EmbOptimType.EXACT_ROWWISE_ADAGRAD, "rowwise_adagrad"),
        (EmbOptimType.EXACT_ADAGRAD, "rowwise_adagrad"),
        (EmbOptimType.ADAM, "rowwise_adagrad"),
        (EmbOptimType.PARTIAL_ROWWISE_ADAM, "rowwise_adagrad"),
    ],
)
def test_data_types_and_optimizers(data_type, optimizer, ours):
    sharder = EmbeddingBagCollectionSharder({"optimizer": optimizer})
    planner, said = plan(make_collection(SIZES, data_type=data_type), sharder)
    assert said == []
    task = planner.neuroshard_plan.task
    assert task.optimizer == ours
    assert {t.data_type for t in task.tables} == {"fp32" if data_type == DataType.FP32 else "fp16"}


@pytest.mark.parametrize(
    ("world", "batch_size"), [(2, 1024), (2, 8192), (4, 512), (8, 512), (8, 2048)]
)
def test_batch_sizes(world, batch_size):
    _, said = plan(make_collection(SIZES), world=world, batch_size=batch_size)
    assert said == []


@pytest.mark.parametrize("model", [None, "fbgemm-cpu-xeon"])
def test_the_networks_agree_about_usual_jobs(model):
    """By 20 %, about the device that decides, by the default model and another CPU's."""
    unsure = []
    for optimizer in (EmbOptimType.EXACT_SGD, EmbOptimType.EXACT_ROWWISE_ADAGRAD):
        sharder = EmbeddingBagCollectionSharder({"optimizer": optimizer})
        for data_type in (DataType.FP32, DataType.FP16):
            collection = make_collection(SIZES, data_type=data_type)
            for world, batch_size in [(2, 1024), (2, 2048), (2, 8192), (4, 512), (8, 512), (8, 2048)]:
                options = {"world": world, "batch_size": batch_size}
                if model:
                    options["models"] = [model]
                _, said = plan_and_warnings(collection, sharder, **options)
                if any(DISAGREE in text for text in said):
                    unsure.append((optimizer, data_type, world, batch_size))
    assert unsure == []


def test_an_optimizer_of_the_parameters():
    collection = make_collection(SIZES)
    apply_optimizer_in_backward(torch.optim.Adagrad, collection.parameters(), {"lr": 0.1})
    planner, said = plan(collection)
    assert said == [] and planner.neuroshard_plan.task.optimizer == "rowwise_adagrad"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_unknown_interconnect_is_refused(device):
    with pytest.raises(InputError, match=r"interconnect.*expected .*, got \"carrier-pigeon\"") as caught:
        plan(make_collection(SIZES), device=device, interconnect="carrier-pigeon")
    assert "\n" not in str(caught.value)


def test_warnings_begin_with_the_models_name():
    _, said = plan(make_collection(SIZES), batch_size=8)
    assert any(text.startswith("fbgemm-cpu-epyc: batch_size: trained on 128 to ") for text in said)
    assert all(text.startswith("fbgemm-cpu-epyc: ") for text in said)
    _, said = plan(make_collection(SIZES), batch_size=8, runtime=None)
    assert any(text.startswith("pcie4: batch_size: trained on 2048 to ") for text in said)
    _, said = plan(make_collection(SIZES), batch_size=8, models=["fbgemm-cpu-xeon"])
    assert any(text.startswith("fbgemm-cpu-xeon: batch_size: trained on 128 to ") for text in said)


def test_warnings_name_the_tables():
    constraint = {"t2": ParameterConstraints(pooling_factors=[3_000.0])}
    _, said = plan(make_collection(SIZES), constraints=constraint)
    assert len([text for text in said if "pooling_factor: trained on" in text]) == 1
    assert any("pooling_factor" in text and text.endswith('(".t2")') for text in said)


class BagsAndSequences(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = make_collection(SIZES)
        config = EmbeddingConfig(
            name="s", embedding_dim=32, num_embeddings=5000, feature_names=["fs"]
        )
        self.sequences = EmbeddingCollection(tables=[config], device=torch.device("meta"))


def test_sequences_do_not_silence_what_is_said_of_the_others():
    """A plan with a table of sequences is not priced by the models as a whole."""
    planner, said = plan(
        BagsAndSequences(), more_sharders=[EmbeddingCollectionSharder()], batch_size=8
    )
    assert planner.neuroshard_plan is None
    assert any(text.startswith("fbgemm-cpu-epyc: batch_size: trained on 128 to ") for text in said)
    assert len(said) == len(set(said))


def expect_named_once(said):
    """Batches of 16 samples are known to none of the models."""
    for model in ("fbgemm-cpu-epyc", "pcie4"):
        assert any(text.startswith(f"{model}: batch_size: trained on ") for text in said), said
    assert len(said) == len(set(said))


@pytest.mark.parametrize("compare", ["always", "never"])
def test_figures_by_our_models_beside_torchrecs_estimate(tmp_path, compare):
    job = {"objective": "torchrec", "batch_size": 8}
    planner, said = plan_and_warnings(make_collection(SIZES), compare_with_torchrec=compare, **job)
    expect_named_once(said)
    assert planner.estimates.by_models_ms > 0
    assert (planner.estimates.torchrec_by_models_ms is not None) == (compare == "always")
    # Of a plan that is loaded, too.
    save_plan(planner, tmp_path / "plan.json")
    again, said = plan_and_warnings(
        make_collection(SIZES), plan_loader=SavedPlan(tmp_path / "plan.json"), **job
    )
    expect_named_once(said)
    assert again.estimates.by_models_ms == pytest.approx(planner.estimates.by_models_ms)


@pytest.mark.parametrize("fails", [False, True])
def test_torchrecs_plan_by_our_models(monkeypatch, fails):
    """Next to ours, and in its place."""

    def fail(*_):
        raise PlannerError(
            error_type=PlannerErrorType.INSUFFICIENT_STORAGE, message="nothing was found"
        )

    if fails:
        monkeypatch.setattr(MeasuredSearch, "place", fail)
    planner, said = plan_and_warnings(
        make_collection(SIZES), batch_size=8, runtime=None, compare_with_torchrec="always"
    )
    expect_named_once(said)
    assert planner.estimates.by_models_ms > 0
    assert (planner.estimates.neuroshard_ms is None) == fails
