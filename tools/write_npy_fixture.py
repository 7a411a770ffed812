"""Writes crates/minrnn/tests/fixtures/logits.npy, which our own writer of arrays is compared with byte by byte.

Run in the root of the repository: python3 tools/write_npy_fixture.py
"""

import numpy as np

ROWS = [[0.5, -1.0], [np.finfo(np.float32).max, 0.1], [-0.0, 3.0]]

np.save("crates/minrnn/tests/fixtures/logits.npy", np.array(ROWS, dtype="<f4"))
