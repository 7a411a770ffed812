"""Sets of sequences with classes that are made, not measured: each family draws its training and its test part from one seeded generator.

`DEVELOPMENT` may be looked at while defaults are chosen, `REPORTED` after that; so `LONG_DEVELOPMENT` and `LONG_REPORTED`.
"""

import numpy as np


def bump(t, centre, width, height=1.0):
    return height * np.exp(-0.5 * ((t - centre) / width) ** 2)


def frequency(rng, label, n=120):
    t = np.arange(n)
    return np.sin(t * (0.15 + 0.05 * label) + rng.uniform(0, 6.28)) + rng.normal(0, 0.6, n)


def shape_of_wave(rng, label, n=100):
    phase = (np.arange(n) / 20 + rng.uniform()) % 1
    wave = [np.sin(2 * np.pi * phase), 2 * phase - 1, np.sign(phase - 0.5)][label]
    return rng.uniform(0.5, 2) * wave + rng.normal(0, 0.4, n)


def autoregression(rng, label, n=150):
    x, c = np.zeros(n), [0.2, 0.6, 0.9][label]
    for t in range(1, n):
        x[t] = c * x[t - 1] + rng.normal()
    return x / x.std()


def place_of_bump(rng, label, n=80):
    t = np.arange(n)
    return bump(t, n * (0.25 + 0.5 * label) + rng.normal(0, 8), 4, rng.uniform(0.8, 1.6)) + rng.normal(0, 0.3, n)


def number_of_bumps(rng, label, n=140):
    t = np.arange(n)
    places = rng.choice(np.arange(8, n - 8, 12), label + 1, replace=False)
    return sum(bump(t, place, 3) for place in places) + rng.normal(0, 0.2, n)


def direction_of_trend(rng, label, n=60):
    return np.cumsum(rng.normal([-0.15, 0.15][label], 0.6, n))


