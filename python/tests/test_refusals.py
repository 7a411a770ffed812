"""What does not fit is refused by a sentence, and changes nothing."""

import numpy as np
import pytest

import minrnn
from conftest import MODELS

ERRORS = {
    minrnn.FileError: OSError,
    minrnn.ModelError: ValueError,
    minrnn.InputError: ValueError,
    minrnn.KindError: TypeError,
    minrnn.StateError: ValueError,
    minrnn.BusyError: RuntimeError,
}


def test_every_error_is_of_the_library_and_of_python():
    for error, of_python in ERRORS.items():
        assert issubclass(error, minrnn.MinrnnError) and issubclass(error, of_python)


def test_files_that_are_no_models_are_refused(tmp_path):
    packed = MODELS.joinpath("sensors.minrnn").read_bytes()
    flipped = bytearray(packed)
    flipped[-20] ^= 1
    for content, sentence in [(b"", "no packed|fewer"), (b"hello" * 100, "packed"), (packed[:900], "cut short"), (bytes(flipped), "damaged|checksum")]:
        path = tmp_path / "model.minrnn"
        path.write_bytes(content)
        with pytest.raises(minrnn.ModelError, match=sentence) as refused:
            minrnn.load(path)
        assert "model.minrnn" in str(refused.value)
        with pytest.raises(minrnn.ModelError):
            minrnn.load(content)
    with pytest.raises(minrnn.FileError, match="could not open the run"):
        minrnn.load(tmp_path / "nothing")
    with pytest.raises(minrnn.ModelError, match="neither a checkpoints/best nor a config.json"):
        minrnn.load(tmp_path)
    for nothing in (7, None, [1]):
        with pytest.raises(minrnn.KindError, match="expected the path"):
            minrnn.load(nothing)


def test_a_pointer_of_a_run_leads_to_its_checkpoints_alone(tmp_path):
    tmp_path.joinpath("checkpoints").mkdir()
    for name in ("../../etc", "", "..", "a\0b"):
        tmp_path.joinpath("checkpoints", "best").write_text(name)
        with pytest.raises(minrnn.MinrnnError, match="expected the name of a checkpoint"):
            minrnn.load(tmp_path)
    tmp_path.joinpath("checkpoints", "best").write_text("iter-1\n")
    with pytest.raises(minrnn.FileError, match="iter-1"):
        minrnn.load(tmp_path)


def test_more_threads_than_the_command_takes_are_refused_with_its_sentence(text, tmp_path):
    sentence = "threads must be at most 1024, with 0 for every core, found 5000"
    table = {"machine": ["a", "b"] * 8, "state": ["good", "worn"] * 8, "x": list(range(16))}
    calls = [
        lambda: text.session(threads=5000),
        lambda: text.load_session(text.session().save(), threads=5000),
        lambda: text.generate("A", 1, threads=5000),
        lambda: minrnn.load(MODELS / "temperature.minrnn").predict({"date": ["2024-01-01"], "temperature": [1.0]}, threads=5000),
        lambda: minrnn.train("classify", table, group="machine", target="state", out=tmp_path / "run", threads=5000),
    ]
    for call in calls:
        with pytest.raises(minrnn.InputError, match=sentence):
            call()
    assert not (tmp_path / "run").exists()


TOKENS = [
    (1.5, minrnn.KindError, "token ids as whole numbers"),
    (True, minrnn.KindError, "found an array of bool"),
    (None, minrnn.KindError, "found an array of object"),
    ("x", minrnn.KindError, "found an array of <U1"),
    (-1, minrnn.InputError, "token id -1"),
    (2**70, minrnn.InputError, "token id 1180591620717411303424"),
    (65, minrnn.InputError, "expected one below 65"),
    ([1, 2], minrnn.InputError, r"expected the shape \[1\] or \[\]"),
    (np.array([2**63], dtype=np.uint64), minrnn.InputError, "token id 9223372036854775808"),
    (np.zeros((1, 1, 1), dtype=int), minrnn.InputError, "found \\[1, 1, 1\\]"),
    ([[1, 2], [3]], minrnn.InputError, "no array"),
]


@pytest.mark.parametrize("tokens, error, sentence", TOKENS)
def test_tokens_that_are_none_are_refused(text, tokens, error, sentence):
    session = text.session()
    session.prefill("ROMEO")
    before = session.state()
    with pytest.raises(error, match=sentence):
        session.step(tokens)
    np.testing.assert_array_equal(session.state(), before)


