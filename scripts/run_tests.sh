#!/bin/bash
# Builds and runs the tests in the build folders of the given presets, which are configured, and
# closes with the sum of what was counted:
#   scripts/run_tests.sh dev asan
#   scripts/run_tests.sh python      those of the Python package, built in build/dev
#   scripts/run_tests.sh torchrec    likewise those with PyTorch, FBGEMM and TorchRec
set -euo pipefail
cd "$(dirname "$0")/.."

# The number in attribute $1 of the test suite in the JUnit file $2.
count() {
  local number
  number=$(sed -n "s/^.*[[:space:]]$1=\"\([0-9]*\)\".*$/\1/p" "$2" | head -n 1)
  echo "${number:?$2: expected attribute $1}"
}

# Adds a suite's $1 tests, $2 of which failed and $3 did not run, to the sum.
add() {
  failed=$((failed + $2))
  skipped=$((skipped + $3))
  passed=$((passed + $1 - $2 - $3))
}

# The tests in folder $1 with the Python of environment $2.
python_suite() {
  local results=$2/test_results.xml
  rm -f "$results"
  "$2/bin/python" -m pytest "$1" --junitxml="$results" || status=1
  # shellcheck disable=SC2046
  add $("$2/bin/python" - "$results" <<'EOF'
import sys
from xml.etree import ElementTree

suite = ElementTree.parse(sys.argv[1]).getroot().find("testsuite")
print(suite.get("tests"), int(suite.get("failures")) + int(suite.get("errors")), suite.get("skipped"))
EOF
  )
}

passed=0 failed=0 skipped=0 status=0
for preset in "$@"; do
  SECONDS=0
  case "$preset" in
    python) scripts/python_env.sh dev ;;
    torchrec) scripts/python_env.sh dev --torchrec ;;
  esac
  case "$preset" in
    python | torchrec)
      echo "$preset: built in $SECONDS s"
      SECONDS=0
      python_suite "tests/$preset" "build/$preset"
      echo "$preset: run in $SECONDS s"
      continue
      ;;
  esac
  cmake --build "build/$preset" --target neuroshard_tests
  echo "$preset: built in $SECONDS s"

  SECONDS=0
  results=build/$preset/test_results.xml
  rm -f "$results"
  ctest --test-dir "build/$preset" --parallel "$(nproc)" --output-on-failure --no-tests=error \
    --output-junit "$PWD/$results" >"build/$preset/test_log.txt" || status=1
  grep -v -E '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#.* Passed )' "build/$preset/test_log.txt" || true
  echo "$preset: run in $SECONDS s"

  # Of the whole suite, in the file's second tag; a test that is disabled counts as skipped.
  suite=build/$preset/test_suite.txt
  sed -n '/<testsuite/,/>/p' "$results" | tr '\n\t' '  ' | sed 's/>.*/>/' >"$suite"
  not_run=$(($(count skipped "$suite") + $(count disabled "$suite")))
  add "$(count tests "$suite")" "$(count failures "$suite")" "$not_run"
done

if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] || status=1
exit "$status"
