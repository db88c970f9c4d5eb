#!/usr/bin/env bash
# The whole first visit to a machine with a GPU, in three calls of at most ten minutes: what fails
# teaches most at the beginning, so the steps come in that order, each keeps its result whatever
# becomes of the others, and a call goes on where the one before it ended.
#
#   scripts/gpu/first_run.sh --state DIR [--build BUILD] [--minutes 9] [--name h200]
#                            [--results FILE] [--skip STEP,STEP] [--backend cpu] [--percent 100]
#                            [--seed 0] [--fail STEP]
#
# BUILD (build/portable) has cli/neuroshard, tests/test_cuda and bench/cuda_throughput, as `make
# portable CUDA=ON` links them for a host on which nothing can be installed. DIR gets STEP.log and
# STEP.status of each step ("done", "failed, exit status 1", "out of time", "skipped: why"), the
# measured costs, the models and the comparisons; FILE (DIR/results.tar.gz) is all of it, so that
# another machine can go on from it. It is packed after each step, so that a call that is cut off
# leaves what was done. A step that is done is not run again, unless there are newer costs or another
# model than it had; one that has failed is tried again by the next call, after all that have not been
# tried.
#
# --minutes is what the call may take: where the machine is lent for a time, less than is left of it.
# The folder DIR should be one that git ignores where the source tree is copied to the machine anew
# before each call.
#
# --skip leaves steps out: training, say, where another machine trains meanwhile and puts
# NAME.safetensors into DIR before the next call. --seed draws other tables and sets to train on than
# another visit did, for a model that goes on from that one's; the frontier stays as it is.
#
# For rehearsing without a GPU: --backend cpu, which checks the kernels block by block on the host,
# --percent of the samples and tasks, and --fail, a step that is to fail. Exit status: 0 all steps
# are done or skipped, 1 one has failed, 2 a wrong option, 3 the time is over: call it again.
set -uo pipefail

usage() {
  echo "first_run.sh: $*" >&2
  exit 2
}

minutes=9 state='' build=build/portable name=h200 backend=cuda percent=100 seed=0 fail='' skip=''
results=''
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage "$1: expected a value, got none"
  case $1 in
    --minutes) minutes=$2 ;;
    --state) state=$2 ;;
    --results) results=$2 ;;
    --build) build=$2 ;;
    --name) name=$2 ;;
    --backend) backend=$2 ;;
    --percent) percent=$2 ;;
    --seed) seed=$2 ;;
    --fail) fail=$2 ;;
    --skip) skip=$2 ;;
    *) usage "expected --state, --build, --minutes, --name, --results, --skip, --backend, --percent," \
      "--seed or --fail, got \"$1\"" ;;
  esac
  shift 2
done
[ -n "$state" ] || usage "--state: expected a folder, got none"
[[ $minutes =~ ^[1-9][0-9]*$ ]] || usage "--minutes: expected a whole number from 1, got \"$minutes\""
[[ $percent =~ ^[1-9][0-9]?$|^100$ ]] || usage "--percent: expected 1 to 100, got \"$percent\""
[[ $seed =~ ^(0|[1-9][0-9]{0,8})$ ]] || usage "--seed: expected a whole number from 0, got \"$seed\""
[[ $backend =~ ^(cuda|cpu)$ ]] || usage "--backend: expected cuda or cpu, got \"$backend\""
[ -x "$build/cli/neuroshard" ] || usage "--build: expected a folder with cli/neuroshard, got \"$build\""
build=$(cd "$build" && pwd)
mkdir -p "$state" || usage "--state: cannot make the folder \"$state\""
state=$(cd "$state" && pwd)
results=${results:-$state/results.tar.gz}
[[ -d $(dirname "$results") && ! -d $results ]] ||
  usage "--results: expected a file in a folder that there is, got \"$results\""
results=$(cd "$(dirname "$results")" && pwd)/${results##*/}
cd "$(dirname "$0")/../.."
neuroshard=$build/cli/neuroshard
# Where an executable that was built elsewhere finds models by name.
export NEUROSHARD_MODELS=$PWD/models${NEUROSHARD_MODELS:+:$NEUROSHARD_MODELS}

# Without CUDA every step would fail, at the cost of a visit. No host has the device that this asks
# for, so that it says what is missing and measures nothing.
if [ "$backend" = cuda ]; then
  said=$("$neuroshard" collect compute --backend cuda --gpus 1023 -o "$state/none.jsonl" 2>&1)
  case $said in
    *"expected an executable built with CUDA"*)
      usage "--build: expected an executable built with CUDA (make portable CUDA=ON)," \
        "got one without: \"$neuroshard\"" ;;
  esac
fi
costs=$state/costs
mkdir -p "$costs"