VALUES = [
    (np.nan, minrnn.InputError, "NaN"),
    (np.inf, minrnn.InputError, "inf"),
    (1j, minrnn.KindError, "complex"),
    ("1", minrnn.KindError, "<U1"),
    ([1, 2], minrnn.InputError, r"expected the shape \[1, 1\] or \[1\]"),
    (np.zeros((2, 1)), minrnn.InputError, r"found \[2, 1\]"),
    (np.array([object()]), minrnn.KindError, "object"),
    (np.array(["2020"], dtype="datetime64[D]"), minrnn.KindError, "datetime64"),
]


@pytest.mark.parametrize("values, error, sentence", VALUES)
@pytest.mark.parametrize("table", [True, False])
def test_values_that_are_none_are_refused(sensors, values, error, sentence, table):
    session = sensors.session(table=table)
    session.step(0.2)
    before = session.state()
    with pytest.raises(error, match=sentence):
        session.step(values)
    with pytest.raises(minrnn.MinrnnError):
        session.forward([[0.1], [np.nan]])
    np.testing.assert_array_equal(session.state(), before)


def test_rows_that_do_not_exist_are_refused(text):
    session = text.session(3)
    for rows in ([2, 1], [1, 1], [3], [0, 7]):
        with pytest.raises(minrnn.InputError, match="ascending sessions below 3"):
            session.step([1] * len(rows), rows=rows)
    for rows in ("a", 1.5, [-1], [[1]]):
        with pytest.raises(minrnn.MinrnnError, match="rows"):
            session.reset(rows)
    for rows in (-1, [-1], [2**40], np.array([2**63], dtype=np.uint64), np.ma.array([0], mask=[True])):
        for call in (lambda: session.step([1], rows=rows), lambda: session.reset(rows)):
            with pytest.raises(minrnn.InputError, match=r"^rows: expected numbers of rows below 3, found .*\S$"):
                call()
    for rows, found in (("a", "'a'"), (1.5, "1.5"), ([True], r"\[True\]")):
        with pytest.raises(minrnn.KindError, match=f"^rows: expected numbers of rows below 3, found {found}$"):
            session.reset(rows)
    with pytest.raises(minrnn.InputError, match="no row 3"):
        session.reset([0, 3])
    with pytest.raises(minrnn.InputError, match="no session 9"):
        session.fork([9])
    with pytest.raises(minrnn.InputError, match="no session 9"):
        session.copy_row(0, session, 9)
    with pytest.raises(minrnn.InputError, match="a sequence for each of 3 rows, found 2"):
        session.prefill(["a", "b"])
    with pytest.raises(minrnn.InputError, match="empty"):
        session.prefill(["a", "", "b"])


def test_what_memory_cannot_hold_is_refused(text):
    for error in (minrnn.OutOfMemoryError, MemoryError):
        with pytest.raises(error, match="memory cannot hold"):
            text.session(10**12)


def test_what_counts_nothing_is_refused(text):
    session = text.session(1)
    for name, call in (
        ("batch", lambda value: text.session(value)),
        ("threads", lambda value: text.session(1, threads=value)),
        ("steps", lambda value: text.session_bytes(value)),
        ("layer", lambda value: session.embed("a", layer=value)),
        ("row", lambda value: session.copy_row(value, session, 0)),
        ("source_row", lambda value: session.copy_row(0, session, value)),
        ("max_tokens", lambda value: text.generate("a", value)),
        ("top_k", lambda value: text.generate("a", top_k=value)),
        ("seed", lambda value: text.generate("a", seed=value)),
    ):
        with pytest.raises(minrnn.InputError, match=f"^{name}: expected a whole number from 0 to 18446744073709551615, found -1"):
            call(-1)
        for value, kind in ((1.5, "float"), ("1", "str")):
            with pytest.raises(minrnn.KindError, match=f"^{name}: expected a whole number .*, found {kind}"):
                call(value)
    with pytest.raises(minrnn.InputError, match="found"):
        text.session(10**5000)
    with pytest.raises(TypeError, match="batch"):
        text.session("1")


