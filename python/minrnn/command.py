"""The ``minrnn`` command, the same as the program of that name."""

from __future__ import annotations

import signal
import sys

from . import _minrnn


def main() -> None:
    """Runs the command with this process's arguments and exits with its exit code."""
    # Until the command handles signals itself, Ctrl-C ends the process at once; Python's own handler would run only after the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = [sys.executable, "-m", "minrnn"]
    sys.exit(_minrnn.run_command(program, ["minrnn", *sys.argv[1:]]))


