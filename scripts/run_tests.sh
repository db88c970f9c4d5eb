#!/bin/bash
# Builds and runs suites of tests, whose build folders are configured, one after another even where
# one fails, and closes with what was counted in all, "N passed, N failed, N skipped":
#   scripts/run_tests.sh release              the tests in build/release; likewise asan, tsan
#   scripts/run_tests.sh tsan:core,search     those of these rooms alone
#   scripts/run_tests.sh python               of the Python package, built in build/release
#   scripts/run_tests.sh python-asan          likewise with the extension and the executable of
#                                             build/asan, and generated calls of every function
#   scripts/run_tests.sh torchrec             likewise those with PyTorch, FBGEMM and TorchRec
#   scripts/run_tests.sh torchrec:1.7.0,1.8.0 those with these releases of TorchRec
#   scripts/run_tests.sh torchrec-planner:1.7.0  of these, those of the planner alone
#   scripts/run_tests.sh wheel                wheels for where nothing is (scripts/wheel/build.sh)
#   scripts/run_tests.sh format               counts one: do all sources have clang-format's layout?
#   scripts/run_tests.sh lint                 clang-tidy (scripts/lint.sh); counts files
# The counts are also added to the file that $TEST_COUNTS names. $TEST_DEADLINE, in seconds as of
# `date +%s`, is when tests under sanitizers end, room by room in `asan`: what is left of them counts as
# skipped.
# Property tests draw the same cases every time, so that one commit has one result; others with
# RC_PARAMS=seed=7, or with RC_PARAMS= new ones each time.
set -euo pipefail
cd "$(dirname "$0")/.."
export RC_PARAMS=${RC_PARAMS-seed=1}

passed=0 failed=0 skipped=0 status=0

# add PASSED FAILED SKIPPED: adds a suite's tests to the sum.
add() {
  passed=$((passed + $1))
  failed=$((failed + $2))
  skipped=$((skipped + $3))
  [ "$2" -eq 0 ] || status=1
}

# Adds what the JUnit file $1 counts. Where there is none, the suite itself has failed.
add_results() {
  local counts
  counts=$(python3 scripts/junit_summary.py "$1") || counts="0 1 0"
  # shellcheck disable=SC2086
  add $counts
}

# limited COMMAND...: runs it, and stops it at $TEST_DEADLINE if there is one: 124 then, also where
# that has passed.
limited() {
  [ -n "${TEST_DEADLINE-}" ] || {
    "$@"
    return
  }
  local left=$((TEST_DEADLINE - $(date +%s)))
  [ "$left" -gt 0 ] || return 124
  timeout "$left" "$@"
}

