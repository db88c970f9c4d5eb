"""Processes of torchrun, in which tests measure TorchRec's runtime."""

import os
import subprocess
import sys

COLLECT = ("-m", "neuroshard.collect", "--communication", "--max-rows", 2000)


def torchrun(processes, *arguments, check=True):
    run = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node", str(processes), *map(str, arguments)),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not check or run.returncode == 0, run.stdout[-1000:] + run.stderr[-5000:]
    return run
