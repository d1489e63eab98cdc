#!/usr/bin/env python3
"""Write the table of Sobol direction numbers, crates/batchquad/src/choose/design/directions.rs.

Source of the numbers: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections",
SIAM J. Sci. Comput. 30 (2008), their list new-joe-kuo-6.21201, as shipped with scipy
(scipy/stats/_sobol_direction_numbers.npz; written with scipy 1.17.1).

    pip install scipy && python scripts/sobol_directions.py
"""

from pathlib import Path

import numpy as np
import scipy

DIMENSIONS = 256
TARGET = Path(__file__).parent.parent / "crates/batchquad/src/choose/design/directions.rs"


def main():
    source = np.load(Path(scipy.__file__).parent / "stats/_sobol_direction_numbers.npz")
    rows = []
    # The first dimension is the van der Corput sequence, which has no polynomial.
    for polynomial, initial in zip(source["poly"][1:DIMENSIONS], source["vinit"][1:DIMENSIONS]):
        degree = int(polynomial).bit_length() - 1
        numbers = [int(m) for m in initial[:degree]]
        assert not initial[degree:].any()
        assert all(m % 2 == 1 and m < 2**k for k, m in enumerate(numbers, start=1))
        rows.append(f"    ({polynomial}, &{numbers}),\n")
    TARGET.write_text(
        "//! Primitive polynomials and initial direction numbers of the Sobol sequence, written by\n"
        "//! `scripts/sobol_directions.py`; do not edit.\n"
        "//!\n"
        "//! Source: S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30 (2008), list new-joe-kuo-6.21201, as shipped with scipy.\n"
        "\n"
        "/// For the second dimension and every later one: the primitive polynomial over GF(2) with all its coefficients as\n"
        "/// bits, and the odd numbers `m₁ … mₛ`, `s` its degree.\n"
        f"pub(super) const DIRECTIONS: [(u32, &[u32]); {len(rows)}] = [\n{''.join(rows)}];\n"
    )


if __name__ == "__main__":
    main()