def change_of_variance(rng, label, n=160):
    at = rng.integers(n // 3, 2 * n // 3)
    scale = np.where(np.arange(n) < at, 1.0, [1.0, 1.8, 0.5][label])
    return scale * rng.normal(0, 1, n)


def correlation(rng, label, n=90):
    a, b = rng.normal(size=(2, n))
    c = [-0.6, 0.0, 0.6][label]
    return np.stack([a, c * a + np.sqrt(1 - c * c) * b])


def order_of_motifs(rng, label, n=120):
    first, second = sorted(rng.choice(np.arange(10, n - 20, 15), 2, replace=False))
    if label:
        first, second = second, first
    x = rng.normal(0, 0.3, n)
    x[first : first + 10] += np.linspace(0, 1.5, 10)
    x[second : second + 10] += np.linspace(1.5, 0, 10)
    return x


def early_mark(rng, label, n=400):
    x = rng.normal(0, 0.5, n)
    x[5:15] += [-1.5, 1.5][label]
    return x


def unequal_lengths(rng, label):
    n = rng.integers(40, 160)
    return np.sin(np.arange(n) * [0.2, 0.35][label] + rng.uniform(0, 6.28)) + rng.normal(0, 0.8, n)


def one_of_six_channels(rng, label, n=70):
    x = rng.normal(0, 0.7, (6, n))
    x[label] += np.sin(np.arange(n) * 0.3 + rng.uniform(0, 6.28))
    return x


def chirp(rng, label, n=150):
    t = np.linspace(0, 1, n)
    rate = [t * 8, 8 * t + 10 * t**2, 18 * t - 10 * t**2][label]
    return np.sin(2 * np.pi * (rate + rng.uniform())) + rng.normal(0, 0.5, n)


def switching_regimes(rng, label, n=200):
    x, state = np.zeros(n), 1.0
    for t in range(n):
        if rng.uniform() < [0.03, 0.12][label]:
            state = -state
        x[t] = state + rng.normal(0, 0.8)
    return x


def phase_lag(rng, label, n=100):
    t, start = np.arange(n), rng.uniform(0, 6.28)
    return np.stack([np.sin(0.25 * t + start), np.sin(0.25 * t + start + [-0.8, 0.8][label])]) + rng.normal(0, 0.7, (2, n))


def intervals_of_spikes(rng, label, n=240):
    gaps = rng.integers(10, 14, 40) if label == 0 else 1 + rng.exponential(11, 60).astype(int)
    x, places = rng.normal(0, 0.2, n), np.cumsum(gaps)
    x[places[places < n]] += 1.5
    return x


def damping(rng, label, n=110):
    t = np.arange(n)
    return np.exp(-t * [0.01, 0.03, 0.06][label]) * np.sin(0.4 * t + rng.uniform(0, 6.28)) + rng.normal(0, 0.25, n)


def missing_beat(rng, label, n=180):
    t, beats = np.arange(n), list(np.arange(10, n, 20) + rng.integers(-2, 3))
    if label:
        beats.pop(rng.integers(2, len(beats) - 1))
    return sum(bump(t, beat, 2) for beat in beats) + rng.normal(0, 0.2, n)


def beats(rng, label, n=1500):
    of_class = np.random.default_rng(100 + label)
    period = of_class.uniform(40, 90) * rng.uniform(0.93, 1.07)
    cosines, sines = of_class.normal(size=(2, 4)) / np.arange(1, 5)
    phase = 2 * np.pi * (np.arange(n) / period + rng.uniform()) + 0.3 * np.cumsum(rng.normal(0, 0.05, n))
    wave = sum(cosines[k] * np.cos((k + 1) * phase) + sines[k] * np.sin((k + 1) * phase) for k in range(4))
    return wave + np.cumsum(rng.normal(0, 0.02, n)) + rng.normal(0, 0.2, n)


def cycles(rng, label, n=1460):
    """A machine that is switched on and off."""
    of_class = np.random.default_rng(200 + label)
    on, off = of_class.uniform(20, 150), of_class.uniform(20, 200)
    level, ripple, rise = of_class.uniform(0.5, 2), of_class.uniform(0, 0.4), of_class.uniform(1, 30)
    x, at = np.zeros(n), -int(rng.uniform(0, on + off))
    while at < n:
        steps = max(5, int(rng.normal(on, on * 0.15)))
        t = np.arange(max(at, 0), min(n, at + steps))
        x[t] = level * (1 - np.exp(-(t - at) / rise)) + ripple * np.sin((t - at) * (0.05 + 0.12 * (label % 5)))
        at += steps + max(5, int(rng.normal(off, off * 0.3)))
    return x * rng.uniform(0.8, 1.2) + rng.normal(0, 0.05, n)


def distance_of_marks(rng, label, n=2000):
    x, at = rng.normal(0, 0.4, n), rng.integers(50, 400)
    for place in (at, at + [500, 900, 1300][label]):
        x[place : place + 30] += np.hanning(30) * 2
    return x


def tones(rng, label, n=2000):
    return np.sin(np.arange(n) * [0.6, 1.0, 1.5, 2.2][label] * rng.uniform(0.95, 1.05) + rng.uniform(0, 6.28)) + rng.normal(0, 0.7, n)


def motif(rng, label, n=1600):
    t, at = np.linspace(0, 1, 60), rng.integers(100, n - 160)
    x = np.convolve(rng.normal(0, 1, n + 4), np.ones(5) / 5, "valid")
    x[at : at + 60] += 1.5 * [np.sin(2 * np.pi * t), np.sin(4 * np.pi * t), 2 * t - 1, np.sign(np.sin(6 * np.pi * t))][label]
    return x


def speed_of_return(rng, label, n=1300):
    x, back = np.zeros(n), [0.005, 0.02, 0.08][label]
    for t in range(1, n):
        x[t] = (1 - back) * x[t - 1] + rng.normal(0, np.sqrt(2 * back))
    return x + rng.normal(0, 0.5, n)


def duty_of_square_wave(rng, label, n=1500):
    phase = (np.arange(n) / rng.uniform(50, 200) + rng.uniform()) % 1
    return np.where(phase < [0.3, 0.45, 0.6, 0.75][label], 1.0, -1.0) * rng.uniform(0.5, 1.5) + rng.normal(0, 0.8, n)


# Name: family, classes, sequences to train on.
DEVELOPMENT = {
    "gen-frequency": (frequency, 4, 80),
    "gen-shape": (shape_of_wave, 3, 90),
    "gen-autoregression": (autoregression, 3, 150),
    "gen-place": (place_of_bump, 2, 40),
    "gen-number": (number_of_bumps, 4, 200),
    "gen-trend": (direction_of_trend, 2, 60),
    "gen-variance": (change_of_variance, 3, 120),
    "gen-correlation": (correlation, 3, 120),
    "gen-order": (order_of_motifs, 2, 100),
    "gen-early": (early_mark, 2, 60),
    "gen-lengths": (unequal_lengths, 2, 50),
    "gen-channel": (one_of_six_channels, 6, 120),
}
REPORTED = {
    "gen-chirp": (chirp, 3, 90),
    "gen-regimes": (switching_regimes, 2, 100),
    "gen-lag": (phase_lag, 2, 80),
    "gen-spikes": (intervals_of_spikes, 2, 80),
    "gen-damping": (damping, 3, 90),
    "gen-beat": (missing_beat, 2, 120),
}
# Long sequences, for which defaults were chosen after all of the above had been reported.
LONG_DEVELOPMENT = {
    "gen-long-beats": (beats, 20, 60),
    "gen-long-cycles": (cycles, 10, 100),
    "gen-long-marks": (distance_of_marks, 3, 90),
    "gen-long-tones": (tones, 4, 80),
}
LONG_REPORTED = {
    "gen-long-motif": (motif, 4, 80),
    "gen-long-return": (speed_of_return, 3, 90),
    "gen-long-duty": (duty_of_square_wave, 4, 80),
}
N_TEST = 300


def load(name):
    """Training and test part: lists of arrays [columns, steps] with their classes."""
    family, n_classes, n_train = (DEVELOPMENT | REPORTED | LONG_DEVELOPMENT | LONG_REPORTED)[name]
    # The later sets left the numbers of the earlier ones as they were.
    rng = np.random.default_rng([*sorted(DEVELOPMENT | REPORTED), *sorted(LONG_DEVELOPMENT | LONG_REPORTED)].index(name))
    parts = []
    for n in (n_train, N_TEST):
        labels = rng.permutation(np.arange(n) % n_classes)
        parts.append(([np.atleast_2d(family(rng, int(label))) for label in labels], [f"c{label}" for label in labels]))
    return parts
