"""FBGEMM's operators packed for one kind of device (scripts/gpu/pack_fbgemm.py)."""

import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu" / "pack_fbgemm.py"


def entry(architecture, code):
    header = struct.pack("<HHIQ", 2, 0x101, 64, len(code)).ljust(28, b"\1")
    return (header + struct.pack("<I", architecture)).ljust(64, b"\2") + code


def container(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def packed(tmp_path, files, *words):
    wheel = tmp_path / "fbgemm_gpu-1.6.0-cp312.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    output = tmp_path / "out.tar.xz"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--wheel", wheel, "-o", output, *words],
        capture_output=True,
        text=True,
    )
    return done, output


def test_code_of_other_devices_is_blanked_in_place(tmp_path):
    before = b"host code \x50\xed\x55\xba that is none"
    device = container(entry(80, b"eighty" * 9), entry(90, b"ninety" * 9))
    library = before + device + b"data" + container(entry(100, b"x" * 16)) + b"end"
    done, output = packed(
        tmp_path, {"fbgemm_gpu/op.so": library, "fbgemm_gpu/op.py": "print(1)\n"}
    )
    assert done.returncode == 0, done.stderr
    assert "fbgemm_gpu/op.so: 1 kept, 2 blanked" in done.stdout
    with tarfile.open(output) as archive:
        code = archive.extractfile("fbgemm_gpu/op.so").read()
        assert archive.extractfile("fbgemm_gpu/op.py").read() == b"print(1)\n"
    expected = library.replace(b"eighty" * 9, bytes(54)).replace(b"x" * 16, bytes(16))
    assert code == expected


def test_a_container_that_is_cut_off_is_left_alone(tmp_path):
    whole = container(entry(90, b"n" * 32))
    cut = container(entry(80, b"e" * 32))[:-8]
    wrong = bytearray(container(entry(80, b"w" * 32)))
    wrong[24:32] = (2**40).to_bytes(8, "little")  # an entry that is longer than its container
    library = whole + bytes(wrong) + cut
    done, output = packed(tmp_path, {"op.so.1": library})
    assert done.returncode == 0, done.stderr
    with tarfile.open(output) as archive:
        assert archive.extractfile("op.so.1").read() == library


def test_operators_that_are_never_called_keep_no_code(tmp_path):
    code = container(entry(90, b"n" * 32))
    files = {"tbe_training_forward.so": code, "tbe_inference.so": code}
    done, output = packed(tmp_path, files)
    assert done.returncode == 0, done.stderr
    with tarfile.open(output) as archive:
        assert archive.extractfile("tbe_training_forward.so").read() == code
        assert archive.extractfile("tbe_inference.so").read() == code.replace(b"n" * 32, bytes(32))


@pytest.mark.parametrize("files", [{"op.so": b"no device code"}, {"op.py": b""}])
def test_a_wheel_without_code_for_the_device_is_an_error(tmp_path, files):
    done, output = packed(tmp_path, files, "--architecture", "75")
    assert done.returncode == 1
    assert "no code for sm_75" in done.stderr
    assert not output.exists()
