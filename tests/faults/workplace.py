"""Folders in which commands run, and what a command leaves there compared with what it should."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from commands import COMMANDS, INPUTS, TASK, Command

# A command that takes longer hangs: without faults each takes a second or two.
MOST_SECONDS = 120

# What times and random names may change from one run to the next.
NUMBER = re.compile(r"(-?\b\d+(?:\.\d+)?(?:e[-+]?\d+)?(?: ?(?:s|ms|us|min)|x)?\b|\b[0-9a-f]{64}\b)")
SPACES = re.compile(r" +")  # columns of a table are as wide as their numbers
OLD = b'{"an older file": "which a command replaces"}\n'
TEMPORARY = re.compile(r"(^|/)\.neuroshard-\d+-\d+\.tmp$")


@dataclass
class Run:
    """What a run did."""

    exit_code: int  # minus the signal's number if one ended it
    out: str
    err: str
    files: dict[str, bytes]
    seconds: float
    is_hanging: bool = False


@dataclass
class Reference:
    """What runs without a fault did: texts as tokens, None where the runs differ."""

    out: list[str | None] | None
    err: list[str]
    files: dict[str, list[str | None]]
    old: dict[str, bytes]  # what is in the place of the outputs before the command, if anything
    inputs: dict[str, bytes]
    sizes: dict[str, int]  # of the files, in the run that wrote most
    seconds: float
    is_timed: bool


def text_of(name: str, content: bytes, is_timed: bool) -> str:
    """A file as text, for comparison; of measured samples the header and their number, in one line,
    since numbers of later lines are taken for measured. A model's weights are left out: they follow
    what was measured. ValueError for samples of which one is lost or doubled."""
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    if name.endswith(".safetensors"):
        size = int.from_bytes(content[:8], "little")
        tensors = json.loads(content[8 : 8 + size])
        end = max(tensor["data_offsets"][1] for name, tensor in tensors.items() if name[0] != "_")
        whole = "whole" if len(content) == 8 + size + end else "cut"
        return f"{whole}\n{json.dumps(tensors)}"
    if is_timed and name.endswith(".jsonl"):
        header, *samples = content.decode().splitlines()
        indexes = sorted(json.loads(line)["index"] for line in samples)
        if indexes != list(range(len(indexes))):
            raise ValueError(f"expected each sample once, got {indexes}")
        return f"{len(indexes)} samples: {header}"
    return content.decode()


def tokens_of(text: str) -> list[str]:
    """The text in parts, every second of which is a number."""
    return NUMBER.split(SPACES.sub(" ", text))


def pattern_of(texts: list[str], is_timed: bool) -> list[str | None]:
    """The tokens that all texts have in common; None for numbers that differ or are measured, which
    those of a file's first line are not."""
    split = [tokens_of(text) for text in texts]
    if len({len(tokens) for tokens in split}) != 1:
        raise SystemExit(f"expected runs that differ in numbers alone, got {texts[0]} and {texts[1]}")
    pattern: list[str | None] = []
    is_first_line = True
    for place, tokens in enumerate(zip(*split)):
        is_number = place % 2 == 1
        differs = len(set(tokens)) > 1
        if differs and not is_number:
            raise SystemExit(f"expected runs that differ in numbers alone, got {set(tokens)}")
        is_measured = is_timed and not is_first_line
        pattern.append(None if is_number and (differs or is_measured) else tokens[0])
        is_first_line = is_first_line and "\n" not in tokens[0]
    return pattern


def pattern_of_stdout(texts: list[str], is_timed: bool) -> list[str | None] | None:
    """Of a text for people any number may be a time, which two runs may well round to the same; None
    where the words too depend on what was measured."""
    if is_timed:
        return None
    pattern = pattern_of(texts, is_timed)
    if texts[0].startswith(("{", "[")):
        return pattern
    return [None if place % 2 == 1 else token for place, token in enumerate(pattern)]


def fits(pattern: list[str | None], text: str) -> bool:
    tokens = tokens_of(text)
    return len(tokens) == len(pattern) and all(
        wanted in (None, token) for wanted, token in zip(pattern, tokens)
    )


