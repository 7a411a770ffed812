#!/usr/bin/env bash
# Measures everything of one GPU in under 8 minutes, and PyTorch's peers where the card is NVIDIA's.
#
#   benchmarks/gpu.sh [DEVICE [FOLDER]]
#
# DEVICE is a name of `minrnn devices` (default: vulkan). Needs target/release/minrnn and target/release/examples/gpu_matches_cpu, built by
#
#   cargo build --release --workspace --features minrnn-cli/vulkan --bin minrnn --example gpu_matches_cpu
#
# or programs elsewhere: MINRNN=… CHECK=…; and FUSED=…, see below. Results go to FOLDER (default: results/gpu/<time>): JSON lines, one file per bench, and what was
# checked. A part that fails is named at the end and does not stop the others.
set -uo pipefail
cd "$(dirname "$0")/.."

device=${1:-vulkan}
folder=${2:-results/gpu/$(date +%Y%m%d-%H%M%S)}
minrnn=${MINRNN:-target/release/minrnn}
check=${CHECK:-target/release/examples/gpu_matches_cpu}
python=${PYTHON:-python3}
mkdir -p "$folder"
failed=()

# part NAME SECONDS COMMAND...: runs one part into FOLDER/NAME for at most that long.
part() {
    local name=$1 limit=$2
    shift 2
    echo "== $name"
    timeout "$limit" "$@" >>"$folder/$name" 2>>"$folder/errors.txt" || failed+=("$name")
}

{ "$minrnn" devices; nvidia-smi 2>/dev/null | head -n 15; } >"$folder/machine.txt"
cat "$folder/machine.txt"

part matches.txt 60 "$check" "$device"
tail -n 1 "$folder/matches.txt"

part scan.jsonl 60 "$minrnn" bench scan --device "$device" --json --iterations 10
# The larger of what memory and instructions allow, beside it.
part predicted.md 10 "$python" benchmarks/gpu_prediction.py results/gpu/kernels.md "$folder/scan.jsonl"
cat "$folder/predicted.md"
for length in 512 4096; do
    part layer.jsonl 40 "$minrnn" bench layer --device "$device" --json --mixer min-gru,min-lstm --seq-len $length --iterations 10
done
part layer.jsonl 60 "$minrnn" bench layer --device "$device" --json --mixer lstm,mamba,s-lstm,m-lstm --seq-len 512 --iterations 5
for precision in f32 bf16; do
    part lm.jsonl 60 "$minrnn" bench lm --device "$device" --json --precision $precision --iterations 10 --warmup 5
done
# What Burn's fusion saves: FUSED is the program built with --features minrnn-cli/vulkan,minrnn-cli/fusion.
if [ -n "${FUSED:-}" ]; then
    for precision in f32 bf16; do
        part lm-fused.jsonl 40 "$FUSED" bench lm --device "$device" --json --precision $precision --iterations 10 --warmup 5
    done
fi
part decode.jsonl 30 "$minrnn" bench decode --device "$device" --json --iterations 3

if "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    cd benchmarks/peers
    folder=$(cd ../..; cd "$folder"; pwd)
    part scan.jsonl 60 "$python" torch_scan.py
    for length in 512 4096; do
        part layer.jsonl 40 "$python" torch_layer.py --device cuda --impl torch-nn,torch-log-scan --seq-len $length --iterations 10 --warmup 3
    done
    # The loop: one iteration is enough to see it.
    part layer.jsonl 60 "$python" torch_layer.py --device cuda --impl torch-loop --seq-len 512 --iterations 2 --warmup 1
    part lm.jsonl 90 "$python" torch_lm.py --device cuda --impl torch-log-scan,torch-compile --iterations 10 --warmup 3
    part lm.jsonl 60 "$python" torch_lm.py --device cuda --impl torch-log-scan --precision bf16 --iterations 10 --warmup 3
    part decode.jsonl 40 "$python" torch_decode.py decode --device cuda --iterations 3
else
    echo "no PyTorch with CUDA here: the peers are left out"
fi

if ((${#failed[@]})); then
    echo "failed: ${failed[*]} (see $folder/errors.txt)"
    exit 1
fi
echo "results in $folder"
