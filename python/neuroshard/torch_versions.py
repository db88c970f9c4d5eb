"""The releases of PyTorch, FBGEMM and TorchRec that belong together, and errors where they do
not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import metadata

from .errors import NeuroShardError

#: The combination that everything here is tested with, by the names of pip.
TESTED = {"torch": "2.13.0", "torchrec": "1.8.0", "fbgemm-gpu": "1.8.0"}

_RECIPE = "pip install torch==2.13.0 torchrec==1.8.0 fbgemm-gpu==1.8.0; without CUDA see docs/torchrec.md"


class VersionError(NeuroShardError, ImportError):
    """PyTorch, FBGEMM or TorchRec is missing, or they are not of one release."""

    exit_code = 2


def installed_versions() -> dict[str, str]:
    """Installed versions; FBGEMM's under the name of its CUDA package."""
    found = {}
    for package in ("torch", "torchrec", "fbgemm-gpu-cpu", "fbgemm-gpu"):
        try:
            found[package.removesuffix("-cpu")] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return found


def release(version: str) -> tuple[int, int]:
    """(2, 13) of "2.13.0+cpu"."""
    major, minor = version.split("+")[0].split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()))


def companion_of(torch: str) -> str:
    """The release of FBGEMM and TorchRec that is built against a PyTorch: 1.8 for 2.13."""
    major, minor = release(torch)
    return f"{major - 1}.{minor - 5}"


def mismatch(found: Mapping[str, str], needed: Collection[str] = tuple(TESTED)) -> str:
    """The problem with these versions of the needed packages, and the right ones; empty if there is
    none.

    FBGEMM is compiled against one PyTorch and must be its companion. TorchRec is Python code that
    may be one release older or younger.
    """
    missing = [package for package in needed if package not in found]
    if missing:
        return f"expected {', '.join(needed)}, got no {', '.join(missing)}; {_RECIPE}"
    companion = companion_of(found["torch"])
    fbgemm = release(found["fbgemm-gpu"])
    if fbgemm != release(companion):
        return (
            f"expected FBGEMM {companion} with PyTorch {found['torch']}, "
            f"got {found['fbgemm-gpu']}; {_RECIPE}"
        )
    if "torchrec" not in needed:
        return ""
    torchrec = release(found["torchrec"])
    if torchrec[0] != 1 or abs(torchrec[1] - fbgemm[1]) > 1:
        return (
            f"expected TorchRec {companion} with PyTorch {found['torch']}, "
            f"got {found['torchrec']}; {_RECIPE}"
        )
    return ""


def check_versions(place: str, needed: Collection[str] = tuple(TESTED)) -> None:
    """Raises VersionError, beginning with `place`, unless the needed packages belong together."""
    reason = mismatch(installed_versions(), needed)
    if reason:
        raise VersionError(f"{place}: {reason}")


def require_pytorch(place: str) -> None:
    """Raises VersionError, beginning with `place`, if there is no PyTorch."""
    if "torch" not in installed_versions():
        raise VersionError(f"{place}: expected PyTorch, got none; pip install torch")
