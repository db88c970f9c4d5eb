#!/usr/bin/env bash
# Simulates the all-reduces that the shipped communication model has learned and is tested on.
# Stop it whenever you like: started again, it goes on.
# Usage: simulate_all_reduces.sh NEUROSHARD_EXECUTABLE OUTPUT_FOLDER [PROCESSES]
set -euo pipefail
executable=$1
folder=$2
processes=${3:-$(nproc)}
mkdir -p "$folder/all-reduce" "$folder/all-reduce-held-out"

samples() {
  case $1 in
    2 | 3 | 4 | 6 | 8 | 12 | 16) echo 100 ;;
    24 | 32 | 48 | 64) echo 60 ;;
    *) echo 30 ;;
  esac
}

seed=0
case_of() {  # PART PLATFORM DEVICES LOCAL_DEVICES
  seed=$((seed + 1))
  echo "collect communication --kind all-reduce --backend simgrid --platform $2 --devices $3" \
    "--local-devices $4 --seed $seed --samples $(samples "$3") -o $folder/$1/$2-$3x$4.jsonl"
}

cases() {
  for platform in a100-nvswitch h100-nvswitch; do
    for devices in 2 4 8; do case_of all-reduce $platform $devices $devices; done
    for devices in 16 32 64 128; do case_of all-reduce $platform $devices 8; done
  done
  for devices in 2 4; do case_of all-reduce pcie4 $devices $devices; done
  for devices in 8 16 32; do case_of all-reduce pcie4 $devices 4; done
  for platform in ethernet-10g ethernet-25g ethernet-100g; do
    for devices in 2 4 8 16 32; do case_of all-reduce $platform $devices 1; done
  done
  case_of all-reduce ethernet-25g 64 1
  # Between those learned: numbers of devices, hosts with other numbers of devices, an interconnect.
  for devices in 3 12 24; do case_of all-reduce-held-out ethernet-25g $devices 1; done
  for devices in 6 16; do case_of all-reduce-held-out ethernet-50g $devices 1; done
  case_of all-reduce-held-out a100-nvswitch 16 4
  case_of all-reduce-held-out a100-nvswitch 48 8
  case_of all-reduce-held-out h100-nvswitch 24 8
  case_of all-reduce-held-out h100-nvswitch 6 6
  case_of all-reduce-held-out pcie4 12 4
  case_of all-reduce-held-out pcie4 8 2
}

cases | xargs -P "$processes" -L 1 "$executable"