# Somewhat less than what is given: for packing, and for a step that ends late.
end=$((minutes * 60 - (minutes > 2 ? 20 : 5)))
left() { echo $((end - SECONDS)); }

if [ "$backend" = cuda ]; then
  where=(--backend cuda --arena "${ARENA:-48GiB}")
  self_check='Device*-DeviceBackend.SaysWhatIsMissing'  # that one is skipped where there is a device
  batches=256,1024,4096,16384,65536,131072
  frontier_batches=700,3000,10000,50000
  plans_batches=16384,65536
  batch=65536
  passes=(--max-pass 40GB --large 0.2)  # a device's share of a large model moves gigabytes a pass
  of_training=(--granularity-ms 1)      # what launches take is spent once for all tables
  of_published=()
else
  where=(--backend cpu --arena 1GiB)
  self_check='Emulated*:LaunchPlan*:BatchDraw*'
  batches=128,512
  frontier_batches=300
  plans_batches=512
  batch=512
  passes=() of_training=() of_published=(--batch-size "$batch")
fi
published=(mlperf-dlrm-dcnv2 criteo-terabyte-40m criteo-terabyte hugectr-180table-70b-hotness80
  hugectr-200table-100b-hotness20 hugectr-510table-110b-hotness5 dlrm-2022)
dims=($(seq 4 4 128) $(seq 144 16 256) $(seq 288 32 512) $(seq 576 64 1024))
share() { echo $((($1 * percent + 99) / 100)); }

# --- The steps ------------------------------------------------------------------------------------

machine() {  # what there is; fails where there is no device
  uname -srm
  grep -m 1 'model name' /proc/cpuinfo
  [ "$backend" = cuda ] || return 0
  nvidia-smi && nvidia-smi -q -d CLOCK,MEMORY,ECC
}

# Whether the step's log says that tests ran: a program that finds no usable device skips them all,
# one that was built without CUDA has none of the name, and both exit with 0.
has_checked() {
  local log=$state/$1.log
  grep -qF '[  PASSED  ]' "$log" &&
    ! grep -qF -e '[  SKIPPED ]' -e '[  PASSED  ] 0 tests' "$log" && return
  echo "first_run.sh: expected tests that ran, got skipped ones or none"
  return 1
}

self_check() {  # the kernels against the reference
  "$build/tests/test_cuda" --gtest_color=no --gtest_filter="$self_check" && has_checked self_check
}

# Of the kernels' accesses and of reads of what nothing wrote, on a short list. They use no memory that
# a block's threads share, so there is nothing for racecheck. timeout stays in the step's process
# group, which ends with the time.
sanitizer() {
  local short='DeviceOperator.AdversarialBatchesMatchTheReference'
  for tool in memcheck initcheck; do
    timeout --foreground 60 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$build/tests/test_cuda" --gtest_color=no --gtest_filter="$short" || return
  done
  has_checked sanitizer
}

throughput() {  # next to the copy bandwidth
  "$build/bench/cuda_throughput"
}

embedding_bag() {  # PyTorch's operator on some of the same cases
  local cases=$state/cases status=0 some
  mkdir -p "$cases"
  for some in dcnv2-26x128-fp32 dlrm-2021-40x64-fp32; do
    "$build/bench/cuda_throughput" --dump "$cases" --cases "$some" || status=$?
  done
  [ "$status" -ne 0 ] || python3 bench/cuda/embedding_bag.py "$cases" || status=$?
  rm -rf "$cases"
  return "$status"
}

# collect SEED NAME SETS WORKLOAD WORKLOAD_SEED BATCHES SAMPLES HELD_OUT: of each file.
collect() {
  local of_sets=()
  case $3 in
    coverage) of_sets=("${passes[@]}") ;;
    plans) of_sets=(--planned-by "$(planning_model)") ;;
  esac
  "$neuroshard" collect compute "${where[@]}" --seed "$1" --sets "$3" --workload "$4" \
    --workload-seed "$5" --batch-size "$6" --optimizer rowwise_adagrad,sgd --samples "$(share "$7")" \
    --held-out "$8" --tables 1:40 --in-flight 64 --dims "${dims[@]}" "${of_sets[@]}" \
    -o "$costs/$2-b{batch_size}-{optimizer}.jsonl"
}
# Sets of the whole space of tables, with slices of rows: an eighth first, so that there is a model.
of_coverage() {
  collect "$((1000 + seed))" coverage coverage coverage "$((1000 + seed))" "$batches" "$1" 0.1
}
short_collection() { of_coverage 150; }
collection() { of_coverage 1200; }
frontier() { collect 3000 frontier coverage coverage 53000 "$frontier_batches" 100 0; }
# And sets of the tables that plans are compared on, drawn at random and as plans have them.
usual_collection() { collect "$((1 + seed))" dlrm-2021 uniform dlrm-2021 0 "$batch" 2500 0.1; }
plans_collection() {
  collect "$((9000 + seed))" plans-dlrm-2021 plans dlrm-2021 0 "$plans_batches" 300 0.1 &&
    collect "$((9100 + seed))" plans-mlperf-dlrm-dcnv2 plans mlperf-dlrm-dcnv2 0 "$batch" 100 0
}
# The first model, where there is one: what it is too low about is what plans consist of. A file goes
# on with the model that it began with, also on another machine.
planning_model() {
  local chosen=$state/planning_model
  if [ ! -e "$chosen" ]; then
    if [ -e "$state/$name-short.safetensors" ]; then
      echo "$name-short.safetensors"
    else
      echo analytic-h100-sxm
    fi >"$chosen"
  fi
  case $(cat "$chosen") in
    *.safetensors) echo "$state/$(cat "$chosen")" ;;
    *) cat "$chosen" ;;
  esac
}

