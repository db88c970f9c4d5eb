"""What TorchRec's runtime does for a plan, files of it, and costs learned from them."""

import dataclasses
import gzip
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import ROOT
from runtime_steps import FOUR, MODEL, TRUE, made_samples, table

from neuroshard import InputError, Table
from neuroshard.runtime import (
    RuntimeCosts,
    Setup,
    ShardedModule,
    fit_layout,
    read_runtime_costs,
    read_samples,
    work_of,
)
from neuroshard.runtime.__main__ import main
from neuroshard.runtime.costs import shipped_runtime_costs
from neuroshard.runtime.accuracy import (
    Naming,
    TimedPlan,
    likeness,
    median_of,
    naming_of,
    repeated,
)
from neuroshard.runtime.drawing import PLANS_OF_A_TASK, draw_task, types_of
from neuroshard.runtime.fitting import non_negative_least_squares
from neuroshard.runtime.operators import crowding, distinct_rows, operator_work
from neuroshard.runtime.samples import header_line, sample_line
from neuroshard.runtime.trained_work import TrainedWork
from neuroshard.runtime.work import KINDS

MIB = 1 << 20


def work(kind, *tables):
    found = work_of([ShardedModule(kind, tables)], FOUR)
    return {name: value for name, value in found.items() if value}


def test_whole_tables():
    found = work("pooled", table("table_wise", ranks=[2]), table("table_wise", ranks=[1]))
    assert found == {
        "pooled_modules": 1,
        "all_to_alls": 1,
        "features": 2,
        "lookups": 2 * (8 * 32 * 3 + 4 * 32) / 4,  # of two ranks, in the mean of four
        "exchanged": 2 * 4 * 32 * 16 / 4,
        "outputs": 2 * 4 * 8 * 16,  # a rank's own samples, of both
    }


def test_columns_are_looked_up_by_themselves():
    found = work("pooled", table("column_wise", ranks=[0, 0]))
    assert found["features"] == 2
    assert found["lookups"] == 2 * (8 * 32 * 3 + 4 * 32) / 4
    assert found["exchanged"] == 4 * 32 * 16 / 4
    assert found["permuted"] == 4 * 8 * 16


def test_rows_are_sorted_and_added_up():
    found = work("pooled", table("row_wise"))
    assert found["reduce_scatters"] == 1
    assert found["lookups"] == 8 * 32 * 3 / 4 + 4 * 32
    assert found["bucketized"] == 8 * 8 * 3 + 4 * 8 * 4
    assert found["reduced"] == 4 * 32 * 16
    assert "exchanged" not in found


@pytest.mark.parametrize(("sharding_type", "ranges"), [("table_row_wise", 1), ("grid_shard", 2)])
def test_within_hosts(sharding_type, ranges):
    found = work("pooled", table(sharding_type, hosts=list(range(ranges))))
    width = 16 // ranges
    assert found["hierarchical"] == 1
    hosts_in_use = ranges / 2
    assert found["reduced"] == 4 * 32 * width * hosts_in_use
    assert found["exchanged"] == 4 * 32 * width / 2 * hosts_in_use
    assert found["bucketized"] == ranges * (8 * 8 * 3 + 4 * 8 * 2)
    assert found.get("permuted", 0) == (4 * 8 * 16 if ranges > 1 else 0)


def test_sequences():
    found = work("sequence", table("row_wise"))
    assert found["all_to_alls"] == 1 and "reduced" not in found
    assert found["sequences"] == 32 * 3 / 4 * 4 * 16
    assert found["sequence_outputs"] == found["reordered"] == 8 * 3 * 4 * 16
    assert "outputs" not in found and "permuted" not in found
    assert "reordered" not in work("sequence", table("column_wise", ranks=[0, 1]))


def test_copies():
    found = work("pooled", table("data_parallel"), table("data_parallel"))
    assert found == {
        "pooled_modules": 1,
        "all_reduces": 1,
        "features": 2,
        "all_reduced": 2 * 4 * 100 * 16,
        "outputs": 2 * 4 * 8 * 16,
    }


