#!/usr/bin/env bash
# Makes crates/cli/tests/fixtures/compatibility with a minrnn of before: small runs, packed models, a saved session and saved states, and what that
# program says of them. The committed ones are those of commit 4d22842, but for its reading of JSON numbers (ae5234e) and
# the headings of a table of classes (recall, precision, predicted).
#
#   git worktree add /tmp/before ae5234e && (cd /tmp/before && cargo build --release)
#   (cd /tmp/before && cp "$OLDPWD/tools/saved_state.rs" crates/stream/examples && cargo build --release -p minrnn-stream --example saved_state)
#   tools/compatibility_fixtures.sh /tmp/before/target/release/minrnn
set -euo pipefail
minrnn=$(realpath "$1")
saved_state=$(dirname "$minrnn")/examples/saved_state
cd "$(dirname "$0")/../crates/cli/tests/fixtures/compatibility"
rm -rf ./*

python3 - <<'PYTHON'
import random

random.seed(1)
words = "the quick brown fox jumps over a lazy dog and then sleeps near the old river while small birds sing".split()
with open("text.txt", "w") as file:
    file.write(" ".join(random.choice(words) for _ in range(700)) + "\n")
with open("classes.csv", "w") as file:
    file.write("name,x,y,label\n")
    for s in range(24):
        for t in range(6):
            x = (t if s % 2 else -t) / 4 + random.gauss(0, 0.2)
            file.write(f"s{s},{x:.3f},{random.gauss(0, 1):.3f},{'up' if s % 2 else 'down'}\n")
with open("series.csv", "w") as file:
    file.write("name,y\n")
    for s in range(3):
        for t in range(60):
            file.write(f"s{s},{10 + 5 * ((t + s) % 6) + random.gauss(0, 0.3):.3f}\n")
PYTHON

settings=()
for setting in threads=1 max_iterations=150 eval_every=75 eval_iterations=2 checkpoint_every=75 d_model=8 n_layers=1 batch_size=8 seq_len=16 warmup=2 lr=0.02; do
    settings+=(--set "$setting")
done
train() {
    local experiment=$1 data=$2 run=$3
    shift 3
    "$minrnn" train "$experiment" --data "$data" --out "$run" "${settings[@]}" "$@" >/dev/null 2>&1
    # What a run can do without, and all but its best checkpoint.
    local best
    best=$(cat "$run/checkpoints/best")
    echo "$best" >"$run/checkpoints/last"
    find "$run/checkpoints" -mindepth 1 -maxdepth 1 -name 'iter-*' ! -name "$best" -exec rm -r {} +
    rm -rf "$run"/curves.* "$run"/events.* "$run"/run.lock
}
train text text.txt min-gru --set mixer=min-gru --set ff=none
train text text.txt min-lstm --set mixer=min-lstm --set initial_state=learned --set conv=true --set ff=none
train text text.txt mamba --set mixer=s6 --set wiring=mamba --set ff=none --set d_state=4
train text text.txt rwkv4 --set mixer=rwkv4 --set ff=channel-mix
train text text.txt attention --set mixer=attention --set positions=learned --set max_seq_len=64 --set ff=none
train classify classes.csv classes --group name --target label --set ff=none
train forecast series.csv series --group name --target y --set ff=none --set horizon=6
for format in f32 bf16 int8 int4; do
    "$minrnn" pack min-gru --weights "$format" -o "min-gru-$format.minrnn" >/dev/null
done
"$minrnn" pack mamba --weights int8 -o mamba-int8.minrnn >/dev/null
"$minrnn" pack rwkv4 --weights f32 -o rwkv4-f32.minrnn >/dev/null
for model in min-gru-int8 rwkv4-f32; do
    "$saved_state" "$model.minrnn" "$model.state" "$model.logits.json"
done
"$minrnn" generate min-gru --prompt "the quick " --temperature 0 --max-tokens 8 --threads 1 --save-session session >/dev/null 2>&1

MINRNN=$minrnn python3 - <<'PYTHON'
import json, os, shutil, subprocess

calls = []
def call(*args, said=True):
    result = subprocess.run([os.environ["MINRNN"], *args], capture_output=True, text=True, check=True)
    calls.append({"args": args, "stdout": result.stdout if said else None})

models = ["min-gru", "min-lstm", "mamba", "rwkv4", "attention"]
packed = [f"min-gru-{format}.minrnn" for format in ["f32", "bf16", "int8", "int4"]] + ["mamba-int8.minrnn", "rwkv4-f32.minrnn"]
for model in models + packed:
    call("generate", model, "--prompt", "the old ", "--temperature", "0", "--max-tokens", "24", "--threads", "1")
    call("eval", model, "--data", "text.txt", "--threads", "1")
call("generate", "min-gru", "--load-session", "session", "--max-tokens", "12", "--threads", "1")
call("predict", "classes", "--data", "classes.csv", "--threads", "1")
call("eval", "classes", "--data", "classes.csv", "--threads", "1")
call("predict", "series", "--data", "series.csv", "--threads", "1")
# The run goes on, in a copy.
shutil.copytree("min-gru", "resumed")
call("train", "--resume", "--out", "min-gru", "--set", "max_iterations=170", said=False)
call("eval", "min-gru", "--data", "text.txt", "--threads", "1")
shutil.rmtree("min-gru")
os.rename("resumed", "min-gru")
with open("expected.json", "w") as file:
    json.dump(calls, file, indent=1)
    file.write("\n")
PYTHON
