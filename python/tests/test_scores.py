"""Rows of tables and texts are scored as ``minrnn score`` scores them."""

import csv
import io

import numpy as np
import pytest

import minrnn
from conftest import MODELS
from test_command import run
from test_training import TINY

STEPS = 90
VERSES = """To be, or not to be: that is the question:
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune,
Or to take arms against a sea of troubles,
And by opposing end them? To die: to sleep;
No more; and by a sleep to say we end
The heart-ache and the thousand natural shocks
That flesh is heir to, 'tis a consummation
Devoutly to be wish'd. To die, to sleep;
"""
# A line of letters, one with a character that the model does not know, an empty one, and one without an end.
ODD = "To sleep: perchance to dream: ay, there's the rub;\nzzqxvjKKWZqqxzj\nFor in that sl\\eep of death \N{CRAB}\n\nwhat dreams"


def meters(fault=None):
    """Three meters that go up and down, in the order of their names; the second one jumps at the step ``fault``."""
    step, meter = np.tile(np.arange(STEPS), 3), np.repeat(np.array([7, 8, 9], dtype=np.int16), STEPS)
    load = 10 + 3 * np.sin(step * np.pi / 6 + meter) + (step * 7919 % 13) / 13
    if fault is not None:
        load[STEPS + fault] += 40
    return {"meter": meter, "load": load}


@pytest.fixture(scope="module")
def trained():
    """A run that learned to forecast meters with quantiles."""
    settings = {**TINY, "group": "meter", "target": "load", "horizon": 2, "season": 12}
    return minrnn.train("forecast", meters(), settings=settings, threads=1)


@pytest.fixture(scope="module")
def model(trained):
    return trained.model


def written(path, table):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(table)
        rows.writerows(zip(*table.values()))
    return path


def of_command(*arguments):
    done = run("score", *map(str, arguments))
    assert done.returncode == 0, done.stderr
    return done.stderr, list(csv.DictReader(io.StringIO(done.stdout)))


def expect(scores, rows):
    columns = scores.columns()
    assert list(columns) == list(rows[0]) and len(scores) == len(rows)
    for name, column in columns.items():
        expected = [row[name] for row in rows]
        if name == "text":
            assert [text.replace("\\", "\\\\").replace("\n", "\\n") for text in column] == expected
        elif isinstance(column[0], str):
            assert list(column) == expected, name
        elif name == "anomaly":
            # Of a row without a surprise the command says nothing.
            assert list(column) == [mark == "1" for mark in expected]
        else:
            np.testing.assert_allclose(column.astype(float), [float(cell or "nan") for cell in expected], rtol=1e-6, atol=1e-6, err_msg=name)


def test_scores_are_those_of_the_command(temperature):
    said, rows = of_command(MODELS / "temperature.minrnn", "--data", MODELS / "temperature.csv")
    scores = temperature.score(MODELS / "temperature.csv")
    expect(scores, rows)
    assert scores.notes == [said.splitlines()[0]] and f"marking what is above {scores.threshold:.3f} nats" in said and f"{scores.anomaly.sum()} of {len(rows)} rows are marked" in said
    assert scores.names is None and scores.times[0] == "1950-01" and np.isnan(scores.surprise[0]) and np.isnan(scores.forecast[0]).all()
    lower = temperature.score(MODELS / "temperature.csv", threshold=0.8)
    assert lower.threshold < scores.threshold and lower.anomaly.sum() > scores.anomaly.sum()


def test_rows_of_several_sequences_are_compared_with_usual_ones(trained, tmp_path):
    usual, today = meters(), meters(fault=40)
    scores = trained.model.score(today, calibrate=usual, threshold=0.99)
    model_file = tmp_path / "meters.minrnn"
    trained.pack(model_file, "f32")
    paths = [written(tmp_path / "today.csv", today), written(tmp_path / "usual.csv", usual)]
    said, rows = of_command(model_file, "--data", paths[0], "--calibrate", paths[1], "--threshold", "0.99")
    expect(scores, rows)
    assert f"marking what is above {scores.threshold:.3f} nats" in said
    fault = STEPS + 40
    # What follows a fault surprises too.
    assert scores.anomaly[fault] and not scores.anomaly[:fault].any() and fault <= np.nanargmax(scores.surprise) < fault + 12
    assert scores.names[fault] == 8 and scores.steps[fault] == 41 and scores.times is None and scores.values[fault, 0] == today["load"][fault]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_the_type_of_names(library, model):
    module = pytest.importorskip(library)
    table = module.DataFrame(meters())
    frame = getattr(model.score(table, calibrate=table), f"to_{library}")()
    assert list(frame.columns) == ["meter", "step", "load", "load forecast", "surprise", "anomaly"] and len(frame) == 3 * STEPS
    assert frame["meter"].dtype == table["meter"].dtype and list(frame["meter"]) == list(table["meter"]) and list(frame["load"]) == list(table["load"])


