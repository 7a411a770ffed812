"""What sessions compute: the same however a sequence is cut, and what the command line gives."""

import numpy as np
import pytest

import minrnn
from conftest import EXPECTED, MODELS

PROMPT = "ROMEO:\nWhat light is it that breaks so soon?"


def recorded(name, prompt):
    """What `minrnn generate` wrote behind the prompt."""
    return EXPECTED.joinpath(name).read_text().removeprefix(prompt).removesuffix("\n")


def test_the_text_is_that_of_the_command_line(text):
    # --temperature 0 --max-tokens 80, and --temperature 0.8 --top-k 40 --top-p 0.95 --repetition-penalty 1.1 --seed 7 --max-tokens 120
    assert "".join(text.generate("ROMEO:", 80, temperature=0)) == recorded("romeo.txt", "ROMEO:")
    settings = dict(temperature=0.8, top_k=40, top_p=0.95, repetition_penalty=1.1, seed=7)
    whole = "".join(text.generate("To be", 120, **settings))
    assert whole == recorded("sampled.txt", "To be")
    for stop in (["we"], ["zzz", "was"], [whole[50:60], "no such text"]):
        ended = "".join(text.generate("To be", 120, stop=stop, **settings))
        assert ended == whole[: min(whole.find(each) for each in stop if each in whole)]
    with pytest.raises(minrnn.InputError, match="stop string is empty"):
        text.generate("a", stop=[""])
    with pytest.raises(minrnn.KindError, match="leave stop out"):
        text.generate("a", stop=["b"], tokens=True)


def test_a_sequence_may_be_cut_anywhere(text):
    tokens = text.encode(PROMPT)
    whole = text.session().forward(tokens)
    assert whole.shape == (len(tokens), 65) and whole.dtype == np.float32
    for cut in (1, 7, len(tokens) - 1):
        session = text.session()
        parts = [session.forward(tokens[:cut]), session.forward(tokens[cut:])]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        session.reset()
        session.prefill(tokens[:cut])
        for token, outputs in zip(tokens[cut:], whole[cut:], strict=True):
            np.testing.assert_array_equal(session.step(token), outputs)


def test_values_may_be_cut_anywhere(sensors, signal):
    for table in (True, False):
        whole = sensors.session(table=table).forward(signal)
        session = sensors.session(table=table)
        stepped = [session.step(row) for row in signal[:20]]
        np.testing.assert_allclose(stepped, whole[:20], rtol=1e-6)
        np.testing.assert_allclose(session.prefill(signal[20:]), whole[-1], rtol=1e-6)


