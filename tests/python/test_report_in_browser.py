"""Reports in a real browser, headless Chromium: they load without a word on the console and without
a request, tables are searched and sorted, colours and paper follow the reader."""

import json
import subprocess
import sys

import neuroshard
import pytest
from conftest import ROOT
from neuroshard import Plan, Shard, Table

sys.path.insert(0, str(ROOT / "scripts"))
import chromium  # noqa: E402

pytestmark = pytest.mark.skipif(
    chromium.EXECUTABLE is None, reason="no Chromium (scripts/setup.sh --tests installs it)"
)

EVIL = "</script><img src=x onerror=alert(1)>\x1b[31m\"'&\u202e"
#: The chart of the devices' time, in the page.
COST_CHART = "charts.find((each) => each.canvas.closest('#overview'))"
MODELS = ["analytic-a100-40gb", "analytic-a100-nvswitch"]


@pytest.fixture(scope="module")
def page():
    with chromium.Page() as opened:
        yield opened
        assert opened.errors == []


@pytest.fixture(scope="module")
def small(tmp_path_factory, simgrid):
    """A report of two plans of five tables, one with a name that is markup, and an evaluation."""
    tables = [
        Table("user", 100_000, 64, 3.0, index_distribution={"zipf_exponent": 1.1}),
        Table("item", 200_000, 32, 20.0),
        Table("city", 1_000, 16, 1.0),
        Table("country", 200, 16, 1.0),
        Table(EVIL, 5_000, 32, 2.0),
    ]
    task = neuroshard.Task(tables, neuroshard.Topology(4, 64 << 20, local_world_size=1), 4096)
    plan = neuroshard.plan(task, models=MODELS, baselines=True, steps=2000)
    columns = neuroshard.plan(task, models=MODELS, cuts=["columns"], steps=2000)
    path = tmp_path_factory.mktemp("report") / "small.html"
    simulated = neuroshard.evaluate_on_cluster(plan, "pcie4")
    plan.report(path, {"columns": columns}, evaluations=simulated)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """5,000 tables on 1,024 devices, some in many pieces, with made-up costs."""
    tables = [Table(f"table {number}", 1_000 + number, 64, 1.0) for number in range(5000)]
    task = neuroshard.Task(tables, neuroshard.Topology(1024, 1 << 30, 8), 4096)
    shards = [
        Shard(table.name, column, 16, device=(number + column // 16) % 1024)
        for number, table in enumerate(tables)
        for column in range(0, 64, 16)
    ]
    plan = neuroshard.price(Plan(task, shards), models=MODELS, lower_bound=False)
    path = tmp_path_factory.mktemp("report") / "large.html"
    plan.report(path)
    return path


def names(page):
    return page.run("[...document.querySelectorAll('#tables tbody td.name')].map(e => e.textContent)")


def wait_for(page, expression):
    """Until an expression in the page holds, 5 seconds at most."""
    assert page.run(
        "new Promise((done) => { const start = performance.now(); const look = () => {"
        f" if ({expression}) done(true); else if (performance.now() - start > 5000) done(false);"
        " else requestAnimationFrame(look); }; look(); })"
    ), expression


def test_the_first_screen_says_which_device_is_slowest(page, small):
    page.open(small)
    headline = page.run("document.querySelector('.headline').textContent")
    assert headline.startswith("Device ")
    assert "is the slowest" in headline
    # In sight without scrolling: the sentence and the first chart.
    bottom = page.run("document.querySelector('canvas').getBoundingClientRect().bottom")
    assert bottom < 900
    # Each canvas has something drawn on it.
    assert page.run(
        "[...document.querySelectorAll('canvas')].every(c => c.width > 0 &&"
        " c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v !== 0))"
    )
    assert page.run("[...document.querySelectorAll('section')].map(e => e.id)") == [
        "overview", "devices", "tables", "search", "comparison", "measured", "trust",
    ]  # fmt: skip


def test_names_are_text(page, small):
    page.open(small)
    assert page.run("document.querySelectorAll('img').length") == 0
    shown = "</script><img src=x onerror=alert(1)>\\x1b[31m\"'&\\u202e"
    assert shown in names(page)


def test_a_table_is_searched_and_sorted_and_opened(page, small):
    page.open(small)
    page.type("#tables input[type=search]", "count")
    assert names(page) == ["country"]
    page.run("document.querySelector('#tables input[type=search]').value = ''")
    page.type("#tables input[type=search]", "no such table")
    assert names(page) == []
    assert "nothing found" in page.run("document.querySelector('#tables .controls').textContent")
    page.open(small)
    page.click("#tables th:nth-child(2) button")
    assert names(page)[:2] == ["item", "user"]
    assert page.run("document.querySelector('#tables th:nth-child(2)').ariaSort") == "descending"
    page.click("#tables th:nth-child(2) button")
    assert names(page)[:2] == ["country", "city"]
    page.click("#tables tbody tr:first-child td")
    assert page.run("document.querySelector('#tables tr[aria-expanded=true] td').textContent") == (
        "country"
    )
    assert page.run("document.querySelectorAll('#tables .detail').length") == 1


def test_a_click_on_a_device_shows_what_lies_on_it(page, small):
    page.open(small)
    place = page.run(
        "(() => { const chart = " + COST_CHART + "; const bar = chart.chart.getDatasetMeta(0).data[2];"
        " chart.canvas.scrollIntoView({block: 'center'});"
        " const box = chart.canvas.getBoundingClientRect(); return [box.left + bar.x, box.top + 60]; })()"
    )
    page.click_at(*place)
    wait_for(page, "document.getElementById('device-detail')")
    assert page.run("document.getElementById('device-detail').textContent").startswith("Device 2: ")
    page.click("#device-detail button")
    data = json.loads(page.run("document.getElementById('data').textContent"))
    plan = data["plans"][0]
    there = {piece[0] for piece in plan["pieces"] if piece[5] == 2} | set(plan["replicated_tables"])
    assert len(names(page)) == len(there)


def test_the_other_plan_is_shown(page, small):
    page.open(small)
    before = page.run("document.title")
    page.run(
        "(() => { const s = document.getElementById('plan'); s.value = '1';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert page.run("document.title") == "columns – NeuroShard report" != before
    assert page.run("document.getElementById('measured')") is None


def ratios(page):
    """The third column of the comparison: costs to that of the plan."""
    return page.run(
        "[...document.querySelectorAll('#comparison tbody tr')].map(e => e.children[2].textContent)"
    )


def test_costs_by_the_models_of_the_search_are_not_compared_with_a_new_price(page, tmp_path):
    tables = [Table(f"table {number}", 10_000, 16, 1.0 + number) for number in range(6)]
    task = neuroshard.Task(tables, neuroshard.Topology(2, 64 << 20), 4096)
    plan = neuroshard.plan(task, models=MODELS, baselines=True, steps=500)
    plan.report(tmp_path / "plan.html")
    page.open(tmp_path / "plan.html")
    assert all(ratio.endswith("×") for ratio in ratios(page)[:2])
    shown = "document.getElementById('report').textContent"
    assert "by the models of the search" not in page.run(shown)
    priced = neuroshard.price(plan, models=["analytic-a100-80gb", *MODELS[1:]])
    priced.report(tmp_path / "priced.html")
    page.open(tmp_path / "priced.html")
    assert ratios(page)[0] == "1.00×"
    assert len(ratios(page)) > 1 and not any(ratios(page)[1:])
    for part in ("search", "comparison"):
        assert "by the models of the search" in page.run(
            f"document.querySelector('#{part} .warning').textContent"
        )


def background(page):
    return page.run("getComputedStyle(document.body).backgroundColor")


def test_colours_follow_the_system_and_the_button(page, small):
    page.colours("light")
    page.open(small)
    assert background(page) == "rgb(255, 255, 255)"
    page.colours("dark")
    wait_for(page, "document.getElementById('theme').textContent === 'Light'")
    assert background(page) == "rgb(20, 23, 26)"
    assert page.run("charts[0].chart.options.color") == "#e8ebee"
    page.click("#theme")
    assert background(page) == "rgb(255, 255, 255)"
    assert page.run("charts[0].chart.options.color") == "#1a1d21"
    page.colours("light")


def test_nothing_is_wider_than_a_phone(page, small):
    page.size(390, 844, phone=True)
    page.open(small)
    assert page.run("document.documentElement.scrollWidth") <= 390
    page.size(1280, 900)


def test_it_is_printed_in_light_colours(page, small, tmp_path):
    page.colours("dark")
    page.open(small)
    page.run(
        "window.addEventListener('beforeprint', () => {"
        " window.printed = charts.map((each) => each.chart.options.color); })"
    )
    page.paper(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert set(page.run("window.printed")) == {"#1a1d21"}
    assert page.run("charts[0].chart.options.color") == "#e8ebee"  # afterwards as before
    page.colours("light")


def test_many_tables_and_devices_stay_fluid(page, large):
    assert large.stat().st_size < 8 << 20
    seconds = page.open(large)
    assert seconds < 2.0
    for action in (
        "document.querySelector('#tables th:nth-child(1) button').click()",
        "const search = document.querySelector('#tables input'); search.value = '499';"
        " search.dispatchEvent(new Event('input'))",
        "const amount = [...document.querySelectorAll('#overview select')][1];"
        " amount.value = 'all'; amount.dispatchEvent(new Event('change'))",
    ):
        milliseconds = page.run(
            f"(async () => {{ const start = performance.now(); {action};"
            " await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));"
            " return performance.now() - start; })()"
        )
        assert milliseconds < 500
    assert names(page)[0] == "table 1499"
    assert page.run(COST_CHART + ".chart.data.labels.length") == 1024


def test_a_training_is_shown(page, tmp_path):
    costs = sorted((ROOT / "data" / "communication" / "simulated").glob("*-4x*"))[:8]
    report = tmp_path / "training.html"
    subprocess.run(
        [
            neuroshard.EXECUTABLE, "train", "communication", *costs, "--epochs", "2",
            "-o", tmp_path / "model.safetensors", "--report", report,
        ],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    page.open(report)
    assert "is off by" in page.run("document.querySelector('.headline').textContent")
    ids = page.run("[...document.querySelectorAll('section')].map(e => e.id)")
    assert ids == ["overview", "samples", "errors", "curve"]
    assert page.run("charts.length") == page.run("document.querySelectorAll('canvas').length") >= 4
