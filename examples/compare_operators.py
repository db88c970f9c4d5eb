"""Compares two files of measured computation costs, sample by sample.

    neuroshard collect compute --samples 200 ... -o ours.jsonl
    python -m neuroshard.collect --samples 200 ... -o fbgemm.jsonl
    python examples/compare_operators.py ours.jsonl fbgemm.jsonl
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys


def read(path: str) -> tuple[dict, dict[int, dict]]:
    """The header, and the measured samples by index."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        header, *samples = [json.loads(line) for line in file]
    return header, {s["index"]: s for s in samples if "shards" in s}


def main() -> int:
    """Prints the sums and ratios of both over the samples that both have."""
    paths = sys.argv[1:]
    if len(paths) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    (header_a, a), (header_b, b) = read(paths[0]), read(paths[1])
    for field in ("batch_size", "optimizer", "sampling", "tables"):
        if header_a[field] != header_b[field]:
            print(f"{field}: expected the same in both files", file=sys.stderr)
            return 2
    common = [index for index in sorted(a) if index in b]
    if any(a[index]["shards"] != b[index]["shards"] for index in common) or not common:
        print("samples: expected the same in both files", file=sys.stderr)
        return 2
    names = [header["operator"]["name"] for header in (header_a, header_b)]
    data_types = sorted({table["data_type"] for table in header_a["tables"]})
    print(
        f"{len(common)} samples, batch {header_a['batch_size']}, {header_a['optimizer']}, "
        f"{' and '.join(data_types)}"
    )
    print(f"pass      {names[0]:>16}  {names[1]:>16}  median ratio  {names[0]} faster on")
    for name, fields in (
        ("forward", ["forward_ms"]),
        ("backward", ["backward_ms"]),
        ("both", ["forward_ms", "backward_ms"]),
    ):
        times = [[sum(s[i][f] for f in fields) for i in common] for s in (a, b)]
        ratios = [y / x for x, y in zip(*times)]
        print(
            f"{name:8}  {sum(times[0]) / len(common):13.3f} ms  {sum(times[1]) / len(common):13.3f} ms"
            f"  {statistics.median(ratios):12.2f}  {sum(r > 1 for r in ratios)} of {len(ratios)}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
