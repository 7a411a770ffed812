"""What the C library gives on this machine, for comparison with the WebAssembly module; and whether it goes on from that one's state.

    MINRNN_SIMD=plain python3 native.py LIBRARY MODELS write REFERENCE     tokens, outputs and saved states, as JSON;
                                                                           MODELS: those of models/ and of the example `models`
    MINRNN_SIMD=plain python3 native.py LIBRARY MODELS check HANDED        go on from states of the module, compare with its outputs
"""

import base64
import ctypes
import json
import math
import sys
from pathlib import Path

TOLERANCE = 1e-5
# The settings of the page for generation.
PROMPT, SEED, TEMPERATURE, TOP_K, TOP_P, LENGTH = "ROMEO:", 7, 0.8, 40, 0.95, 400
TEMPERATURE_SETTING, TOP_K_SETTING, TOP_P_SETTING = 0, 1, 2
OUTPUTS = 2


class Library:
    """The functions of the header that are needed here."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.minrnn_last_error.restype = ctypes.c_char_p
        self.c.minrnn_model_size.restype = ctypes.c_size_t
        self.c.minrnn_model_threshold.restype = ctypes.c_double

    def check(self, status):
        if status:
            sys.exit(self.c.minrnn_last_error().decode())

    def made(self, function, *given):
        out = ctypes.c_void_p()
        self.check(function(*given, ctypes.byref(out)))
        return out

    def model(self, path):
        return self.made(self.c.minrnn_model_open, str(path).encode())

    def outputs(self, model):
        return self.c.minrnn_model_size(model, OUTPUTS)

    def session(self, model):
        return self.made(self.c.minrnn_session_new, model, ctypes.c_size_t(1))

    def restored(self, model, state):
        return self.made(self.c.minrnn_session_restore, model, state, ctypes.c_size_t(len(state)))

    def saved(self, session):
        length = ctypes.c_size_t()
        self.check(self.c.minrnn_session_save(session, None, ctypes.c_size_t(0), ctypes.byref(length)))
        state = ctypes.create_string_buffer(length.value)
        self.check(self.c.minrnn_session_save(session, state, length, ctypes.byref(length)))
        return base64.b64encode(state.raw).decode()

    def encoded(self, model, text):
        text, length = text.encode(), ctypes.c_size_t()
        tokens = (ctypes.c_uint32 * len(text))()
        self.check(self.c.minrnn_encode(model, text, ctypes.c_size_t(len(text)), tokens, ctypes.c_size_t(len(text)), ctypes.byref(length)))
        return list(tokens)[: length.value]

    def read_tokens(self, session, tokens, outputs):
        """All at once."""
        found = (ctypes.c_float * outputs)()
        array = (ctypes.c_uint32 * len(tokens))(*tokens)
        length = ctypes.c_size_t
        self.check(self.c.minrnn_prefill_tokens(session, length(0), array, length(len(tokens)), found, length(outputs)))
        return list(found)

    def read_row(self, session, row, outputs):
        found = (ctypes.c_double * outputs)()
        array = (ctypes.c_double * len(row))(*row)
        length = ctypes.c_size_t
        self.check(self.c.minrnn_table_step(session, None, length(0), array, length(len(row)), found, length(outputs)))
        return list(found)

    def surprise(self, session, row):
        """None where it is not known, as JSON has no NaN."""
        found = ctypes.c_double()
        array = (ctypes.c_double * len(row))(*row)
        length = ctypes.c_size_t
        self.check(self.c.minrnn_table_surprise(session, None, length(0), array, length(len(row)), ctypes.byref(found), length(1)))
        return None if math.isnan(found.value) else found.value

    def generated(self, session, logits, length):
        sampler = self.made(self.c.minrnn_sampler_new, ctypes.c_uint64(SEED))
        for setting, value in ((TEMPERATURE_SETTING, TEMPERATURE), (TOP_K_SETTING, TOP_K), (TOP_P_SETTING, TOP_P)):
            self.check(self.c.minrnn_sampler_set(sampler, setting, ctypes.c_double(value)))
        tokens = []
        for _ in range(length):
            array, token = (ctypes.c_float * len(logits))(*logits), ctypes.c_uint32()
            size = ctypes.c_size_t
            self.check(self.c.minrnn_sampler_sample(sampler, array, size(len(logits)), None, size(0), ctypes.byref(token)))
            tokens.append(token.value)
            logits = self.read_tokens(session, [token.value], len(logits))
        return tokens


def series(models):
    return [[float(line.split(",")[1])] for line in (models / "temperature.csv").read_text().split("\n")[1:] if line]


def write(library, models, path):
    text = library.model(models / "shakespeare.minrnn")
    outputs = library.outputs(text)
    session = library.session(text)
    prompt = library.encoded(text, PROMPT)
    logits = library.read_tokens(session, prompt, outputs)
    found = {"prompt": PROMPT, "sampling": {"seed": SEED, "temperature": TEMPERATURE, "topK": TOP_K, "topP": TOP_P}}
    found |= {"promptTokens": prompt, "logits": logits, "textState": library.saved(session)}
    found["tokens"] = library.generated(session, logits, LENGTH)
    found["textStateAfter"] = library.saved(session)

    forecaster = library.model(models / "temperature.minrnn")
    outputs, rows = library.outputs(forecaster), series(models)
    session = library.session(forecaster)
    half = len(rows) // 2
    found["forecasts"], found["surprises"] = [], []
    found["threshold"] = library.c.minrnn_model_threshold(forecaster, ctypes.c_double(0.9))
    for at, row in enumerate(rows[: half + 50]):
        if at == half:
            found["forecastState"] = library.saved(session)
        found["surprises"].append(library.surprise(session, row))
        found["forecasts"].append(library.read_row(session, row, outputs))
    found["half"] = half

    # Two machines, two rows of each: heat and noise.
    regressor = library.model(models / "life.minrnn")
    found["machines"] = [[[20, 0.5], [14, 0.75]], [[31.5, 0.25], [22, 0.5]]]
    found["lives"] = []
    for rows in found["machines"]:
        session = library.session(regressor)
        found["lives"].append([library.read_row(session, row, 1)[0] for row in rows][-1])
    path.write_text(json.dumps(found))


def check(library, models, path):
    """Goes on from the states in `path` with what follows there."""
    handed = json.loads(path.read_text())
    worst = 0.0
    text = library.model(models / "shakespeare.minrnn")
    session = library.restored(text, base64.b64decode(handed["textState"]))
    for token, expected in zip(handed["tokens"], handed["logits"]):
        worst = max(worst, farthest(library.read_tokens(session, [token], len(expected)), expected))
    forecaster = library.model(models / "temperature.minrnn")
    session = library.restored(forecaster, base64.b64decode(handed["forecastState"]))
    for row, expected in zip(handed["rows"], handed["forecasts"]):
        worst = max(worst, farthest(library.read_row(session, row, len(expected)), expected))
    if not worst <= TOLERANCE:
        sys.exit(f"the library goes on {worst:.2e} apart from the module, tolerance {TOLERANCE:.0e}")
    print(f"the library goes on from the module's states: at most {worst:.1e} apart")


def farthest(found, expected):
    """Differences, of numbers above 1 relative ones."""
    return largest(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, expected, strict=True))


def largest(differences):
    """Infinite where one is no number, which `max` passes over but in the first place."""
    return max(math.inf if math.isnan(difference) else difference for difference in differences)


if __name__ == "__main__":
    _, library, models, what, path = sys.argv
    {"write": write, "check": check}[what](Library(library), Path(models), Path(path))
