"""Threads, signals and forks of the process."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import minrnn
from conftest import MODELS


def test_other_threads_run_meanwhile_and_a_session_serves_one(text):
    session, other, busy, answers = text.session(), text.session(), 0, []
    reader = threading.Thread(target=lambda: answers.append(session.prefill(np.ones(60_000, dtype=int))))
    reader.start()
    steps = 0
    while reader.is_alive():
        try:
            session.reset([7])
        except minrnn.BusyError as refused:
            assert "another thread is using the session" in str(refused)
            busy += 1
        except minrnn.InputError:
            pass
        other.step(1)
        steps += 1
    reader.join()
    assert busy > 0 and steps > 1 and answers[0].shape == (65,)


def test_many_threads_share_a_model(sensors, signal):
    expected = sensors.session().forward(signal)
    answers = [None] * 8

    def read(at):
        answers[at] = sensors.session().forward(signal)

    threads = [threading.Thread(target=read, args=(at,)) for at in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


def test_answers_do_not_depend_on_threads(text):
    tokens = text.encode("The same bits on any number of threads.")
    expected = text.session(threads=1).forward(tokens)
    for threads in (None, 0, 2, 3):
        session = text.session(threads=threads)
        np.testing.assert_array_equal(session.forward(tokens), expected)
        session.reset()
        np.testing.assert_array_equal(np.stack([session.step(token) for token in tokens]), expected)


def test_other_threads_run_while_a_text_becomes_tokens(text):
    long = "To be, or not to be. " * 300_000
    tokens = text.encode(long)

    def share(call):
        """The longest time without another thread, as a share of the whole."""
        reader = threading.Thread(target=call)
        begun = before = time.perf_counter()
        held = 0.0
        reader.start()
        while reader.is_alive():
            now = time.perf_counter()
            held, before = max(held, now - before), now
        now = time.perf_counter()
        return max(held, now - before) / (now - begun)

    def encode():
        # Refused at its end, where otherwise an array is filled.
        with pytest.raises(minrnn.InputError):
            text.encode(long + "é")

    for call in (encode, lambda: text.decode(tokens)):
        assert min(share(call) for _ in range(3)) < 0.6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("restore", ["model.load_session(pipe)", "session.load(pipe)"])
def test_other_threads_run_while_a_saved_session_is_read(restore, tmp_path):
    # In a process of its own, which would wait for itself forever: what is read is written by another of its threads.
    program = f"""
        import os, threading, minrnn
        model = minrnn.load({str(MODELS / "sensors.minrnn")!r})
        session, pipe = model.session(), {str(tmp_path / "pipe")!r}
        session.prefill([0.1, 0.2])
        saved = session.save()
        os.mkfifo(pipe)

        def write():
            with open(pipe, "wb") as file:
                file.write(saved)

        threading.Thread(target=write).start()
        restored = {restore} or session
        assert restored.save() == saved
        print("restored")
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert child.stdout == "restored\n", child.stderr


def in_child(path, queue):
    model = minrnn.load(path)
    queue.put(model.session(threads=2).prefill(np.arange(60) % 65))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(text):
    session = text.session(threads=2)
    tokens = np.arange(60) % 65
    # The parent's threads have been started.
    expected = session.prefill(tokens)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(MODELS / "shakespeare.minrnn", queue))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    child.join(60)
    assert child.exitcode == 0
    # A session of the parent goes on in the child.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, session.step(3).tobytes())
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_array_equal(np.frombuffer(os.read(read, 1 << 16), dtype=np.float32), session.step(3))


SLOW = {
    "generate": "for piece in model.generate('A', 10**9): pass",
    "prefill": "session.prefill(tokens)",
    "forward": "session.embed(tokens[:1_000_000])",
    "table": "table.prefill(values)",
    "score": "model.score('a' * 30_000_000)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("call", SLOW)
def test_ctrl_c_ends_a_long_call_and_leaves_the_session_as_it_was(call):
    program = f"""
        import numpy, minrnn
        model = minrnn.load({str(MODELS / "shakespeare.minrnn")!r})
        session = model.session(threads=1)
        session.step(1)
        table = minrnn.load({str(MODELS / "sensors.minrnn")!r}).session()
        tokens, values = numpy.ones(30_000_000, dtype=int), numpy.ones(200_000_000)
        before = session.state(), table.state()
        print("begun", flush=True)
        try:
            {SLOW[call]}
        except KeyboardInterrupt:
            assert (session.state() == before[0]).all() and (table.state() == before[1]).all()
            print("interrupted", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n"
    assert child.returncode == 0
