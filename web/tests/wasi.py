"""Runs a WASI program in wasmtime: the runner of `cargo test --target wasm32-wasip1`, by the package `wasmtime` of PyPI.

    CARGO_TARGET_WASM32_WASIP1_RUNNER="python3 web/tests/wasi.py" cargo test --target wasm32-wasip1 …
"""

import os
import sys

import wasmtime


def main(arguments):
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    wasi = wasmtime.WasiConfig()
    wasi.argv = arguments
    wasi.env = [(name, value) for name, value in os.environ.items() if name.startswith(("MINRNN_", "RUST_", "PROPTEST_"))]
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir(".", ".")
    store.set_wasi(wasi)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    program = linker.instantiate(store, wasmtime.Module.from_file(engine, arguments[0]))
    try:
        program.exports(store)["_start"](store)
    except wasmtime.ExitTrap as end:
        return end.code
    except wasmtime.Trap as trap:
        print(trap, file=sys.stderr)
        return 134
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
