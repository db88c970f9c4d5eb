#!/usr/bin/env bash
# Checks that executables run where there is nothing but glibc: which shared libraries they name, and
# the first of them in a bare root file system of its own.
#
#   scripts/check_portable.sh NEUROSHARD [EXECUTABLE...]
#
# Needs root, or a kernel that lets users have namespaces of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "check_portable: $*" >&2
  exit 1
}

glibc='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt)\.so'
for executable in "$@"; do
  while read -r library; do
    [[ $library =~ $glibc ]] || fail "$executable: expected glibc's libraries only, got $library"
  done < <(readelf -d "$executable" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  newest=$(objdump -T "$executable" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
  echo "$executable: $(stat -c %s "$executable") bytes, needs $newest or newer"
done

executable=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# The loader at its fixed place, libraries in its default folder, a model, and nothing else.
mkdir -p "$root/lib64" "$root/lib/x86_64-linux-gnu" "$root/tmp"
cp "$executable" "$root/neuroshard"
cp models/cpu-xeon-2core.safetensors "$root/tmp"
ldd "$executable" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' |
  xargs -r -I{} cp -L {} "$root/lib/x86_64-linux-gnu"
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64"

inside() {
  if [ "$(id -u)" -eq 0 ]; then
    chroot "$root" "$@"
  else
    unshare --user --map-root-user chroot "$root" "$@"
  fi
}

# expect EXIT_CODE TEXT ARGUMENTS...: what it says, on either stream, and how it ends.
expect() {
  local code=$1 text=$2 output rc=0
  shift 2
  output=$(inside /neuroshard "$@" 2>&1) || rc=$?
  [ "$rc" -eq "$code" ] || fail "neuroshard $*: expected exit code $code, got $rc: $output"
  [[ $output == *"$text"* ]] || fail "neuroshard $*: expected \"$text\", got: $output"
  echo "bare root: neuroshard $*: as expected"
}

expect 0 mlperf-dlrm-dcnv2 workload list
expect 0 "26 tables on 8 devices" plan --workload mlperf-dlrm-dcnv2 --devices 8 --memory 16GiB \
  --batch-size 4096 --model /tmp/cpu-xeon-2core.safetensors --model analytic-a100-nvswitch \
  -o /tmp/plan.json
expect 0 valid check /tmp/plan.json
expect 0 "2 samples measured" collect compute --samples 2 --batch-size 64 --arena 64MiB \
  --memory 64MiB -o /tmp/costs.jsonl
expect 0 "2 samples, 0 skipped" collect merge /tmp/costs.jsonl -o /tmp/costs.jsonl.gz
# There is no driver in a bare root, whatever the machine has.
expect 3 "cuda: expected an" collect compute --backend cuda -o /tmp/gpu.jsonl
expect 3 "mpi: expected an executable built with MPI" collect communication --backend mpi \
  --devices 2 -o /tmp/comm.jsonl
