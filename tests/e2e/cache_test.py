#!/usr/bin/env python3
"""The prefix cache from outside: how many tokens of a prompt come from it, and that no answer changes."""

import sys
import time
import unittest

from daemon import Daemon
from fixture import BUILD, embedded_model, small_model

CONFIG = "kv.n_ctx = 4096\nsessions.every = 64\nsessions.bytes = 100000000\n"


def common_prefix(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


class CacheTest(unittest.TestCase):
    def start(self, config=CONFIG, model=None):
        daemon = Daemon(BUILD, model or small_model(), config)
        daemon.start()
        self.addCleanup(daemon.__exit__, None, None, None)
        client = daemon.client()
        self.addCleanup(client.__exit__)
        return client

    def setUp(self):
        self.client = self.start()

    def answer(self, client=None, **fields):
        """The done event of a greedy request, with the ids of its tokens as `tokens`."""
        client = client or self.client
        events = client.generate(temperature=0.0, **{"max_tokens": 8, **fields})
        self.assertEqual(events[-1]["ev"], "done", events[-1])
        return {**events[-1], "tokens": [event["token"] for event in events if "token" in event]}

    def prompt(self, messages):
        return self.client.call("template", messages=messages, thinking=False)["tokens"]

    def message_ends(self, tokens):
        (start,) = self.client.call("tokenize", text="<|im_start|>", special=True)["tokens"]
        return [i for i in range(1, len(tokens)) if tokens[i] == start]

    def test_a_chat_of_ten_turns_evaluates_what_is_new_and_the_way_to_a_checkpoint(self):
        cold = self.start("sessions.bytes = 0\nkv.n_ctx = 4096\n")
        bias = self.client.without_end()
        messages = [{"role": "system", "content": "You are a gardener. " * 8}]
        seen, kept = [], set()

        def turn():
            """Sends the conversation; checks counts and text; keeps what the cache must hold from here on."""
            tokens = self.prompt(messages)
            shared = max((common_prefix(tokens, other) for other in seen), default=0)
            want = max((at for at in kept_prefixes(tokens) if at <= len(tokens) - 1), default=0)
            fields = {"messages": messages, "thinking": False, "logit_bias": bias, "max_tokens": 12}
            done = self.answer(**fields)
            usage = done["usage"]
            self.assertEqual((usage["prompt_tokens"], usage["cached_tokens"]), (len(tokens), want))
            self.assertLess(shared - want, 64, "never further than sessions.every from what is common")
            self.assertEqual(done["text"], self.answer(cold, **fields)["text"])
            marks = set(self.message_ends(tokens)) | set(range(64, len(tokens) + 1, 64)) | {len(tokens), shared}
            if len(tokens) >= 256 and len(tokens) - self.message_ends(tokens)[-1] > 16:
                marks.add(len(tokens) - 1)
            kept.update(tuple(tokens[:at]) for at in marks if at > want)
            seen.append(tokens)
            return usage["cached_tokens"]

        def kept_prefixes(tokens):
            return [len(prefix) for prefix in kept if tuple(tokens[: len(prefix)]) == prefix]

        for number in range(10):
            messages.append({"role": "user", "content": f"Question {number}: what grows in the shade of a tree?"})
            # The reply's own end is kept too, but what is sent back is another text, so that it serves nobody.
            self.assertEqual(turn() > 0, number > 0)
            messages.append({"role": "assistant", "content": f"Fern number {number}, and moss."})
        messages.pop()
        # The client edits its first question: everything after it is new.
        messages[1] = {"role": "user", "content": "Question 0, edited: what grows on a wall?"}
        edited = turn()
        self.assertGreater(edited, 0)
        self.assertLess(edited, len(self.prompt(messages[:2])) - 10)

    def test_a_repeated_prompt_evaluates_one_token(self):
        tokens = [65 + i % 26 for i in range(300)]
        first, second = self.answer(tokens=tokens), self.answer(tokens=tokens)
        self.assertEqual(first["usage"]["cached_tokens"], 0)
        self.assertEqual(second["usage"]["cached_tokens"], 299)
        self.assertEqual(first["text"], second["text"])

    def test_an_arbitrary_shared_prefix_hits_from_the_third_request_on(self):
        prefix = [70 + i % 20 for i in range(50)]
        counts = [self.answer(tokens=prefix + [40 + i, 41])["usage"]["cached_tokens"] for i in range(4)]
        self.assertEqual(counts, [0, 0, 50, 50])

    def test_off_neither_reads_nor_feeds(self):
        tokens = [66 + i % 24 for i in range(200)]
        for _ in range(2):
            self.assertEqual(self.answer(tokens=tokens, cache="off")["usage"]["cached_tokens"], 0)
        self.assertEqual(self.client.call("status")["cache"]["bytes"], 0)
        self.assertEqual(self.answer(tokens=tokens)["usage"]["cached_tokens"], 0)

    def test_status_shows_what_the_cache_takes_and_serves(self):
        tokens = [66 + i % 24 for i in range(200)]
        self.answer(tokens=tokens)
        self.answer(tokens=tokens + [67])
        cache = self.client.call("status")["cache"]
        self.assertEqual((cache["hits"], cache["misses"], cache["limit_bytes"]), (1, 1, 100000000))
        self.assertGreater(cache["bytes"], 0)
        self.assertEqual(self.client.call("status")["tokens"]["cached"], 200)

    def test_a_budget_for_little_is_never_exceeded(self):
        client = self.start("kv.n_ctx = 1024\nsessions.bytes = 3000000\n")
        for i in range(20):
            self.answer(client, tokens=[60 + (i * j) % 50 for j in range(1, 400)])
            self.assertLessEqual(client.call("status")["cache"]["bytes"], 3000000)
        self.assertGreater(client.call("status")["cache"]["bytes"], 0)

    def test_sessions_are_named_listed_and_dropped(self):
        self.answer(tokens=[65] * 40, session="talk")
        (session,) = self.client.call("sessions")["sessions"]
        self.assertEqual((session["session"], session["own"]), ("talk", True))
        self.assertGreaterEqual(session["tokens"], 40)
        self.assertEqual(self.client.call("sessions", cache="shared")["sessions"], [])
        self.assertEqual(self.client.call("session.drop", session="talk")["dropped"], True)
        self.assertEqual(self.client.call("session.drop", session="talk")["code"], "not_found")
        self.assertEqual(self.client.call("sessions")["sessions"], [])
        refused = self.client.call("generate", tokens=[65], session="x", cache="off")
        self.assertEqual(refused["code"], "invalid_argument")

    def test_a_saved_session_serves_after_a_restart_of_the_daemon(self):
        daemon = Daemon(BUILD, small_model())
        self.addCleanup(daemon.__exit__, None, None, None)
        states = daemon.folder / "states"
        with open(daemon.config_path, "a", encoding="utf-8") as config:
            config.write(f'{CONFIG}sessions.dir = "{states}"\n')
        daemon.start()
        tokens = [65 + i % 26 for i in range(200)]
        with daemon.client() as client:
            first = self.answer(client, tokens=tokens, session="talk")
            saved = client.call("session.save", session="talk")
            self.assertGreaterEqual(saved["tokens"], len(tokens))
            self.assertGreater(client.call("status")["cache"]["disk_bytes"], 0)
        more = tokens + first["tokens"] + [67]
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        with daemon.client() as client:
            (session,) = self.wait_for_sessions(client)
            self.assertEqual((session["session"], session["loaded"], session["saved"]), ("talk", True, True))
            again = self.answer(client, tokens=more)
            self.assertEqual(again["usage"]["cached_tokens"], saved["tokens"])
            self.assertEqual(again["text"], self.answer(client, tokens=more, cache="off")["text"])
            self.assertEqual(client.call("session.drop", session="talk")["dropped"], True)
        self.assertEqual(list(states.glob("*.state")), [])

    def test_states_in_f16_take_less_and_the_replies_that_go_on_from_one_say_so(self):
        messages = [{"role": "user", "content": "Tell me a story about a fox who lives near the river."}]
        fields = {"messages": messages, "thinking": False, "max_tokens": 40}
        found = {}
        for name, more in (("f32", ""), ("f16", "sessions.f16 = true\n")):
            client = self.start(CONFIG + more, embedded_model())
            first = self.answer(client, **fields)
            bytes_of_states = client.call("status")["cache"]["bytes"]
            messages_2 = messages + [{"role": "assistant", "content": first["text"]}, {"role": "user", "content": "And then?"}]
            second = self.answer(client, **{**fields, "messages": messages_2})
            without = self.answer(client, **{**fields, "messages": messages_2}, cache="off")
            self.assertEqual(client.call("status")["cache"]["states"], name)
            self.assertEqual((first["usage"]["cached_tokens"], first["notes"]), (0, []))
            self.assertGreater(second["usage"]["cached_tokens"], 0)
            self.assertEqual((without["usage"]["cached_tokens"], without["notes"]), (0, []))
            self.assertEqual(second["notes"], ["cached_f16"] if name == "f16" else [])
            found[name] = (bytes_of_states, first["tokens"], without["tokens"], second["tokens"])
        self.assertEqual(found["f16"][1:3], found["f32"][1:3], "what does not go on from one is as ever")
        self.assertEqual(found["f32"][3], found["f32"][2], "and with f32 so is what does")
        self.assertLess(found["f16"][0], 0.75 * found["f32"][0], "KV and tokens take as much as before")

    def test_what_was_written_with_the_other_setting_of_f16_is_left_alone_and_not_used(self):
        daemon = Daemon(BUILD, embedded_model())
        self.addCleanup(daemon.__exit__, None, None, None)
        states = daemon.folder / "states"
        plain = daemon.config_path.read_text(encoding="utf-8") + f'{CONFIG}sessions.dir = "{states}"\n'
        tokens = [65 + i % 26 for i in range(200)]
        sizes = {}
        for is_f16 in (False, True):
            daemon.config_path.write_text(plain + ("sessions.f16 = true\n" if is_f16 else ""), encoding="utf-8")
            daemon.start()
            with daemon.client() as client:
                self.assertEqual(client.call("sessions")["sessions"], [], "the other one's are not its own")
                done = self.answer(client, tokens=tokens, session="talk")
                self.assertEqual(done["usage"]["cached_tokens"], 0, "nor is what was spilled")
                before = set(states.glob("*.state")) if states.exists() else set()
                client.call("session.save", session="talk")
                (written,) = set(states.glob("*.state")) - before
                sizes[is_f16] = written.stat().st_size
            self.assertEqual(daemon.stop(), 0)
        self.assertLess(sizes[True], sizes[False])
        # Back again: what was written first serves still, exactly.
        daemon.config_path.write_text(plain, encoding="utf-8")
        daemon.start()
        with daemon.client() as client:
            (session,) = self.wait_for_sessions(client)
            more = tokens + [66, 67]
            again = self.answer(client, tokens=more)
            self.assertGreaterEqual(again["usage"]["cached_tokens"], len(tokens) - 1)
            self.assertEqual(again["notes"], [])
            self.assertEqual(again["tokens"], self.answer(client, tokens=more, cache="off")["tokens"])

    def test_f16_waits_for_a_restart(self):
        daemon = Daemon(BUILD, small_model())
        self.addCleanup(daemon.__exit__, None, None, None)
        daemon.start()
        with open(daemon.config_path, "a", encoding="utf-8") as config:
            config.write("sessions.f16 = true\n")
        with daemon.client() as client:
            result = client.call("reload")
            self.assertEqual([change["key"] for change in result["pending_restart"]], ["sessions.f16"])
            self.assertEqual(client.call("status")["cache"]["states"], "f32")

    def wait_for_sessions(self, client):
        """Sessions on disk are loaded in the background after the start."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            sessions = client.call("sessions")["sessions"]
            if sessions and all(session["loaded"] for session in sessions):
                return sessions
            time.sleep(0.05)
        raise AssertionError("no session was loaded within 30 s")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
