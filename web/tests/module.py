"""The bare module in wasmtime, without any JavaScript: the tokens of the C library. Usage: module.py MODULE MODELS REFERENCE"""

import json
import struct
import sys
from pathlib import Path

import wasmtime


class Module:
    def __init__(self, path):
        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        module = wasmtime.Module.from_file(engine, path)
        assert not module.imports, f"the module wants something of its host: {[i.name for i in module.imports]}"
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.memory = self.exports["memory"]

    def call(self, name, *given):
        return self.exports[name](self.store, *given)

    def check(self, name, *given):
        if self.call(name, *given):
            at = self.call("minrnn_last_error")
            text = bytes(self.memory.read(self.store, at, at + 1000))
            sys.exit(text[: text.index(0)].decode())

    def room(self, content):
        """Memory with these bytes in it."""
        at = self.call("minrnn_alloc", len(content))
        self.memory.write(self.store, content, at)
        return at

    def numbers(self, kind, at, count):
        size = struct.calcsize(kind)
        return list(struct.unpack(f"<{count}{kind}", bytes(self.memory.read(self.store, at, at + size * count))))

    def made(self, name, *given):
        out = self.room(bytes(4))
        self.check(name, *given, out)
        return self.numbers("I", out, 1)[0]


def main(path, models, reference):
    reference = json.loads(Path(reference).read_text())
    module = Module(path)
    packed = (Path(models) / "shakespeare.minrnn").read_bytes()
    model = module.made("minrnn_model_from_memory", module.room(packed), len(packed))
    session = module.made("minrnn_session_new", model, 1)
    sampling = reference["sampling"]
    sampler = module.made("minrnn_sampler_new", sampling["seed"])
    for setting, name in enumerate(("temperature", "topK", "topP")):
        module.check("minrnn_sampler_set", sampler, setting, float(sampling[name]))
    outputs = module.call("minrnn_model_size", model, 2)
    logits, token = module.room(bytes(4 * outputs)), module.room(bytes(4))

    def read(tokens):
        at = module.room(struct.pack(f"<{len(tokens)}I", *tokens))
        module.check("minrnn_prefill_tokens", session, 0, at, len(tokens), logits, outputs)
        module.call("minrnn_dealloc", at, 4 * len(tokens))

    read(reference["promptTokens"])
    for at, expected in enumerate(reference["tokens"]):
        module.check("minrnn_sampler_sample", sampler, logits, outputs, 0, 0, token)
        found = module.numbers("I", token, 1)[0]
        if found != expected:
            sys.exit(f"token {at} is {found} in wasmtime, {expected} of the C library")
        read([found])
    print(f"wasmtime: {len(reference['tokens'])} tokens as the C library has them")


main(*sys.argv[1:])