class Workplace:
    """Runs the commands of one executable, each in a folder of its own."""

    def __init__(self, executable: Path, folder: Path):
        self.executable = executable
        self.folder = folder
        self.inputs = folder / "inputs"
        self.inputs.mkdir()
        (self.inputs / "task.json").write_text(TASK)
        for command in INPUTS:
            made = self.run(command, {})
            if made.exit_code != 0:
                raise SystemExit(f"{command.name}: {made.err}")
            (self.inputs / command.name).write_bytes(made.files[command.name])
        header, *samples = (self.inputs / "costs.jsonl").read_text().splitlines(keepends=True)
        for part in range(2):
            (self.inputs / f"part-{part}.jsonl").write_text(header + "".join(samples[part::2]))
        self.by_name = {command.name: command for command in COMMANDS}

    def run(
        self,
        command: Command,
        before: dict[str, bytes],
        environment: dict[str, str] | None = None,
        kill_after: float | None = None,
        keep: Path | None = None,
    ) -> Run:
        """Runs the command in a folder with its inputs and the files of `before`."""
        place = Path(tempfile.mkdtemp(dir=self.folder, prefix="run-"))
        try:
            self.fill(place, command, before)
            run = self.run_in(place, command, environment, kill_after)
            run.files = files_in(place)
            return run
        finally:
            if keep is None:
                shutil.rmtree(place)

    def fill(self, place: Path, command: Command, before: dict[str, bytes]) -> None:
        """Puts the command's inputs and the files of `before` into a folder."""
        for name in command.inputs:
            if name not in before:
                shutil.copyfile(self.inputs / name, place / name)
        for name, content in before.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)

    def run_in(
        self,
        place: Path,
        command: Command,
        environment: dict[str, str] | None = None,
        kill_after: float | None = None,
    ) -> Run:
        """Runs the command in a folder that is there, in which others may run too: the files are
        left to the caller."""
        start = time.monotonic()
        is_hanging = False
        with (
            tempfile.TemporaryFile(dir=self.folder) as out_file,
            tempfile.TemporaryFile(dir=self.folder) as err_file,
        ):
            process = subprocess.Popen(
                [self.executable, *command.line.split()],
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
            try:
                process.wait(kill_after if kill_after is not None else MOST_SECONDS)
            except subprocess.TimeoutExpired:
                is_hanging = kill_after is None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            seconds = time.monotonic() - start
            out_file.seek(0)
            err_file.seek(0)
            out, err = out_file.read().decode(), err_file.read().decode()
        return Run(process.returncode, out, err, {}, seconds, is_hanging)

    def reference(self, command: Command, with_old: bool) -> Reference:
        """Runs the command without faults; `with_old`: over older files in its outputs' place, those
        of lines being cut in their last line."""
        inputs = {name: (self.inputs / name).read_bytes() for name in command.inputs}
        old: dict[str, bytes] = {}
        if with_old:
            for name, content in self.run(command, {}).files.items():
                if is_continued(command, name):
                    old[name] = content[:-20]
                elif name in command.outputs:  # a folder's models are gone on from, not replaced
                    old[name] = OLD
        runs = [self.run(command, old) for _ in range(3)]
        for run in runs:
            if run.exit_code != 0:
                raise SystemExit(f"{command.name}: expected exit code 0 without a fault: {run.err}")
        names = set(runs[0].files) - set(inputs)
        return Reference(
            pattern_of_stdout([run.out for run in runs], command.is_timed),
            sorted({line for run in runs for line in masked_lines(run.err)}),
            {
                name: pattern_of(
                    [text_of(name, run.files[name], command.is_timed) for run in runs],
                    command.is_timed,
                )
                for name in names
            },
            old,
            inputs,
            {name: max(len(run.files[name]) for run in runs) for name in names},
            max(run.seconds for run in runs),
            command.is_timed,
        )


def files_in(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def shown_lines(text: str) -> list[str]:
    """Without the progress that a command shows where it takes long."""
    return [line for line in text.splitlines() if not line.startswith("epoch ")]


def masked_lines(text: str) -> list[str]:
    return [NUMBER.sub("#", line) for line in shown_lines(text)]


def is_whole(name: str, content: bytes, reference: Reference) -> bool:
    """Whether a file is what a run without a fault would have left."""
    pattern = reference.files.get(name)
    if pattern is None:
        return False
    try:
        return fits(pattern, text_of(name, content, reference.is_timed))
    except (ValueError, OSError, EOFError, KeyError):
        return False


def is_continued(command: Command, name: str) -> bool:
    """Whether a file grows line by line; all others are written at once."""
    return name.endswith(".jsonl") and name not in (*command.inputs, *command.replaced)


def whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


def to_go_on_from(command: Command, reference: Reference, run: Run) -> dict[str, bytes]:
    """What a run left that the same command goes on from. Results that it had written already are
    taken away: a model is replaced only where the command says so."""
    return {
        **reference.old,
        **{
            name: content
            for name, content in run.files.items()
            if is_continued(command, name)
            or (name.startswith(command.outputs) and "/" in name and not TEMPORARY.search(name))
        },
    }


def what_is_wrong_with_files(
    command: Command, reference: Reference, run: Run, is_killed: bool = False
) -> list[str]:
    """Of a run that failed: files half written, lost, changed or left behind."""
    wrong = []
    for name, content in reference.inputs.items():
        if run.files.get(name) != content:
            wrong.append(f"{name}: an input was changed")
    for name, content in reference.old.items():
        if name not in run.files:
            wrong.append(f"{name}: an older file is gone")
        elif is_continued(command, name) and not run.files[name].startswith(whole_lines(content)):
            wrong.append(f"{name}: older lines are gone")
    for name, content in run.files.items():
        if name in reference.inputs or content == reference.old.get(name):
            continue
        if TEMPORARY.search(name):
            if is_killed:
                continue
            if name not in run.err:  # the error says where it is, if it could not take its name
                wrong.append(f"{name}: a temporary file was left behind")
            elif not any(is_whole(output, content, reference) for output in reference.files):
                wrong.append(f"{name}: what was kept is not whole")
        elif not any(
            name == output or (output.endswith("/") and name.startswith(output))
            for output in command.outputs
        ):
            wrong.append(f"{name}: a file that is none of its outputs")
        elif is_continued(command, name):
            if not is_killed and content != whole_lines(content):
                wrong.append(f"{name}: a line is cut")
        elif not is_whole(name, content, reference):
            wrong.append(f"{name}: neither the older file nor a whole new one")
    return wrong


def what_is_wrong_with_success(reference: Reference, run: Run) -> list[str]:
    """Of a run that says that all went well."""
    wrong = []
    if reference.out is not None and not fits(reference.out, run.out):
        wrong.append("stdout differs from that of a run without a fault")
    unexpected = [line for line in masked_lines(run.err) if line not in reference.err]
    if unexpected:
        wrong.append(f"exit code 0, yet stderr says {unexpected[0]}")
    return wrong + what_is_wrong_with_results(reference, run.files)


def what_is_wrong_with_results(reference: Reference, files: dict[str, bytes]) -> list[str]:
    """Of the files that are there in the end, whatever the run said: it may say that less was left
    to do."""
    wrong = []
    expected = set(reference.files) | set(reference.inputs)
    for name in sorted(expected | set(files)):
        if name not in files:
            wrong.append(f"{name}: missing after exit code 0")
        elif name in reference.inputs:
            if files[name] != reference.inputs[name]:
                wrong.append(f"{name}: an input was changed")
        elif not is_whole(name, files[name], reference):
            wrong.append(f"{name}: differs after exit code 0 from that of a run without a fault")
    return wrong


def what_is_wrong_with_refusal(
    command: Command, reference: Reference, run: Run, reason: str = ""
) -> list[str]:
    """Of a run that could not write its outputs: its exit code, and the line that should name one
    of them and the reason."""
    if run.is_hanging:
        return ["it hangs"]
    if run.exit_code != 2:
        return [f"exit code {run.exit_code}, not 2: {run.err[-300:]}"]
    said = [
        line
        for line, masked in zip(shown_lines(run.err), masked_lines(run.err))
        if masked not in reference.err
    ]
    begins = tuple(f"neuroshard: {output.rstrip('/')}" for output in command.outputs)
    if len(said) != 1 or not said[0].startswith(begins) or not said[0].isprintable():
        return [f"expected one line on stderr that names an output, got {run.err[-500:]!r}"]
    if reason not in said[0]:
        return [f"stderr does not say {reason!r}: {said[0]}"]
    return []