def test_outputs_of_several_operators_are_joined():
    alone = work("pooled", table("table_wise", ranks=[0]), table("table_wise", ranks=[1]))
    assert "joined" not in alone
    both = work("pooled", table("table_wise", ranks=[0]), table("row_wise"))
    assert both["joined"] == both["outputs"] == alone["outputs"]
    assert "joined" not in work("sequence", table("table_wise", ranks=[0]), table("row_wise"))


@pytest.mark.parametrize(
    "layout", [(2, 2), (3, 3), (4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (8, 8)], ids=str
)
def test_drawn_plans_are_whole(layout):
    types = set()
    for number in range(40):
        task = draw_task(number, 1, layout, [512], 5000)
        assert len(task.plans) == PLANS_OF_A_TASK
        for plan in task.plans:
            for module in plan:
                for drawn in module.tables:
                    types.add((module.kind, drawn.sharding_type))
                    elements = sum(s.num_rows * s.num_columns for s in drawn.shards)
                    whole = drawn.num_embeddings * drawn.embedding_dim
                    assert elements == (0 if drawn.sharding_type == "data_parallel" else whole)
                    # As FBGEMM takes them.
                    assert all(shard.num_columns % 4 == 0 for shard in drawn.shards)
    setup = Setup(*layout, batch_size=1)
    assert types == {(kind, each) for kind in KINDS for each in types_of(kind, setup)}
    assert draw_task(7, 1, layout, [512], 5000) == draw_task(7, 1, layout, [512], 5000)


@pytest.mark.parametrize("name", ["2", "2-large", "2x2"])
def test_shipped_samples_go_on_as_they_were_drawn(name):
    found = read_samples(ROOT / "data" / "runtime" / "gloo-cpu-epyc" / f"{name}.jsonl.gz")
    sampling = found.header["sampling"]
    for number in range(8):
        task = draw_task(
            number, sampling["seed"], found.layout, sampling["batch_sizes"], sampling["max_rows"]
        )
        samples = found.samples[number * PLANS_OF_A_TASK : (number + 1) * PLANS_OF_A_TASK]
        assert {sample.task for sample in samples} == {number}
        assert [sample.modules for sample in samples] == list(task.plans)
        assert {sample.setup for sample in samples} == {task.setup}


def test_least_squares_without_negative_costs():
    rows = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 5.0]]
    exact = [2.0 + 3.0 * row[1] for row in rows]
    assert non_negative_least_squares(rows, exact) == pytest.approx([2.0, 3.0])
    falling = [5.0 - row[1] for row in rows]
    constant, slope = non_negative_least_squares(rows, falling)
    assert slope == 0.0 and constant == pytest.approx(3.0)
    assert non_negative_least_squares([[0.0, 1.0]], [2.0]) == pytest.approx([0.0, 2.0])


def test_costs_are_learned():
    fit = fit_layout(made_samples(15), MODEL)
    assert fit.held_out.naming.tasks == 3 and fit.held_out.samples == 24
    assert fit.held_out.runtime < 1e-3
    assert fit.held_out.step < 1e-3
    assert fit.held_out.naming.right == 3 and fit.held_out.naming.mean_loss == 0.0
    for kind, costs in TRUE.operators.items():
        assert fit.costs.operators[kind] == pytest.approx(costs, rel=1e-2), kind
    assert fit.costs.forward["reduced"] == pytest.approx(2.0, rel=1e-2)
    assert fit.costs.backward["all_reduced"] == pytest.approx(1.0, rel=1e-2)
    assert fit.costs.types == {kind: sorted(types_of(kind, Setup(2, 2, 1))) for kind in KINDS}
    # Only one of the passes sorts lookups, or adds up gradients.
    assert "lookups" not in fit.costs.backward and "all_reduced" not in fit.costs.forward


def test_noise_is_no_cost():
    fit = fit_layout(made_samples(15, noise=0.05), MODEL)
    assert 0.01 < fit.held_out.step < 0.08
    assert fit.costs.errors["held_out"]["samples"] == 24


