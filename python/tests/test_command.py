"""The command line as the package has it: ``python -m minrnn`` and the script ``minrnn``, which call the same function."""

import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import MODELS

MINRNN = [sys.executable, "-m", "minrnn"]
# Copying without an end in sight.
LONG = ["train", "--set", "max_iterations=1000000", "--set", "d_model=16", "--set", "eval_every=1000000", "--set", "checkpoint_every=1000000"]


def run(*arguments, **options):
    return subprocess.run([*MINRNN, *arguments], capture_output=True, text=True, timeout=120, **options)


def test_it_is_the_command():
    said = run("generate", str(MODELS / "shakespeare.minrnn"), "--prompt", "ROMEO:", "--max-tokens", "20", "--temperature", "0")
    assert said.returncode == 0 and len(said.stdout) == 20, said.stderr
    assert run("--version").stdout.startswith("minrnn ")


@pytest.mark.parametrize("arguments, code", [(["inspect", "nothing.minrnn"], 2), (["dance"], 2), (["--help"], 0), (["inspect", "parity"], 0)])
def test_exit_codes_are_those_of_the_command(arguments, code):
    assert run(*arguments).returncode == code


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    child = subprocess.Popen([*MINRNN, *LONG], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    # A line of progress comes with the first update.
    told = ""
    while "loss" not in told:
        told = child.stderr.readline()
        assert told, "it ended"
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=60)[1]
    assert child.returncode == 1 and "everything is saved" in rest and "minrnn train --resume" in rest, rest
    assert "Traceback" not in rest


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_ends_at_once_what_does_not_listen():
    child = subprocess.Popen([*MINRNN, "bench", "scan", "--seq-len", "64", "--iterations", "100000000"], stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == -signal.SIGINT
    assert "Traceback" not in child.stderr.read()
    child.stderr.close()


def test_a_reader_that_goes_away_has_seen_enough():
    child = subprocess.Popen(
        [*MINRNN, "generate", str(MODELS / "shakespeare.minrnn"), "--max-tokens", "100000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    child.stdout.read(10)
    child.stdout.close()
    errors = child.stderr.read()
    assert child.wait(timeout=60) == 0 and "Traceback" not in errors and "error" not in errors, errors
    child.stderr.close()


def test_cases_are_measured_in_processes_of_their_own():
    said = run("bench", "layer", "--mixer", "min-gru,gru", "--seq-len", "8", "--batch-size", "1", "--d-model", "8", "--d-hidden", "8", "--iterations", "1")
    assert said.returncode == 0 and "min-gru" in said.stdout, said.stderr


def test_the_script_is_installed_with_the_package():
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution("minrnn")
    except PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert any(point.name == "minrnn" and point.value == "minrnn.command:main" for point in found.entry_points)
    script = os.path.join(os.path.dirname(sys.executable), "minrnn")
    assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout.startswith("minrnn ")
