#!/usr/bin/env bash
# For machines that cannot reach rustup's server: Debian's rustc with WebAssembly's standard library, unpacked into a folder, nothing installed.
# Usage: toolchain.sh DIR; leaves DIR/rustc. Needs apt-get and dpkg-deb of Debian on x86-64, and 800 MB.
set -euo pipefail

dir=$(realpath -m "$1")
[ -x "$dir/rustc" ] && "$dir/rustc" -V >/dev/null 2>&1 && exit 0
rm -rf "$dir"
mkdir -p "$dir"/{lists/partial,cache/archives/partial,debs,root}

# The machine's own mirror, but the suite that has a recent compiler.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -E '^(URIs:|deb )' | grep -oE 'https?://[^ ]+' | grep -v security | head -n 1 || true)
[ -n "$mirror" ] || { echo "there is no Debian mirror to take a compiler from; install one: rustup target add wasm32-unknown-unknown" >&2; exit 1; }
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$dir/sources.list"
apt=(-qq -o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$dir/lists"
    -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
apt-get "${apt[@]}" update

depends() { apt-cache "${apt[@]}" depends "$1" | sed -n "s/ *Depends: \($2\)\$/\1/p" | head -n 1; }
std=$(depends libstd-rust-dev 'libstd-rust-[0-9.]*')
llvm=$(depends "$std" 'libllvm[0-9]*')
(
    cd "$dir/debs"
    # The compiler with all its libraries, as it needs the C library that it was built for.
    apt-get "${apt[@]}" download rustc "$std" libstd-rust-dev libstd-rust-dev-wasm32 "$llvm" libc6 libgcc-s1 libstdc++6 libedit2 \
        libffi8 libxml2-16 libz3-4 libzstd1 zlib1g libtinfo6 libbsd0 libmd0
    for file in *.deb; do dpkg-deb -x "$file" "$dir/root"; done
)
libraries=$dir/root/usr/lib/x86_64-linux-gnu
cat >"$dir/rustc" <<END
#!/bin/sh
exec $libraries/ld-linux-x86-64.so.2 --library-path $libraries:$dir/root/usr/lib/llvm-${llvm#libllvm}/lib $dir/root/usr/bin/rustc --sysroot $dir/root/usr "\$@"
END
chmod +x "$dir/rustc"
rm -rf "$dir"/{debs,lists,cache}
"$dir/rustc" -V
