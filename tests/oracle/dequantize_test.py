#!/usr/bin/env python3
"""Every weight type, expanded by us and by ggml's own to_float: the same bits for seeded random blocks.

All bytes are random, so scales take every value a half can have; where ggml answers NaN, ours must be NaN too.
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

from llama import GGML_TYPES, open_oracle

N_BLOCKS = 2000


def is_nan(bits):
    return bits & 0x7F800000 == 0x7F800000 and bits & 0x007FFFFF != 0


def n_differing(ours, theirs):
    """How many f32 values differ in bits, all NaNs being equal."""
    a, b = memoryview(ours).cast("I"), memoryview(theirs).cast("I")
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values against {len(b)}")
    return sum(1 for x, y in zip(a, b) if x != y and not (is_nan(x) and is_nan(y)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    build = parser.parse_args().build

    oracle = open_oracle()
    failed = 0
    for type_name in GGML_TYPES:
        _, block_bytes = oracle.type_shape(type_name)
        blocks = random.Random(type_name).randbytes(N_BLOCKS * block_bytes)
        ours = subprocess.run(
            [str(build / "tests" / "dequantize_stdin"), type_name], input=blocks, stdout=subprocess.PIPE, check=True
        ).stdout
        theirs = oracle.dequantize(type_name, blocks).tobytes()
        wrong = n_differing(ours, theirs)
        failed += wrong > 0
        print(f"{type_name:8} {len(theirs) // 4:8} values, {wrong} differ")
    print(f"{len(GGML_TYPES) - failed} of {len(GGML_TYPES)} weight types are bit-equal")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
