"""The examples in the package's docstrings give the results shown."""

import doctest
import importlib

import pytest

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    "name",
    [
        "neuroshard",
        "neuroshard.catalog",
        "neuroshard.comparison",
        "neuroshard.evaluation",
        "neuroshard.planning",
        "neuroshard.statistics",
        "neuroshard.plans",
        "neuroshard.types",
    ],
)
def test_examples(name, request):
    if name == "neuroshard.evaluation":
        request.getfixturevalue("simgrid")  # one example simulates a cluster
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.attempted > 0
    assert result.failed == 0


def test_what_has_an_example():
    import neuroshard
    import neuroshard.statistics

    documented = [
        neuroshard.Plan,
        neuroshard.Task,
        neuroshard.Topology,
        neuroshard.compare,
        neuroshard.evaluate,
        neuroshard.evaluate_on_cluster,
        neuroshard.list_algorithms,
        neuroshard.list_models,
        neuroshard.list_workloads,
        neuroshard.plan,
        neuroshard.plan_like,
        neuroshard.price,
        neuroshard.reuse_histograms,
        neuroshard.statistics.ReuseCounter,
        neuroshard.statistics.from_batches,
    ]
    assert [each for each in documented if ">>>" not in each.__doc__] == []
