#!/usr/bin/env python3
"""Tries a wheel where nothing of this source tree is, with the interpreter that runs this: in a fresh
virtual environment, and in a root file system that has glibc, Python and nothing else.

    python3.11 scripts/wheel/check.py build/wheel/neuroshard-0.1.0-cp311-*.whl

Needs root, or a kernel that lets users have namespaces of their own."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

USE_PACKAGE = Path(__file__).with_name("use_package.py")

#: What is of glibc; the loader and what the kernel maps among it.
GLIBC = re.compile(r"^(linux-vdso|ld-linux-.*|libc|libm|libdl|libpthread|librt|libutil)\.so")

#: Folders of the standard library that no program needs to run.
LEFT_OUT = ("site-packages", "dist-packages", "test", "idlelib", "ensurepip", "__pycache__", "tests")


def fail(text: str) -> None:
    sys.exit(f"check_wheel: {text}")


def run(*command: object, **options) -> str:
    """What a command prints; ends this program where it fails."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def libraries_of(program: Path) -> dict[str, Path]:
    """The shared libraries that an executable or a library needs, those of others among them."""
    listed = run("ldd", program)
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE))
    found.update((Path(path).name, path) for path in re.findall(r"^\s*(/\S+) \(", listed, re.MULTILINE))
    return {name: Path(path) for name, path in found.items()}


def copy_into(root: Path, file: Path) -> None:
    place = root / file.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, place)


def bare_root(root: Path) -> Path:
    """Fills `root` with this interpreter, what it is linked with, and those of its modules that need
    only glibc. Returns the interpreter's path inside."""
    python = Path(sys._base_executable).resolve()
    copy_into(root, python)
    for library in libraries_of(python).values():
        copy_into(root, library)
    standard = Path(sysconfig.get_path("stdlib"))
    place = root / standard.relative_to("/")
    shutil.copytree(standard, place, ignore=shutil.ignore_patterns(*LEFT_OUT, "*.so", "*.a"))
    for module in (standard / "lib-dynload").glob("*.so"):
        if all(GLIBC.match(name) for name in libraries_of(module)):
            shutil.copy2(module, place / "lib-dynload")
    (root / "tmp").mkdir()
    return python


def enter_root() -> list[str]:
    """The beginning of a command that runs in another root; by full paths, as those in PATH are not
    there."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    chroot = shutil.which("chroot", path=path)
    unshare = shutil.which("unshare", path=path)
    if chroot is None or unshare is None:
        fail("expected chroot and unshare in PATH")
    return [chroot] if os.geteuid() == 0 else [unshare, "--user", "--map-root-user", chroot]


def in_bare_root(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        python = bare_root(root)
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=True)
        run(environment / "bin" / "pip", "install", "--no-index", "--target", root / "packages", wheel)
        shutil.copy2(USE_PACKAGE, root)
        if list(root.rglob("libstdc++*")):
            fail("expected no libstdc++ in the bare root")
        inside = {"PYTHONPATH": "/packages", "HOME": "/tmp"}
        command = [python, "-s", f"/{USE_PACKAGE.name}", "/tmp", python, "-s", "-m", "neuroshard"]
        print(run(*enter_root(), root, *command, env=inside), end="")


def in_fresh_environment(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=True)
        bin = environment / "bin"
        run(bin / "pip", "install", "--no-index", wheel)
        inside = {"PATH": f"{bin}:/usr/bin:/bin", "HOME": folder}
        command = [bin / "python", "-I", USE_PACKAGE, folder, "neuroshard"]
        print(run(*command, env=inside, cwd=folder), end="")


def main() -> None:
    wheel = Path(sys.argv[1]).resolve()
    version = ".".join(map(str, sys.version_info[:3]))
    if importlib.util.find_spec("venv") is None:
        fail(f"Python {version}: expected the module venv (python3-venv)")
    in_fresh_environment(wheel)
    print(f"{wheel.name}: Python {version}, fresh environment: passed")
    in_bare_root(wheel)
    print(f"{wheel.name}: Python {version}, bare root file system: passed")


if __name__ == "__main__":
    main()
