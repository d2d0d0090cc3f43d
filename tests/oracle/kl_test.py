#!/usr/bin/env python3
"""How far quantised arithmetic is from exact: KL(exact ‖ cpu) against KL(exact ‖ llama.cpp), weight type by type.

exact is `pantheon score --backend ref`, f32 KV; `cpu` and llama.cpp run the file as it is with f16 KV, llama.cpp with
its default flash attention. Small synthetic models; the same positions on both sides. A type passes when the ratio of
the mean KLs is at most 1.15 and the lower 95 % bound of a paired bootstrap over runs of 20 positions (errors live on in
the state) is at most 1. The cpu logits of the first seed must also have the same bits for every thread count and chunk.

The models route by channels that no layer writes (make_model --router-gap wide), so that no expert flips: a single
flipped one outweighs the rounding of hundreds of positions, and the ratio would say who flipped, not who rounds better.
"""

import argparse
import math
import random
import sys
import tempfile
from array import array
from pathlib import Path

from gguf import GgufFile
from llama import GGML_TYPES, open_oracle
from programs import Programs

MAX_RATIO = 1.15
MAX_LOWER_BOUND = 1.0
N_RESAMPLES = 2000
RUN = 20  # consecutive positions that a resample keeps together
THREADS = (1, 2, 3)
CHUNKS = (1, 7, 64, 512)

# 256 columns in every matrix, so that each type fits everywhere; 3 layers, one of them attention.
SHAPE = (
    "--n-embd 256 --layers 3 --interval 3 --heads 4 --kv-heads 2 --head-dim 64 --rope-dim 32 --gdn-heads-k 2 "
    "--gdn-heads-v 4 --gdn-head-dim 64 --experts 16 --experts-used 4 --ff 256 --shared-ff 256 --vocab 300 --router-gap wide"
)


def log_softmax(row):
    largest = max(row)
    offset = largest + math.log(math.fsum(math.exp(x - largest) for x in row))
    return [x - offset for x in row]


def kl_of_rows(exact, other):
    """One KL(exact ‖ other) a position, in nats; the rows of exact are log-probabilities already."""
    if len(exact) != len(other):
        raise ValueError(f"{len(exact)} rows against {len(other)}")
    result = []
    for p_logs, logits in zip(exact, other):
        q_logs = log_softmax(logits)
        result.append(math.fsum(math.exp(p) * (p - q) for p, q in zip(p_logs, q_logs)))
    return result


def mean_ratio(pairs):
    """Mean of the first divided by mean of the second."""
    ours = math.fsum(pair[0] for pair in pairs)
    theirs = math.fsum(pair[1] for pair in pairs)
    return ours / theirs if theirs > 0 else (0.0 if ours <= 0 else math.inf)


def lower_bound(pairs, rng):
    """The lower end of the 95 % interval of the ratio when runs of positions are drawn anew, pairs kept together."""
    runs = [pairs[i : i + RUN] for i in range(0, len(pairs), RUN)]
    sums = [(math.fsum(p[0] for p in run), math.fsum(p[1] for p in run)) for run in runs]
    ratios = sorted(mean_ratio(rng.choices(sums, k=len(sums))) for _ in range(N_RESAMPLES))
    return ratios[N_RESAMPLES // 40]


class Scorer:
    """`pantheon score` on one model and one sequence of tokens."""

    def __init__(self, programs, folder, model, tokens, n_vocab):
        self._programs, self._model, self._n_vocab = programs, model, n_vocab
        self._ids, self._out = folder / "ids.txt", folder / "logits.f32"
        self._ids.write_text(" ".join(map(str, tokens)), encoding="ascii")

    def raw(self, backend, *options):
        """The bytes of all logits."""
        self._programs.run("bin/pantheon", "score", "--model", self._model, "--tokens", self._ids,
                           "--logits", self._out, "--backend", backend, *options)  # fmt: skip
        return self._out.read_bytes()

    def rows(self, backend, *options):
        values, n = array("f", self.raw(backend, *options)), self._n_vocab
        return [values[i : i + n] for i in range(0, len(values), n)]


def n_differing_settings(scorer):
    """How many settings of threads and chunk give other bits than the first."""
    outputs = [scorer.raw("cpu", "--threads", str(t), "--chunk", str(c)) for t in THREADS for c in CHUNKS]
    return sum(output != outputs[0] for output in outputs)


def measure(type_name, seed, args, oracle, programs, folder):
    """(KL of cpu, KL of llama.cpp) of each position, and how many settings gave other bits."""
    model_path = folder / "model.gguf"
    programs.run("bin/make_model", model_path, *SHAPE.split(),
                 "--type", type_name, "--seed", str(seed))  # fmt: skip
    model = GgufFile(model_path, oracle.type_shape)
    if type_name not in {tensor.type_name for tensor in model.tensors.values()}:
        raise RuntimeError(f"no {type_name} tensor in the model")
    n_vocab = len(model.metadata["tokenizer.ggml.tokens"])
    rng = random.Random(f"{type_name} {seed}")
    tokens = [rng.randrange(n_vocab) for _ in range(args.positions)]
    scorer = Scorer(programs, folder, model_path, tokens, n_vocab)
    exact = [log_softmax(row) for row in scorer.rows("ref", "--threads", "2")]
    ours = kl_of_rows(exact, scorer.rows("cpu", "--threads", "2"))
    with oracle.load(model_path) as loaded:
        theirs = kl_of_rows(exact, loaded.logits(tokens, as_users_run_it=True))
    return list(zip(ours, theirs)), n_differing_settings(scorer) if seed == 1 else 0


def run_type(type_name, args, oracle, programs):
    """Prints one row; whether it passed."""
    pairs, n_other_bits = [], 0
    for seed in range(1, args.seeds + 1):
        with tempfile.TemporaryDirectory(prefix="pantheon-kl-") as folder:
            more, other = measure(type_name, seed, args, oracle, programs, Path(folder))
        pairs += more
        n_other_bits += other
    n = len(pairs)
    ratio, bound = mean_ratio(pairs), lower_bound(pairs, random.Random(type_name))
    faults = []
    if not ratio <= MAX_RATIO:
        faults.append(f"ratio above {MAX_RATIO}")
    if not bound <= MAX_LOWER_BOUND:
        faults.append(f"lower bound above {MAX_LOWER_BOUND}")
    if n_other_bits:
        faults.append(f"{n_other_bits} settings of threads and chunk give other bits")
    ours, theirs = math.fsum(p[0] for p in pairs) / n, math.fsum(p[1] for p in pairs) / n
    print(f"{type_name:8} {n:9} {ours:11.3e} {theirs:11.3e} {ratio:7.3f} {bound:7.3f} {'; '.join(faults)}")
    sys.stdout.flush()
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    parser.add_argument("--types", nargs="+", default=list(GGML_TYPES), choices=list(GGML_TYPES), metavar="TYPE",
                        help="only these weight types")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=4, help="models a type (default 4)")
    parser.add_argument("--positions", type=int, default=500, help="tokens a model (default 500)")
    args = parser.parse_args()
    oracle, programs = open_oracle(), Programs(args.build)
    print(f"{'type':8} {'positions':>9} {'KL cpu':>11} {'KL llama':>11} {'ratio':>7} {'lower':>7}")
    passed = sum(run_type(name, args, oracle, programs) for name in args.types)
    print(f"{passed} of {len(args.types)} types: ratio ≤ {MAX_RATIO}, lower bound ≤ {MAX_LOWER_BOUND}, same bits")
    return 0 if passed == len(args.types) else 1


if __name__ == "__main__":
    sys.exit(main())
