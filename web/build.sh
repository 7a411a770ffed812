#!/usr/bin/env bash
# Builds the WebAssembly module, its JavaScript and the page into web/dist/:
#
#   rustup target add wasm32-unknown-unknown     once; if it is missing, a toolchain that has it is unpacked (Debian, 20 seconds)
#   web/build.sh                                 web/dist/: the page, to be served as it is, and the npm package
#
# The module is made smaller by wasm-opt if that is installed (`npm install -g binaryen`).
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
wasm=wasm32-unknown-unknown
dist=web/dist

sysroot=$(rustc --print sysroot)
if [ -z "${RUSTC:-}" ] && [ ! -d "$sysroot/lib/rustlib/$wasm" ]; then
    echo "== a compiler for $wasm (users: rustup target add $wasm)"
    web/toolchain.sh "$target/wasm-toolchain"
    RUSTC=$(realpath "$target/wasm-toolchain/rustc")
    export RUSTC
fi
if [ -n "${RUSTC:-}" ]; then
    # A compiler from another source comes without a linker.
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=${CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER:-$(find "$sysroot" -name rust-lld | head -n 1)}
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER
fi

echo "== module"
# Every browser has had 128-bit vectors since 2023. Code outside the kernels is optimised for size, and the locations of panics, which nobody would
# see, are left out by an unstable option.
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-C target-feature=+simd128 -Z location-detail=none" \
    CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_OPT_LEVEL=z \
    cargo build --release --config 'profile.release.package.minrnn-kernels.opt-level=3' --target $wasm --target-dir "$target/wasm" \
    -p minrnn-capi --no-default-features

rm -rf "$dist"
mkdir -p "$dist/models"
module=$target/wasm/$wasm/release/minrnn_capi.wasm
optimise=$(command -v wasm-opt || command -v node_modules/.bin/wasm-opt || true)
if [ -n "$optimise" ]; then
    # More passes make the module smaller as it lies there, and larger once it is compressed.
    "$optimise" --dae -O1 --shrink-level=2 --reorder-functions-by-name --strip-debug --strip-producers --enable-simd --enable-bulk-memory --enable-nontrapping-float-to-int \
        --enable-sign-ext --enable-mutable-globals --enable-reference-types --enable-multivalue "$module" -o "$dist/minrnn.wasm"
else
    echo "wasm-opt is not installed: the module stays as the compiler made it"
    cp "$module" "$dist/minrnn.wasm"
fi

echo "== page and package"
cp web/minrnn.js web/minrnn.d.ts web/package.json web/README.md LICENSE-APACHE LICENSE-MIT web/page/* "$dist/"
cp models/*.minrnn models/*.csv "$dist/models/"

size() { wc -c | tr -d ' '; }
echo "minrnn.wasm: $(size <"$dist/minrnn.wasm") bytes, $(gzip -9c "$dist/minrnn.wasm" | size) gzipped; minrnn.js: $(gzip -9c "$dist/minrnn.js" | size) gzipped"
echo "serve it: python3 -m http.server --directory $dist"
