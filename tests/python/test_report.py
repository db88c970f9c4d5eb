"""Plans as pages and in notebooks: what is written, what goes together, what is refused."""

import json
import warnings

import neuroshard
import pytest
from neuroshard import InfeasibleError, InputError, Plan, Shard, Table

EVIL = "</script><img src=x onerror=alert(1)>\x1b[31m\"'&"


@pytest.fixture
def plan(task):
    return neuroshard.plan(task, steps=1000)


def data_of(page):
    text = page.read_text()
    begin = text.index('<script type="application/json" id="data">')
    return json.loads(text[text.index(">", begin) + 1 : text.index("</script>", begin)])


def measured_on_any_machine(plan):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", neuroshard.ExtrapolationWarning)  # the models know another
        return neuroshard.evaluate(plan, arena_bytes=64 << 20)


@pytest.mark.usefixtures("simgrid")
def test_report_of_plans_and_evaluations(plan, task, tmp_path):
    columns = neuroshard.plan(task, steps=1000, cuts=["columns"])
    columns.write(tmp_path / "columns.json")
    measured = measured_on_any_machine(plan)
    simulated = neuroshard.evaluate_on_cluster(plan, "pcie4")
    simulated.write(tmp_path / "simulated.json")
    page = tmp_path / "report.html"
    plan.report(
        page,
        [tmp_path / "columns.json", columns],
        evaluations=[measured, tmp_path / "simulated.json", measured.document],
    )
    found = data_of(page)
    names = ["this plan", str(tmp_path / "columns.json"), "plan 3"]
    assert [each["name"] for each in found["plans"]] == names
    kinds = [each["kind"] for each in found["plans"][0]["evaluations"]]
    assert kinds == ["computation", "simulated", "computation"]
    plan.report(page, {"columns alone": columns}, evaluations=measured)
    assert data_of(page)["plans"][1]["name"] == "columns alone"
    plan.report(page, columns.to_dict())
    assert len(data_of(page)["plans"]) == 2


def test_what_does_not_go_together(plan, task, tmp_path):
    page = tmp_path / "report.html"
    with pytest.raises(InfeasibleError, match="this plan: not valid: "):
        Plan(task, []).report(page)
    other = neuroshard.plan(neuroshard.Task(task.tables, task.topology, 8192, task.optimizer))
    with pytest.raises(InputError, match="other: task.batch_size: expected 4096 as in this plan"):
        plan.report(page, {"other": other})
    evaluation = measured_on_any_machine(plan)
    moved = Plan(task, [Shard("user", 0, 64, device=1), Shard("item", 0, 32, device=1)])
    with pytest.raises(InputError, match="evaluation 1: expected an evaluation of this plan"):
        moved.report(page, evaluations=evaluation)
    with pytest.raises(InputError, match="none.json: expected a readable file"):
        plan.report(page, evaluations=tmp_path / "none.json")
    with pytest.raises(InputError, match="evaluations: expected what evaluate returned.*int"):
        plan.report(page, evaluations=[3])
    plan.write(tmp_path / "plan.json")
    with pytest.raises(InputError, match="path: expected another file than those that are read"):
        plan.report(tmp_path / "plan.json", tmp_path / "plan.json")
    assert not page.exists()


def test_in_a_notebook(plan, task):
    html = plan._repr_html_()
    assert "Each of the 2 devices takes" in html
    assert "<script" not in html
    assert len(html) < 10_000
    assert Plan(task, [])._repr_html_() is None  # the notebook shows the text
    evil = neuroshard.Task([Table(EVIL, 1000, 64, 3.0)], neuroshard.Topology(1, 1 << 30), 4096)
    html = neuroshard.plan(evil)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
    assert "\x1b" not in html