# The C++ tests of preset $1; of the rooms $2, separated by commas, if any are given. Where no time is
# left to build them or to run them all, they are left out, and count as one that is skipped.
ctest_suite() {
  local folder=build/$1 rooms=${2-} targets=(neuroshard_tests) chosen=() ended=0
  if [ -n "$rooms" ]; then
    IFS=, read -r -a targets <<<"$rooms"
    targets=("${targets[@]/#/test_}")
    chosen=(-R "^(${rooms//,/|})\\.")
  fi
  rm -f "$folder/test_results.xml"
  limited cmake --build "$folder" --target "${targets[@]}" || ended=$?
  if [ "$ended" -eq 0 ]; then
    echo "$1: built in $SECONDS s"
    SECONDS=0
    limited ctest --test-dir "$folder" --parallel "$(nproc)" --output-on-failure --no-tests=error \
      ${chosen[@]+"${chosen[@]}"} --output-junit "$PWD/$folder/test_results.xml" \
      >"$folder/test_log.txt" || ended=$?
    [ "$ended" -eq 124 ] || [ "$ended" -eq 0 ] || status=1
  elif [ "$ended" -ne 124 ]; then
    return 1
  fi
  if [ "$ended" -eq 124 ]; then
    echo "skipped: $1${rooms:+ of $rooms}: no time left"
    add 0 0 1
    return
  fi
  # Skipped tests are listed with their reasons below.
  sed -n '/^The following tests did not run:/,/^$/d
    /^ *\(Start \+[0-9]\+:\|[0-9]\+\/[0-9]\+ Test \+#.* Passed \|.*\*\*\*Skipped \)/d
    p' "$folder/test_log.txt"
  add_results "$folder/test_results.xml"
}

# The tests in build/asan, of the rooms $1 if any are given: all at once, or, where there is a
# $TEST_DEADLINE, room by room until then.
# These begin with another room at each commit, so that none is the one that is left out every time.
asan_suite() {
  local rooms=() room first
  [ -z "$1" ] && [ -n "${TEST_DEADLINE-}" ] || {
    ctest_suite asan "$1"
    return
  }
  for room in tests/*/; do
    room=$(basename "$room")
    [ -z "$(compgen -G "tests/$room/*_test.cpp")" ] || rooms+=("$room")
  done
  first=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) % ${#rooms[@]}))
  for room in "${rooms[@]:$first}" "${rooms[@]:0:$first}"; do
    SECONDS=0
    ctest_suite asan "$room" || return 1
    echo "asan:$room: run in $SECONDS s"
  done
}

# The tests in tests/$1, or in its files $2 and on, with the Python of build/$1, into which the package
# is built.
pytest_in() {
  local folder=$1 files=("${@:2}")
  rm -f "build/$folder/test_results.xml"
  "build/$folder/bin/python" -m pytest "${files[@]/#/tests/$folder/}" \
    --junitxml="build/$folder/test_results.xml" || status=1
  add_results "build/$folder/test_results.xml"
}

python_suite() {
  scripts/python_env.sh release || return 1
  echo "python: built in $SECONDS s"
  SECONDS=0
  pytest_in python ""
}

# The package with what build/asan has compiled, and its tests under AddressSanitizer and UBSan, of
# which the first error ends the process. Python itself is not compiled for AddressSanitizer, so both
# libraries are loaded before it, and leaks, which it has of its own, are not looked for. Left out is
# what other programs with AddressSanitizer in them cannot do (a browser, pgrep), a limit on addresses,
# of which it takes terabytes, a signal that it reports itself, and types, which compiled code has no
# part in.
python_asan_suite() {
  local python=/usr/bin/python3 environment package=$PWD/build/asan/package
  local objects=tests/python/test_python_objects.py
  [ -x "$python" ] || python=python3
  . scripts/require.sh
  # shellcheck disable=SC2086
  require build/python $build_packages $test_packages
  cmake -B build/asan -DNEUROSHARD_PYTHON=ON -DPython_EXECUTABLE="$PWD/build/python/bin/python" \
    -Dnanobind_DIR="$(build/python/bin/python -m nanobind --cmake_dir)" >/dev/null &&
    cmake --build build/asan --target neuroshard_python neuroshard_cli || return 1
  rm -rf "$package" build/asan/python_results.xml
  cmake --install build/asan --component python --prefix "$package" >/dev/null &&
    cp -r python/neuroshard "$package" || return 1
  echo "python-asan: built in $SECONDS s"
  SECONDS=0
  environment=(LD_PRELOAD="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libstdc++.so)"
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=12288
    UBSAN_OPTIONS=print_stacktrace=1 PYTHONDONTWRITEBYTECODE=1)
  env "${environment[@]}" PYTHONPATH="$package" build/python/bin/python -m pytest tests/python \
    --ignore tests/python/test_report_in_browser.py --ignore tests/python/test_gpu_first_run.py \
    --ignore tests/python/test_typing.py \
    --deselect tests/python/test_documents.py::test_no_file_is_read_without_end \
    --deselect "$objects::test_a_call_that_fails_is_told_by_its_number[end-ended by signal 11]" \
    --junitxml=build/asan/python_results.xml || status=1
  add_results build/asan/python_results.xml
  if env "${environment[@]}" PYTHONPATH="$package:fuzz" build/python/bin/python \
    -m python_objects --runs "${CALLS:-100}"; then
    add 1 0 0
  else
    add 0 1 0
  fi
}

# The tests with TorchRec, or those in files $2 and on; with each of its releases $1, separated by
# commas, or else the one that is installed. Another one comes first in the path, as it goes with the
# same PyTorch and FBGEMM.
torchrec_suite() {
  local release releases=() folder files=("${@:2}")
  scripts/python_env.sh release --torchrec || return 1
  echo "torchrec: built in $SECONDS s"
  SECONDS=0
  IFS=, read -r -a releases <<<"$1"
  [ ${#releases[@]} -gt 0 ] || pytest_in torchrec "${files[@]}"
  for release in ${releases[@]+"${releases[@]}"}; do
    folder=$PWD/build/torchrec/releases/$release
    # TorchRec 1.7 imports iopath, which later releases do without.
    [ -d "$folder" ] || build/torchrec/bin/pip install -q --no-deps --target "$folder" \
      "torchrec==$release" iopath==0.1.10 portalocker==3.2.0 || return 1
    echo "TorchRec $release:"
    PYTHONPATH=$folder pytest_in torchrec "${files[@]}"
  done
}

wheel_suite() {
  local results
  rm -f build/wheel/test_results-*.xml
  scripts/wheel/build.sh || return 1
  for results in build/wheel/test_results-*.xml; do
    add_results "$results"
  done
}

format_suite() {
  if scripts/cxx_files.sh | xargs clang-format --dry-run --Werror; then
    add 1 0 0
  else
    add 0 1 0
  fi
}

lint_suite() {
  rm -f build/tidy/lint_counts.txt
  scripts/lint.sh changed || status=1
  # shellcheck disable=SC2046
  add $(cat build/tidy/lint_counts.txt || echo 0 1 0)
}

for suite in "$@"; do
  SECONDS=0
  name=${suite%%:*} chosen=$(echo "$suite" | sed 's/^[^:]*:*//')
  case "$name" in
    python | wheel) "${name}_suite" || add 0 1 0 ;;
    python-asan) python_asan_suite || add 0 1 0 ;;
    torchrec) torchrec_suite "$chosen" "" || add 0 1 0 ;;
    torchrec-planner)
      torchrec_suite "$chosen" test_{planner,estimates,sharding_types,estimator,versions}.py || add 0 1 0
      ;;
    format | lint) "${name}_suite" ;;
    asan) asan_suite "$chosen" || add 0 1 0 ;;
    release) TEST_DEADLINE='' ctest_suite release "$chosen" || add 0 1 0 ;;
    *) ctest_suite "$name" "$chosen" || add 0 1 0 ;;
  esac
  echo "$suite: run in $SECONDS s"
done

[ -z "${TEST_COUNTS-}" ] || echo "$passed $failed $skipped" >>"$TEST_COUNTS"
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
