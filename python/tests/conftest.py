import pathlib
import signal as signals

import pytest

import minrnn

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
EXPECTED = pathlib.Path(__file__).parent / "expected"

# What a shell starts in the background ignores Ctrl-C, and so would the programs that tests start.
if signals.getsignal(signals.SIGINT) == signals.SIG_IGN:
    signals.signal(signals.SIGINT, signals.default_int_handler)


@pytest.fixture(scope="session")
def text():
    """Continues a text by characters, int4."""
    return minrnn.load(MODELS / "shakespeare.minrnn")


@pytest.fixture(scope="session")
def sensors():
    """Tells four classes by one value at each step."""
    return minrnn.load(MODELS / "sensors.minrnn")


@pytest.fixture(scope="session")
def temperature():
    """Forecasts 12 months with quantiles."""
    return minrnn.load(MODELS / "temperature.minrnn")


@pytest.fixture
def signal():
    import numpy as np

    return np.sin(np.arange(60.0) * 0.7)[:, None] * 2
