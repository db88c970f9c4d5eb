#!/usr/bin/env bash
# Checks the CUDA operator on this machine's GPUs, prints its throughput, and collects the computation
# costs that a GPU's model is trained on: 20,600 samples, in ten minutes on one H200 (all devices of
# the host measure at once). Where Python has PyTorch, the time that is left goes to its operators, for
# comparison. Stopped, or out of time, it goes on where it was when it is started again.
#
#   scripts/gpu/collect.sh BUILD FOLDER
#
# BUILD has cli/neuroshard, tests/test_cuda and bench/cuda_throughput (`make portable` builds them);
# FOLDER gets one compressed file per workload, optimizer and data type, and the printed tables.
# In the environment: SECONDS_LEFT (570) to end in; ARENA (48GiB), what the tables may take of a
# device's memory (some GiB are worked in besides); for trying it out without a GPU BACKEND=cpu, BATCH and
# PERCENT (of the samples).
set -euo pipefail
build=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
limit=${SECONDS_LEFT:-570}
backend=${BACKEND:-cuda}
batch=${BATCH:-65536}
percent=${PERCENT:-100}
case $backend in
  cuda) where=(--backend cuda --memory "${ARENA:-48GiB}" --arena "${ARENA:-48GiB}") ;;
  cpu) where=(--backend cpu --memory 1GiB --arena 1GiB) ;;
  *) echo "collect.sh: BACKEND: expected cuda or cpu, got \"$backend\"" >&2; exit 2 ;;
esac

status=0
if [ "$backend" = cuda ]; then
  "$build/tests/test_cuda" --gtest_filter='Device*' --gtest_brief=1
  if ! "$build/bench/cuda_throughput" | tee "$folder/throughput.txt"; then
    echo "collect.sh: no throughput table" >&2
    status=1
  fi
fi

# Samples of any multiple of 4 columns up to 128, as the search cuts; a tenth of dlrm-2021's tables is
# kept from training. One line is one file: SEED NAME WORKLOAD OPTIMIZER DATA_TYPE TABLES HELD_OUT
# SAMPLES. What the model must know best comes last and takes the time that is left.
adagrad=rowwise_adagrad
runs=(
  "1 mlperf-dlrm-dcnv2-$adagrad mlperf-dlrm-dcnv2 $adagrad fp32 1:15 0 800"
  "2 mlperf-dlrm-dcnv2-sgd mlperf-dlrm-dcnv2 sgd fp32 1:15 0 800"
  "3 hugectr-7table-sgd hugectr-7table-470b-hotness20 sgd fp32 1:7 0 200"
  "4 hugectr-180table-sgd hugectr-180table-70b-hotness80 sgd fp32 1:8 0 200"
  "5 hugectr-200table-sgd hugectr-200table-100b-hotness20 sgd fp32 1:15 0 300"
  "6 hugectr-510table-sgd hugectr-510table-110b-hotness5 sgd fp32 1:15 0 500"
  "7 dlrm-2021-$adagrad-fp16 dlrm-2021 $adagrad fp16 1:15 0.1 800"
  "8 dlrm-2021-sgd-fp16 dlrm-2021 sgd fp16 1:15 0.1 1500"
  "9 dlrm-2021-sgd-1to40 dlrm-2021 sgd fp32 1:40 0.1 1000"
  "10 dlrm-2021-$adagrad dlrm-2021 $adagrad fp32 1:15 0.1 2500"
  "11 dlrm-2021-sgd dlrm-2021 sgd fp32 1:15 0.1 12000"
)
for run in "${runs[@]}"; do
  read -r seed name workload optimizer type tables held_out samples <<<"$run"
  left=$((limit - SECONDS))
  if [ "$left" -le 0 ]; then
    echo "collect.sh: $name: no time left; start it again" >&2
    status=1
    continue
  fi
  rc=0
  timeout "$left" "$build/cli/neuroshard" collect compute "${where[@]}" --seed "$seed" \
    --workload "$workload" --batch-size "$batch" --optimizer "$optimizer" --data-type "$type" \
    --tables "$tables" --held-out "$held_out" \
    --samples $(((samples * percent + 99) / 100)) -o "$folder/$name.jsonl" || rc=$?
  if [ "$rc" -eq 124 ]; then
    echo "collect.sh: $name: out of time; start it again" >&2
    status=1
  elif [ "$rc" -ne 0 ]; then
    exit "$rc"
  fi
done

# A file that is being written stays; the file for training lies next to it.
total=0
printf '%-44s %8s %10s\n' file samples bytes | tee "$folder/files.txt"
for run in "${runs[@]}"; do
  name=$(cut -d' ' -f2 <<<"$run")
  [ -s "$folder/$name.jsonl" ] || continue
  "$build/cli/neuroshard" collect merge "$folder/$name.jsonl" -o "$folder/$name.jsonl.gz" 2>/dev/null
  samples=$(grep -c '"forward_ms"' "$folder/$name.jsonl" || true)
  total=$((total + samples))
  printf '%-44s %8d %10d\n' "$name.jsonl.gz" "$samples" "$(stat -c %s "$folder/$name.jsonl.gz")" |
    tee -a "$folder/files.txt"
done
bytes=$(cat "$folder"/*.jsonl.gz | wc -c)
printf '%-44s %8d %10d\n' "all, in $SECONDS s" "$total" "$bytes" | tee -a "$folder/files.txt"
if [ "$bytes" -gt $((8 * 1024 * 1024)) ]; then
  echo "collect.sh: expected at most 8 MiB of compressed files, got $bytes bytes" >&2
  status=1
fi

# Another operator on the same device in the same run, as far as there is time: it does not count.
left=$((limit - SECONDS))
if [ "$backend" = cuda ] && [ "$left" -gt 60 ] && python3 -c 'import torch' 2>/dev/null; then
  cases=$(mktemp -d)
  trap 'rm -rf "$cases"' EXIT
  timeout "$left" bash -c '"$1" --dump "$3" && python3 "$2" "$3"' - "$build/bench/cuda_throughput" \
    bench/cuda/embedding_bag.py "$cases" | tee "$folder/embedding_bag.txt" || true
fi
exit "$status"