def test_too_few_tasks():
    with pytest.raises(InputError, match="at least 5 tasks, got 2"):
        fit_layout(made_samples(2), MODEL)


HEADER = {
    "hardware": {"kind": "cpu"},
    "software": {},
    "world_size": 2,
    "local_world_size": 2,
    "optimizer": "sgd",
    "sampling": {"seed": 5},
}


def write_samples(path, samples):
    path.write_text(header_line(HEADER) + "".join(map(sample_line, samples)))


def test_samples_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "costs.jsonl"
    samples = made_samples(1)
    write_samples(path, samples)
    found = read_samples(path)
    assert list(found.samples) == samples
    assert dict(found.header) == HEADER and found.layout == (2, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])  # a collector was stopped
    cut = read_samples(path)
    assert list(cut.samples) == samples[:-1]
    assert whole[: cut.whole_bytes].endswith(b"\n")


def examples(name):
    document = (ROOT / "docs" / "formats.md").read_text()
    found = document.split('```json\n{"format": "' + name)[1]
    return '{"format": "' + name + found.split("```")[0]


def test_the_documents_examples_are_read(tmp_path):
    path = tmp_path / "file"
    path.write_text(examples("neuroshard/runtime-costs/1"))
    [sample] = read_samples(path).samples
    assert sample.step_ms == 3.75
    assert sample.setup == Setup(2, 2, 512)
    path.write_text(examples("neuroshard/runtime-model/1"))
    layout = read_runtime_costs(path).layout(2, 2)
    assert layout.backward["all_reduced"] == 1.5


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"batch_size": 1023}, "line 2: batch_size: expected a multiple of 2, got 1023"),
        ({"forward_ms": 0}, "line 2: expected times above 0"),
        ({"forward_ms": -1}, "forward_ms: expected 0 or a number between 1e-30 and 1e+30, got -1"),
        ({"operator_ms": [[1.0, 1.0]]}, "operator_ms: expected 2 pairs, got 1"),
        ({"operator_ms": [[1.0], [1.0]]}, "operator_ms: expected a list of lists of 2 numbers"),
        ({"extra": 1}, "expected no field 'extra'"),
        ({"modules": []}, "modules: expected a list of at least one object"),
    ],
)
def test_samples_that_cannot_be(tmp_path, change, text):
    path = tmp_path / "costs.jsonl"
    line = json.loads(examples("neuroshard/runtime-costs/1").splitlines()[1])
    path.write_text(header_line(HEADER) + json.dumps(line | change) + "\n")
    with pytest.raises(InputError) as error:
        read_samples(path)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("shards", "text"),
    [
        ([[0, 0, 501, 0, 16]], "expected 16016 elements, got 8016"),
        ([[2, 0, 1001, 0, 16]], "expected parts of the table"),
        ([[0, 1, 1001, 0, 16]], "expected parts of the table"),
        ([[0, 0, 1001, 16]], "expected a list of lists of 5 integers"),
        ([[0, 0, 1001, 0, 16.5]], "expected a list of lists of 5 integers"),
        ([[0, 0, 1001, 0, 16.0]], "expected a list of lists of 5 integers"),
    ],
)
def test_shards_that_cannot_be(tmp_path, shards, text):
    path = tmp_path / "costs.jsonl"
    line = json.loads(examples("neuroshard/runtime-costs/1").splitlines()[1])
    line["modules"][0]["tables"][0]["shards"] = shards
    path.write_text(header_line(HEADER) + json.dumps(line) + "\n")
    with pytest.raises(InputError, match=text):
        read_samples(path)


