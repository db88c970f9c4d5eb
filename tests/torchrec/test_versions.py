"""Messages where PyTorch, FBGEMM and TorchRec are missing or do not belong together."""

import importlib.metadata
import subprocess
import sys

import pytest

from neuroshard import torch_versions as versions

#: Releases that may take the pinned one's place (`make test-torchrec TORCHREC=...`).
TORCHREC_RELEASES = ("1.7.0", versions.TESTED["torchrec"], "1.9.2")


def test_what_is_installed_is_what_is_tested():
    found = versions.installed_versions()
    assert versions.mismatch(found) == ""
    plain = {name: version.split("+")[0] for name, version in found.items()}
    assert plain.pop("torchrec") in TORCHREC_RELEASES
    assert plain == {name: versions.TESTED[name] for name in plain}
    assert plain.keys() | {"torchrec"} == versions.TESTED.keys()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({}, "expected torch, torchrec, fbgemm-gpu, got no torch, torchrec, fbgemm-gpu; pip install"),
        ({"torch": "2.13.0", "fbgemm-gpu": "1.8.0"}, "got no torchrec"),
        (
            {"torch": "2.12.1", "torchrec": "1.7.0", "fbgemm-gpu": "1.8.0"},
            "expected FBGEMM 1.7 with PyTorch 2.12.1, got 1.8.0",
        ),
        (
            {"torch": "2.13.0+cpu", "torchrec": "1.4.0", "fbgemm-gpu": "1.8.0"},
            r"expected TorchRec 1.8 with PyTorch 2.13.0\+cpu, got 1.4.0",
        ),
    ],
)
def test_combinations_that_do_not_go_together(found, text):
    import re

    assert re.search(text, versions.mismatch(found))


def test_without_pytorch():
    # The interpreter's own packages and ours, without those of this environment.
    script = (
        "import sys, importlib.metadata as m;"
        "real = m.version\n"
        "def version(name):\n"
        "    if name == 'torch': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "import neuroshard\n"
        "print(len(neuroshard.list_models()))\n"
        "import neuroshard.torchrec\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert int(run.stdout) > 0
    assert run.returncode != 0
    last = run.stderr.strip().split("\n")[-1]
    assert "neuroshard.torchrec: expected torch, torchrec, fbgemm-gpu, got no torch; pip" in last


def test_the_collector_needs_no_torchrec():
    found = {"torch": "2.13.0", "fbgemm-gpu": "1.8.0"}
    assert versions.mismatch(found, ("torch", "fbgemm-gpu")) == ""
    assert "got no fbgemm-gpu" in versions.mismatch({"torch": "2.13.0"}, ("torch", "fbgemm-gpu"))


def test_the_package_metadata_is_read():
    assert importlib.metadata.version("torchrec") in TORCHREC_RELEASES
