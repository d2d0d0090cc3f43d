#!/usr/bin/env python3
"""The Python client module, against a daemon."""

import signal
import sys
import threading
import time
import unittest

from daemon import Daemon
from fixture import BUILD, SOURCE, small_model

sys.path.insert(0, str(SOURCE / "ipc" / "python"))
import pantheon_client  # noqa: E402
from pantheon_client import Client, PantheonError, Token, Unreachable  # noqa: E402

CHAT = [{"role": "user", "content": "Hi"}]


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(BUILD, small_model(), "engine.slots = 2\n")
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__, None, None, None)

    def setUp(self):
        self.client = Client(self.daemon.endpoint)
        self.addCleanup(self.client.close)

    def test_generate_gives_the_whole_reply(self):
        reply = self.client.generate("Once", max_tokens=6, temperature=0, seed=3)
        self.assertIn(reply.finish, ("length", "stop"))
        self.assertIsInstance(reply.text, str)
        self.assertLessEqual(reply.usage.completion_tokens, 6)
        self.assertGreater(reply.usage.prompt_tokens, 0)
        self.assertEqual(reply.seed, 3)
        self.assertEqual(reply.text, self.client.generate("Once", max_tokens=6, temperature=0).text)

    def test_chat_renders_and_a_thinking_budget_bounds_the_reasoning(self):
        reply = self.client.chat(CHAT, max_tokens=40, thinking=True, thinking_budget=5, seed=1)
        self.assertLessEqual(reply.usage.reasoning_tokens, 5 + 4)
        self.assertGreater(self.client.chat(CHAT, max_tokens=3, thinking=False).usage.prompt_tokens, 3)

    def test_a_stream_gives_tokens_and_then_the_reply(self):
        with self.client.stream("Once", max_tokens=12, temperature=1, seed=5, logprobs=2) as stream:
            tokens = list(stream)
        self.assertTrue(all(isinstance(token, Token) for token in tokens))
        numbered = [token for token in tokens if token.token is not None]
        self.assertEqual([token.i for token in numbered], list(range(len(numbered))))
        self.assertEqual("".join(t.text for t in tokens if t.kind == "content"), stream.reply.text)
        self.assertTrue(all(t.logprob is not None and len(t.top) == 2 for t in numbered))
        self.assertEqual(stream.seed, 5)
        self.assertEqual(list(stream), [])

    def test_two_streams_on_one_connection_do_not_mix(self):
        alone = [self.client.generate("Once", max_tokens=30, seed=seed, temperature=1).text for seed in (1, 2)]
        streams = [self.client.stream("Once", max_tokens=30, seed=seed, temperature=1) for seed in (1, 2)]
        self.assertEqual([stream.reply.text for stream in reversed(streams)], alone[::-1])

    def test_leaving_a_stream_early_cancels_it(self):
        with self.client.stream("Once", max_tokens=3000) as stream:
            next(iter(stream))
        self.wait_until_idle()

    def test_cancel_ends_a_stream_with_what_it_had(self):
        stream = self.client.stream("Once", max_tokens=3000)
        first = next(iter(stream))
        stream.cancel()
        self.assertIn(stream.reply.finish, ("cancelled", "stop"))
        self.assertTrue(stream.reply.text.startswith(first.text))
        self.assertFalse(self.client.cancel("nothing of that name"))

    def test_a_refusal_is_an_error_with_its_code(self):
        for fields, words in (({"top_p": 7}, "top_p"), ({"no_such_field": 1}, "no_such_field")):
            with self.assertRaises(PantheonError) as caught:
                self.client.generate("x", **fields)
            self.assertEqual(caught.exception.code, "invalid_argument")
            self.assertIn(words, caught.exception.message)
        self.assertGreater(self.client.ping(), 0)  # and the connection lives

    def test_progress_is_heard_while_the_request_waits(self):
        holders = [self.client.stream("Once", max_tokens=3000, credit=1) for _ in range(2)]
        heard = []
        with self.client.stream("Wait", max_tokens=3, on_progress=heard.append) as stream:
            end = time.monotonic() + 30
            while not heard and time.monotonic() < end:
                self.client._receive(0.1)
                while self.client._events[stream.id]:
                    stream._step()
            self.assertEqual(heard[0].phase, "queued")
            for holder in holders:
                holder.close()
            self.assertIsNotNone(stream.reply)

    def test_the_other_operations(self):
        self.assertEqual(self.client.status()["state"], "ready")
        ids = self.client.tokenize("Hello, world")
        self.assertEqual(self.client.detokenize(ids), b"Hello, world")
        self.assertIn("Hi", self.client.template(CHAT))
        self.assertEqual(len(self.client.score(ids)["logprobs"]), len(ids))
        self.assertEqual(self.client.reload(dry_run=True)["applied"], [])

    def wait_until_idle(self):
        end = time.monotonic() + 20
        while self.client.status()["engines"][0]["slots"]["busy"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


class UnreachableTest(unittest.TestCase):
    def test_nobody_there_is_said_within_the_timeout(self):
        begin = time.monotonic()
        with self.assertRaises(Unreachable) as caught:
            Client("ipc:///nowhere/at.all", timeout_s=0.3)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn("/nowhere/at.all", caught.exception.message)

    def test_a_daemon_that_dies_ends_the_stream_with_an_error(self):
        with Daemon(BUILD, small_model()) as daemon, Client(daemon.endpoint) as client:
            stream = client.stream("Once", max_tokens=3000, credit=2)
            next(iter(stream))
            threading.Timer(0.3, daemon.signal, (signal.SIGKILL,)).start()
            with self.assertRaises(Unreachable):
                stream.reply
            daemon.process.wait()
            daemon.process = None


class ModuleTest(unittest.TestCase):
    def test_everything_public_is_documented(self):
        for name in pantheon_client.__all__:
            self.assertTrue(getattr(pantheon_client, name).__doc__, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