def test_a_column_of_the_table_keeps_its_name():
    table = {"step": meters()["load"][:STEPS]}
    model = minrnn.train("forecast", table, settings={**TINY, "target": "step", "horizon": 2, "season": 12}, threads=1).model
    scores = model.score(table, calibrate=table)
    assert list(scores.columns()) == ["step_scored", "step", "step forecast", "surprise", "anomaly"]
    np.testing.assert_array_equal(scores.columns()["step"], table["step"])


def test_names_that_training_never_saw_are_told():
    table = {"load": meters()["load"][:STEPS], "kind": ["a", "b", "c"] * (STEPS // 3)}
    settings = {**TINY, "target": "load", "columns": ["load", "kind"], "horizon": 2, "season": 12}
    model = minrnn.train("forecast", table, settings=settings, threads=1).model
    assert len(model.score(table, calibrate=table).notes) == 1
    other = {**table, "kind": ["a", "b", "z"] * (STEPS // 3)}
    notes = model.score(other, calibrate=table).notes
    assert len(notes) == 2 and "'z'" in notes[0] and "too few for 0.999" in notes[1], notes
    notes = model.score(table, calibrate=other).notes
    assert len(notes) == 2 and notes[0].startswith("the usual rows: ") and "'z'" in notes[0], notes


@pytest.mark.parametrize("by", ["line", "token"])
def test_lines_and_tokens_of_a_text_are_scored_as_the_command_scores_them(by, text, tmp_path):
    data, usual = tmp_path / "data.txt", tmp_path / "usual.txt"
    data.write_bytes(ODD.encode())
    usual.write_bytes(VERSES.encode())
    said, rows = of_command(MODELS / "shakespeare.minrnn", "--data", data, "--calibrate", usual, "--by", by, "--threshold", "0.9")
    scores = text.score(ODD, calibrate=VERSES, by=by, threshold=0.9)
    expect(scores, rows)
    unknown = "the vocabulary does not have '\\\\' (1 time), '\N{CRAB}' (1 time)"
    assert scores.notes == [unknown, said.splitlines()[0]] and f"marking what is above {scores.threshold:.3f} nats" in said
    assert unknown in said.splitlines()
    assert f"{scores.anomaly.sum()} of {len(rows)} {by}s are marked" in said and 1 < scores.anomaly.sum() < len(rows)
    assert [rows[at]["line"] for at in np.flatnonzero(scores.unknown)] == (["3"] if by == "line" else ["3", "3"])
    for other, calibrate in ((ODD.encode(), VERSES.encode()), (data, usual)):
        again = text.score(other, calibrate=calibrate, by=by, threshold=0.9)
        np.testing.assert_array_equal(again.surprise, scores.surprise)
        assert (again.texts, again.threshold) == (scores.texts, scores.threshold)


def test_a_text_is_compared_with_what_its_run_held_out(tmp_path):
    data, out = tmp_path / "text.txt", tmp_path / "run"
    data.write_text(VERSES * 12)
    run = minrnn.train("text", data, settings={**TINY, "seq_len": 16}, out=out, threads=1)
    said, rows = of_command(out, "--data", data)
    scores = run.model.score(data)
    expect(scores, rows)
    assert scores.threshold is not None and scores.notes == [said.splitlines()[0]], said
    # A part of a line at an end of the held-out text is no reference row.
    held_out = (VERSES * 12)[len(VERSES * 12) * 9 // 10 :]
    assert f"the highest of {len(held_out.splitlines()) - 2} reference rows" in scores.notes[0]
    tokens = out / "data" / "text.tokens"
    whole = tokens.read_bytes()
    tokens.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(minrnn.ModelError, match="text.tokens"):
        run.model.score(data)
    tokens.unlink()
    without = run.model.score(data)
    assert without.threshold is None and not without.anomaly.any()
    assert "text.tokens', which is not there" in without.notes[0] and without.notes[0].endswith("give a text with nothing unusual as calibrate")


def test_a_text_without_a_threshold_is_marked_where_it_is_not_known(text):
    scores = text.score("To be\n\N{CRAB}\nor not")
    assert scores.threshold is None and scores.notes == [
        "the vocabulary does not have '\N{CRAB}' (1 time)",
        "the model does not say how surprising held-out rows were, so none is marked by its surprise; give rows with nothing unusual as calibrate",
    ]
    assert list(scores.anomaly) == list(scores.unknown) == [False, True, False] and scores.texts == ["To be", "\N{CRAB}", "or not"]
    assert list(scores.lines) == [1, 2, 3] and list(scores.tokens) == [6, 1, 6]
    unknown = text.score("\N{CRAB}")
    assert list(unknown.anomaly) == [True] and list(unknown.tokens) == [0] and np.isnan(unknown.surprise[0])
    stray = text.score(b"To be\nor \xff not\n", calibrate=b"To be\nor \xff not\n")
    told = "1 line with bytes that are not UTF-8; if the text is in another encoding, save it as UTF-8"
    assert list(stray.unknown) == [False, True] and stray.notes[:2] == [f"the usual text: {told}", told] and len(stray.notes) == 3


def test_a_text_of_one_character_has_no_surprise_and_an_empty_one_no_rows(text):
    one = text.score("T", calibrate=VERSES)
    assert len(one) == 1 and list(one.tokens) == [1] and np.isnan(one.surprise[0]) and not one.anomaly[0] and one.texts == ["T"]
    for by, names in (("line", ["line", "tokens", "surprise", "anomaly", "text"]), ("token", ["line", "surprise", "anomaly", "text"])):
        empty = text.score("", calibrate=VERSES, by=by)
        assert list(empty.columns()) == names and {len(column) for column in empty.columns().values()} == {len(empty)} == {0}
    assert repr(one) == "<minrnn.TextScores of 1 lines: line, tokens, surprise, anomaly, text>"


def test_a_vocabulary_of_bytes_scores_any_bytes(tmp_path):
    data, odd = tmp_path / "text.txt", tmp_path / "odd.bin"
    data.write_text(VERSES * 12)
    run = minrnn.train("text", data, settings={**TINY, "seq_len": 16, "tokenizer": "byte"}, out=tmp_path / "run", threads=1)
    scores = run.model.score(b"\xff\xfeTo be\n\x80", by="token")
    odd.write_bytes(b"\xff\xfeTo be\n\x80")
    expect(scores, of_command(tmp_path / "run", "--data", odd, "--by", "token")[1])
    assert len(scores) == 9 and not scores.unknown.any()
    assert list(run.model.score("caf\u00e9").tokens) == [5]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_scores_of_a_text_become_frames(library, text):
    pytest.importorskip(library)
    frame = getattr(text.score(ODD, calibrate=VERSES), f"to_{library}")()
    assert list(frame.columns) == ["line", "tokens", "surprise", "anomaly", "text"] and list(frame["text"])[1] == "zzqxvjKKWZqqxzj"


def test_texts_that_cannot_be_scored_are_refused(model, text, sensors, tmp_path):
    for table in ({"load": [1.0]}, [1, 2], 7):
        with pytest.raises(minrnn.KindError, match=r"^the text: the model reads text: expected a text \(str or bytes\), .* found (dict|list|int)"):
            text.score(table)
    with pytest.raises(minrnn.KindError, match="^the usual text: the model reads text"):
        text.score("a", calibrate=meters())
    for given in (b"load\n1\n", "load\n1\n"):
        for call in (lambda: model.score(given), lambda: model.score(meters(), calibrate=given)):
            with pytest.raises(minrnn.KindError, match="the model reads tables, and a text is scored by a text model"):
                call()
    with pytest.raises(minrnn.KindError, match="by is for texts"):
        model.score(meters(), by="token")
    with pytest.raises(minrnn.KindError, match="labels whole sequences"):
        sensors.score({"acceleration": [0.1]})
    with pytest.raises(minrnn.InputError, match="^by: expected 'line' or 'token', found 'word'"):
        text.score("a", by="word")
    with pytest.raises(minrnn.KindError, match="^by: expected a text, found int"):
        text.score("a", by=1)
    with pytest.raises(minrnn.InputError, match="threshold: expected a share"):
        text.score("a", threshold=1)
    with pytest.raises(minrnn.InputError, match="none of the rows to compare with has a surprise"):
        text.score("a", calibrate="")
    with pytest.raises(minrnn.InputError, match="^the text: .* half of one"):
        text.score("a\ud800")
    with pytest.raises(minrnn.InputError, match="^the text: line 1: a byte is not UTF-8"):
        text.score(b"\xe9t\xe9")
    packed = tmp_path / "log.gz"
    packed.write_bytes(b"\x1f\x8b\x08\0")
    with pytest.raises(minrnn.InputError, match="log.gz': it is compressed with gzip"):
        text.score("a", calibrate=packed)
    with pytest.raises(minrnn.FileError, match="nothing.txt"):
        text.score(tmp_path / "nothing.txt")


def test_what_cannot_be_scored_is_refused(model, sensors, temperature, tmp_path):
    with pytest.raises(minrnn.KindError, match="labels whole sequences and predicts no rows"):
        sensors.score({"acceleration": [0.1]})
    with pytest.raises(minrnn.KindError, match="names"):
        temperature.score(np.zeros((10, 1)))
    for share in (0, 1, -0.5, float("nan")):
        with pytest.raises(minrnn.InputError, match="threshold: expected a share"):
            model.score(meters(), threshold=share)
    with pytest.raises(minrnn.KindError, match="threshold: expected a number"):
        model.score(meters(), threshold="high")
    with pytest.raises(minrnn.InputError, match="the usual rows"):
        model.score(meters(), calibrate={"meter": [7, 7], "load": [1.0, float("inf")]})
    with pytest.raises(minrnn.FileError, match="nothing.csv"):
        model.score(meters(), calibrate=tmp_path / "nothing.csv")
    settings = {**TINY, "target": "load", "horizon": 2, "season": 12, "quantiles": []}
    of_mean = minrnn.train("forecast", {"load": meters()["load"][:STEPS]}, settings=settings, threads=1).model
    with pytest.raises(minrnn.KindError, match="train it with several quantiles"):
        of_mean.score({"load": [1.0, 2.0]})


def test_rows_are_as_surprising_as_they_arrive_as_the_whole_table_says(model):
    table = meters(fault=60)
    scores = model.score(table)
    session = model.session(batch=3)
    loads, halfway = table["load"].reshape(3, STEPS), None
    for step in range(STEPS):
        if step == 45:
            halfway = model.load_session(session.save())
        row = loads[:, step : step + 1]
        surprise = session.surprise(row)
        assert surprise.shape == (3,) and surprise.dtype == np.float64
        np.testing.assert_allclose(surprise, scores.surprise.reshape(3, STEPS)[:, step], rtol=1e-5)
        alone = session.surprise({"load": loads[1, step]}, rows=1)
        assert alone.shape == ()
        np.testing.assert_array_equal(alone, surprise[1])
        session.step(row)
        if halfway is not None:
            np.testing.assert_array_equal(halfway.surprise(row), surprise)
            halfway.step(row)
    assert model.threshold() == scores.threshold and model.threshold(0.5) < scores.threshold
    # Sequences at once leave the forecast of the next row, too; what reads nothing of a forecast leaves none.
    ahead, last = model.session(batch=3), loads[:, -1:]
    ahead.prefill(loads[:, :-1, None])
    np.testing.assert_allclose(ahead.surprise(last), scores.surprise.reshape(3, STEPS)[:, -1], rtol=1e-5)
    ahead.embed(loads[:, -2:-1, None])
    assert np.isnan(ahead.surprise(last)).all()


def test_sequences_of_a_table_read_at_once_leave_what_their_steps_leave(model):
    loads = meters()["load"].reshape(3, STEPS)
    sequences = [loads[0, :1, None], loads[2, :50, None]]
    at_once, stepwise = model.session(batch=3), model.session(batch=3)
    for session in (at_once, stepwise):
        session.step(loads[:, :1])
    predictions = at_once.prefill(sequences, rows=[0, 2])
    for place, (row, sequence) in enumerate(zip((0, 2), sequences, strict=True)):
        for step in sequence:
            last = stepwise.step(step, rows=[row])
        np.testing.assert_allclose(predictions[place], last.reshape(predictions[place].shape), rtol=1e-5)
    next_row = loads[:, 60:61]
    np.testing.assert_allclose(at_once.surprise(next_row), stepwise.surprise(next_row), rtol=1e-5)
    np.testing.assert_allclose(at_once.step(next_row), stepwise.step(next_row), rtol=1e-5)
    # A row that cannot be read refuses the whole call, which then has read nothing.
    before = at_once.save()
    sequences[1] = sequences[1].copy()
    sequences[1][20] = np.inf
    with pytest.raises(minrnn.InputError):
        at_once.prefill(sequences, rows=[0, 2])
    assert at_once.save() == before


def test_what_expects_no_row_is_refused():
    text, sensors = minrnn.load(MODELS / "shakespeare.minrnn"), minrnn.load(MODELS / "sensors.minrnn")
    for call in (lambda: sensors.session().surprise({"acceleration": 0.5}), sensors.threshold, text.threshold, lambda: text.session().surprise([1])):
        with pytest.raises(minrnn.KindError):
            call()
    forecaster = minrnn.load(MODELS / "temperature.minrnn")
    for share in (0, 1, float("nan")):
        with pytest.raises(minrnn.InputError, match="^share: expected a share of rows"):
            forecaster.threshold(share)
    with pytest.raises(minrnn.KindError):
        forecaster.session(table=False).surprise([1.0])
