"""The first visit to a machine with a GPU (scripts/gpu/first_run.sh), with programs that only
pretend: its order, what it keeps when a step fails or the time is over, and how it goes on."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu" / "first_run.sh"

NEUROSHARD = """#!/bin/bash
if [[ "$*" == *"--gpus 1023"* ]]; then
  echo "neuroshard: ${SAYS:---gpus: expected devices from 0 to 0, got 1023}" >&2
  exit 2
fi
echo "$@" >>"$CALLS"
if [ -n "$KEEP" ]; then cp "$KEEP" "$CALLS.tar.gz"; fi
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then output=$2; fi
  shift
done
case $output in
  *b{batch_size}*)
    sleep "${COLLECTING:-0}"
    echo '{"forward_ms": 1}' >"${output%-b\\{*}-b64-sgd.jsonl" ;;
  */tasks-*) mkdir -p "$output" ;;
  ?*) echo "${MODEL:-model} ${output##*/}" >"$output" ;;
esac
"""
TEST_CUDA = """#!/bin/sh
echo "${TESTS:-[  PASSED  ] 3 tests.}"
"""
STEPS = (
    "machine self_check sanitizer throughput embedding_bag short_collection short_training frontier "
    "usual_collection plans_collection collection training frontier_test compare_4 compare_8 "
    "compare_published"
).split()
SKIPPED = {"sanitizer", "throughput", "embedding_bag"}


def add_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def visit(tmp_path):
    """Runs the script with these options on a build of programs that pretend."""
    build = tmp_path / "build"
    add_program(build / "cli" / "neuroshard", NEUROSHARD)
    add_program(build / "tests" / "test_cuda", TEST_CUDA)

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


def all_but(*steps):
    return ",".join(step for step in STEPS if step not in steps)


def packed(path):
    with tarfile.open(path) as archive:
        return set(archive.getnames())


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


def test_plans_are_compared_anew_by_another_model(visit):
    assert visit("--fail", "collection").returncode == 1
    os.utime(visit.state / "h200.safetensors", (1, 1))  # long before
    done = visit(MODEL="another")
    assert done.returncode == 0
    began = [line.split()[1].rstrip(",") for line in done.stdout.splitlines() if "s left" in line]
    compared = ["compare_4", "compare_8", "compare_published"]
    assert began == ["collection", "training", "frontier_test", *compared]
    calls = [line for line in visit.calls.read_text().splitlines() if line.startswith("compare ")]
    journals = [line.split("--journal ")[1].split()[0] for line in calls]
    results = [line.split(" -o ")[1] for line in calls]
    assert len(calls) == len(set(journals)) == len(set(results)) == 6  # a model's own
    assert statuses(visit.state)["compare_8"] == "done"


def test_a_comparison_by_an_older_model_is_not_done_when_the_time_is_over(visit):
    assert visit().returncode == 0
    (visit.state / "h200.safetensors").write_text("of another machine")
    done = visit("--minutes", 1, SECONDS="60")
    assert done.returncode == 3
    assert statuses(visit.state)["compare_4"] == "out"
    assert visit().returncode == 0
    assert statuses(visit.state)["compare_4"] == "done"


@pytest.mark.parametrize(
    "said",
    [
        "[  PASSED  ] 0 tests.",
        "[  SKIPPED ] DeviceOperator.X (0 ms)\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test.",
        "no test's name",
    ],
)
def test_a_check_that_has_checked_nothing_fails(visit, said):
    done = visit("--skip", all_but("self_check"), TESTS=said)
    assert done.returncode == 1
    assert "expected tests that ran, got skipped ones or none" in done.stdout
    assert statuses(visit.state)["self_check"] == "failed"


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


def test_a_sanitizer_ends_with_the_time(visit, tmp_path):
    programs = tmp_path / "programs"
    add_program(programs / "compute-sanitizer", "#!/bin/bash\nsleep 161.803\n")
    done = visit(
        *("--backend", "cuda", "--skip", all_but("sanitizer"), "--minutes", 1),
        PATH=f"{programs}:{os.environ['PATH']}",
        SECONDS="52",
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert statuses(visit.state)["sanitizer"] == "out"
    assert subprocess.run(["pgrep", "-f", "^sleep 161.803$"]).returncode == 1


def test_a_sanitizer_must_have_run_a_test_with_each_tool(visit, tmp_path):
    programs = tmp_path / "programs"
    only_memcheck = """#!/bin/sh
case $* in
  *memcheck*) echo "[  PASSED  ] 1 test." ;;
  *) echo "[  PASSED  ] 0 tests." ;;
esac
"""
    add_program(programs / "compute-sanitizer", only_memcheck)
    options = ("--backend", "cuda", "--skip", all_but("sanitizer"))
    path = f"{programs}:{os.environ['PATH']}"
    assert visit(*options, PATH=path).returncode == 1
    assert statuses(visit.state)["sanitizer"] == "failed"
    passing = "#!/bin/sh\necho '[  PASSED  ] 1 test.'\n"
    add_program(programs / "compute-sanitizer", passing)
    assert visit(*options, PATH=path).returncode == 0


def test_what_is_done_is_packed_after_each_step(visit, tmp_path):
    (visit.state / "cases").mkdir(parents=True)  # of embedding_bag, ended in its middle
    (visit.state / "cases" / "indices.bin").write_text("gigabytes")
    results = tmp_path / "elsewhere.tar.gz"
    done = visit("--results", results, KEEP=str(results))
    assert done.returncode == 0, done.stdout + done.stderr
    before_the_last_step = packed(f"{visit.calls}.tar.gz")
    assert {"compare_8.status", "h200.safetensors", "summary.txt"} <= before_the_last_step
    assert "compare_published.status" not in before_the_last_step
    at_the_end = packed(results)
    assert {f"{step}.status" for step in STEPS} <= at_the_end
    assert not any(name.startswith("cases") for name in at_the_end)
    assert not (visit.state / "results.tar.gz").exists()


def test_a_file_that_changes_while_it_is_packed_does_not_spoil_the_results(visit, tmp_path):
    programs = tmp_path / "programs"
    add_program(programs / "tar", f'#!/bin/sh\n{shutil.which("tar")} "$@"\nexit 1\n')
    done = visit("--skip", all_but("machine"), PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "machine.status" in packed(visit.state / "results.tar.gz")


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


def test_half_of_the_tasks_are_not_taken_for_all(visit):
    half = visit.state / "tasks-4.new"
    half.mkdir(parents=True)
    (half / "task-00.json").write_text("of a call that was cut off")
    assert visit().returncode == 0
    assert not half.exists()
    assert not list((visit.state / "tasks-4").iterdir())  # those of the program that pretends
    [made] = [line for line in visit.calls.read_text().splitlines() if "tasks-4.new" in line]
    assert made.startswith("workload tasks ")


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
        (["--results", "no/where.tar.gz"], "--results: expected a file in a folder that there is"),
        (["--often", "1"], "got \"--often\""),
    ],
)
def test_refuses_wrong_options(visit, options, message):
    done = visit(*options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (visit.state / "results.tar.gz").exists()


def test_refuses_an_executable_without_cuda_before_the_first_step(visit):
    says = "cuda: expected an executable built with CUDA, got one without: build where nvcc is"
    done = visit("--backend", "cuda", SAYS=says)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--build: expected an executable built with CUDA (make portable CUDA=ON)" in done.stderr
    assert not list(visit.state.glob("*.status"))