def test_probabilities_are_the_softmax_of_what_the_model_gives(sensors, signal):
    task = sensors.task["normalization"]
    seen = (signal - task["mean"]) / task["deviation"]
    logits = sensors.session(table=False).forward(seen).astype(float)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(sensors.session().forward(signal), shares / shares.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_rows_are_independent(text):
    prompts = ["ROMEO:", "A", "To be, or not"]
    session = text.session(3)
    together = session.prefill(prompts)
    for row, prompt in enumerate(prompts):
        np.testing.assert_array_equal(together[row], text.session().prefill(prompt))
    tokens = text.encode("abc")
    stepped = session.step(tokens[[0, 2]], rows=[0, 2])
    alone = text.session()
    alone.prefill(prompts[2])
    np.testing.assert_array_equal(stepped[1], alone.step(tokens[2]))
    np.testing.assert_array_equal(session.step(tokens[1], rows=1)[None], text.session(1).prefill(["Ab"]))
    session.reset([1])
    np.testing.assert_array_equal(session.prefill(["B"], rows=[1])[0], text.session().prefill("B"))


def test_answers_have_the_dimensions_of_questions(text, sensors):
    assert text.session().step(1).shape == (65,)
    assert text.session().step([1]).shape == (1, 65)
    assert text.session(2).step([1, 2]).shape == (2, 65)
    assert text.session().forward([1, 2, 3]).shape == (3, 65)
    assert text.session().forward([[1, 2, 3]]).shape == (1, 3, 65)
    assert text.session(2).forward(np.array([[1, 2, 3], [4, 5, 6]])).shape == (2, 3, 65)
    assert [a.shape for a in text.session(2).forward([[1, 2, 3], [4]])] == [(3, 65), (1, 65)]
    assert sensors.session().step(0.5).shape == (4,)
    assert sensors.session(2).step([[0.5], [1]]).shape == (2, 4)
    assert sensors.session(2).forward(np.zeros((2, 5, 1))).shape == (2, 5, 4)
    assert [a.shape for a in sensors.session(2).forward([np.zeros((5, 1)), np.zeros(2)])] == [(5, 4), (2, 4)]
    for table in (True, False):
        for steps in (5, 1):
            assert sensors.session(table=table).forward([np.zeros(steps)]).shape == (1, steps, 4)
            assert sensors.session(table=table).prefill([np.zeros(steps)]).shape == (1, 4)
    assert sensors.predict([np.zeros(5)]).probabilities.shape == sensors.predict([np.zeros(1)]).probabilities.shape == (1, 4)
    assert text.session().forward([]).shape == (0, 65)


def test_any_layout_and_type_of_numbers_is_read(text, sensors, signal):
    tokens = text.encode(PROMPT)
    whole = text.session().forward(tokens)
    twice = np.repeat(tokens, 2)
    backwards = tokens[::-1].copy()[::-1]
    for other in (tokens.astype(np.int16), tokens.astype(np.int64), tokens.astype(">i4"), twice[::2], backwards, tokens.tolist(), tuple(tokens)):
        np.testing.assert_array_equal(text.session().forward(other), whole)
    rows = np.stack([signal[:8], signal[8:16], signal[16:24]]).astype(np.float32)
    for table in (True, False):
        whole = sensors.session(3, table=table).prefill(rows)
        for other in (np.asfortranarray(rows), np.ascontiguousarray(rows.transpose(1, 0, 2)).transpose(1, 0, 2), rows.astype(np.float64, order="F")):
            assert not other.flags.c_contiguous
            np.testing.assert_array_equal(sensors.session(3, table=table).prefill(other), whole)
    three = text.session(3).prefill(np.stack([tokens, backwards, tokens]))
    np.testing.assert_array_equal(text.session(3).prefill(np.asfortranarray(np.stack([tokens, backwards, tokens]))), three)
    raw = bytearray(1 + 8 * signal.size)
    misaligned = np.frombuffer(raw, dtype=np.float64, count=signal.size, offset=1)
    misaligned[:] = signal[:, 0]
    for table in (True, False):
        whole = sensors.session(table=table).forward(signal)
        for other in (np.asfortranarray(signal), misaligned[:, None], signal.astype(">f8"), signal[:, 0], signal.tolist()):
            np.testing.assert_allclose(sensors.session(table=table).forward(other), whole, rtol=1e-6)


def test_forks_go_their_own_ways(text):
    session = text.session()
    session.prefill(PROMPT)
    fork = session.fork()
    after = fork.forward("abc")
    np.testing.assert_array_equal(session.forward("abc"), after)
    both = session.fork([0, 0])
    assert both.batch == len(both) == 2 and both.nbytes == 2 * session.nbytes
    both.copy_row(0, text.session(), 0)
    np.testing.assert_array_equal(both.step([5, 5])[0], text.session().step(5))


def test_saved_sessions_go_on(text, temperature, tmp_path):
    session = text.session(2)
    session.prefill([PROMPT, "A"])
    saved = session.save()
    assert session.save(tmp_path / "saved") is None
    expected = session.step([3, 4])
    for source in (saved, tmp_path / "saved", str(tmp_path / "saved")):
        np.testing.assert_array_equal(text.load_session(source).step([3, 4]), expected)
        other = text.session()
        other.load(source)
        np.testing.assert_array_equal(other.step([3, 4]), expected)
    table = temperature.session()
    table.forward(np.linspace(20, 25, 30))
    np.testing.assert_array_equal(temperature.load_session(table.save()).step(24.0), table.step(24.0))
    with pytest.raises(minrnn.StateError, match="another model"):
        temperature.load_session(saved)


def test_a_session_is_not_saved_over_its_model_or_into_a_run(text, tmp_path):
    file = tmp_path / "model.minrnn"
    file.write_bytes(MODELS.joinpath("shakespeare.minrnn").read_bytes())
    (tmp_path / "link").symlink_to(file)
    session = minrnn.load(file).session()
    for name in ("model.minrnn", "link"):
        with pytest.raises(minrnn.InputError, match="is the input '.*model.minrnn'; give another file to write"):
            session.save(tmp_path / name)
    assert file.read_bytes() == MODELS.joinpath("shakespeare.minrnn").read_bytes()
    with pytest.raises(minrnn.InputError, match="is a directory; give a file to write"):
        session.save(tmp_path)
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "experiment.toml").touch()
    with pytest.raises(minrnn.InputError, match="lies in the run"):
        session.save(run / "saved")
    session.save(tmp_path / "saved")
    session.save(tmp_path / "saved")