def test_arguments_of_another_type_are_refused_by_their_name(text):
    session = text.session()
    path = "expected a path as a text or a pathlib.Path, found"
    for call, sentence in (
        (lambda: session.generate("a", temperature="x"), "temperature: expected a number, found str"),
        (lambda: text.generate("a", top_p=None), "top_p: expected a number, found NoneType"),
        (lambda: session.generate("a", stop=5), "stop: expected a text or a list of texts, found int"),
        (lambda: session.generate("a", stop=b"ab"), "stop: expected a text or a list of texts, found bytes"),
        (lambda: session.generate("a", tokens="x"), "tokens: expected true or false, found str"),
        (lambda: text.session(table=1), "table: expected true or false, found int"),
        (lambda: session.copy_row(0, None, 0), "source: expected a session, found NoneType"),
        (lambda: session.save(b"saved"), f"path: {path} bytes"),
        (lambda: minrnn.train(5, "t.csv"), "experiment: expected the name of one, the path of its file, or its content as a dictionary, found int"),
        (lambda: minrnn.train("parity", out=b"x"), f"out: {path} bytes"),
        (lambda: minrnn.train("parity", from_=3), f"from_: {path} int"),
        (lambda: minrnn.train("parity", callback=3), "callback: expected a function that is called with every event, found int"),
        (lambda: minrnn.pack(7, "x"), f"run: {path} int"),
        (lambda: minrnn.pack("x", "y", 8), "weights: expected a text, found int"),
        (lambda: minrnn.verify("x", rtol="a"), "rtol: expected a number, found str"),
        (lambda: minrnn.inspect(b"parity"), f"path: {path} bytes"),
        (lambda: minrnn.import_weights("x", "y", format="torch-gru", into=b"z"), f"into: {path} bytes"),
        (lambda: minrnn.export_weights("x", "y", format=None), "format: expected a text, found NoneType"),
        (lambda: minrnn.write_trajectories(None, [[1]], [[1]], [1], [1]), f"path: {path} NoneType"),
    ):
        # pyo3 adds a note to those of arguments.
        with pytest.raises(minrnn.KindError, match=f"^{sentence}(\n|$)"):
            call()
    for call in (lambda: session.save("a\ud800"), lambda: minrnn.inspect("a\ud800"), lambda: text.generate("a", temperature=10**400)):
        with pytest.raises(minrnn.InputError, match="^(path|temperature): expected a"):
            call()
    assert list(text.generate("a", 3, stop=None)) == list(text.generate("a", 3))


def test_settings_out_of_range_are_refused(text):
    for setting in ("temperature", "top_p", "min_p", "repetition_penalty"):
        with pytest.raises(minrnn.InputError, match=setting):
            text.generate("a", **{setting: -1.0})
    with pytest.raises(TypeError):
        text.generate("a", heat=1.0)


def test_what_a_model_does_not_do_is_refused(text, sensors):
    with pytest.raises(minrnn.KindError, match="no tokenizer"):
        sensors.encode("a")
    with pytest.raises(minrnn.KindError, match="reads values"):
        sensors.generate()
    with pytest.raises(minrnn.InputError, match="3 blocks"):
        text.session().embed([1], layer=3)
    with pytest.raises(minrnn.InputError, match="'é'"):
        text.session().prefill("é")
    with pytest.raises(minrnn.InputError, match="expected one to generate"):
        text.session(2).generate("a")
    with pytest.raises(minrnn.StateError, match="another model|different models"):
        text.session().copy_row(0, sensors.session(), 0)


def test_saved_sessions_that_are_damaged_are_refused(text, tmp_path):
    session = text.session()
    saved = bytearray(session.save())
    for at in range(0, len(saved), max(1, len(saved) // 50)):
        broken = saved.copy()
        broken[at] ^= 0x40
        with pytest.raises(minrnn.StateError):
            session.load(bytes(broken))
        with pytest.raises(minrnn.StateError):
            session.load(bytes(saved[:at]))
    with pytest.raises(minrnn.FileError):
        session.load(tmp_path / "nothing")
    with pytest.raises(minrnn.FileError, match="nowhere"):
        session.save(tmp_path / "nowhere" / "saved")


def test_half_a_character_and_a_number_beyond_all_floats_are_refused(text, sensors):
    for call, what in [
        (lambda: text.encode("a\ud800"), "text"),
        (lambda: "".join(text.generate("a\ud800", 1)), "inputs"),
        (lambda: "".join(text.generate("a", 1, stop=["b", "\udfff"])), "stop"),
    ]:
        with pytest.raises(minrnn.InputError, match=f"^{what}: expected a text that UTF-8 can hold, found .* half of one"):
            call()
    with pytest.raises(minrnn.KindError, match="^stop: expected a text, found int"):
        text.generate("a", 1, stop=["b", 7])
    with pytest.raises(minrnn.KindError, match="^text: expected a text, found bytes"):
        text.encode(b"a")
    for inputs, what in [(10**400, "inputs"), ({sensors.columns[0]: 10**400}, sensors.columns[0])]:
        with pytest.raises(minrnn.InputError, match=f"^{what}: expected numbers, found a whole one beyond"):
            sensors.session().step(inputs)
