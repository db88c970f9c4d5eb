"""The first visit to a machine with a GPU (scripts/gpu/first_run.sh), with programs that only
pretend: its order, what it keeps when a step fails or the time is over, and how it goes on."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu" / "first_run.sh"

NEUROSHARD = """#!/bin/bash
echo "$@" >>"$CALLS"
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then output=$2; fi
  shift
done
case $output in
  *b{batch_size}*)
    sleep "${COLLECTING:-0}"
    echo '{"forward_ms": 1}' >"${output%-b\\{*}-b64-sgd.jsonl" ;;
  */tasks-*) mkdir -p "$output" ;;
  ?*) echo model >"$output" ;;
esac
"""
STEPS = (
    "machine self_check sanitizer throughput embedding_bag short_collection short_training frontier "
    "usual_collection plans_collection collection training frontier_test compare_4 compare_8 "
    "compare_published"
).split()
SKIPPED = {"sanitizer", "throughput", "embedding_bag"}


@pytest.fixture
def visit(tmp_path):
    """Runs the script with these options on a build of programs that pretend."""
    build = tmp_path / "build"
    for name, text in {"cli/neuroshard": NEUROSHARD, "tests/test_cuda": "#!/bin/sh\n"}.items():
        program = build / name
        program.parent.mkdir(parents=True)
        program.write_text(text)
        program.chmod(0o755)

    def run(*options, state=tmp_path / "state", **environment):
        return subprocess.run(
            [SCRIPT, "--backend", "cpu", "--build", build, "--state", state, *map(str, options)],
            env=os.environ | {"CALLS": str(tmp_path / "calls")} | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    run.state = tmp_path / "state"
    run.calls = tmp_path / "calls"
    return run


def statuses(state):
    return {step: (state / f"{step}.status").read_text().split()[0].rstrip(",:") for step in STEPS}


def test_does_every_step_once(visit):
    done = visit()
    assert done.returncode == 0, done.stdout + done.stderr
    assert statuses(visit.state) == {
        step: "skipped" if step in SKIPPED else "done" for step in STEPS
    }
    began = [line.split()[1].rstrip(",") for line in done.stdout.splitlines() if "s left" in line]
    assert began == [step for step in STEPS if step not in SKIPPED]
    calls = visit.calls.read_text()
    assert visit().returncode == 0
    assert visit.calls.read_text() == calls  # nothing is done twice


@pytest.mark.parametrize("step", [step for step in STEPS if step not in SKIPPED])
def test_a_step_that_fails_leaves_the_others_their_results(visit, step):
    first = visit("--fail", step)
    assert first.returncode == 1
    failed = statuses(visit.state)
    assert failed.pop(step) == "failed"
    # What is trained or tested on this step's samples alone; all else has what it needs.
    may_lack = {"short_collection": {"short_training"}, "frontier": {"frontier_test"}}.get(step, set())
    assert all(
        status == "done" or name in SKIPPED | may_lack for name, status in failed.items()
    ), failed
    again = visit()
    assert again.returncode == 0, again.stdout
    assert statuses(visit.state)[step] == "done"


def test_trains_again_on_what_was_collected_later(visit):
    assert visit("--fail", "collection").returncode == 1
    os.utime(visit.state / "h200.safetensors", (1, 1))  # long before
    done = visit()
    assert done.returncode == 0
    began = [line.split()[1].rstrip(",") for line in done.stdout.splitlines() if "s left" in line]
    assert began == ["collection", "training", "frontier_test"]


def test_steps_that_are_left_out_are_done_by_a_later_call(visit):
    done = visit("--skip", "training,compare_8")
    assert done.returncode == 0
    found = statuses(visit.state)
    assert {step for step in STEPS if found[step] == "skipped"} == SKIPPED | {"training", "compare_8"}
    began = [line.split()[1].rstrip(",") for line in done.stdout.splitlines() if "s left" in line]
    assert "training" not in began and "compare_4" in began  # with the short model
    again = visit()
    assert again.returncode == 0
    began = [line.split()[1].rstrip(",") for line in again.stdout.splitlines() if "s left" in line]
    assert {"training", "compare_8"} <= set(began)
    assert "collection" not in began


def test_plans_are_made_by_the_model_that_a_collection_began_with(visit):
    assert visit("--skip", "short_training,plans_collection").returncode == 0
    (visit.state / "planning_model").write_text("analytic-h100-sxm\n")
    assert visit().returncode == 0
    calls = [line for line in visit.calls.read_text().splitlines() if "--sets plans" in line]
    assert len(calls) == 2
    assert all("--planned-by analytic-h100-sxm" in line for line in calls)


def test_a_seed_draws_what_is_trained_on_anew_and_leaves_the_frontier(visit):
    assert visit("--seed", 7000).returncode == 0
    seeds = {
        line.split(" -o ")[1].split("/")[-1].split("-b{")[0]: line.split("--seed ")[1].split()[0]
        for line in visit.calls.read_text().splitlines()
        if line.startswith("collect")
    }
    assert seeds == {
        "coverage": "8000",
        "frontier": "3000",
        "dlrm-2021": "7001",
        "plans-dlrm-2021": "16000",
        "plans-mlperf-dlrm-dcnv2": "16100",
    }


def test_stops_in_time_and_goes_on(visit):
    done = visit("--minutes", 1, COLLECTING="314.159", SECONDS="52")
    assert done.returncode == 3
    found = statuses(visit.state)
    assert found["self_check"] == "done"
    assert found["short_collection"] == "out"
    assert found["compare_8"] in ("out", "skipped")
    assert subprocess.run(["pgrep", "-f", "^sleep 314.159$"]).returncode == 1
    assert visit().returncode == 0


def test_another_machine_goes_on_from_the_packed_results(visit, tmp_path):
    assert visit("--fail", "compare_8").returncode == 1
    (tmp_path / "elsewhere").mkdir()
    packed = visit.state / "results.tar.gz"
    subprocess.run(["tar", "-C", tmp_path / "elsewhere", "-xzf", packed], check=True)
    calls = visit.calls.read_text()
    assert visit(state=tmp_path / "elsewhere").returncode == 0
    new = visit.calls.read_text().removeprefix(calls)
    assert [line.split()[:2] for line in new.splitlines()] == [
        ["workload", "tasks"],
        ["compare", str(tmp_path / "elsewhere" / "tasks-8")],
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes", "soon"], '--minutes: expected a whole number from 1, got "soon"'),
        (["--percent", "0"], '--percent: expected 1 to 100, got "0"'),
        (["--backend", "tpu"], '--backend: expected cuda or cpu, got "tpu"'),
        (["--build", "nowhere"], '--build: expected a folder with cli/neuroshard, got "nowhere"'),
        (["--state"], "--state: expected a value, got none"),
        (["--skip", "training,lunch"], 'compare_published, got "lunch"'),
        (["--seed", "07"], '--seed: expected a whole number from 0, got "07"'),
        (["--often", "1"], "got \"--often\""),
    ],
)
def test_refuses_wrong_options(visit, options, message):
    done = visit(*options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (visit.state / "results.tar.gz").exists()
