#!/usr/bin/env python3
"""Packs FBGEMM's GPU operators for one kind of device, small enough to take along.

    make wheel PYTHONS=python3.12
    scripts/gpu/pack_fbgemm.py --architecture 90 --add build/wheel/neuroshard-*-cp312-*.whl -o fbgemm.tar.xz

takes the wheel of `fbgemm-gpu` for `--python` from the package index, blanks the machine code for all
other architectures in its shared objects, and that of operators which `neuroshard.collect` never calls,
and packs the rest, together with the wheel that `--add` names: what measures is in NeuroShard's. On a
host with the GPU and the PyTorch that this release is made for, but without a network, in the source
tree, FOLDER having plans of fbgemm_gpu_plans.py:

    mkdir -p site && tar -xf fbgemm.tar.xz -C site
    PYTHONPATH=site python3 docs/experiments/fbgemm_gpu_plans.py measure FOLDER
    tar -C FOLDER -czf costs.tar.gz costs

What is blanked is not missed there: a driver takes the code of its own device, and of operators that are
called. On a device of another architecture none of them runs. Offsets in the files stay, so that nothing
else changes.
"""

import argparse
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

#: A container of device code: magic number, version (16 bits), bytes of this header (16 bits), bytes of
#: the entries that follow (64 bits). cuobjdump shows the same entries.
CONTAINER = struct.Struct("<IHHQ")
MAGIC = 0xBA55ED50
#: An entry: kind (16 bits), 16 bits, bytes of its header (32 bits) and of the code (64 bits); the
#: architecture, 90 for sm_90, is at ARCHITECTURE_AT.
ENTRY = struct.Struct("<HHIQ")
ARCHITECTURE_AT = 28

#: Shared objects of operators that are not those of training: of inference, of batches whose tables have
#: different sizes, of gradients with weight decay, and those that select rows.
NEVER_CALLED = ("_inference", "_vbe", "_gwd", "_index_select")


def blank_other_architectures(code: bytearray, architecture: int | None) -> tuple[int, int]:
    """Sets the device code of other architectures to 0, with None of all; returns how many entries were
    kept and how many blanked.

    Bytes that look like a container but do not hold together are left alone."""
    kept = blanked = 0
    place = code.find(MAGIC.to_bytes(4, "little"))
    while place >= 0:
        end = place + CONTAINER.size
        if end <= len(code):
            _, _, header_size, size = CONTAINER.unpack_from(code, place)
            entries = entries_of(code, place + header_size, size)
            for start, header, payload, of in entries:
                if of == architecture:
                    kept += 1
                    continue
                code[start + header : start + header + payload] = bytes(payload)
                blanked += 1
            if entries:
                end = place + header_size + size
        place = code.find(MAGIC.to_bytes(4, "little"), end)
    return kept, blanked


def entries_of(code: bytearray, start: int, size: int) -> list[tuple[int, int, int, int]]:
    """(start, bytes of header, bytes of code, architecture) of each; empty if they do not fill `size`."""
    end = start + size
    entries = []
    while start < end and end <= len(code):
        if start + ARCHITECTURE_AT + 4 > end:
            return []
        _, _, header, payload = ENTRY.unpack_from(code, start)
        (architecture,) = struct.unpack_from("<I", code, start + ARCHITECTURE_AT)
        if header < ARCHITECTURE_AT + 4 or start + header + payload > end:
            return []
        entries.append((start, header, payload, architecture))
        start += header + payload
    return entries if start == end else []


def downloaded(options: argparse.Namespace, folder: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
        "--python-version", options.python, "--implementation", "cp",
        "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64",
        "-d", str(folder), f"fbgemm-gpu=={options.version}",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel: Path, site: Path) -> None:
    """As pip does: what may be executed stays so, which extractall() would forget."""
    with zipfile.ZipFile(wheel) as files:
        for entry in files.infolist():
            path = Path(files.extract(entry, site))
            if entry.external_attr >> 16 & 0o100 and path.is_file():
                path.chmod(0o755)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--architecture", type=int, default=90, help="90 for sm_90, Hopper")
    parser.add_argument("--version", default="1.6.0", help="of fbgemm-gpu, which decides PyTorch's")
    parser.add_argument("--python", default="3.12", help="version of the host's Python")
    parser.add_argument("--wheel", type=Path, help="a wheel of fbgemm-gpu that is here already")
    parser.add_argument("--add", type=Path, help="a wheel to pack with it, as it is: NeuroShard's")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a .tar.xz")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        wheel = options.wheel or downloaded(options, Path(folder))
        unpack(wheel, site)
        total = 0
        for library in sorted(site.rglob("*.so*")):
            code = bytearray(library.read_bytes())
            is_called = not library.name.split(".")[0].endswith(NEVER_CALLED)
            kept, blanked = blank_other_architectures(
                code, options.architecture if is_called else None
            )
            if blanked:
                library.write_bytes(code)
            total += kept
            print(f"{library.relative_to(site)}: {kept} kept, {blanked} blanked")
        if total == 0:
            print(f"error: {wheel.name} has no code for sm_{options.architecture}", file=sys.stderr)
            return 1
        if options.add:
            unpack(options.add, site)
        with tarfile.open(options.output, "w:xz", preset=9) as packed:
            for path in sorted(site.iterdir()):
                packed.add(path, path.name)
    print(f"{options.output}: {options.output.stat().st_size / 2**20:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
