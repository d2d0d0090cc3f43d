#!/usr/bin/python3
"""The PyTorch network that trained the embedded model, on the shipped weights in double precision, against
`pantheon score --backend ref`; and the same network on the synthetic weights of the golden fixture, nextn block included.

Both were written from the same formulas and from nothing else in common.
"""

import math
import random
import tempfile
import unittest
from pathlib import Path

from programs import MODEL, MODEL_WITH_NEXTN, build_from_arguments, pantheon

import corpus
import export
import gguf
import network
import numpy
import tokenizer
import torch

BUILD = build_from_arguments(__doc__)
MAX_NMSE = 1e-6  # ref computes in f32, PyTorch here in f64; measured 6e-14
N_POSITIONS = 320


def nmse(ours, theirs):
    """With each row's mean removed: a constant added to all logits changes no probability."""
    a = ours - ours.mean(axis=1, keepdims=True)
    b = theirs - theirs.mean(axis=1, keepdims=True)
    return float(((a - b) ** 2).sum() / (b**2).sum())


def chats(seed):
    rng, source = random.Random(seed), corpus.Corpus()
    return source.long_chat(rng) + "".join(source.chat(rng) for _ in range(12))


class ShippedModelTest(unittest.TestCase):
    def assert_same_logits(self, path, chunk):
        text = chats(f"forward test {path.name}")
        ids = [int(x) for x in pantheon(BUILD, "tokenize", "--model", path, "--special", "-", given=text.encode()).split()]
        ids = ids[:N_POSITIONS]
        self.assertEqual(len(ids), N_POSITIONS)
        config, parameters = export.read(path, torch.float64)
        net = network.Network(config, parameters, chunk)
        theirs = net.logits(net.hidden(torch.tensor([ids])))[0].numpy()
        with tempfile.TemporaryDirectory() as folder:
            words, out = Path(folder, "ids.txt"), Path(folder, "logits.f32")
            words.write_text(" ".join(map(str, ids)), encoding="ascii")
            pantheon(BUILD, "score", "--model", path, "--tokens", words, "--logits", out, "--backend", "ref")
            ours = numpy.fromfile(out, dtype="<f4").astype(numpy.float64).reshape(len(ids), config.n_vocab)
        error = nmse(ours, theirs)
        print(f"{path.name}: NMSE {error:.2e} over {len(ids)} positions")
        self.assertLessEqual(error, MAX_NMSE)
        self.assertTrue((ours.argmax(axis=1) == theirs.argmax(axis=1)).mean() > 0.99)

    def test_ref_gives_the_logits_of_the_pytorch_network_token_by_token(self):
        self.assert_same_logits(MODEL, chunk=0)

    def test_so_does_the_network_in_chunks_and_on_the_file_with_the_nextn_block(self):
        self.assert_same_logits(MODEL_WITH_NEXTN, chunk=64)


class NextnTest(unittest.TestCase):
    def test_the_nextn_block_mostly_drafts_what_the_trunk_says(self):
        config, parameters = export.read(MODEL_WITH_NEXTN)
        merges = gguf.Reader(MODEL_WITH_NEXTN).metadata["tokenizer.ggml.merges"]
        back = {shown: byte for byte, shown in tokenizer.ALPHABET.items()}
        tok = tokenizer.Tokenizer([tuple(bytes(back[c] for c in half) for half in m.split(" ")) for m in merges])
        ids, weights = corpus.Rows(corpus.Corpus(), tok).draw("nextn test", 12, 256)
        tokens = torch.tensor(ids)[:, :-1]
        net = network.Network(config, parameters)
        with torch.no_grad():
            hidden = net.hidden(tokens)
            said = net.logits(hidden).argmax(-1)
            drafted = net.logits(net.nextn_hidden(tokens, hidden)).argmax(-1)
        in_answers = torch.tensor(weights)[:, 1:] >= corpus.PLAIN[0]
        share = (said == drafted)[in_answers].double().mean().item()
        print(f"first drafts that the trunk takes: {share:.1%} of {int(in_answers.sum())}")
        self.assertGreaterEqual(share, 0.8)


