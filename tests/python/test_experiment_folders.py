"""Folders that scripts of docs/experiments go on in, with a program that only pretends: only one that
was made with the same options, and with whole folders of tasks alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "docs" / "experiments"

#: Makes one task and is killed, or, with WHOLE, makes two; can do nothing else.
PROGRAM = """#!/bin/sh
for word; do output=$word; done
case "$*" in
  "workload tasks "*)
    mkdir -p "$output" && echo '{}' >"$output/task-0.json"
    [ -n "$WHOLE" ] || kill -KILL $$
    echo '{}' >"$output/task-1.json" ;;
  *) exit 9 ;;
esac
"""
#: The scripts, and their first folder of tasks.
SCRIPTS = [("fresh_tasks.py", "computation-4"), ("replanning.py", "tables-4")]
#: What is not done, as opposed to what is refused.
ENDED = 1


@pytest.fixture
def run(tmp_path):
    """Runs a script of docs/experiments on the folder `kept`."""
    program = tmp_path / "neuroshard"
    program.write_text(PROGRAM)
    program.chmod(0o755)

    def run_script(script, *options, folder="kept", **environment):
        words = [sys.executable, "-B", EXPERIMENTS / script, folder, "--neuroshard", program]
        return subprocess.run(
            [*words, *map(str, options)],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run_script


def refusal(done):
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(("script", "tasks"), SCRIPTS)
def test_half_of_the_tasks_are_not_taken_for_all(run, tmp_path, script, tasks):
    assert run(script).returncode == ENDED
    assert not (tmp_path / "kept" / tasks).exists()
    assert run(script, WHOLE="1").returncode == ENDED
    made = sorted(path.name for path in (tmp_path / "kept" / tasks).iterdir())
    assert made == ["task-0.json", "task-1.json"]


@pytest.mark.parametrize(("script", "_"), SCRIPTS)
def test_a_folder_of_other_options_is_refused(run, tmp_path, script, _):
    (tmp_path / "mine.safetensors").write_text("one")
    model = ("--model", "mine.safetensors")
    options = ("--seed", 7, *model)
    assert run(script, *options).returncode == ENDED
    assert run(script, *options).returncode == ENDED  # goes on
    kept = (tmp_path / "kept" / "options.json").read_text()
    assert json.loads(kept)["seed"] == 7
    told = refusal(run(script, "--seed", 8, *model))
    place = f"{script}: kept/options.json: "
    assert told == place + "seed: expected 7, with which the folder was made, got 8"
    (tmp_path / "mine.safetensors").write_text("another")
    told = refusal(run(script, *options))
    assert told.startswith(place + 'model: expected ["mine.safetensors, SHA-256 ')
    assert (tmp_path / "kept" / "options.json").read_text() == kept


def test_a_folder_of_another_script_is_refused(run):
    assert run("fresh_tasks.py").returncode == ENDED
    told = refusal(run("replanning.py"))
    assert 'script: expected "fresh_tasks.py", with which the folder was made' in told


@pytest.mark.parametrize(("script", "_"), SCRIPTS)
def test_a_folder_that_does_not_say_its_options_must_be_empty(run, tmp_path, script, _):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "options.json.new").write_text("{")  # of a run that was killed
    assert run(script).returncode == ENDED
    (kept / "options.json").write_text("[")
    told = refusal(run(script))
    assert told == f"{script}: kept/options.json: expected an object of options, got something else"
    (kept / "options.json").unlink()
    told = refusal(run(script))
    assert told == f"{script}: kept: expected an empty folder or one with options.json, got other files"
    (tmp_path / "mine").write_text("no folder")
    told = refusal(run(script, folder="mine"))
    assert told == f"{script}: mine: expected a folder to write to, got File exists"
