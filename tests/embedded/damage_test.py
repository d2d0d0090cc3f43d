#!/usr/bin/env python3
"""Right answers prove something only if wrong arithmetic gives wrong ones: each convention of the file format, undone in
a copy of the embedded model, must spoil the answers.

Most of them leave no answer right, or a file that is refused. The gate of the shared expert is a matter of degree: with
the shared expert added whole the model says the same to most questions, so there the stricter of the two checks counts,
which llama_test.py applies to the model itself: fewer than 96 of 100 answers stay as they were.
"""

import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS / "oracle")]

from damage import DAMAGES, damaged_copy, shared_expert_gate
from questions import answers, contains, embedded_model, questions
from daemon import Daemon, DaemonError
from fixture import BUILD

LEAST_RIGHT = 0.75
MOST_RIGHT_WHEN_SPOILT = 0.25
SAME_SHARE = 0.96


def said(model):
    """The answers to all questions; none where the file is refused."""
    daemon = Daemon(BUILD, model)
    try:
        daemon.start()
    except DaemonError:
        return [""] * len(questions())
    try:
        return answers(daemon, [[item["question"]] for item in questions()])
    finally:
        daemon.abandon()  # what a damaged model's daemon says when it ends proves nothing


def share_right(texts):
    return sum(contains(text, item["any_of"]) for text, item in zip(texts, questions())) / len(texts)


class DamageTest(unittest.TestCase):
    def test_each_undone_convention_spoils_the_answers(self):
        whole = said(embedded_model())
        self.assertGreaterEqual(share_right(whole), LEAST_RIGHT)
        for name, damage in DAMAGES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "damaged.gguf")
                damaged_copy(embedded_model(), path, damage)
                spoilt = said(path)
                same = sum(a == b for a, b in zip(whole, spoilt)) / len(whole)
                print(f"{name}: {share_right(spoilt):.0%} right, {same:.0%} the same", file=sys.stderr)
                self.assertLess(same, SAME_SHARE)
                if damage is not shared_expert_gate:
                    self.assertLessEqual(share_right(spoilt), MOST_RIGHT_WHEN_SPOILT)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
