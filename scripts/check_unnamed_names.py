#!/usr/bin/env python3
"""Checks that sources that may be compiled as one use no name twice in their anonymous namespaces.

    scripts/check_unnamed_names.py [FILE...]    prints each such name; exit code 1 if there is any

Most such names do not compile, but a second function of one name may: as an overload, which then is
called by the other file too, where its arguments match better. FILE... are taken as one folder.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# As CMakeLists.txt has it (neuroshard_compile_together, neuroshard_compile_folders_whole).
ALONE = re.compile(
    r"(_kernels?|/parallel|matrix_product_[a-z0-9]+)\.cpp$"
    r"|/(collect/communication|evaluate/distributed|collect/compute/cuda)/"
)
NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "static_assert", "decltype", "defined"}
TYPE = re.compile(r"^(?:template <[^{;]*>\s*)?(?:struct|class|enum class|enum|union)\s+(\w+)[^;(]*\{", re.S)
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
FUNCTION = re.compile(r"^[^={}()\"]*?[\s*&>]([A-Za-z_]\w*)\s*\(")
VARIABLE = re.compile(r"^[^={}()\"]*?[\s*&>]([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=|\{|;)")
USING = re.compile(r"^using\s+(?:\w+::)+(\w+)\s*;")


def without_comments_and_texts(text):
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "0", text)
    return re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"',
        lambda found: '""' if found.group(0)[0] == '"' else " ",
        text,
        flags=re.S,
    )


def unnamed_parts(text):
    for start in re.finditer(r"\bnamespace\s*\{", text):
        depth, at = 1, start.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield text[start.end() : at - 1]


def declarations(part):
    """What stands at the outermost level of a namespace, each with the brace that opens its body."""
    depth, begin = 0, 0
    for at, letter in enumerate(part):
        if letter == "{":
            if depth == 0 and not part[begin:at].rstrip().endswith(("=", ",", "(")):
                yield part[begin : at + 1]
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                begin = at + 1
        elif letter == ";" and depth == 0:
            yield part[begin : at + 1]
            begin = at + 1


def names_in(path):
    """Names of types, aliases, functions and variables; of entities from elsewhere with their place,
    so that the same one may be named by two files."""
    names = {}
    for part in unnamed_parts(without_comments_and_texts(path.read_text())):
        part = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", part, flags=re.M)
        part = re.sub(r"\[\[[^\]]*\]\]|__attribute__\(\([^)]*\)\)", "", part)
        for declaration in declarations(part):
            declaration = declaration.strip()
            if declaration.startswith("using namespace"):
                continue
            if found := USING.match(declaration):
                names[found.group(1)] = declaration
            elif found := ALIAS.match(declaration):
                names[found.group(1)] = " ".join(declaration.split())
            elif found := TYPE.match(declaration) or VARIABLE.match(declaration) or FUNCTION.match(
                declaration
            ):
                names[found.group(1)] = str(path)
    return {name: what for name, what in names.items() if name not in NOT_NAMES}


def folders():
    together = defaultdict(list)
    for path in sorted(ROOT.glob("neuroshard/**/*.cpp")):
        if not ALONE.search(str(path)):
            together[path.parent].append(path)
    for path in sorted(ROOT.glob("tests/*/**/*_test.cpp")):
        together[ROOT / "tests" / path.relative_to(ROOT / "tests").parts[0]].append(path)
    together[ROOT / "fuzz"] = sorted([*ROOT.glob("fuzz/grammar/*.cpp"), *ROOT.glob("fuzz/torture/*.cpp")])
    return together.values()


def main():
    given = [Path(name) for name in sys.argv[1:]]
    twice = False
    for paths in [given] if given else folders():
        users = defaultdict(dict)
        for path in paths:
            for name, what in names_in(path).items():
                users[name].setdefault(what, path)
        for name, files in users.items():
            if len(files) > 1:
                twice = True
                first, second, *_ = files.values()
                print(f"{second}: expected a name that {first} does not use, got {name}")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
