"""Runs packed models by the installed library, from Python and without any package.

    python3 from_python.py LIBRARY TEXT_MODEL PROMPT
    python3 from_python.py LIBRARY TABLE_MODEL < rows

Prints the tokens that follow the prompt, each the likeliest, or for every row of numbers what it lets expect.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

SIZE_OUTPUTS, SIZE_COLUMNS, SIZE_CLASSES, SIZE_PREDICTIONS = 2, 4, 5, 9
KIND_TEXT = 1
SAMPLING_TEMPERATURE = 0


class Refused(Exception):
    """The library's sentence."""


def load(path):
    library = ctypes.CDLL(path)

    def refused_unless_ok(status, function, arguments):
        if status != 0:
            raise Refused(library.minrnn_last_error().decode())

    def function(name, given, *arguments):
        found = getattr(library, name)
        found.argtypes = arguments
        found.restype = given
        if given is c_int32 and name != "minrnn_model_kind":
            found.errcheck = refused_unless_ok

    function("minrnn_last_error", c_char_p)
    function("minrnn_version", c_char_p)
    function("minrnn_model_open", c_int32, c_char_p, POINTER(c_void_p))
    function("minrnn_model_free", c_int32, c_void_p)
    function("minrnn_model_kind", c_int32, c_void_p)
    function("minrnn_model_size", c_size_t, c_void_p, c_int32)
    function("minrnn_model_name", c_char_p, c_void_p, c_int32, c_size_t)
    function("minrnn_session_new", c_int32, c_void_p, c_size_t, POINTER(c_void_p))
    function("minrnn_session_free", c_int32, c_void_p)
    function("minrnn_step_tokens", c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t)
    function("minrnn_prefill_tokens", c_int32, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t)
    function("minrnn_table_step", c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t)
    function("minrnn_sampler_new", c_int32, c_uint64, POINTER(c_void_p))
    function("minrnn_sampler_set", c_int32, c_void_p, c_int32, c_double)
    function("minrnn_sampler_sample", c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(c_uint32))
    function("minrnn_sampler_free", c_int32, c_void_p)
    function("minrnn_encode", c_int32, c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, POINTER(c_size_t))
    return library


def made(function, *arguments):
    handle = c_void_p()
    function(*arguments, byref(handle))
    return handle


def likeliest(library, model, prompt, length=20):
    session = made(library.minrnn_session_new, model, 1)
    sampler = made(library.minrnn_sampler_new, 0)
    library.minrnn_sampler_set(sampler, SAMPLING_TEMPERATURE, 0.0)
    n = c_size_t()
    tokens = (c_uint32 * len(prompt))()
    library.minrnn_encode(model, prompt, len(prompt), tokens, len(prompt), byref(n))
    width = library.minrnn_model_size(model, SIZE_OUTPUTS)
    logits = (c_float * width)()
    library.minrnn_prefill_tokens(session, 0, tokens, n.value, logits, width)
    said, token = [], c_uint32()
    for _ in range(length):
        library.minrnn_sampler_sample(sampler, logits, width, None, 0, byref(token))
        said.append(token.value)
        library.minrnn_step_tokens(session, None, 0, byref(token), 1, logits, width)
    library.minrnn_sampler_free(sampler)
    library.minrnn_session_free(session)
    return said


def rows(library, model, lines):
    session = made(library.minrnn_session_new, model, 1)
    n_columns = library.minrnn_model_size(model, SIZE_COLUMNS)
    n_predictions = library.minrnn_model_size(model, SIZE_PREDICTIONS)
    predictions = (c_double * n_predictions)()
    for line in lines:
        values = [float(cell) for cell in line.replace(",", " ").split()]
        library.minrnn_table_step(session, None, 0, (c_double * len(values))(*values), len(values), predictions, n_predictions)
        yield list(predictions)
    library.minrnn_session_free(session)


def main():
    library, path = load(sys.argv[1]), sys.argv[2]
    model = made(library.minrnn_model_open, path.encode())
    if library.minrnn_model_kind(model) == KIND_TEXT:
        print(*likeliest(library, model, sys.argv[3].encode()))
    else:
        for predictions in rows(library, model, sys.stdin):
            print(*predictions)
    library.minrnn_model_free(model)
    try:
        library.minrnn_model_free(model)
    except Refused as refused:
        assert "it was freed" in str(refused), refused
    else:
        raise AssertionError("a model cannot be freed twice")


if __name__ == "__main__":
    main()