def test_files_that_are_no_samples(tmp_path):
    path = tmp_path / "costs.jsonl"
    with pytest.raises(InputError, match="expected a readable file, got No such file"):
        read_samples(path)
    for content, text in [
        ("", "expected a header, got an empty file"),
        ("{}\n", "format: expected text, got nothing"),
        ('{"format": "other"}\n', "format: expected 'neuroshard/runtime-costs/1'"),
        ("[\n", "line 1, column 1: expected .*, got unexpected end of input"),
        (header_line(HEADER | {"local_world_size": 2, "world_size": 3}), "expected a divisor of 3"),
    ]:
        path.write_text(content)
        with pytest.raises(InputError, match=text):
            read_samples(path)


def test_costs_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "runtime.json"
    fitted = fit_layout(made_samples(5), MODEL).costs
    costs = RuntimeCosts(MODEL, (TRUE, fitted), {"kind": "cpu"})
    costs.write(path)
    assert read_runtime_costs(path).name == "runtime"
    assert read_runtime_costs(path).layouts[0].trained == TrainedWork()
    assert read_runtime_costs(path).layouts[1].trained == fitted.trained
    costs = RuntimeCosts(MODEL, (TRUE,), {"kind": "cpu"})
    costs.write(path, force=True)
    assert read_runtime_costs(path) == costs
    assert costs.layout(4, 2) is None
    content = json.loads(path.read_text())
    content["layouts"][0]["forward"]["unknown"] = 1.0
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"layouts\[0\].forward: expected no field 'unknown'"):
        read_runtime_costs(path)
    for field, value, text in (
        ("most_work", {"unknown": 1.0}, "most_work: expected no field 'unknown'"),
        ("most_work", {"outputs": -1.0}, "most_work.outputs: expected a number of at least 0"),
        ("most_operator_work", {"dense": {}}, "most_operator_work: expected no field 'dense'"),
        (
            "most_operator_work",
            {"sequence": {"whole": 1.0}},
            "most_operator_work.sequence: expected no field 'whole'",
        ),
    ):
        costs.write(path, force=True)
        content = json.loads(path.read_text())
        content["layouts"][0][field] = value
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=re.escape(f"layouts[0].{text}")):
            read_runtime_costs(path)
    with pytest.raises(InputError, match="runtime: expected a file or one of"):
        read_runtime_costs("no-such")


def test_a_price_is_operators_and_runtime():
    setup = Setup(2, 2, 512)
    tables = [table("table_wise", setup, 1000, 32, ranks=[rank]) for rank in (0, 0, 1)]
    modules = [ShardedModule("pooled", tuple(tables))]
    alone = [ShardedModule("pooled", tuple(tables[:2]))]
    price = TRUE.price(modules, setup, [MODEL])
    [of_rank, other] = operator_work(alone, setup, [MODEL])
    assert of_rank["pooled"]["calls"] == 1.0 and other["pooled"]["calls"] == 0.0
    assert of_rank["pooled"]["put_out"] == pytest.approx(2 * 1024 * 32 * 4 / MIB)
    expected = 1.5 * of_rank["pooled"]["model"] - 0.01 + 0.5 * of_rank["pooled"]["put_out"]
    assert price.operators_ms == pytest.approx(expected)
    lookups = 3 * (8 * 1024 * 3 + 4 * 1024) / MIB / 2
    on_other = TRUE.operators_ms(operator_work(modules, setup, [MODEL]))[1]
    slowed = 0.1 * (price.operators_ms + on_other) / 2
    assert price.runtime_ms == pytest.approx(0.4 + 0.2 + 3.0 * lookups + slowed)
    assert price.step_ms == price.operators_ms + price.runtime_ms
    # Another type is an operator and collectives more.
    mixed = dataclasses.replace(modules[0], tables=(*tables[:2], table("row_wise", setup, 1000, 32)))
    by_type = operator_work([mixed], setup, [MODEL])
    assert by_type[0]["pooled"]["calls"] == 2.0 and by_type[1]["pooled"]["calls"] == 1.0
    assert by_type[1]["pooled"]["model"] > 0


