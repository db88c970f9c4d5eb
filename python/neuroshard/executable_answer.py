"""Answers of the package's executable: its JSON, its warnings and notes, its refusals as errors."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .errors import InfeasibleError, InputError, MachineError
from .executable import EXECUTABLE


#: How names of files end that could be names of something else.
_FILES = (".safetensors", ".xml", ".jsonl", ".gz")


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


def file_or_name(name: str) -> str:
    """The absolute path of what is a file, as another folder needs it; a name stays one."""
    is_file = os.sep in name or name.endswith(_FILES)
    return os.path.abspath(name) if is_file else name


def repeated(option: str, values: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The option once for each value, which may begin with a dash; what is a file by its absolute
    path."""
    return [f"{option}={file_or_name(os.fspath(value))}" for value in values]


def _lines_of(messages: str, kind: str) -> list[str]:
    """The executable's messages of a kind: "warning" or "note"."""
    prefix = f"neuroshard: {kind}: "
    return [
        line.removeprefix(prefix) for line in messages.splitlines() if line.startswith(prefix)
    ]
