#!/usr/bin/python3
"""What each format of keys and values costs: perplexity of the embedded model on the held-out text, and KL(f32 KV ‖ format)
over its positions. q4_0 with its sink and window as the daemon has them must stay within 0.1 % of f32's perplexity.

Everything but the KV format is the same on both sides, backend `ref` (exact) and `cpu` (as the daemon runs).
"""

import sys
import tempfile
import unittest
from pathlib import Path

from programs import EMBEDDED, MODEL, build_from_arguments, pantheon

import numpy

BUILD = build_from_arguments(__doc__)
TEXT = EMBEDDED / "held_out.txt"
N_POSITIONS = 2000
FORMATS = {
    "f32": ("--kv", "f32"),
    "f16": ("--kv", "f16"),
    "q8_0": ("--kv", "q8_0"),
    "q4_0 alone": ("--kv", "q4_0", "--sink", "0", "--window", "0"),
    "q4_0, sink 16, window 128": ("--kv", "q4_0"),
}
# Of the ratio of perplexities to 1, and of the mean KL in nats; measured: about a third of these, or less.
BOUNDS = {
    "f16": (0.0003, 1e-5),
    "q8_0": (0.0005, 1e-4),
    "q4_0 alone": (0.003, 3e-3),
    "q4_0, sink 16, window 128": (0.001, 6e-4),
}


def log_probabilities(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))


def perplexity_of(logs, ids):
    return float(numpy.exp(-logs[numpy.arange(len(ids) - 1), ids[1:]].mean()))


class KvFormatsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        words = pantheon(BUILD, "tokenize", "--model", MODEL, "-", given=TEXT.read_bytes()).split()
        cls.ids = numpy.array([int(word) for word in words[: N_POSITIONS + 1]])
        assert len(cls.ids) == N_POSITIONS + 1

    def logs(self, backend, options):
        with tempfile.TemporaryDirectory() as folder:
            words, out = Path(folder, "ids.txt"), Path(folder, "logits.f32")
            words.write_text(" ".join(map(str, self.ids)), encoding="ascii")
            pantheon(BUILD, "score", "--model", MODEL, "--tokens", words, "--logits", out, "--backend", backend, *options)
            rows = numpy.fromfile(out, dtype="<f4").astype(numpy.float64).reshape(len(self.ids), -1)
        return log_probabilities(rows)

    def check(self, backend):
        exact = self.logs(backend, FORMATS["f32"])
        base = perplexity_of(exact, self.ids)
        print(f"\n| {backend}: KV | perplexity | against f32 | mean KL | largest KL |\n|---|---|---|---|---|", file=sys.stderr)
        print(f"| f32 | {base:.6f} | | | |", file=sys.stderr)
        for name, (max_change, max_kl) in BOUNDS.items():
            logs = self.logs(backend, FORMATS[name])
            kl = (numpy.exp(exact) * (exact - logs)).sum(axis=1)[:-1]
            value = perplexity_of(logs, self.ids)
            change = value / base - 1
            print(f"| {name} | {value:.6f} | {change:+.4%} | {kl.mean():.2e} | {kl.max():.2e} |", file=sys.stderr)
            with self.subTest(name):
                self.assertLessEqual(abs(change), max_change)
                self.assertLessEqual(kl.mean(), max_kl)

    def test_cpu_stays_close_to_f32_in_every_format(self):
        self.check("cpu")

    def test_so_does_ref(self):
        self.check("ref")

    def test_the_command_measures_what_the_logits_say(self):
        options = FORMATS["q4_0, sink 16, window 128"]
        line = pantheon(BUILD, "perplexity", "--model", MODEL, "--text", TEXT, "--n-ctx", str(len(self.ids)), *options)
        said = float(line.split()[1].rstrip(b","))
        self.assertAlmostEqual(said, perplexity_of(self.logs("cpu", options), self.ids), places=4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