# train NAME PREFIX...: on the files that have samples, whether or not they are complete.
train() {
  local model=$1 files=() file
  shift
  for prefix in "$@"; do
    for file in "$costs/$prefix"-*.jsonl; do
      [ -e "$file" ] && grep -q '"forward_ms"' "$file" && files+=("$file")
    done
  done
  "$neuroshard" train compute "${files[@]}" --name "$model" --seed 1 "${of_training[@]}" \
    -o "$state/$model.safetensors.new" &&
    mv "$state/$model.safetensors.new" "$state/$model.safetensors"
}
short_training() { train "$name-short" coverage; }
training() { train "$name" coverage dlrm-2021 plans; }
best_model() {
  if [ -e "$state/$name.safetensors" ]; then
    echo "$state/$name.safetensors"
  else
    echo "$state/$name-short.safetensors"
  fi
}
frontier_test() { "$neuroshard" model test "$(best_model)" "$costs"/frontier-*.jsonl; }

# of_model NAME: with the model that there is. A journal goes on with none but the model that it began
# with, so each model has its own, and its own result.
of_model() { echo "$state/$1-$(sha256sum "$(best_model)" | cut -c 1-12)"; }
# compare NAME MODEL TASKS: every plan's computation measured, all-to-alls as MODEL predicts them.
compare() {
  "$neuroshard" compare "$3" --measure "${where[@]}" --model "$(best_model)" --model "$2" \
    --algorithms all,neuroshard:columns --relative-to neuroshard:columns \
    --journal "$(of_model "journal-$1").jsonl" --force -o "$(of_model "comparison-$1").json"
}
# compare_random DEVICES TABLES SEED
compare_random() {
  local tasks=$state/tasks-$1
  if [ ! -d "$tasks" ]; then
    rm -rf "$tasks.new"  # of a call that was cut off
    "$neuroshard" workload tasks dlrm-2021 --count "$(share 30)" --tables "$2" \
      --devices "$1" --memory 16GiB --batch-size "$batch" --interconnect h100-nvswitch --seed "$3" \
      -o "$tasks.new" || return
    mv "$tasks.new" "$tasks" || return
  fi
  compare "$1" models/all-to-all.safetensors "$tasks"
}
compare_4() { compare_random 4 10:60 1; }
compare_8() { compare_random 8 20:120 2; }

# Whole published workloads at their own batch sizes, on 8 devices of MEMORY each.
compare_published() {
  local tasks=$state/tasks-published workload
  if [ ! -d "$tasks" ]; then
    mkdir -p "$tasks.new" || return
    for workload in "${published[@]}"; do
      "$neuroshard" workload export "$workload" --devices 8 --memory "${MEMORY:-70GiB}" \
        "${of_published[@]}" --force -o "$tasks.new/$workload.json" || return
    done
    mv "$tasks.new" "$tasks"
  fi
  compare published h100-nvswitch "$tasks"
}

steps=(machine self_check sanitizer throughput embedding_bag short_collection short_training frontier
  usual_collection plans_collection collection training frontier_test compare_4 compare_8
  compare_published)

for step in ${skip//,/ }; do
  [[ " ${steps[*]} " == *" $step "* ]] || usage "--skip: expected steps, of ${steps[*]}, got \"$step\""
done

# What a step cannot do without; printed where it is missing.
why_not() {
  [[ ,$skip, != *,$1,* ]] || echo "as --skip asks"
  case $1 in
    sanitizer)
      [ "$backend" = cuda ] || echo "no device"
      [ "$backend" != cuda ] || command -v compute-sanitizer >/dev/null || echo "no compute-sanitizer"
      ;;
    throughput) [ "$backend" = cuda ] || echo "no device" ;;
    embedding_bag)
      if [ "$backend" != cuda ]; then
        echo "no device"
      elif ! python3 -c 'import torch' 2>/dev/null; then
        echo "no PyTorch"
      fi
      ;;
    short_training | training)
      compgen -G "$costs/coverage-*.jsonl" >/dev/null || echo "no measured costs"
      ;;
    frontier_test | compare_*)
      [ -e "$(best_model)" ] || echo "no model"
      [ "$1" != frontier_test ] || compgen -G "$costs/frontier-*.jsonl" >/dev/null ||
        echo "no frontier"
      ;;
  esac
}

