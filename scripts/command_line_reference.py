#!/usr/bin/env python3
"""Makes docs/command_line.md from the executable's own --help, of every subcommand.

    scripts/command_line_reference.py build/release/cli/neuroshard             writes the page
    scripts/command_line_reference.py build/release/cli/neuroshard --check     compares it
    scripts/command_line_reference.py build/release/cli/neuroshard -o FILE     writes it elsewhere
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command_line.md"

INTRODUCTION = """\
<!-- Made by scripts/command_line_reference.py from --help; do not edit. -->
# Command line

Every subcommand of `neuroshard` and its options, as `--help` prints them. After a change of an
option, `scripts/command_line_reference.py build/release/cli/neuroshard` writes this page again; a
test compares it with the executable.

| notation | meaning |
|---|---|
| `TEXT`, `INT`, `UINT`, `FLOAT` | the kind of value; `=VALUE` behind it is the default |
| `...` | several values |
| `REQUIRED` | must be given |
| `{a,b}` | one of these |
| `A..B` | a number from A to B |
| `Excludes: --x` | not together with `--x` |

| input | written as |
|---|---|
| sizes | `80GiB`, `512MiB`, or bytes |
| times | `500ms`, `10s`, `2min` |
| ranges | `MIN:MAX` |

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the answer is no: no plan fits, a plan is not valid, or `evaluate --check` finds other values |
| 2 | bad input or usage |
| 3 | the machine failed: out of memory, a device's error |

| environment | meaning |
|---|---|
| `NEUROSHARD_MODELS` | folders of models, separated by colons, searched by name before the shipped ones |
| `NEUROSHARD_MAX_INPUT` | most bytes of an input file, decompressed (`1GiB`); a JSON text may have one value for each 32 of them. A larger file is refused before it takes more memory |
| `NEUROSHARD_HANG_LIMIT` | time after which a process under `mpirun` that stands still (stopped, or asleep without using a processor) is ended, and with it the run (`15s`) |

Results go to stdout, messages to stderr. `-` as an output is standard output, but for what is
measured, trained or journalled, which is a file in any case; as a task or plan it is standard
input, which errors call `/dev/stdin`. A named pipe is waited for until its other end is opened too;
measured costs to train on are read twice, so not from a pipe. Plans, evaluations, reports and other
results replace older ones; measured costs, journals and models are replaced only with `--force`.
Long work shows its progress and the time left: on a terminal in one line, elsewhere in a line every
few seconds. The files are described in [formats.md](formats.md).
"""

# CLI11 prints an option's name from column 2 and its description from column 30, on the next line
# where the name is longer.
DESCRIPTION_COLUMN = 30


class Section:
    """A group of --help, e.g. "Options:", with its entries as pairs (name, description)."""

    def __init__(self, title):
        self.title = title
        self.entries = []


def indentation(line):
    return len(line) - len(line.lstrip())


def parse_help(text):
    """Description, usage and sections of one --help."""
    description, usage, sections = [], "", []
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""]):
        if line.startswith("Usage: "):
            usage = line.removeprefix("Usage: ")
        elif not line.strip():
            continue
        elif not line.startswith(" "):
            if usage and line.endswith(":"):
                sections.append(Section(line[:-1]))
            else:
                description.append(line)
        elif sections and sections[-1].title == "Examples":
            sections[-1].entries.append([line.strip(), ""])
        elif not sections:
            raise SystemExit(f"expected a heading such as \"Options:\", got {line!r}")
        elif indentation(line) < DESCRIPTION_COLUMN:
            name, rest = line[:DESCRIPTION_COLUMN], line[DESCRIPTION_COLUMN:]
            # Of a longer name, a space may lie before that column too.
            is_longer = not name.endswith("  ") and indentation(following) >= DESCRIPTION_COLUMN
            if name.endswith(" ") and not is_longer:
                sections[-1].entries.append([name.strip(), rest.strip()])
            else:
                sections[-1].entries.append([line.strip(), ""])
        else:
            entry = sections[-1].entries[-1]
            entry[1] = f"{entry[1]} {line.strip()}".strip()
    return " ".join(description), usage, sections


def cell(text):
    return text.replace("|", "\\|")


def page_of(executable, words=()):
    """The chapters of a command and of all its subcommands."""
    run = subprocess.run([executable, *words, "--help"], capture_output=True, text=True, check=True)
    description, usage, sections = parse_help(run.stdout)
    lines = []
    if words:
        lines.append(f"{'#' * (len(words) + 1)} {' '.join(words)}")
        lines.append(f"{description}\n" if description.endswith((".", "?")) else f"{description}.\n")
        lines.append(f"    neuroshard {usage.removeprefix('neuroshard ')}\n")
    subcommands = []
    for section in sections:
        entries = [entry for entry in section.entries if not entry[0].startswith("-h,")]
        if section.title == "Examples":
            lines.append("Examples:\n")
            lines += [f"    {example}" for example, _ in entries]
            lines.append("")
        elif section.title == "Subcommands":
            subcommands = [name for name, _ in entries]
            lines.append("| subcommand | what it does |\n|---|---|")
            for name, meaning in entries:
                anchor = "-".join([*words, name])
                lines.append(f"| [`{name}`](#{anchor}) | {cell(meaning)} |")
            lines.append("")
        elif entries:
            title = {"Positionals": "argument", "Options": "option"}.get(section.title, section.title)
            lines.append(f"| {title} | meaning |\n|---|---|")
            lines += [f"| `{cell(name)}` | {cell(meaning)} |" for name, meaning in entries]
            lines.append("")
    for name in subcommands:
        lines += page_of(executable, (*words, name))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("executable")
    parser.add_argument("--check", action="store_true", help="compare with the page, write nothing")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    options = parser.parse_args()

    text = INTRODUCTION + "\n" + "\n".join(page_of(options.executable)).rstrip() + "\n"
    # Lines that continue a paragraph or a table follow it at once; everything else has a blank line.
    text = re.sub(r"\n{3,}", "\n\n", text)
    if not options.check:
        options.output.write_text(text)
        return 0
    there = options.output.read_text() if options.output.exists() else ""
    if there == text:
        return 0
    old, new = there.splitlines(), text.splitlines()
    for number in range(max(len(old), len(new))):
        a = old[number] if number < len(old) else "nothing"
        b = new[number] if number < len(new) else "nothing"
        if a != b:
            print(f"{options.output}: line {number + 1}: expected {b!r}, got {a!r}; "
                  f"write it again: scripts/command_line_reference.py {options.executable}",
                  file=sys.stderr)
            return 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
