"""Training in the process gives what the command gives, and stops as it should."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import minrnn
from conftest import MODELS, ROOT
from test_command import MINRNN

TINY = {"d_model": 8, "n_layers": 1, "max_iterations": 12, "batch_size": 8, "eval_every": 6, "checkpoint_every": 6, "warmup": 2, "seed": 5}


def machines(n=24, steps=20):
    """Sequences of two kinds: slow and fast waves."""
    table = {"machine": [], "state": [], "vibration": []}
    for machine in range(n):
        pace = 0.9 if machine % 2 else 0.3
        for t in range(steps):
            table["machine"].append(f"m{machine}")
            table["state"].append("worn" if machine % 2 else "good")
            table["vibration"].append(float(np.sin(t * pace + machine)))
    return table


def load(n=3, steps=80):
    """Hours with a pattern of twelve, and what is known ahead of them."""
    times = (np.datetime64("2024-01-01T00", "h") + np.arange(steps)).astype("datetime64[ms]")
    return {
        "unique_id": np.repeat([f"b{at}" for at in range(n)], steps),
        "ds": np.tile(times, n),
        "y": np.concatenate([10 + at + np.sin(np.arange(steps) * np.pi / 6) for at in range(n)]),
        "offer": np.tile((np.arange(steps) % 7 == 0).astype(float), n),
    }


def write(table, path):
    names = list(table)
    # Times to the minute.
    columns = [np.asarray(table[name]).astype("datetime64[m]") if name == "ds" else table[name] for name in names]
    lines = [",".join(names), *(",".join(str(value) for value in row) for row in zip(*columns))]
    path.write_text("\n".join(lines) + "\n")
    return path


def command(*arguments, settings=TINY, **options):
    flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
    done = subprocess.run([*MINRNN, *map(str, arguments), *flags], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr
    return done


def weights(run):
    checkpoint = pathlib.Path(run) / "checkpoints"
    return checkpoint.joinpath(checkpoint.joinpath("best").read_text().strip(), "model.safetensors").read_bytes()


def test_weights_are_those_of_the_command_to_the_bit(tmp_path):
    table = machines()
    file = write(table, tmp_path / "machines.csv")
    command("train", "classify", "--data", file, "--group", "machine", "--target", "state", "--out", tmp_path / "theirs", settings=TINY | {"threads": 2})
    of_frame = minrnn.train("classify", table, out=tmp_path / "ours", group="machine", target="state", settings=TINY, threads=2)
    of_file = minrnn.train("classify", file, out=tmp_path / "file", group="machine", target=["state"], **TINY, threads=2)
    assert weights(of_frame.path) == weights(of_file.path) == weights(tmp_path / "theirs")
    said = [json.loads(line) for line in command("eval", tmp_path / "theirs", "--json", settings={}).stdout.splitlines()]
    measure = next(line for line in said if line.get("measure") == "accuracy" or "verdict" in line)
    assert of_frame.report["measures"][0] == measure


def test_a_dictionary_is_an_experiment(tmp_path):
    written = {"description": "parity", "model": {"d_model": 8, "n_layers": 1}, "data": {"task": "formal-language"}, "train": {"max_iterations": 3, "batch_size": 4}}
    run = minrnn.train(written, out=tmp_path / "run", eval_iterations=1, threads=1)
    assert [line["kind"] for line in run.history].count("train") == 3
    assert run.model.kind == "tokens" and run.report["predictions"] > 0
    toml = tmp_path / "own.toml"
    toml.write_text('description = "parity"\n[model]\nd_model = 8\nn_layers = 1\n[data]\ntask = "formal-language"\n[train]\nmax_iterations = 3\nbatch_size = 4\n')
    again = minrnn.train(toml, out=tmp_path / "again", eval_iterations=1, threads=1)
    assert weights(run.path) == weights(again.path)


def test_a_run_without_a_place_goes_with_its_object():
    run = minrnn.train("classify", machines(), group="machine", target="state", settings=TINY)
    path = run.path
    assert run.model.classes == ["good", "worn"] and path.is_dir() and "test accuracy" in repr(run)
    saved = path.parent.parent / f"{path.parent.name}.minrnn"
    try:
        assert run.pack(saved, "int8")["tensors"] > 0
        del run
        assert not path.exists()
        assert minrnn.load(saved).classes == ["good", "worn"]
    finally:
        saved.unlink()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_leaves_the_run_of_its_parent():
    program = """
        import os, sys, minrnn
        run = minrnn.train("parity", max_iterations=2, d_model=8, n_layers=1, threads=1, progress=False)
        child = os.fork()
        if child == 0:
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        print(run.model.kind, run.path)
    """
    child = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert child.stdout.startswith("tokens "), child.stderr
    # The process that made it removes it.
    assert not os.path.exists(child.stdout.removeprefix("tokens ").strip())


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are not UTF-8")
def test_a_run_may_have_a_name_that_is_not_utf8_and_what_an_experiment_names_may_not(tmp_path):
    odd = os.fsdecode(b"o\xff")
    table = write(machines(), tmp_path / "machines.csv")
    other = write(machines(8), tmp_path / f"{odd}.csv")
    options = {"group": "machine", "target": "state", "settings": TINY | {"refit": False}, "threads": 1, "progress": False}
    run = minrnn.train("classify", table, out=tmp_path / odd, **options)
    assert run.path == tmp_path / odd and run.model.classes == ["good", "worn"] and run.history
    for name, given in (("data", {"data": other}), ("test", {"test": other}), ("validation", {"validation": other}), ("from_", {"from_": run.path})):
        with pytest.raises(minrnn.InputError, match="its name or that of a folder it is in is not UTF-8, .* rename that"):
            minrnn.train("classify", out=tmp_path / name, **{"data": table, **given, **options})
        assert not (tmp_path / name).exists()
    with pytest.raises(minrnn.InputError, match="out: a table in memory is kept in the run, .* choose another directory"):
        minrnn.train("classify", machines(), out=tmp_path / f"{odd}2", **options)
    with pytest.raises(minrnn.InputError, match="experiment: expected a path in UTF-8, .* rename the file"):
        minrnn.train(f"{odd}.toml", out=tmp_path / "run")
    assert sorted(os.listdir(tmp_path)) == ["machines.csv", odd, f"{odd}.csv"]


def test_events_come_in_order_and_the_history_is_kept(tmp_path):
    events = []
    run = minrnn.train("classify", machines(), out=tmp_path / "run", group="machine", target="state", settings=TINY, callback=events.append)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "start" and kinds[-1] == "end" and "refit" in kinds and kinds.count("update") == 2 * TINY["max_iterations"]
    updates = [event["iteration"] for event in events if event["event"] == "update"]
    assert updates == list(range(1, 25)) == [line["iteration"] for line in run.history if line["kind"] == "train"]
    assert events[0]["run"] == str(run.path) and all(event["iterations"] in (12, 24) for event in events if event["event"] == "update")


class Enough(Exception):
    pass


def test_an_exception_of_the_callback_stops_with_a_checkpoint_and_the_run_goes_on(tmp_path):
    options = {"group": "machine", "target": "state", "settings": TINY, "threads": 1}
    whole = minrnn.train("classify", machines(), out=tmp_path / "whole", **options)

    def stop(event):
        if event["event"] == "update" and event["iteration"] == 4:
            raise Enough

    with pytest.raises(Enough):
        minrnn.train("classify", machines(), out=tmp_path / "run", callback=stop, **options)
    assert (tmp_path / "run/checkpoints/last").read_text() == "iter-4\n"
    # The table lies in the run, so that it need not be given again; where it is, it must be the same.
    other = machines()
    other["vibration"][7] += 1
    with pytest.raises(minrnn.InputError, match="the table has changed since this run began"):
        minrnn.train(data=other, out=tmp_path / "run", resume=True)
    resumed = minrnn.train(out=tmp_path / "run", resume=True)
    assert weights(resumed.path) == weights(whole.path)
    assert weights(minrnn.train("classify", machines(), out=tmp_path / "run", resume=True).path) == weights(whole.path)


def test_a_table_that_is_learned_from_in_the_end_is_not_one_to_test_with(tmp_path):
    options = {"group": "machine", "target": "state", "settings": TINY, "threads": 1}
    with pytest.raises(minrnn.InputError, match="the table: it has the content of the validation table"):
        minrnn.train("classify", machines(), validation=machines(8), test=machines(8), out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_moved_finds_its_own_tables(tmp_path):
    options = {"group": "machine", "target": "state", "settings": TINY, "threads": 1}
    tables = {"data": machines(), "test": machines(8)}
    whole = minrnn.train("classify", out=tmp_path / "whole", **tables, **options)

    def stop(event):
        if event["event"] == "update" and event["iteration"] == 4:
            raise Enough

    with pytest.raises(Enough):
        minrnn.train("classify", out=tmp_path / "run", callback=stop, **tables, **options)
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    (tmp_path / "run").rename(moved)
    resumed = minrnn.train(out=moved, resume=True)
    assert weights(moved) == weights(whole.path) and resumed.report["measures"] == whole.report["measures"]

    def scored(run):
        # Without the line that names the checkpoint.
        lines = command("eval", run, settings={}).stdout.splitlines()
        return [line for line in lines if str(run) not in line]

    before = scored(moved)
    again = moved.rename(tmp_path / "again")
    assert before and scored(again) == before == scored(whole.path)
    # A table of its own that was changed is still noticed.
    kept = again / "data" / "data.arrows"
    kept.write_bytes(kept.read_bytes().replace(b"good", b"fine"))
    with pytest.raises(minrnn.InputError, match="not seen in training"):
        minrnn.train(out=again, resume=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_so_many_threads_are_taken_as_are_asked_for(threads):
    events = []
    minrnn.train("classify", machines(), group="machine", target="state", settings=TINY, threads=threads, callback=events.append, progress=False)
    assert events[0]["event"] == "start" and events[0]["threads"] == threads


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_stops_with_a_checkpoint(tmp_path):
    program = f"""
        import minrnn
        def told(event):
            if event["event"] == "update":
                print("update", flush=True)
        try:
            minrnn.train("parity", out={str(tmp_path / "run")!r}, callback=told, max_iterations=1000000, d_model=8, eval_every=1000000, checkpoint_every=1000000)
        except KeyboardInterrupt as interrupt:
            print("interrupted", getattr(interrupt, "__notes__", ["everything is saved"])[0], flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "update\n"
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=60)[0]
    assert child.returncode == 0 and "interrupted everything is saved" in rest
    assert (tmp_path / "run/checkpoints/last").exists()


