#!/usr/bin/env bash
# Selective copying at its full length on a GPU: 16 tokens among 4096, 3 layers, minGRU and minLSTM, until solved or for ten
# minutes each.
#
#   benchmarks/gpu_selective_copying.sh [DEVICE [FOLDER]]
#
# DEVICE is a name of `minrnn devices` (default: vulkan); the program is target/release/minrnn, or MINRNN=…; SECONDS_EACH ends a run sooner.
# FOLDER (default: results/gpu/selective-copying) gets the settings, the curve by iterations (metrics.jsonl) and what the run said (log.txt).
set -uo pipefail
cd "$(dirname "$0")/.."

device=${1:-vulkan}
folder=${2:-results/gpu/selective-copying}
minrnn=${MINRNN:-target/release/minrnn}
limit=${SECONDS_EACH:-600}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

for mixer in min-gru min-lstm; do
    mkdir -p "$folder/$mixer"
    # An interrupted run keeps what it has.
    timeout --signal=INT "$limit" "$minrnn" train selective-copying-paper --device "$device" --out "$runs/$mixer" \
        --set mixer=$mixer --set batch_size=64 --set accumulation=1 --set eval_every=250 --set eval_iterations=20 --set solved_at=0.99 2>&1 | tee "$folder/$mixer/log.txt"
    cp "$runs/$mixer"/{experiment.toml,metrics.jsonl} "$folder/$mixer/"
done
