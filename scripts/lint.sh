#!/bin/bash
# clang-tidy, as .clang-tidy says, over sources that build/tidy knows how to compile:
#   scripts/lint.sh all
#   scripts/lint.sh changed    what this branch changed, newest first: since it left the main branch,
#                              or on the main branch itself in the last 20 commits (or since the commit
#                              $LINT_SINCE); no file is begun after $LINT_MINUTES (6)
# A changed header stands for the .cpp of the same name. Writes the numbers of files that passed,
# failed and were left out to build/tidy/lint_counts.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
scope=${1-all}
minutes=${LINT_MINUTES:-6}
cmake build/tidy >/dev/null # so that it knows new files
export LINT_RESULTS=build/tidy/lint_results.txt LINT_DEADLINE=0
: >"$LINT_RESULTS"

first_commit() {
  local branch base head
  head=$(git rev-parse HEAD)
  for branch in ${LINT_SINCE-} origin/HEAD origin/main origin/master main master; do
    base=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
    [ "$base" = "$head" ] || { echo "$base"; return; }
  done
  git rev-list --first-parent --max-count=21 HEAD | tail -n 1
}

changed_files() {
  local since
  since=$(first_commit)
  echo "lint: what changed since $(git log -1 --format='%h (%s)' "$since")" >&2
  git ls-files --others --modified --exclude-standard
  git log --first-parent -m --name-only --format= "$since..HEAD"
}

# Of the paths on stdin those that are compiled, each once.
compiled() {
  python3 -c '
import json, os, sys
known = {os.path.relpath(entry["file"]) for entry in json.load(open("build/tidy/compile_commands.json"))}
paths = (os.path.splitext(line.strip())[0] + ".cpp" for line in sys.stdin if line.strip()[-4:] in
         (".cpp",) or line.strip().endswith(".h"))
print("\n".join(path for path in dict.fromkeys(paths) if path in known and os.path.exists(path)))'
}

lint_one() {
  local file=$1 output
  if [ "$LINT_DEADLINE" -gt 0 ] && [ "$(date +%s)" -ge "$LINT_DEADLINE" ]; then
    echo "skipped: lint of $file: no time left" >&2
    echo skipped >>"$LINT_RESULTS"
  elif output=$(clang-tidy -quiet -p build/tidy "$file" 2>&1); then
    echo passed >>"$LINT_RESULTS"
  else
    printf '%s\n%s\n' "lint: $file" "$output" >&2
    echo failed >>"$LINT_RESULTS"
  fi
}
export -f lint_one

if [ "$scope" = changed ]; then
  files=$(changed_files | compiled)
  LINT_DEADLINE=$(($(date +%s) + 60 * minutes))
else
  files=$(scripts/cxx_files.sh | compiled)
fi
[ -z "$files" ] || xargs -P "$(nproc)" -I{} bash -c 'lint_one {}' <<<"$files"

count() { grep -c "^$1$" "$LINT_RESULTS" || true; }
echo "$(count passed) $(count failed) $(count skipped)" >build/tidy/lint_counts.txt
echo "lint: $(count passed) files passed, $(count failed) failed, $(count skipped) left out"
[ "$(count failed)" -eq 0 ]
