#!/bin/sh
# Installs what building NeuroShard needs on Debian 12; does nothing where it is all there.
#   scripts/setup.sh            the executable
#   scripts/setup.sh --tests    also the tests, the benchmarks, the fuzzers and the linters
set -eu

packages="g++ cmake ninja-build pkg-config
  libeigen3-dev libfmt-dev nlohmann-json3-dev libcli11-dev libhwy-dev libssl-dev zlib1g-dev
  libopenmpi-dev openmpi-bin libsimgrid-dev python3 python3-dev python3-venv libjs-chart.js"
test_packages="libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev iproute2 zsh fish
  clang libclang-rt-14-dev clang-format clang-tidy chromium"

fail() {
  echo "setup: $*" >&2
  exit 3
}

case "${1-}" in
  "") ;;
  --tests) packages="$packages $test_packages" ;;
  *) echo "setup: expected no argument or --tests, got \"$1\"" >&2; exit 2 ;;
esac

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  fail "dpkg, apt-get: expected Debian 12, found neither; install" $packages "yourself and run" \
    "make with SETUP=true"

# One query for all; it names only packages that dpkg has heard of.
installed=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' $packages 2>/dev/null || true)"
missing=
for package in $packages; do
  case "$installed" in
    *" installed=$package "*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "expected root or sudo to install packages, found neither; missing:$missing"
  as_root=sudo
  [ -t 0 ] || as_root="sudo -n"
fi
apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

echo "setup: installing$missing" >&2
# Old package lists may do, so only the installation decides.
apt update || echo "setup: apt-get update failed, going on with the package lists at hand" >&2
apt install --no-install-recommends $missing >&2 ||
  fail "apt-get install: could not install$missing (its own message is above)"
