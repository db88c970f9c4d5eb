#!/usr/bin/env python3
"""Makes the three example reports, and says how large each is and, where Chromium is there, how soon
it can be used:

    scripts/example_reports.py build/release/cli/neuroshard FOLDER
    scripts/example_reports.py build/release/cli/neuroshard FOLDER --pictures docs/images

dcnv2.html is DLRM-DCNv2 on 8 hosts, and a plan of columns alone and its all-to-alls
simulated; dlrm-2021.html is 856 tables on 16 GPUs, many-tables.html 5,000 on 1,024.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import chromium  # noqa: E402

GPUS = ["--model", "analytic-a100-80gb", "--model", "analytic-ethernet-100g"]
DCNV2 = [
    "--workload", "mlperf-dlrm-dcnv2", "--devices", "8", "--local-devices", "1",
    "--memory", "16GiB", "--batch-size", "4096", "--optimizer", "rowwise_adagrad",
    "--model", "cpu-xeon-2core", "--model", "ethernet-25g", "--baselines",
]  # fmt: skip


class Examples:
    def __init__(self, neuroshard, folder):
        self.neuroshard = Path(neuroshard).resolve()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments):
        subprocess.run(
            [self.neuroshard, *arguments], check=True, cwd=self.folder, stdout=subprocess.DEVNULL
        )

    def dcnv2(self):
        self.run("plan", *DCNV2, "-o", "dcnv2.json")
        self.run("plan", *DCNV2, "--cuts", "columns", "-o", "dcnv2-columns.json")
        self.run("evaluate", "dcnv2.json", "--platform", "ethernet-25g", "-o", "dcnv2-simulated.json")
        self.run(
            "report", "dcnv2.json", "dcnv2-columns.json",
            "--evaluation", "dcnv2-simulated.json", "-o", "dcnv2.html",
        )  # fmt: skip

    def dlrm_2021(self):
        self.run(
            "plan", "--workload", "dlrm-2021", "--devices", "16", "--local-devices", "8",
            "--memory", "80GiB", *GPUS, "--baselines", "-o", "dlrm-2021.json",
        )  # fmt: skip
        self.run("report", "dlrm-2021.json", "-o", "dlrm-2021.html")

    def many_tables(self):
        """The tables of dlrm-2021 again and again, with at most a million rows each."""
        self.run("workload", "export", "dlrm-2021", "-o", "tables.json")
        task = json.loads((self.folder / "tables.json").read_text())
        tables = task["tables"]
        task["tables"] = [
            {
                **tables[number % len(tables)],
                "name": f"{tables[number % len(tables)]['name']}-{number // len(tables)}",
            }
            for number in range(5000)
        ]
        task["topology"] = {
            "world_size": 1024, "local_world_size": 8, "memory_bytes": 16 << 30,
        }  # fmt: skip
        (self.folder / "many-tables-task.json").write_text(json.dumps(task))
        self.run("plan", "many-tables-task.json", *GPUS, "-o", "many-tables.json")
        self.run("report", "many-tables.json", "-o", "many-tables.html")


def picture(page, path, scheme, width, height, phone=False):
    page.size(width, height, phone)
    page.colours(scheme)
    page.run("new Promise((done) => setTimeout(done, 300))")
    page.picture(path)


def look(folder, pictures):
    """How soon each report can be used, and pictures of some."""
    with chromium.Page() as page:
        for name in ("dcnv2", "dlrm-2021", "many-tables"):
            path = folder / f"{name}.html"
            seconds = page.open(path)
            print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, usable after {seconds:.2f} s")
            if page.errors:
                sys.exit("\n".join(page.errors))
            if pictures:
                pictures.mkdir(parents=True, exist_ok=True)
                picture(page, pictures / f"report-{name}.png", "light", 1200, 880)
    if pictures:
        with chromium.Page() as page:
            page.open(folder / "dcnv2.html")
            picture(page, pictures / "report-dark.png", "dark", 1200, 880)
            picture(page, pictures / "report-phone.png", "light", 390, 660, phone=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("neuroshard", help="executable")
    parser.add_argument("folder", type=Path, help="where plans and reports go")
    parser.add_argument("--pictures", type=Path, help="folder for pictures; needs Chromium")
    options = parser.parse_args()
    examples = Examples(options.neuroshard, options.folder)
    examples.dcnv2()
    examples.dlrm_2021()
    examples.many_tables()
    if chromium.EXECUTABLE:
        look(options.folder, options.pictures)
    elif options.pictures:
        sys.exit("--pictures: expected Chromium (apt-get install chromium), found none")


if __name__ == "__main__":
    main()