def test_crowded_and_far_rows():
    """Different rows are crowded the more an operator has, and far in a large table."""
    setup = Setup(2, 2, 5000)
    tables = [table("table_wise", setup, rows, 64, 50.0, ranks=[0]) for rows in (50_000, 100)]
    [found, none] = operator_work([ShardedModule("sequence", tuple(tables))], setup, [MODEL])
    rows = 0.05 + 1e-4  # millions: all are looked up
    assert found["sequence"]["distinct_rows"] == pytest.approx(rows, rel=1e-3)
    assert found["sequence"]["crowded"] == pytest.approx(rows * rows / (rows + 0.05), rel=1e-3)
    mib = 50_000 * 64 * 4 / MIB
    assert found["sequence"]["far"] == pytest.approx(0.05 * mib / (mib + 2), rel=1e-2)
    assert not any(none["sequence"].values())
    assert crowding(0.0) == 0.0 and crowding(0.05) == 0.5


def test_distinct_rows():
    """Of a whole batch and of one process's part."""
    used = Table("t", 1000, 16, 5.0)
    assert distinct_rows(used, 10_000_000) == pytest.approx(1000)
    assert distinct_rows(used, 10) == pytest.approx(50, rel=0.03)
    assert distinct_rows(used, 100, 0.5) == pytest.approx(distinct_rows(used, 50))
    histogram = [0.0] * 17
    histogram[2] = 1.0  # each row that is touched 3 or 4 times
    few = dataclasses.replace(used, reuse_histogram=histogram)
    assert distinct_rows(few, 60) == pytest.approx(100)
    assert 80 < distinct_rows(few, 60, 0.5) < 100


def test_costs_of_operators(tmp_path):
    """Kinds that were not measured cost what the model says; no operator costs less than nothing."""
    path = tmp_path / "runtime.json"
    path.write_text(examples("neuroshard/runtime-model/1"))
    layout = read_runtime_costs(path).layout(2, 2)
    assert layout.operators["pooled"] == {"model": 0.96, "calls": 0.19, "put_out": 0.08}
    assert not any(layout.operators["replicated"].values())
    assert layout.operators["sequence"]["gathered"] == 0.0
    work = {"model": 0.1, "calls": 1.0, "put_out": 0.0}
    assert layout.operator_ms("pooled", work) == 0.0
    assert layout.operator_ms("pooled", work | {"model": 10.0}) == pytest.approx(9.41)


