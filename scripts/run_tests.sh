#!/bin/bash
# Builds and runs the tests in the build folders of the given presets, which are configured, and
# closes with the sum of what ctest counted:
#   scripts/run_tests.sh dev asan
set -euo pipefail
cd "$(dirname "$0")/.."

# The number in attribute $1 of the test suite in the JUnit file $2.
count() {
  local number
  number=$(sed -n "s/^.*[[:space:]]$1=\"\([0-9]*\)\".*$/\1/p" "$2" | head -n 1)
  echo "${number:?$2: expected attribute $1}"
}

passed=0 failed=0 skipped=0 status=0
for preset in "$@"; do
  SECONDS=0
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
  failures=$(count failures "$suite")
  not_run=$(($(count skipped "$suite") + $(count disabled "$suite")))
  failed=$((failed + failures))
  skipped=$((skipped + not_run))
  passed=$((passed + $(count tests "$suite") - failures - not_run))
done

if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] || status=1
exit "$status"
