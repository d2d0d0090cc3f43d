#!/usr/bin/env python3
"""Right answers prove something only if wrong arithmetic gives wrong ones: each convention of the file format, undone in
a copy of the embedded model, must spoil the answers that the model itself gets right."""

import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS / "oracle")]

from damage import DAMAGES, damaged_copy
from questions import embedded_model, questions, share_of_right_answers
from daemon import Daemon
from fixture import BUILD

N_QUESTIONS = 24
HIGHEST_SHARE = 0.25


def share(model):
    daemon = Daemon(BUILD, model)
    daemon.start()
    try:
        return share_of_right_answers(daemon, questions()[:N_QUESTIONS])
    finally:
        daemon.abandon()  # what a damaged model's daemon says when it ends proves nothing


class DamageTest(unittest.TestCase):
    def test_each_undone_convention_spoils_the_answers(self):
        whole = share(embedded_model())
        self.assertGreaterEqual(whole, 0.6)
        for name, damage in DAMAGES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "damaged.gguf")
                damaged_copy(embedded_model(), path, damage)
                spoilt = share(path)
                print(f"{name}: {spoilt:.0%} right, {whole:.0%} undamaged", file=sys.stderr)
                self.assertLessEqual(spoilt, HIGHEST_SHARE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
