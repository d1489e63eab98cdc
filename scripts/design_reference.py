#!/usr/bin/env python3
"""Write crates/batchquad/tests/data/design.json, against which random streams and designs are tested.

- unscrambled Sobol points and direction numbers: scipy.stats.qmc.Sobol, bits=32
- scrambled points: Owen's scrambling done level by level with Python integers, on scipy's digits
- random bits: ChaCha8 written from its description (D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008)
- normal quantiles: mpmath with 50 digits
- normals: the polar method with mpmath logarithms, on those bits

Points are stored as integers, in units of 2^-32 (unscrambled) and 2^-53 (scrambled).

    pip install scipy==1.17.1 mpmath==1.4.1 && python scripts/design_reference.py
"""

import json
from pathlib import Path

import mpmath
import numpy as np
import scipy
from scipy.stats import qmc

TARGET = Path(__file__).parent.parent / "crates/batchquad/tests/data/design.json"
MASK = 2**64 - 1
DIM = 256
mpmath.mp.dps = 50


def chacha8_words(key_words, nonce):
    """The 32-bit output words of ChaCha8 with a 64-bit block counter and a 64-bit nonce."""

    def rotate(x, k):
        return ((x << k) | (x >> (32 - k))) & 0xFFFFFFFF

    def quarter(x, a, b, c, d):
        for i, j, k, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[i] = (x[i] + x[j]) & 0xFFFFFFFF
            x[k] = rotate(x[k] ^ x[i], bits)

    block = 0
    while True:
        start = [int.from_bytes(b"expand 32-byte k"[4 * i : 4 * i + 4], "little") for i in range(4)]
        start += key_words + [block & 0xFFFFFFFF, block >> 32, nonce & 0xFFFFFFFF, nonce >> 32]
        x = list(start)
        for _ in range(4):
            for i in range(4):
                quarter(x, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        yield from ((a + b) & 0xFFFFFFFF for a, b in zip(x, start))
        block += 1


def stream(seed, purpose, counter):
    """64-bit outputs: two words each, the low one first."""
    key = [seed & 0xFFFFFFFF, seed >> 32, purpose & 0xFFFFFFFF, purpose >> 32, 0, 0, 0, 0]
    words = chacha8_words(key, counter)
    while True:
        low = next(words)
        yield low | next(words) << 32


def normals(bits, n):
    values = []
    while len(values) < n:
        a, b = (2 * mpmath.mpf(2 * (next(bits) >> 12) + 1) / 2**53 - 1 for _ in range(2))
        s = a * a + b * b
        if s < 1:
            values += [float(z * mpmath.sqrt(-2 * mpmath.log(s) / s)) for z in (a, b)]
    return values[:n]


def splitmix64(key, counter):
    z = (key + counter * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def scrambled(digits, key):
    """The odd multiple of 2^-53 at the end of a walk down the tree of digits, one coin a node."""
    node, out = 1, 0
    for level in range(32):
        digit = digits >> (31 - level) & 1
        out = 2 * out + (digit ^ (splitmix64(key, node) >> 63))
        node = 2 * node + digit
    return 2 * (out << 20 | splitmix64(key, node) >> 44) + 1


def integers(points):
    return (np.asarray(points) * 2.0**32).astype(np.uint64).tolist()


def sobol_reference():
    first = integers(qmc.Sobol(DIM, scramble=False, bits=32).random(64))
    sampler = qmc.Sobol(DIM, scramble=False, bits=32).fast_forward(1_000_003)
    # The Gray code of 0xAAAAAAAA is all ones: that point is the sum of every direction number there is.
    directions = qmc.Sobol(DIM, scramble=False, bits=32)._sv.astype(np.uint64)
    keys = stream(20, 1, 0)
    keys = [next(keys) for _ in range(DIM)]
    indices = [0, 1, 2, 3, 17, 63]
    dims = [0, 1, 2, 40, 255]
    return {
        "first_points_5d": [row[:5] for row in first],
        "point_63": first[63],
        "point_1000003": integers(sampler.random(1))[0],
        "point_aaaaaaaa": np.bitwise_xor.reduce(directions, axis=1).tolist(),
        "scrambled_seed": 20,
        "scrambled": [[i, j, scrambled(first[i][j], keys[j])] for i in indices for j in dims],
    }


def stream_reference():
    addresses = [(0, 1, 0), (1, 2, 0), (42, 5, 7), (MASK, 7, MASK)]
    rows = []
    for seed, purpose, counter in addresses:
        bits = stream(seed, purpose, counter)
        rows.append({
            "seed": seed,
            "purpose": purpose,
            "counter": counter,
            # More than the 32 outputs that fit in the generator's buffer.
            "bits": [next(bits) for _ in range(40)],
            "normals": normals(stream(seed, purpose, counter), 20),
        })
    return rows


def quantile_reference():
    grid = [2.0**-k for k in (53, 52, 50, 45, 40, 37, 36, 35, 30, 25, 20, 15, 10, 8, 6, 5)]
    grid += [1.3e-11, 1.4e-11, 0.0749, 0.075, 0.0751]
    grid += [i / 40 for i in range(1, 40) if i != 20] + [0.4999, 0.5 + 1e-9, 0.5 - 2.0**-53]
    grid += [1 - p for p in grid if p < 0.4]
    return [[p, float(mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1))] for p in grid]


def main():
    data = {
        "source": f"scripts/design_reference.py, scipy {scipy.__version__}, mpmath {mpmath.__version__}",
        "sobol": sobol_reference(),
        "streams": stream_reference(),
        "normal_quantile": quantile_reference(),
    }
    body = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in data.items())
    TARGET.write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
