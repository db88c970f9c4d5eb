#!/usr/bin/env python3
"""Checks that what NeuroShard consists of cannot open a network connection by itself.

    scripts/check_network.py FILE...    prints each finding; exit code 1 if there is any

A FILE is an object file, an archive, a linked executable or shared object, a Python source or a folder
of them; `@FILE` is a list of files, one a line. Precompiled headers are passed over. Of compiled files
the functions that they take from elsewhere must be none that opens a connection, starts another program
or loads another library, and what they are linked with must be in LIBRARIES; Python sources must import
no module for networks.

What those libraries do is theirs and is not looked at: MPI, NCCL and `torch.distributed` connect the
processes of a run, and SimGrid, whose simulated hosts are in one process, can do more than is asked of
it. So this is about code of our own, and about which libraries there are at all.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

# Functions of the C library, by their names as the linker knows them. The local ones of no network
# (socketpair, gethostname) are none of them.
NETWORK = """socket connect bind listen accept accept4 send sendto sendmsg sendmmsg recv recvfrom recvmsg
  recvmmsg shutdown getpeername getsockname getsockopt setsockopt getaddrinfo getnameinfo gai_strerror
  freeaddrinfo getaddrinfo_a gethostbyname gethostbyname2 gethostbyname_r gethostbyaddr gethostbyaddr_r
  gethostent getservbyname getservbyport getprotobyname getifaddrs if_nametoindex inet_addr inet_aton
  inet_ntoa inet_ntop inet_pton res_query res_search res_init rcmd rexec ruserok""".split()
# Ways around: what another program or another library would do. (A request to the kernel by its number,
# `syscall`, is how libstdc++ waits for an atomic, so it cannot be among them.)
WAYS_AROUND = """system popen execl execle execlp execv execve execvp execvpe execveat fexecve
  posix_spawn posix_spawnp dlopen dlmopen dlsym""".split()
FORBIDDEN = {*NETWORK, *WAYS_AROUND, *(f"__{name}_chk" for name in NETWORK)}

# Libraries that compiled files may need, by their names without version.
LIBRARIES = re.compile(
    r"(ld-linux-[\w-]+|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|atomic"
    r"|crypto|z|hwy|fmt|mpi|mpi_cxx|open-rte|open-pal|simgrid|nccl|cudart|cuda"
    r"|asan|ubsan|tsan|lsan))\.so(\.[\d.]+)?"
)

PYTHON_MODULES = {
    "aiohttp", "asyncio", "ftplib", "grpc", "http", "httpx", "imaplib", "nntplib", "poplib", "requests",
    "smtplib", "socket", "socketserver", "ssl", "telnetlib", "urllib", "urllib3", "webbrowser",
    "websockets", "xmlrpc", "zmq",
}  # fmt: skip


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def findings_in_binary(path):
    """What it takes from elsewhere: of what is linked by its dynamic symbols, of objects by all."""
    linked = "DYNAMIC" in output_of("readelf", "--program-headers", "--wide", str(path))
    dynamic = ("--dynamic",) if linked else ()
    place = str(path)
    for line in output_of("nm", "--undefined-only", *dynamic, str(path)).splitlines():
        if line.endswith(":"):  # what follows is of this member of an archive
            place = f"{path}({line[:-1]})"
        elif (words := line.split()) and (name := words[-1].partition("@")[0]) in FORBIDDEN:
            yield f"{place}: expected no function that leads out of the process, got {name}"
    if linked:
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "--dynamic", str(path)))
        for library in needed:
            if not LIBRARIES.fullmatch(library):
                yield f"{path}: expected libraries of HACKING.md alone, got {library}"


def findings_in_python(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in PYTHON_MODULES:
                yield f"{path}: line {node.lineno}: expected no module for networks, got {name}"


def files(arguments):
    for argument in arguments:
        if argument.startswith("@"):
            yield from files(Path(argument[1:]).read_text().split("\n"))
        elif argument and Path(argument).is_dir():
            yield from sorted(Path(argument).rglob("*.py"))
        elif argument and not argument.endswith((".gch", ".pch")):
            yield Path(argument)


def main():
    looked_at, found = 0, False
    for path in files(sys.argv[1:]):
        looked_at += 1
        find = findings_in_python if path.suffix == ".py" else findings_in_binary
        try:
            for finding in find(path):
                found = True
                print(finding)
        except (OSError, SyntaxError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or error
            print(f"check_network: {path}: expected to read it, got {reason}", file=sys.stderr)
            return 2
    if looked_at == 0:
        print("check_network: expected files, got none", file=sys.stderr)
        return 2
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
