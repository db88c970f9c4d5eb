#!/usr/bin/env python3
"""How two measurements of the same samples differ, as measured and at the usual speed.

    docs/experiments/measured_twice.py FIRST_FOLDER SECOND_FOLDER

Each folder has the same files of computation costs (.jsonl, .jsonl.gz). For all samples that both
have: the median of second/first, the median of their differences (the larger over the smaller, less
1), and how many differ by more than 15 %; and what the reference sets took, in the median of the
samples. At the usual speed each cost is divided by what the
reference sets took that were measured with it (the geometric mean of `reference_ms`).
"""

import statistics
import sys
from pathlib import Path

from repeated_costs import samples


def costs_of(path: Path) -> dict[int, tuple[float, float]]:
    """By number: the cost [ms], and what the reference sets took [ms]; 1 where there are none."""
    return {
        number: (
            sample["forward_ms"] + sample["backward_ms"],
            statistics.geometric_mean(sample.get("reference_ms", [1.0])),
        )
        for number, sample in samples(path).items()
    }


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    first, second = map(Path, sys.argv[1:])
    pairs = []
    for path in sorted(first.glob("*.jsonl*")):
        others = costs_of(second / path.name)
        pairs += [
            (cost, others[number]) for number, cost in costs_of(path).items() if number in others
        ]
    if not pairs:
        sys.exit(f"{first} and {second}: expected the same samples, got none")
    as_measured = [b[0] / a[0] for a, b in pairs]
    at_usual_speed = [b[0] / b[1] / (a[0] / a[1]) for a, b in pairs]
    for name, ratios in (("as measured", as_measured), ("at the usual speed", at_usual_speed)):
        apart = [max(ratio, 1.0 / ratio) - 1.0 for ratio in ratios]
        print(
            f"{name}: second/first {statistics.median(ratios):.3f}, "
            f"difference {100.0 * statistics.median(apart):.1f} %, "
            f"{sum(value > 0.15 for value in apart)} of {len(apart)} beyond 15 %"
        )
    usual = [statistics.median(pair[i][1] for pair in pairs) for i in (0, 1)]
    print(f"reference sets: {usual[0]:.2f} ms, then {usual[1]:.2f} ms")


if __name__ == "__main__":
    main()
