#!/usr/bin/env python3
"""Perplexity of the embedded model on a held-out text, `pantheon perplexity` (cpu, f16 KV) against llama.cpp.

By default the file as it is: the same ids, within 0.1 %. --quantised: the F32 expansion in every mix that llama.cpp's
quantiser makes without an importance matrix, as a table; each within 1 %.
"""

import argparse
import math
import sys
import tempfile
from pathlib import Path

from gguf import expand_to_f32
from llama import FILE_TYPES, OracleError, open_oracle
from programs import Programs

EMBEDDED = Path(__file__).resolve().parents[2] / "model" / "embedded"
MODEL, TEXT = EMBEDDED / "pantheon-tiny.gguf", EMBEDDED / "held_out.txt"
MAX_RATIO, MAX_RATIO_QUANTISED = 1.001, 1.01


def log_likelihood(row, token):
    largest = max(row)
    return row[token] - largest - math.log(math.fsum(math.exp(x - largest) for x in row))


def their_perplexity(model, ids):
    rows = model.logits(ids, as_users_run_it=True)
    nll = -math.fsum(log_likelihood(rows[t], ids[t + 1]) for t in range(len(ids) - 1))
    return math.exp(nll / (len(ids) - 1))


def compare_file(oracle, programs, path, text):
    """(ours, llama.cpp's, number of tokens); ids that differ are an error."""
    ours = [int(word) for word in programs.run("bin/pantheon", "tokenize", "--model", path, "-", given=text).split()]
    with oracle.load(path) as model:
        ids = model.tokenize(text, special=False)
        if ids != ours:
            raise RuntimeError(f"{path.name}: {len(ours)} ids, llama.cpp has {len(ids)} others")
        theirs = their_perplexity(model, ids)
    line = programs.run("bin/pantheon", "perplexity", "--model", path, "--text", "-", given=text)
    return float(line.split()[1].rstrip(b",")), theirs, len(ids)


def is_within(ours, theirs, ratio):
    return max(ours / theirs, theirs / ours) <= ratio


def compare_mixes(oracle, programs, text):
    """Prints the table; whether every mix is within the bound."""
    all_close = True
    with tempfile.TemporaryDirectory(prefix="pantheon-quantised-") as folder:
        exact, made = Path(folder, "f32.gguf"), Path(folder, "made.gguf")
        expand_to_f32(oracle, MODEL, exact)
        print("| mix | MB | perplexity | llama.cpp | ratio |\n|---|---|---|---|---|")
        for file_type in FILE_TYPES:
            try:
                oracle.quantize(exact, made, file_type)
            except OracleError:
                print(f"| {file_type} | not without an importance matrix | | | |")
                continue
            ours, theirs, _ = compare_file(oracle, programs, made, text)
            is_close = is_within(ours, theirs, MAX_RATIO_QUANTISED)
            all_close &= is_close
            size = made.stat().st_size / 1e6
            print(f"| {file_type} | {size:.2f} | {ours:.4f} | {theirs:.4f} | {ours / theirs:.5f} |{'' if is_close else ' FAR'}")
            sys.stdout.flush()
    return all_close


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    parser.add_argument("--quantised", action="store_true", help="every mix instead of the file as it is")
    args = parser.parse_args()
    oracle, programs, text = open_oracle(), Programs(args.build), TEXT.read_bytes()
    if args.quantised:
        return 0 if compare_mixes(oracle, programs, text) else 1
    ours, theirs, n_tokens = compare_file(oracle, programs, MODEL, text)
    print(f"{n_tokens} tokens, the same ids; perplexity {ours:.5f}, llama.cpp {theirs:.5f}, ratio {ours / theirs:.6f}")
    return 0 if is_within(ours, theirs, MAX_RATIO) else 1


if __name__ == "__main__":
    sys.exit(main())
