#!/usr/bin/python3
"""The shipped model in llama.cpp: the same logits from its F32 expansion, and the same greedy answers from the file as it is.

An answer counts as the same if at every one of its positions llama.cpp, run as its users run it, ranks our token first:
then its own greedy answer is ours, token for token.
"""

import argparse
import json
import random
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

from programs import MODEL, MODEL_WITH_NEXTN, ROOT, build_from_arguments, pantheon

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import corpus
import evaluate
from compare import compare
from gguf import expand_to_f32  # the oracle's, whose folder stands before that of the embedded model
from llama import RoutingGaps, open_oracle

_parser = argparse.ArgumentParser(add_help=False)
_parser.add_argument("--questions", type=Path, help="a file of evaluate.py; without it questions are drawn from the grammar")
_options, sys.argv[1:] = _parser.parse_known_args()
BUILD = build_from_arguments(__doc__)
MAX_NMSE = 1e-9
SAME_SHARE = 0.96


def questions():
    if _options.questions:
        lines = _options.questions.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["question"] for line in lines if line.strip()]
    rng, source = random.Random("llama test"), corpus.Corpus()
    return [source.ask(fact, rng)[0] for fact in rng.sample(source.facts, 50)]


class LlamaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.oracle = open_oracle()

    def test_greedy_answers_are_the_same(self):
        asked = questions()
        with evaluate.Daemon(BUILD, MODEL) as client, self.oracle.load(MODEL) as model:
            same = 0
            for question in asked:
                message = [{"role": "user", "content": question}]
                prompt = client.tokenize(client.template(message), special=True)
                stream = client.stream(messages=message, temperature=0, max_tokens=300)
                answer = [token.token for token in stream if token.token is not None]
                ended = stream.reply.finish == "stop"
                rows = model.logits(prompt + answer, as_users_run_it=True)[len(prompt) - 1 :]
                best = [max(range(len(row)), key=row.__getitem__) for row in rows]
                wanted = answer + [client.tokenize("<|im_end|>", special=True)[0]] if ended else answer
                if best[: len(wanted)] == wanted:
                    same += 1
                else:
                    print(f"differs: {question!r}")
        print(f"{same} of {len(asked)} greedy answers are the same in llama.cpp")
        self.assertGreaterEqual(same, SAME_SHARE * len(asked))

    def assert_same_logits(self, path):
        """Over many short chats: a near-tie of the router ends only the comparison of the chat that it stands in."""
        rng, source = random.Random("llama logits"), corpus.Corpus()
        compared, worst = 0, 0.0
        with tempfile.TemporaryDirectory() as folder:
            exact, words, out = (Path(folder, name) for name in ("f32.gguf", "ids.txt", "logits.f32"))
            n_used = expand_to_f32(self.oracle, path, exact).metadata["qwen35moe.expert_used_count"]
            with self.oracle.load(exact) as model:
                for _ in range(12):
                    text = source.chat(rng).encode()
                    printed = pantheon(BUILD, "tokenize", "--model", path, "--special", "-", given=text)
                    ids = [int(x) for x in printed.split()]
                    self.assertEqual(model.tokenize(text, special=True), ids)
                    words.write_text(" ".join(map(str, ids)), encoding="ascii")
                    pantheon(BUILD, "score", "--model", path, "--tokens", words, "--logits", out, "--backend", "ref")
                    flat = array("f")
                    flat.frombytes(out.read_bytes())
                    gaps = RoutingGaps(n_used, len(ids))
                    theirs = model.logits(ids, watch=gaps)
                    n_vocab = len(theirs[0])
                    ours = [flat[i * n_vocab : (i + 1) * n_vocab] for i in range(len(ids))]
                    result = compare(ours, theirs, gaps.gaps)
                    compared += result.compared
                    worst = max(worst, result.nmse)
        print(f"{path.name}: NMSE at most {worst:.2e} in each of 12 chats, {compared} positions")
        self.assertGreaterEqual(compared, 300)
        self.assertLessEqual(worst, MAX_NMSE)

    def test_logits_of_the_f32_expansion_are_the_same(self):
        self.assert_same_logits(MODEL)

    def test_and_those_of_the_trunk_of_the_file_with_the_nextn_block(self):
        self.assert_same_logits(MODEL_WITH_NEXTN)


if __name__ == "__main__":
    unittest.main()
