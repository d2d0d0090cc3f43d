#!/usr/bin/env python3
"""Every weight type, expanded by us and by ggml's own to_float: the same bits for seeded random blocks.

All bytes are random, so scales take every value a half can have; where ggml answers NaN, ours must be NaN too.
Then the F32 expansion that make_model writes of a mixed file, tensor by tensor.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from gguf import GgufFile
from llama import GGML_TYPES, open_oracle
from programs import Programs

N_BLOCKS = 2000


def is_nan(bits):
    return bits & 0x7F800000 == 0x7F800000 and bits & 0x007FFFFF != 0


def n_differing(ours, theirs):
    """How many f32 values differ in bits, all NaNs being equal."""
    a, b = memoryview(ours).cast("I"), memoryview(theirs).cast("I")
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values against {len(b)}")
    return sum(1 for x, y in zip(a, b) if x != y and not (is_nan(x) and is_nan(y)))


def check_types(oracle, programs):
    """One row a type; how many are wrong."""
    failed = 0
    for type_name in GGML_TYPES:
        _, block_bytes = oracle.type_shape(type_name)
        blocks = random.Random(type_name).randbytes(N_BLOCKS * block_bytes)
        ours = programs.run("tests/dequantize_stdin", type_name, given=blocks)
        theirs = oracle.dequantize(type_name, blocks).tobytes()
        wrong = n_differing(ours, theirs)
        failed += wrong > 0
        print(f"{type_name:8} {len(theirs) // 4:8} values, {wrong} differ")
    print(f"{len(GGML_TYPES) - failed} of {len(GGML_TYPES)} weight types are bit-equal")
    return failed


def check_expansion(oracle, programs):
    """How many tensors make_model expands to other bits than ggml."""
    with tempfile.TemporaryDirectory(prefix="pantheon-oracle-") as folder:
        packed, expanded = Path(folder, "packed.gguf"), Path(folder, "expanded.gguf")
        programs.run("bin/make_model", packed, "--mix", "q3_k_m", "--tensor-type", "exps=IQ2_XS")
        programs.run("bin/make_model", "--expand-f32", packed, expanded)
        theirs, ours = GgufFile(packed, oracle.type_shape), GgufFile(expanded, oracle.type_shape)
        wrong = [
            name
            for name, tensor in theirs.tensors.items()
            if ours.tensors[name].type_name != "F32"
            or oracle.dequantize(tensor.type_name, tensor.data).tobytes() != ours.tensors[name].data
        ]
    print(f"make_model --expand-f32: {len(theirs.tensors)} tensors, {len(wrong)} differ {wrong[:3] or ''}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    programs = Programs(parser.parse_args().build)
    oracle = open_oracle()
    return 1 if check_types(oracle, programs) + check_expansion(oracle, programs) else 0


if __name__ == "__main__":
    sys.exit(main())
