#!/usr/bin/env python3
"""Fits the polynomial of crates/kernels/src/gelu.rs: the tail of the normal distribution, relative error in the minimax sense.

For u >= 0:  1 - Phi(u) = exp(-u^2 / 2) * t * q(t),  t = 1 / (1 + SLOPE * u),  q of degree DEGREE.
Remez exchange on [0, HIGHEST] in 40-digit arithmetic; prints the error and the coefficients, lowest power first, in f32 digits.
Needs nothing beyond the standard library.
"""
import math
import struct
from decimal import Decimal, getcontext

SLOPE, DEGREE, HIGHEST, POINTS = 0.3, 7, 14.0, 1500
getcontext().prec = 40


def scaled_tail(u):
    """exp(u^2 / 2) * (1 - Phi(u)); by its continued fraction where erfc would lose digits."""
    if u < 3:
        return math.exp(u * u / 2) * math.erfc(u / math.sqrt(2)) / 2
    fraction = 0.0
    for k in range(400, 0, -1):
        fraction = k / (u + fraction)
    return 1 / (u + fraction) / math.sqrt(2 * math.pi)


def solve(matrix, right):
    """Gaussian elimination with pivoting."""
    n = len(right)
    rows = [row[:] + [y] for row, y in zip(matrix, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, n + 1):
                rows[r][c] -= factor * rows[i][c]
    x = [Decimal(0)] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][c] * x[c] for c in range(i + 1, n))) / rows[i][i]
    return x


def alternating_extrema(errors):
    """Indices of the largest error of each run of one sign."""
    extrema = []
    for i, e in enumerate(errors):
        if extrema and errors[extrema[-1]] * e > 0:
            if abs(e) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    return extrema


def fit():
    lowest = 1 / (1 + SLOPE * HIGHEST)
    ts = [lowest + (1 - lowest) * (1 - math.cos(math.pi * i / POINTS)) / 2 for i in range(POINTS)] + [1.0]
    wanted = [scaled_tail(max(0.0, (1 / t - 1) / SLOPE)) / t for t in ts]
    unknowns = DEGREE + 1
    nodes = [round(i * POINTS / unknowns) for i in range(unknowns + 1)]
    for _ in range(40):
        matrix = [
            [Decimal(ts[i]) ** k for k in range(unknowns)] + [Decimal((-1) ** j) * Decimal(wanted[i])] for j, i in enumerate(nodes)
        ]
        coefficients = [float(c) for c in solve(matrix, [Decimal(wanted[i]) for i in nodes])[:unknowns]]
        errors = [sum(c * t**k for k, c in enumerate(coefficients)) / w - 1 for t, w in zip(ts, wanted)]
        extrema = alternating_extrema(errors)
        while len(extrema) > unknowns + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if extrema == nodes or len(extrema) <= unknowns:
            break
        nodes = extrema
    return coefficients, max(abs(e) for e in errors)


def shortest_f32(x):
    """The fewest digits that read back as the nearest f32."""
    (nearest,) = struct.unpack("f", struct.pack("f", x))
    return next(s for s in (f"{nearest:.{d}g}" for d in range(6, 12)) if struct.unpack("f", struct.pack("f", float(s)))[0] == nearest)


if __name__ == "__main__":
    coefficients, error = fit()
    print(f"relative error {error:.2e}")
    print(", ".join(map(shortest_f32, coefficients)))