def test_the_command(tmp_path, capsys):
    samples = tmp_path / "costs.jsonl"
    output = tmp_path / "runtime.json"
    write_samples(samples, made_samples(5))
    assert main([str(samples), "-o", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "2 processes, 2 a host" in printed and "1 of 1" in printed
    assert read_runtime_costs(output).layout(2, 2).errors["held_out"]["tasks"] == 1
    assert main([str(tmp_path / "missing"), "-o", str(tmp_path / "other.json")]) == 2
    assert "expected a readable file" in capsys.readouterr().err
    # What was learned before is replaced by --force alone.
    before = output.read_bytes()
    assert main([str(samples), "-o", str(output)]) == 2
    assert "expected a new file, or --force, got a model of Torch" in capsys.readouterr().err
    output.write_bytes(before + b"\n")
    assert main([str(samples), "-o", str(output), "--force"]) == 0
    assert output.read_bytes() == before


def test_a_reader_that_has_seen_enough(tmp_path):
    """As behind `| head`: the costs are written, and nothing is said of the closed pipe."""
    costs, output = tmp_path / "costs.jsonl", tmp_path / "runtime.json"
    write_samples(costs, made_samples(5))
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        run = subprocess.run(
            [sys.executable, "-m", "neuroshard.runtime", str(costs), "-o", str(output)],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (run.returncode, run.stderr) == (-signal.SIGPIPE, "")
    assert read_runtime_costs(output).layouts


def test_costs_are_tested_on_other_samples(tmp_path, capsys):
    samples = tmp_path / "costs.jsonl"
    costs = str(tmp_path / "runtime.json")
    write_samples(samples, made_samples(5))
    assert main([str(samples), "-o", costs]) == 0
    capsys.readouterr()
    before = tmp_path / "before.jsonl"
    write_samples(before, made_samples(3, noise=0.05))
    again = tmp_path / "again.jsonl.gz"
    again.write_bytes(gzip.compress(samples.read_bytes()))
    assert main([str(samples), "--test", costs, "--again", str(again)]) == 0
    printed = capsys.readouterr().out
    assert "mean error, operators as measured" in printed
    assert "fastest plan named by one measurement" in printed and "10 of 10" in printed
    write_samples(samples, made_samples(3))
    for times in (1, 2):
        assert main([str(samples), "--test", costs, "--again", *[str(before)] * times]) == 0
        printed = capsys.readouterr().out
        [difference] = re.findall(r"mean difference of one measurement +(\S+)%", printed)
        assert 0.5 < float(difference) < 8
        assert f"of {3 * (times + 1)}\n" in printed
    for arguments, text in (
        (["--test", costs, "--again", str(again)], "--again: expected the plans of the first files"),
        (["--again", str(again)], "expected --again with --test, and -o without it"),
        (["--test", costs, "-o", costs], "expected --again with --test, and -o without it"),
        (["--test", "no-such"], "runtime: expected a file or one of"),
    ):
        assert main([str(samples), *arguments]) == 2
        assert text in capsys.readouterr().err


def test_what_was_measured_several_times():
    before = made_samples(4)
    assert repeated([before, before]).naming == Naming(8, 8, 0.0)
    assert repeated([before, before, before]).step == 0.0
    slower = [dataclasses.replace(each, forward_ms=2 * each.step_ms) for each in before]
    assert median_of([before, slower, before]) == before
    assert median_of([before, slower]) != before
    # One of five differs from the median of the others.
    differing = repeated([before, before, slower, before, before])
    assert differing.median_step == 0.0
    assert 0.05 < differing.step < 0.3
    assert differing.naming.tasks == 20


def test_naming():
    """The plan that was named takes 2 where another takes 1, and 3 where it is the fastest."""
    plans = [(0, 1.0, 2.0), (0, 5.0, 1.0), (1, 1.0, 3.0), (1, 1.5, 4.0)]
    different = [TimedPlan(task, i, *times) for i, (task, *times) in enumerate(plans)]
    assert naming_of(different) == Naming(tasks=2, right=1, mean_loss=0.5)
    # Plans that are alike are one: 1.0 names 2.0 and 4.0, which are 3.0.
    alike = [TimedPlan(0, 0, 1.0, 2.0), TimedPlan(0, 0, 1.0, 4.0), TimedPlan(0, 1, 1.5, 2.5)]
    assert naming_of(alike) == Naming(tasks=1, right=0, mean_loss=pytest.approx(0.2))


def test_plans_that_are_alike():
    """But for the order of hosts and of the processes of a host, and where shards begin."""
    [sample, *_] = made_samples(1)

    def of(*tables):
        modules = (ShardedModule("pooled", tables),)
        return likeness(dataclasses.replace(sample, setup=FOUR, modules=modules))

    def two(first, second):
        return of(table("table_wise", ranks=[first]), table("table_wise", ranks=[second]))

    assert two(0, 2) == two(0, 3) == two(1, 2) == two(3, 1)
    assert two(0, 0) == two(3, 3)
    assert len({two(0, 0), two(0, 1), two(0, 2)}) == 3
    halves = [of(table("column_wise", ranks=ranks)) for ranks in ([0, 1], [1, 0], [0, 2])]
    assert halves[0] == halves[1] != halves[2]
    assert of(table("data_parallel")) != of(table("row_wise"))
    assert of(table("row_wise")) == of(table("row_wise"))


@pytest.mark.parametrize(
    "name",
    shipped_runtime_costs()
    or [pytest.param("", marks=pytest.mark.skip(reason="no costs of a runtime are shipped yet"))],
)
def test_shipped_costs(name):
    costs = read_runtime_costs(name)
    assert costs.operator_model == MODEL
    for layout in costs.layouts:
        assert layout.errors["held_out"]["samples"] > 0