def golden_value(name, index):
    """Element `index` of the golden fixture's tensor `name`, by its formula (FNV-1a of the name, splitmix64 from there)."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    z = (state + index + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    unit = ((z ^ z >> 31) >> 40) / 2**24
    mean, amplitude = next((m, a) for ending, m, a in GOLDEN_SCALES if name.endswith(ending))
    return numpy.float32(mean + amplitude * (2 * unit - 1))


GOLDEN_SCALES = (
    ("token_embd.weight", 0, 1),
    ("ssm_a", -0.75, 0.5),
    ("ssm_dt.bias", -1, 1),
    ("attn_q_norm.weight", 1.5, 0.5),
    ("attn_k_norm.weight", 1.5, 0.5),
    ("norm.weight", 1, 0.5),
    ("ssm_conv1d.weight", 0, 0.75),
    ("attn_q.weight", 0, 0.5),
    ("attn_k.weight", 0, 0.5),
    ("ffn_gate_inp.weight", 0, 0.5),
    ("", 0, 0.25),
)
GOLDEN_TOKENS = [156, 116, 25, 118, 35, 185, 249, 170, 90, 49, 12, 207, 138, 27, 135, 128]
# Logits 0 to 7 at the last position, and MTP logits 0 to 7 at the first and the last, from an independent float64
# transcription that llama.cpp reproduces within 2.5e-5.
GOLDEN_LOGITS = [0.79999, 0.32713, 0.45118, 0.73660, 2.26457, -0.07928, -0.01013, 0.92781]
GOLDEN_NEXTN_FIRST = [-0.89054, -0.13129, 0.49590, -1.11781, -0.01162, -0.31690, -0.57266, -0.34601]
GOLDEN_NEXTN_LAST = [-0.00463, -0.61926, -1.84404, -0.83708, -0.29308, 2.20298, 1.09117, 1.06085]


class GoldenFixtureTest(unittest.TestCase):
    CONFIG = network.Config(
        n_vocab=300, n_embd=64, nextn=1, head_dim=32, rope_dim=16, rope_base=1e7, gdn_head_dim=16, gdn_n_head_k=2,
        gdn_n_head_v=4, n_expert=8, n_expert_used=2, n_ff_exp=32, n_ff_shexp=32,
    )  # fmt: skip

    @classmethod
    def setUpClass(cls):
        parameters = {}
        for name, shape in network.shapes(cls.CONFIG).items():
            name = name.removesuffix("_log") if name.endswith("ssm_a_log") else name
            values = [golden_value(name, i) for i in range(math.prod(shape))]
            parameters[name] = torch.tensor(numpy.array(values)).reshape(shape).double()
        cls.net = network.Network(cls.CONFIG, parameters, chunk=0)
        cls.tokens = torch.tensor([GOLDEN_TOKENS])
        cls.hidden = cls.net.hidden(cls.tokens)

    def assert_close(self, row, golden):
        for ours, theirs in zip(row[: len(golden)].tolist(), golden):
            self.assertAlmostEqual(ours, theirs, delta=2e-5)

    def test_trunk_logits_are_the_golden_ones(self):
        self.assert_close(self.net.logits(self.hidden)[0, -1], GOLDEN_LOGITS)

    def test_nextn_logits_are_the_golden_ones(self):
        logits = self.net.logits(self.net.nextn_hidden(self.tokens, self.hidden))[0]
        self.assert_close(logits[0], GOLDEN_NEXTN_FIRST)
        self.assert_close(logits[-1], GOLDEN_NEXTN_LAST)

    def test_a_chunk_gives_what_single_tokens_give(self):
        in_chunks = network.Network(self.CONFIG, self.net.parameters, chunk=8)
        self.assertLess((in_chunks.hidden(self.tokens) - self.hidden).abs().max().item(), 1e-12)


if __name__ == "__main__":
    unittest.main()