@pytest.mark.parametrize("threads", [1, 0])
def test_a_callback_may_call_the_library(threads):
    # In a process of its own, which a call that waits for itself would hold forever.
    program = f"""
        import minrnn
        model = minrnn.load({str(MODELS / "shakespeare.minrnn")!r})
        small = dict(max_iterations=2, d_model=8, n_layers=1, threads={threads}, progress=False)
        def told(event):
            if event["event"] == "update":
                model.session(threads=0).prefill("x" * 100)
                "".join(model.session(threads=0).generate("x", 5))
                minrnn.train("parity", **small)
        minrnn.train("parity", callback=told, **small)
        print("done")
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, env={**os.environ, "RAYON_NUM_THREADS": "1"})
    assert child.stdout == "done\n", child.stderr


FRAMES = ["pandas", "polars", "pyarrow"]


def frame(library, table):
    module = pytest.importorskip(library)
    return getattr(module, {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library])(table)


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_all_libraries_are_the_same_table(library, tmp_path):
    options = {"horizon": 6, "calendar": ["hour"], "settings": TINY, "threads": 1}
    expected = minrnn.train("forecast", load(), out=tmp_path / "columns", **options)
    run = minrnn.train("forecast", frame(library, load()), out=tmp_path / library, **options)
    assert weights(run.path) == weights(expected.path)
    predicted = run.model.predict(frame(library, load()))
    np.testing.assert_array_equal(predicted.values, expected.model.predict(load()).values)
    assert predicted.names == ["b0", "b1", "b2"] and len(predicted.times[0]) == 6


def test_rows_to_come_are_read_as_the_command_reads_them(tmp_path):
    table = load()
    history = {name: column[np.tile(np.arange(80) < 74, 3)] for name, column in table.items()}
    future = {name: column[np.tile(np.arange(80) >= 74, 3)] for name, column in table.items() if name != "y"}
    run = minrnn.train("forecast", history, out=tmp_path / "run", horizon=6, known_ahead=["offer"], settings=TINY, threads=1)
    predicted = run.model.predict(history, future=future).columns()
    files = [write(history, tmp_path / "history.csv"), write(future, tmp_path / "future.csv")]
    said = command("predict", run.path, "--data", files[0], "--future", files[1], settings={}).stdout.splitlines()
    rows = [line.split(",") for line in said[1:]]
    assert said[0] == ",".join(predicted)
    assert [(row[0], int(row[2])) for row in rows] == list(zip(predicted["unique_id"], predicted["step"]))
    assert [np.datetime64(row[1]) for row in rows] == [np.datetime64(time) for time in predicted["ds"]]
    np.testing.assert_allclose([float(row[3]) for row in rows], predicted["y"], rtol=1e-4)
    with pytest.raises(minrnn.InputError, match="the rows to come are needed"):
        run.model.predict(history)


def test_files_of_their_own_are_scored(tmp_path):
    table = machines()
    test = {name: column[:200] for name, column in table.items()}
    run = minrnn.train("classify", table, test=test, group="machine", target="state", settings=TINY)
    assert run.report["measures"][0]["n"] == 10


REFUSED = [
    (("classify", {"x": [1.0, 2.0]}), {}, minrnn.InputError, "class"),
    (("clasify",), {}, minrnn.InputError, "did you mean 'classify'"),
    (("classify", machines()), {"group": "machine", "taget": "state"}, minrnn.InputError, "did you mean 'target'"),
    (("classify", machines()), {"group": "machin", "target": "state"}, minrnn.InputError, "machin"),
    ((None, machines()), {}, minrnn.InputError, "name one: classify, regress or forecast"),
    (("text", machines()), {}, minrnn.InputError, "reads no table"),
    (("parity",), {"test": machines()}, minrnn.InputError, "reads no table; leave test out"),
    (("text", __file__), {"test": __file__}, minrnn.InputError, "'text' learns text, which reads no table; leave test out"),
    (("text", __file__), {"validation": __file__}, minrnn.InputError, "reads no table; leave validation out"),
    (("parity", "nothing.csv"), {}, minrnn.MinrnnError, "makes its own data|nothing.csv"),
    (("classify", "nothing.csv"), {}, minrnn.FileError, "nothing.csv"),
    (("text",), {}, minrnn.InputError, "needs a text; give it as data"),
    (("classify", np.zeros((3, 4))), {}, minrnn.KindError, "columns have names"),
    (("classify", 7), {}, minrnn.KindError, "expected a table"),
    (({"model": {"d_modle": 3}},), {}, minrnn.InputError, "d_modle"),
    ((), {"resume": True}, minrnn.InputError, "name it as out"),
    (("parity",), {"out": ""}, minrnn.InputError, "out is empty, expected a directory"),
    ((), {"resume": True, "out": "nowhere"}, minrnn.InputError, "no run directory to resume; leave resume out"),
    ((), {"settings": {"d_model": object()}}, minrnn.KindError, "d_model: expected .* as a setting"),
    ((), {"settings": {1: 2}}, minrnn.KindError, "names as texts, found 1"),
    ((), {"settings": [1]}, minrnn.KindError, "a dictionary of names and values, found list"),
    (("parity",), {"betas": [0.9, None]}, minrnn.KindError, "betas: expected a number, a text, or true or false at each place of the list, found None"),
    (("parity",), {"seed": 10**5000}, minrnn.InputError, "seed must be a number of at most 64 bits, found one of 16610"),
    (("parity",), {"mixer": "\ud800"}, minrnn.InputError, "mixer: expected a text that UTF-8 can hold"),
    (("parity",), {"settings": {"\ud800": 1}}, minrnn.InputError, "settings: expected a text that UTF-8 can hold"),
    (("parity",), {"lr": float("nan")}, minrnn.InputError, "lr must be a finite number, found nan"),
    (("parity",), {"betas": [0.9, np.inf]}, minrnn.InputError, "betas must be a finite number, found inf"),
    (({"train": {"lr": np.float32("-inf")}},), {}, minrnn.InputError, "train.lr must be a finite number, found -inf"),
    (("classify", {"machine": [1, 1], "state": ["a", "a"], "x": ["odd", None]}), {"group": "machine", "target": "state"}, minrnn.InputError, "table"),
    (("classify", {"machine": [1, 1], "state": ["a"]}), {"group": "machine", "target": "state"}, minrnn.InputError, "length"),
]


@pytest.mark.parametrize("arguments, options, error, sentence", REFUSED)
def test_what_cannot_be_trained_is_refused_and_leaves_nothing(arguments, options, error, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(error, match=sentence) as refused:
        minrnn.train(*arguments, **options)
    assert "--" not in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_a_run_is_not_written_over(tmp_path):
    minrnn.train("parity", out=tmp_path / "run", max_iterations=2, d_model=8, n_layers=1)
    with pytest.raises(minrnn.InputError, match="already holds a run; continue that one with resume=True"):
        minrnn.train("parity", out=tmp_path / "run")
    with pytest.raises(minrnn.InputError, match="lies in the run"):
        minrnn.pack(tmp_path / "run", tmp_path / "run" / "model.minrnn")
    assert minrnn.pack(tmp_path / "run", tmp_path / "model.minrnn")["bytes"] == (tmp_path / "model.minrnn").stat().st_size


def test_a_bar_is_shown_where_somebody_sees_it(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    minrnn.train("classify", machines(), group="machine", target="state", settings=TINY)
    shown = capsys.readouterr().err
    assert "12/12" in shown and "retraining on" in shown and shown.endswith("\r")
    minrnn.train("classify", machines(), group="machine", target="state", settings=TINY, progress=False)
    assert capsys.readouterr().err == ""


def test_models_are_inspected_verified_and_exchanged(tmp_path):
    found = minrnn.inspect("parity", d_model=16)
    assert found["parameters"] > 0 and found["model"]["d_model"] == 16 and found["memory_of_training"]["bytes"] > 0
    same = minrnn.inspect("parity", d_model=np.int64(16), dropout=None)
    assert same == found
    with pytest.raises(minrnn.InputError, match="experiment 'classify' learns from a file, which says how large its model is; train it"):
        minrnn.inspect("classify")
    with pytest.raises(minrnn.InputError, match="lr must be a finite number"):
        minrnn.inspect("parity", lr=float("nan"))
    with pytest.raises(minrnn.KindError, match="betas: expected .* at each place of the list, found None"):
        minrnn.inspect("parity", betas=[0.9, None])
    for name in ("é", "😀", "a\x7f"):
        with pytest.raises(minrnn.InputError, match=f"mixer: there is no '{name}'; expected one of"):
            minrnn.inspect("parity", mixer=name)
    cases = ROOT / "crates/cli/tests/fixtures/verify"
    assert all(each["pass"] for each in minrnn.verify(cases / "min_gru_positive.safetensors"))
    assert not all(each["pass"] for each in minrnn.verify(cases / "min_gru_positive.safetensors", rtol=0, atol=0))
    run = minrnn.train("parity", out=tmp_path / "run", mixer="lstm", expansion=1, d_model=8, n_layers=1, max_iterations=2).path
    exported = minrnn.export_weights(run, tmp_path / "lstm.safetensors", format="torch-lstm")
    imported = minrnn.import_weights(tmp_path / "lstm.safetensors", tmp_path / "back", format="torch-lstm", into=run)
    assert exported["tensors"] == 4 and imported["mixer"] == "lstm"
    one, other = minrnn.load(run).session(), minrnn.load(tmp_path / "back").session()
    np.testing.assert_array_equal(one.forward([1, 0, 1]), other.forward([1, 0, 1]))
    assert minrnn.export_weights(run, tmp_path / "step.onnx", format="onnx") and (tmp_path / "step.onnx").stat().st_size > 0
    with pytest.raises(minrnn.InputError, match="name the model they go into by into"):
        minrnn.import_weights(tmp_path / "lstm.safetensors", tmp_path / "other", format="torch-lstm")
    with pytest.raises(minrnn.InputError, match="already exists"):
        minrnn.import_weights(tmp_path / "lstm.safetensors", tmp_path / "back", format="torch-lstm", into=run)
    with pytest.raises(minrnn.InputError, match="unknown format 'word'; expected one of .*torch-lstm.*, onnx"):
        minrnn.export_weights(run, tmp_path / "x", format="word")
    # What was exported before is written again, and nothing else is written over.
    thesis = tmp_path / "thesis"
    thesis.write_text("Chapter 1")
    for format, name, kind in (("torch-lstm", "lstm.safetensors", "a safetensors file"), ("onnx", "step.onnx", "a step that was exported")):
        minrnn.export_weights(run, tmp_path / name, format=format)
        with pytest.raises(minrnn.InputError, match=f"thesis' exists and is not {kind}; give another file to write"):
            minrnn.export_weights(run, thesis, format=format)
    assert thesis.read_text() == "Chapter 1"


def test_what_is_no_run_has_no_history(tmp_path):
    with pytest.raises(minrnn.FileError, match="could not read '.*nope.metrics.jsonl'.* give the directory of a run"):
        _ = minrnn.Run(tmp_path / "nope").history


def test_a_run_that_was_there_before_is_not_said_to_be_saved(tmp_path):
    options = {"out": tmp_path / "run", "group": "machine", "target": "state", "settings": TINY, "threads": 1}
    minrnn.train("classify", machines(), **options)
    with pytest.raises(minrnn.InputError, match="resume=True") as refused:
        minrnn.train("classify", machines(), **options)
    assert getattr(refused.value, "__notes__", []) == []
    with pytest.raises(minrnn.InputError) as refused:
        minrnn.train(out=tmp_path / "run", resume=True, d_model=9, progress=False)
    assert getattr(refused.value, "__notes__", []) == []
