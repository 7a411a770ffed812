"""Golden first values for crates/stream/src/rng.rs: ChaCha8 (64-bit counter, 64-bit stream) written out in plain Python."""
import struct

MASK = 0xFFFFFFFF


def quarter_round(x, a, b, c, d):
    for i, j, k, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[i] = (x[i] + x[j]) & MASK
        r = x[k] ^ x[i]
        x[k] = (r << n | r >> 32 - n) & MASK


def first_words(seed, purpose, index, part):
    key = struct.pack("<QQQ", seed, purpose, index) + b"minrnn/1"
    start = list(struct.unpack("<4I8I4I", b"expand 32-byte k" + key + struct.pack("<QQ", 0, part)))
    x = start[:]
    for _ in range(4):
        for i in range(4):
            quarter_round(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter_round(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(a + b) & MASK for a, b in zip(x, start)]


for name in ((0, 1, 0, 0), (42, 2, 7, 0), (42, 2, 7, 1), (2**64 - 1, 5, 2**64 - 1, 0)):
    low, high = first_words(*name)[:2]
    print(name, low | high << 32)
