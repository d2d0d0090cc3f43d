#!/usr/bin/env python3
"""A chat of ten turns with the embedded model and kv.n_ctx = 16384: each turn evaluates what is new and the way to a
checkpoint, also after a restart, after other prompts have pushed everything out of memory, and after an edit; and every
answer has the bits of a cold run. The client names no session. PANTHEON_CHAT_TOKENS says how long the chat gets; the whole length is labelled soak."""

import os
import sys
import time
import unittest

from cache_test import common_prefix
from daemon import Daemon
from fixture import BUILD, SOURCE

N_TOKENS = int(os.environ.get("PANTHEON_CHAT_TOKENS", "1200"))
BYTES_FOR_LITTLE = 4000000  # a state of this model takes 250 kB and 140 bytes a token
EVERY = 1024  # sessions.every, the default
N_TURNS = 10
N_REPLY = 24
MODEL = SOURCE / "model" / "embedded" / "pantheon-tiny.gguf"
FACTS = (
    "The gardener wrote down what grows in the shade of a tree, how much rain fell in that week, "
    "and who of the neighbours came by to ask for a root of fern or a handful of moss. "
)


class Chat:
    """The conversation, and what the cache must hold because of it."""

    def __init__(self, client, n_tokens):
        self.client = client
        (self.start,) = client.call("tokenize", text="<|im_start|>", special=True)["tokens"]
        n_fact = len(client.call("tokenize", text=FACTS)["tokens"])
        self.n_facts = max(1, int((n_tokens / N_TURNS - 2 * N_REPLY) / n_fact))
        self.messages = [{"role": "system", "content": "You help a gardener. " + FACTS * 2}]
        self.seen, self.kept = [], set()

    def ask(self, number, text=None):
        question = text or f"Week {number}. " + FACTS * self.n_facts + "What grows there?"
        self.messages.append({"role": "user", "content": question})

    def prompt(self):
        return self.client.call("template", messages=self.messages, thinking=False)["tokens"]

    def expect(self, tokens):
        """(longest prefix in common with anything before, of these tokens the deepest that has been kept)"""
        shared = max((common_prefix(tokens, other) for other in self.seen), default=0)
        kept = [len(prefix) for prefix in self.kept if tuple(tokens[: len(prefix)]) == prefix]
        return shared, max((n for n in kept if n <= len(tokens) - 1), default=0)

    def remember(self, tokens, reply, shared, cached):
        marks = {i for i in range(1, len(tokens)) if tokens[i] == self.start}
        if len(tokens) - max(marks) > 16:
            marks.add(len(tokens) - 1)
        marks |= {len(tokens), shared} | set(range(EVERY, len(tokens) + 1, EVERY))
        self.kept.update(tuple(tokens[:at]) for at in marks if at > cached)
        # The last token of a reply is drawn and not evaluated.
        self.kept.add(tuple(tokens + reply[:-1]))
        self.seen.append(tokens + reply[:-1])


class LongChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cold = cls.start_daemon("sessions.bytes = 0\n")
        cls.cold_client = cls.cold.client()
        cls.cold_replies = {}

    @classmethod
    def tearDownClass(cls):
        cls.cold_client.__exit__()
        cls.cold.__exit__(None, None, None)

    @staticmethod
    def start_daemon(config):
        daemon = Daemon(BUILD, MODEL, "kv.n_ctx = 16384\n")
        with open(daemon.config_path, "a", encoding="utf-8") as file:
            file.write(config.replace("STATES", str(daemon.folder / "states")))
        daemon.start()
        return daemon

    def start(self, config):
        daemon = self.start_daemon(config + 'sessions.dir = "STATES"\nsessions.disk_bytes = 4000000000\n')
        self.addCleanup(daemon.__exit__, None, None, None)
        return daemon

    def tokens_of(self, client, **fields):
        """(usage, every token with its logprobs as they came)"""
        events = client.rest(client.send("generate", temperature=0.0, **fields), timeout_s=600)
        self.assertEqual(events[-1]["ev"], "done", events[-1])
        drawn = [(e["token"], e.get("logprob"), e.get("top")) for e in events if "token" in e]
        return events[-1]["usage"], drawn

    def turn(self, client, chat, grows=True, is_exact=True):
        """Sends the conversation; checks what was evaluated, and the answer against a cold run. is_exact: there is room
        for every state; otherwise some that are worth little may be missing."""
        tokens = chat.prompt()
        shared, want = chat.expect(tokens)
        usage, drawn = self.tokens_of(
            client, messages=chat.messages, thinking=False, max_tokens=N_REPLY, logprobs=3
        )
        self.assertEqual(usage["prompt_tokens"], len(tokens))
        if is_exact:
            self.assertEqual(usage["cached_tokens"], want)
        want = usage["cached_tokens"]
        self.assertLess(shared - want, EVERY, "never further than sessions.every from what is common")
        key = tuple(tokens)
        if key not in self.cold_replies:
            self.cold_replies[key] = self.tokens_of(
                self.cold_client, tokens=tokens, max_tokens=N_REPLY, logprobs=3, cache="off"
            )
        cold_usage, cold_drawn = self.cold_replies[key]
        self.assertEqual(cold_usage["cached_tokens"], 0)
        self.assertEqual(drawn, cold_drawn, "not the bits of a cold run")
        reply = [token for token, _, _ in drawn]
        chat.remember(tokens, reply, shared, want)
        if grows:
            chat.messages.append({"role": "assistant", "content": f"In week {len(chat.messages)}: fern and moss."})
        return want

    def talk(self, client, is_exact=True):
        chat = Chat(client, N_TOKENS)
        for number in range(N_TURNS):
            chat.ask(number)
            self.assertEqual(self.turn(client, chat, is_exact=is_exact) > 0, number > 0)
            self.settle(client)
        n_tokens = len(chat.prompt())
        self.assertGreater(n_tokens, N_TOKENS * 0.8)
        self.assertLess(n_tokens, N_TOKENS * 1.3)
        return chat

    def edit_second_message(self, client, chat, is_exact=True):
        """The client's first question, changed: what follows it is new, however well known."""
        chat.messages[1] = {"role": "user", "content": "Week 0, corrected. " + FACTS * chat.n_facts}
        cached = self.turn(client, chat, grows=False, is_exact=is_exact)
        self.assertLess(cached, len(chat.prompt()) / 4)

    def disk_bytes(self, daemon):
        return sum(file.stat().st_size for file in (daemon.folder / "states").glob("*.checkpoint"))

    def last_read(self, daemon):
        return max(file.stat().st_mtime_ns for file in (daemon.folder / "states").glob("*.checkpoint"))

    def settle(self, client):
        """What is being written is written."""
        before, end = None, time.monotonic() + 60
        while time.monotonic() < end:
            now = client.call("status")["cache"]["disk_bytes"]
            if now == before:
                return now
            before = now
            time.sleep(0.1)
        raise AssertionError("the disk does not come to rest")

    def test_ten_turns_an_edit_and_a_restart(self):
        daemon = self.start("sessions.bytes = 2000000000\n")
        with daemon.client() as client:
            chat = self.talk(client)
            messages = list(chat.messages)
            chat.ask(N_TURNS)
            self.turn(client, chat)
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        with daemon.client() as client:
            chat.client = client
            status = client.call("status")["cache"]
            self.assertEqual((status["bytes"], status["hits"]), (0, 0))
            self.assertEqual(status["disk_bytes"], self.disk_bytes(daemon))
            chat.ask(N_TURNS + 1)
            self.assertGreater(self.turn(client, chat), N_TOKENS * 0.8)
            chat.messages = messages
            chat.ask(N_TURNS + 2)
            self.edit_second_message(client, chat)
            status = client.call("status")["cache"]
            self.assertEqual((status["hits"], status["misses"]), (2, 0))

    def test_what_memory_has_lost_comes_from_disk(self):
        daemon = self.start(f"sessions.bytes = {BYTES_FOR_LITTLE}\n")
        with daemon.client() as client:
            chat = self.talk(client, is_exact=False)
            for number in range(8):
                prompt = [40 + (i * (number + 3)) % 200 for i in range(400)]
                self.tokens_of(client, tokens=prompt, max_tokens=1)
                self.settle(client)
                self.assertLessEqual(client.call("status")["cache"]["bytes"], BYTES_FOR_LITTLE)
            self.assertEqual(client.call("status")["cache"]["disk_bytes"], self.disk_bytes(daemon))
            before = self.last_read(daemon)
            chat.ask(N_TURNS)
            self.assertGreater(self.turn(client, chat, is_exact=False), N_TOKENS * 0.8)
            self.assertGreater(self.last_read(daemon), before, "no file has been read")
            chat.ask(N_TURNS + 1)
            self.edit_second_message(client, chat, is_exact=False)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