def test_states_are_numbers(text):
    session = text.session(2)
    first = session.state()
    assert first.shape == (2, text.session_bytes() // 4)
    session.step([1], rows=[1])
    assert (session.state()[0] == first[0]).all() and (session.state()[1] != first[1]).any()


def test_what_is_inside_leads_to_what_is_predicted(text):
    tokens = text.encode(PROMPT)
    hidden = [text.session().embed(tokens, layer=layer) for layer in range(3)]
    features = text.session().embed(tokens)
    assert features.shape == (len(tokens), 256) and all(layer.shape == features.shape for layer in hidden)
    # What the head makes of its features is linear (it rounds them to 16 bits); what comes before the last norm is not.
    tokens = np.random.default_rng(0).integers(0, 65, 600)
    outputs = text.session().forward(tokens)
    missed = []
    for inside in (text.session().embed(tokens), text.session().embed(tokens, layer=2)):
        inside = np.append(inside, np.ones((len(tokens), 1)), axis=1)
        missed.append(abs(inside @ np.linalg.lstsq(inside, outputs, rcond=None)[0] - outputs).max())
    assert missed[0] < 0.05 < 1 < missed[1]
    session = text.session()
    session.embed(tokens)
    np.testing.assert_array_equal(session.step(1), text.session().forward([*tokens, 1])[-1])


def test_what_is_inside_of_a_table_is_that_of_what_the_model_sees(sensors, temperature, signal):
    task = sensors.task["normalization"]
    seen = (signal - task["mean"]) / task["deviation"]
    for layer in (None, 0, 1):
        inside = sensors.session().embed(signal, layer=layer)
        np.testing.assert_allclose(inside, sensors.session(table=False).embed(seen, layer=layer), rtol=1e-4, atol=1e-5)
    # One that looks back on the rows before, cut anywhere.
    months = 20 + 5 * np.sin(np.arange(50) / 2)
    session = temperature.session()
    whole = temperature.session().embed(months)
    np.testing.assert_array_equal(np.concatenate([session.embed(months[:17]), session.embed(months[17:])]), whole)
    other = temperature.session()
    other.prefill(months)
    np.testing.assert_array_equal(session.step(21.0), other.step(21.0))


def test_texts_and_tokens_stand_for_each_other(text):
    assert text.decode(text.encode(PROMPT)) == PROMPT
    np.testing.assert_array_equal(text.session().prefill(PROMPT), text.session().prefill(text.encode(PROMPT)))


def test_generation_is_reproducible_and_goes_on(text):
    settings = dict(temperature=0.8, top_k=20, top_p=0.95, repetition_penalty=1.1, seed=5)
    once = list(text.generate(PROMPT, 50, **settings))
    assert once == list(text.generate(PROMPT, 50, **settings)) != list(text.generate(PROMPT, 50, **{**settings, "seed": 6}))
    assert len(once) == 50
    tokens = list(text.generate(PROMPT, 50, tokens=True, **settings))
    assert text.decode(tokens) == "".join(once)
    # What was handed on has been read, and greedy text goes on where it stood.
    whole = "".join(text.generate(PROMPT, 40, temperature=0))
    session = text.session()
    parts = "".join(session.generate(PROMPT, 15, temperature=0)) + "".join(session.generate(max_tokens=25, temperature=0))
    assert parts == whole
    other = text.session()
    other.prefill(PROMPT + whole)
    np.testing.assert_array_equal(other.step(1), session.step(1))


def greedy(session, *prompt):
    return "".join(session.generate(*prompt, max_tokens=12, temperature=0))


def test_without_a_prompt_a_text_goes_on_from_what_was_read(text):
    expected, begun = greedy(text.session(), PROMPT), greedy(text.session())
    assert expected != greedy(text.session(), PROMPT + "\n")
    tokens = text.encode(PROMPT)
    for read in (lambda s: s.prefill(PROMPT), lambda s: s.forward([tokens]), lambda s: [s.step(token) for token in tokens]):
        session = text.session()
        read(session)
        # What is refused, and what reads nothing, changes nothing.
        with pytest.raises(minrnn.InputError):
            session.step(65)
        session.forward([])
        forks = session.fork(), session.fork([0]), text.session()
        forks[2].copy_row(0, session, 0)
        for each in (session, *forks):
            assert greedy(each) == expected
    # Where nothing was read, it begins.
    session.reset()
    for each in (session, text.session(3).fork([1]), text.load_session(text.session().save())):
        assert greedy(each.fork(), "") == greedy(each.fork(), []) == greedy(each) == begun


def test_where_it_is_not_known_what_comes_next_a_prompt_is_needed(text):
    session = text.session()
    session.prefill(PROMPT)
    rows = text.session(2)
    rows.prefill([PROMPT, "A"])
    inside = session.fork()
    inside.embed("a")
    loaded = session.fork()
    loaded.load(session.save())
    for each in (text.load_session(session.save()), loaded, rows.fork([0]), inside):
        with pytest.raises(minrnn.StateError, match="give a prompt"):
            each.generate()
        assert greedy(each, "a")


def test_a_text_may_end_before_one_text_or_several(text):
    whole = "".join(text.generate(PROMPT, 40, temperature=0))
    for stop in ("e", ["e"], ("e", "zz")):
        assert "".join(text.generate(PROMPT, 40, temperature=0, stop=stop)) == whole.split("e")[0]
    # Letter by letter it would end before any of these.
    assert "".join(text.generate(PROMPT, 40, temperature=0, stop=whole[8:11])) == whole.split(whole[8:11])[0]


def test_a_text_ends_when_its_session_reads_something_else(text):
    session = text.session()
    pieces = session.generate(PROMPT)
    next(pieces)
    session.step(1)
    with pytest.raises(minrnn.StateError, match="has read something else"):
        next(pieces)
    one, other = session.generate(PROMPT), session.generate()
    next(one)
    with pytest.raises(minrnn.StateError, match="has read something else"):
        next(other)
    assert next(one)


def test_models_describe_themselves(text, sensors, temperature):
    assert (text.kind, sensors.kind, temperature.kind) == ("text", "classifier", "forecaster")
    assert (text.vocab_size, text.inputs, text.outputs, text.parameters) == (65, 0, 65, 2_998_272)
    assert sensors.columns == ["acceleration"] and sensors.classes == ["resting", "running", "shaking", "walking"]
    assert (temperature.targets, temperature.horizon, temperature.quantiles) == (["temperature"], 12, [0.1, 0.5, 0.9])
    assert text.config["d_model"] == 256 and text.task is None
    assert text.describe()["weights"] == ["int4", "int8"]
    assert temperature.describe()["columns"] == ["temperature"]
    assert minrnn.load(MODELS.joinpath("sensors.minrnn").read_bytes()).classes == sensors.classes


def test_models_are_pickled_by_their_path(sensors, signal):
    import pickle

    again = pickle.loads(pickle.dumps(sensors))
    np.testing.assert_array_equal(again.session().forward(signal), sensors.session().forward(signal))


def test_a_model_that_was_named_from_a_directory_is_copied_in_another(monkeypatch, tmp_path):
    import copy

    monkeypatch.chdir(MODELS)
    model = minrnn.load("sensors.minrnn")
    monkeypatch.chdir(tmp_path)
    assert copy.deepcopy(model).classes == model.classes and str(model.path) == str(MODELS / "sensors.minrnn")
