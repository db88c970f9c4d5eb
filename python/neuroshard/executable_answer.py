"""Answers of the package's executable: its JSON, its warnings and notes, its refusals as errors."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _core
from .errors import InfeasibleError, InputError, MachineError
from .executable import EXECUTABLE, environment_elsewhere


class Answer(NamedTuple):
    """What a command with --json said."""

    found: dict[str, Any]
    warnings: list[str]
    notes: list[str]


def answer_of(arguments: Sequence[str], folder: str, names: Mapping[str, str]) -> Answer:
    """Runs the executable in `folder`, where its inputs are files that the caller has other `names`
    for. Raises the error of its exit code."""
    command = [os.fspath(EXECUTABLE), *arguments, "--json"]
    run = subprocess.run(
        command,
        cwd=folder,
        env=environment_elsewhere(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if run.returncode != 0:
        error = {1: InfeasibleError, 2: InputError}.get(run.returncode, MachineError)
        # Warnings and notes may come before it.
        said = run.stderr.strip().rpartition("\n")[2].removeprefix("neuroshard: ")
        raise error(with_names(said, names) or f"neuroshard ended with exit code {run.returncode}")
    return Answer(
        json.loads(run.stdout),
        [with_names(line, names) for line in _lines_of(run.stderr, "warning")],
        [with_names(line, names) for line in _lines_of(run.stderr, "note")],
    )


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text with the caller's names in the place of the files'."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text


def of_models(names: Iterable[str]) -> list[str]:
    """Options for models: what is a file by its absolute path, as another folder needs it; a name
    stays one."""
    # Of a path, or a file in the working folder, the library says that the name itself is the file.
    return [
        f"--model={os.path.abspath(name) if _core.find_file_of_model(name) == name else name}"
        for name in names
    ]


def of_platform(name: str) -> str:
    """Option for a cluster, a preset or a platform file, likewise."""
    is_file = os.sep in name or name.endswith(".xml")
    return f"--platform={os.path.abspath(name) if is_file else name}"


def of_files(option: str, paths: Iterable[str]) -> list[str]:
    """The option once for each file, whatever it is called."""
    return [f"{option}={os.path.abspath(path)}" for path in paths]


def _lines_of(messages: str, kind: str) -> list[str]:
    """The executable's messages of a kind: "warning" or "note"."""
    prefix = f"neuroshard: {kind}: "
    return [
        line.removeprefix(prefix) for line in messages.splitlines() if line.startswith(prefix)
    ]
