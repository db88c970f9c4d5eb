#!/usr/bin/env python3
"""Checks the commands in the documents: subcommands and options of `neuroshard` against the page
docs/command_line.md (which a test compares with --help), targets of make, options of
`python -m neuroshard.collect`, test suites and benchmarks by name, and scripts and data by path.

    scripts/check_commands.py             prints each command that does not exist; exit code 1 if any
    scripts/check_commands.py FILE...     of these documents alone

A command is a line of a block of code, or what stands in `code` and begins with a program's name.
"""

import os
import re
import shlex
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # no folder of its own in the source tree
from check_documents import FENCE, ROOT, documents, shown  # noqa: E402

SHELL_OPERATORS = re.compile(r"(?:&&|\|\||[|;]|(?<=\s)&$|\$\(|\)(?=\s|$))")
PROGRAM = re.compile(
    r"^(?:\S*/cli/neuroshard|neuroshard|make|scripts/\S+|docs/\S+|data/\S+|\S*/tests/test_\w+"
    r"|\S*/bench/\w+|\S*python3?|\S*torchrun|mpirun)$"
)
#: Between documents and the program itself: what runs another program, with how many arguments.
RUNNERS = {"time": 0, "nice": 0, "env": 0, "timeout": 1, "taskset": 2}
OPTION = re.compile(r"^(--[a-z][\w-]*|-[a-zA-Z])(?:=.*)?$")


def subcommands():
    """{"collect compute": {"--samples", ...}} of the command line's page."""
    result = {"": {"--version"}}
    name = ""
    for line in (ROOT / "docs/command_line.md").read_text().splitlines():
        if heading := re.match(r"^##+ ([a-z][a-z -]*)$", line):
            name = heading.group(1)
            result[name] = {"--help", "-h"}
        elif line.startswith("| `-") and name:
            for option in line.split("`")[1].split(" ")[0].split(","):
                result[name].add(option.partition("=")[0])
    return result


def make_targets():
    text = (ROOT / "Makefile").read_text()
    names = re.findall(r"^([a-z][a-z -]*):(?!=)", text, re.M)
    variables = re.findall(r"^([A-Z_]+) *\??=", text, re.M)
    return {name for line in names for name in line.split()}, set(variables)


def suites():
    """The suites and benchmarks that the sources define."""
    found = set()
    for folder in ("tests", "bench"):
        for path in (ROOT / folder).rglob("*.cpp"):
            text = path.read_text()
            found |= set(re.findall(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\((\w+)", text, re.M))
            found.add(path.stem)
    return found


class Checker:
    def __init__(self):
        self.commands = subcommands()
        self.targets, self.variables = make_targets()
        self.suites = suites()
        self.collect_options = set(
            re.findall(r'"(--?[a-z][\w-]*)"', (ROOT / "python/neuroshard/collect.py").read_text())
        ) | {"--help"}

    def check(self, words):
        """What of a command does not exist; the words are those of one command."""
        while words and (re.match(r"^[A-Z_]+=", words[0]) or words[0] in RUNNERS):
            words = words[1 + RUNNERS.get(words[0], 0) :]
        if not words or not PROGRAM.match(words[0]):
            return
        program, arguments = words[0], words[1:]
        if program == "mpirun" or program.endswith("torchrun"):
            for i, word in enumerate(arguments):
                if PROGRAM.match(word):
                    yield from self.check(arguments[i:])
                    return
                if word.endswith(".py"):
                    yield from self.files([word])
                    return
        elif program.endswith("neuroshard"):
            yield from self.of_executable(arguments)
        elif program == "make":
            yield from self.of_make(arguments)
        elif "/tests/test_" in program or "/bench/" in program:
            yield from self.of_tests(program, arguments)
        elif re.search(r"python3?$", program):
            yield from self.of_python(arguments)
        else:
            path = ROOT / program
            if path.is_file() and not os.access(path, os.X_OK):
                yield f"expected an executable file, got {program}"
            yield from self.files([program, *arguments])

    def of_executable(self, arguments):
        name = ""
        while arguments and f"{name} {arguments[0]}".strip() in self.commands:
            name = f"{name} {arguments[0]}".strip()
            arguments = arguments[1:]
        # A table that the program prints begins with an algorithm, also "neuroshard", and a number.
        is_command = arguments and re.match(r"^[a-z]", arguments[0])
        if not name and is_command:
            yield f"expected a subcommand, got {arguments[0]}"
            return
        for word in arguments:
            option = OPTION.match(word)
            if option and option.group(1) not in self.commands[name]:
                yield f"expected an option of {name}, got {option.group(1)}"

    def of_make(self, arguments):
        for word in arguments:
            variable, is_set, _ = word.partition("=")
            if is_set and variable not in self.variables:
                yield f"expected a variable of the Makefile, got {variable}"
            elif not is_set and re.match(r"^[a-z][a-z-]*$", word) and word not in self.targets:
                yield f"expected a target of the Makefile, got {word}"

    def of_tests(self, program, arguments):
        name = program.rpartition("/")[2]
        folder = name.removeprefix("test_")
        if name not in self.suites | {"cuda_throughput"} and not (ROOT / "tests" / folder).is_dir():
            yield f"expected a test or benchmark, got {name}"
        for word in arguments:
            if pattern := re.match(r"^--gtest_filter=(\w+)", word):
                if not any(suite.startswith(pattern.group(1)) for suite in self.suites):
                    yield f"expected a suite of tests, got {pattern.group(1)}"

    def of_python(self, arguments):
        if arguments[:2] == ["-m", "neuroshard.collect"]:
            for word in arguments[2:]:
                option = OPTION.match(word)
                if option and option.group(1) not in self.collect_options:
                    yield f"expected an option of neuroshard.collect, got {option.group(1)}"
        elif arguments[:2] == ["-m", "neuroshard"]:
            yield from self.of_executable(arguments[2:])
        else:
            yield from self.files(arguments)

    def files(self, words):
        for word in words:
            if re.match(r"^(?:scripts|docs|examples|data|tests|bench|fuzz)/[\w./-]+\.(?:py|sh)$", word):
                if not (ROOT / word).exists():
                    yield f"expected a file of the source tree, got {word}"


def lines_of_code(path):
    """Numbered lines of blocks of code, continued ones joined, and inline code."""
    fenced = is_shell = False
    joined = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
            is_shell = line.strip() in ("```", "```sh", "```bash")
        elif fenced and is_shell:
            joined += line.rstrip("\\")
            if not line.endswith("\\"):
                yield number, joined
                joined = ""
        elif not fenced:
            if line.startswith("    "):
                yield number, line
            for code in re.findall(r"`([^`]+)`", line):
                yield number, code


def words_of(command):
    """Its words, without what a shell would take for something else; none if it is no command."""
    command = re.sub(r"^\s*(?:\$ |\d+ +)?", "", command)  # a prompt, a number of results.md
    command = re.sub(r"(?:^|\s)#.*$", "", command)
    command = command.replace("\\|", "|")  # in a table
    try:
        return shlex.split(command)
    except ValueError:
        return []


def main():
    checker = Checker()
    broken = 0
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else documents():
        for number, line in lines_of_code(path):
            for command in SHELL_OPERATORS.split(line):
                for why in checker.check(words_of(command)):
                    broken += 1
                    print(f"{shown(path)}: line {number}: {command.strip()}: {why}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
