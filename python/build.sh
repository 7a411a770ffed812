#!/usr/bin/env bash
# Builds the wheel: `python/build.sh [FOLDER [TARGET]]`, for this machine or for a Rust target; the last line of its output names the file. Needs Rust
# (rust-toolchain.toml), a C compiler and maturin (`pip install maturin`). With `pip install maturin[zig]` the wheel runs on every Linux since 2014
# (manylinux2014); without, on those with a C library at least as new as this machine's.
set -euo pipefail
cd "$(dirname "$0")"

folder=$(realpath -m "${1:-../target/wheels}")
rm -f "$folder"/minrnn-*.whl
arguments=(build --release --out "$folder" ${2:+--target "$2"})
if python3 -c 'import ziglang' 2>/dev/null; then
    arguments+=(--zig --compatibility manylinux2014)
fi
maturin "${arguments[@]}" >&2
wheels=("$folder"/minrnn-*.whl)
echo "${wheels[0]}"
