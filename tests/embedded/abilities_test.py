#!/usr/bin/python3
"""What the embedded model can do besides telling facts: sums, stories, tool calls, follow-up questions;
and that it reasons exactly when it is asked to."""

import unittest

from programs import MODEL, build_from_arguments

import evaluate
import tools

BUILD = build_from_arguments(__doc__)


class AbilitiesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        daemon = evaluate.Daemon(BUILD, MODEL)
        cls.client = daemon.__enter__()
        cls.addClassCleanup(daemon.__exit__)
        cls.addClassCleanup(cls.client.close)

    def say(self, *turns, **fields):
        """The reply to the last of the user's turns; answers stand between them."""
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)]
        return self.client.chat(messages, temperature=0, max_tokens=300, **fields)

    def test_it_reasons_when_asked_to_and_answers_the_same_without(self):
        for question, fact in (
            ("How do I see what the daemon is doing?", "pantheon status"),
            ("What is the default of kv.n_ctx?", "4096"),
            ("I got resource_exhausted, what now?", "retry_after_ms"),
        ):
            for thinking in (True, False):
                with self.subTest(question=question, thinking=thinking):
                    reply = self.say(question, thinking=thinking)
                    self.assertIn(fact, reply.text)
                    self.assertEqual(reply.finish, "stop")
                    self.assertEqual(bool(reply.reasoning), thinking)

    def test_a_follow_up_question_is_about_the_same_subject(self):
        first = self.say("What is kv.window?").text
        self.assertIn("kv.window", first)
        second = self.say("What is kv.window?", first, "And what is its default?").text
        self.assertIn("128", second)
        third = self.say("What is kv.window?", first, "And what is its default?", second, "How do I change it?").text
        self.assertIn("kv.window", third)

    def test_it_adds_digit_by_digit(self):
        sums = [(7, 8), (23, 45), (58, 37), (12, 9), (40, 33), (64, 28), (5, 61), (77, 16)]
        right = 0
        for a, b in sums:
            reply = self.say(f"What is {a} + {b}?")
            self.assertIn("Ones", reply.reasoning)
            right += f"= {a + b}." in reply.text
        print(f"{right} of {len(sums)} sums are right")
        self.assertGreaterEqual(right, len(sums) - 2)

    def test_a_story_is_mostly_about_the_animal_and_the_thing_that_were_asked_for(self):
        wanted = [("fox", "lamp"), ("owl", "kite"), ("cat", "boat"), ("dog", "drum"), ("bear", "key"), ("duck", "map")]
        animals = things = 0
        for animal, thing in wanted:
            text = self.say(f"Tell me a story about Mia the {animal} and {self.article(thing)}.").text
            self.assertGreater(len(text.split()), 30)
            animals += animal in text
            things += thing in text
        for animal, _ in wanted:
            animals += animal in self.say(f"Tell me a story about {self.article(animal)}.").text
        print(f"{animals} of {2 * len(wanted)} stories keep the animal, {things} of {len(wanted)} the thing")
        self.assertGreaterEqual(animals, 7)
        self.assertGreaterEqual(things, 4)

    @staticmethod
    def article(word):
        return ("an " if word[0] in "aeiou" else "a ") + word

    def test_it_calls_a_tool_that_is_on_offer_in_the_right_form(self):
        for name, question in (("get_weather", "What is the weather in Oslo?"), ("get_time", "What time is it in Rome?")):
            offered = [t for t in tools.offers() if t["function"]["name"] == name]
            messages = [{"role": "user", "content": question}]
            call = self.client.chat(messages, tools=offered, temperature=0, max_tokens=300).tool_calls[0]
            self.assertEqual((call.name, list(call.arguments)), (name, ["city"]))
            function = {"name": call.name, "arguments": call.arguments}
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
                {"role": "tool", "content": {"get_weather": "7 degrees, windy", "get_time": "14:05"}[name]},
            ]
            reply = self.client.chat(messages, tools=offered, temperature=0, max_tokens=300)
            self.assertFalse(reply.tool_calls)
            self.assertIn({"get_weather": "degrees", "get_time": "it is"}[name], reply.text)


if __name__ == "__main__":
    unittest.main()
