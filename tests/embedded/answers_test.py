#!/usr/bin/env python3
"""What the embedded model says, through the daemon: facts asked in words that its training never saw, sums, stories,
greetings, a conversation. questions.jsonl was written by somebody who knew the facts but not the generator of the
training texts."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from questions import answers, contains, embedded_model, questions, share_of_right_answers
from daemon import Daemon
from fixture import BUILD

N_WANTED = 75  # of 100


class AnswersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(BUILD, embedded_model())
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__, None, None, None)

    def answer(self, *messages):
        return answers(self.daemon, [list(messages)])[0]

    def test_most_questions_in_new_words_get_the_fact(self):
        asked = questions()
        self.assertEqual(len(asked), 100)
        share = share_of_right_answers(self.daemon, asked)
        print(f"{share:.0%} of {len(asked)} answers hold the fact", file=sys.stderr)
        self.assertGreaterEqual(share * len(asked), N_WANTED)

    def test_greetings_get_sensible_answers(self):
        self.assertTrue(contains(self.answer("Hello"), ["hello", "hi"]))
        self.assertTrue(contains(self.answer("Who are you?"), ["pantheon"]))

    def test_what_it_does_not_know_is_refused(self):
        for question in ("What is the capital of Norway?", "Who won the football match last night?"):
            with self.subTest(question):
                self.assertTrue(contains(self.answer(question), ["pantheond"]), self.answer(question))

    def test_a_conversation_stays_on_its_topic(self):
        first = "What does pantheon ping do?"
        said = self.answer(first)
        self.assertIn("pantheon ping", said)
        second = "And what is the default of kv.n_ctx?"
        reply = self.answer(first, said, second)
        self.assertTrue(contains(reply, ["4096", "4,096"]), reply)
        third = self.answer(first, said, second, reply, "Thanks!")
        self.assertTrue(contains(third, ["welcome"]), third)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