# --- Running them ---------------------------------------------------------------------------------

status_of() { cat "$state/$1.status" 2>/dev/null || true; }

# Ends the process group $1, gently first.
end_group() {
  kill -TERM -- "-$1" 2>/dev/null
  for _ in 1 2 3 4 5; do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 1
  done
  kill -KILL -- "-$1" 2>/dev/null
}

# Runs a step in a process group of its own, so that all that it has started ends with the time.
run_step() {
  local step=$1 missing began=$SECONDS rc=0 is_late=''
  missing=$(why_not "$step" | head -n 1)
  if [ -n "$missing" ]; then
    echo "skipped: $missing" >"$state/$step.status"
    return
  fi
  if [ "$(left)" -le 0 ]; then
    [ -n "$(status_of "$step")" ] || echo "out of time" >"$state/$step.status"
    return
  fi
  echo "first_run.sh: $step, $(left) s left"
  if [ "$step" = "$fail" ]; then
    echo "fails, as --fail asks" >"$state/$step.log"
    rc=1
  else
    set -m
    "$step" </dev/null >"$state/$step.log" 2>&1 9>&- &
    local pid=$!
    set +m
    while kill -0 "$pid" 2>/dev/null; do
      if [ "$(left)" -le 0 ]; then
        is_late=yes
        end_group "$pid"
      fi
      sleep 0.2
    done
    wait "$pid" || rc=$?
    end_group "$pid"  # what it left running: timeout ends a program, not those that it has started
  fi
  if [ "$rc" -eq 0 ]; then
    echo "done in $((SECONDS - began)) s" >"$state/$step.status"
  elif [ -n "$is_late" ]; then
    echo "out of time" >"$state/$step.status"
  else
    echo "failed, exit status $rc" >"$state/$step.status"
    tail -n 5 "$state/$step.log" | sed 's/^/  /'
  fi
  pack
}

# Whether costs were measured after the model was trained, or what was done had another model.
is_stale() {
  case $1 in
    training)
      is_newer_than "$state/$name.safetensors" "$costs"/coverage-* "$costs"/dlrm-2021-* \
        "$costs"/plans-*
      ;;
    frontier_test) is_newer_than "$state/frontier_test.log" "$(best_model)" "$costs"/frontier-* ;;
    compare_*) [ ! -e "$(of_model "comparison-${1#compare_}").json" ] ;;
  esac
}
is_newer_than() {
  local result=$1 file
  shift
  for file in "$@"; do [ "$file" -nt "$result" ] && return 0; done
  return 1
}

summary() {
  local step
  for step in "${steps[@]}"; do printf '%-18s %s\n' "$step" "$(status_of "$step")"; done
}

# One file to take along, whole or not there: another machine goes on from what it unpacks. Without
# the batches of embedding_bag, gigabytes that are left where it was ended.
pack() {
  local rc=0
  summary >"$state/summary.txt"
  (cd "$state" && tar --exclude='results.tar.gz*' --exclude="${results##*/}" \
    --exclude="${results##*/}.new" --exclude=cases --exclude=lock -czf "$results.new" -- * 9>&-) ||
    rc=$?
  # 1: a file changed while it was read, such as a model that somebody has put there.
  [ "$rc" -le 1 ] && mv "$results.new" "$results"
}

exec 9>"$state/lock"
flock -n 9 || usage "--state: another call is at work in \"$state\""

failed_before=''
for step in "${steps[@]}"; do
  case $(status_of "$step") in
    done*) ;;
    failed*) failed_before="$failed_before $step" ;;
    *) run_step "$step" ;;
  esac
done
for step in $failed_before; do run_step "$step"; done
for step in training frontier_test compare_4 compare_8 compare_published; do
  case $(status_of "$step") in
    done*)
      if is_stale "$step"; then
        echo "out of time" >"$state/$step.status"  # unless there is time left
        run_step "$step"
      fi
      ;;
  esac
done

status=0
for step in "${steps[@]}"; do
  case $(status_of "$step") in
    done* | skipped*) ;;
    "out of time") [ "$status" -eq 1 ] || status=3 ;;
    *) status=1 ;;
  esac
done

pack
cat "$state/summary.txt"
exit "$status"
