"""Prints the counts of a JUnit file of CTest or pytest, "PASSED FAILED SKIPPED", and on stderr each
skipped test with its reason: junit_summary.py FILE"""

import sys
from xml.etree import ElementTree


def reason_in(output: str) -> str:
    """The reason that a GoogleTest gives for GTEST_SKIP: the line after "file:line: Skipped"."""
    lines = [line.strip() for line in output.splitlines()]
    for place, said in zip(lines, lines[1:], strict=False):
        if place.endswith(": Skipped") and said:
            return said
    return ""


def main() -> None:
    passed = failed = skipped = 0
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        mark = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif mark is None and case.get("status", "run") == "run":
            passed += 1
        else:
            skipped += 1
            given = "" if mark is None else mark.get("message", "")
            reason = reason_in(case.findtext("system-out", "")) or given or "disabled"
            print(f"skipped: {case.get('name')}: {reason}", file=sys.stderr)
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
