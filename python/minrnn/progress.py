"""A progress bar for terminals and notebooks."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

WIDTH = 30
# Seconds between two updates of the bar.
PACE = 0.1


def progress_bar() -> Bar | None:
    """A bar on a terminal or in a notebook; None if the output goes to a file or a pipe."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ == "ZMQInteractiveShell":
        # In a notebook, stdout is not shown as an error.
        return Bar(sys.stdout)
    return Bar(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None


def counted(n: int, one: str) -> str:
    """`n` of what is called `one`."""
    return f"{n} {one}{'' if n == 1 else 's'}"


class Bar:
    """Shows the progress of training."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.shown, self.length = stream, 0.0, 0
        self.began: tuple[float, int] | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "start":
            self.line(
                f"{event['mixer']}: {counted(event['layers'], 'layer')}, width {event['d_model']}, {event['parameters']} parameters; "
                f"{counted(event['iterations'], 'iteration')} on {counted(event['threads'], 'thread')}"
            )
            if event["understood"]:
                self.line(event["understood"])
            for told in event["told"]:
                self.line(told)
        elif kind == "update":
            self.update(event)
        elif kind == "evaluation":
            accuracy = "" if event["accuracy"] is None else f"  accuracy {100 * event['accuracy']:.2f} %"
            self.line(f"iteration {event['iteration']}: {event['part']} loss {event['loss']:.4f}{accuracy}{'  best' if event['best'] else ''}")
        elif kind == "refit":
            self.began = None
            self.line(f"retraining on all data, {event['iterations'] - event['iteration']} iterations as before")

    def update(self, event: dict[str, Any]) -> None:
        now, at, end = time.monotonic(), event["iteration"], event["iterations"]
        if self.began is None:
            self.began = now, at - 1
        if now - self.shown < PACE and at < end:
            return
        self.shown = now
        started, first = self.began
        left = (now - started) / (at - first) * (end - at)
        full = WIDTH * at // max(end, 1)
        self.write(f"{'█' * full}{'░' * (WIDTH - full)} {at}/{end} loss {event['loss']:.4f}  {left:.0f} s left")

    def write(self, text: str) -> None:
        # Padded with blanks to cover a longer text.
        self.stream.write("\r" + text.ljust(self.length))
        self.stream.flush()
        self.length = len(text)

    def line(self, text: str) -> None:
        """Writes a line that stays."""
        self.write(text)
        self.stream.write("\n")
        self.length = 0

    def close(self) -> None:
        """Removes the bar."""
        if self.length:
            self.write("")
            self.stream.write("\r")
            self.stream.flush()
