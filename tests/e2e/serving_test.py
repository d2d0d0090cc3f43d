#!/usr/bin/env python3
"""The daemon from outside: what a client sees of answers, of several requests at once, and of bad ones."""

import statistics
import subprocess
import sys
import time
import unittest

import msgpack
import zmq
from daemon import Daemon
from fixture import BUILD, SOURCE, IS_SANITIZED, small_model

ENDLESS = {"prompt": "Once", "max_tokens": 3000, "temperature": 1.0}


class ServingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(BUILD, small_model())
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__, None, None, None)

    def setUp(self):
        self.client = self.daemon.client()
        self.addCleanup(self.client.__exit__)

    def test_a_streamed_answer_is_the_sum_of_its_tokens(self):
        bias = self.client.without_end()
        events = self.client.generate(prompt="Hello", max_tokens=20, temperature=0.0, logit_bias=bias)
        self.assertEqual(events[0]["ev"], "accepted")
        self.assertEqual(events[0]["max_tokens"], 20)
        self.assertIn("seed", events[0])
        done = events[-1]
        self.assertEqual((done["ev"], done["finish"]), ("done", "length"))
        tokens = [event for event in events if event["ev"] == "token"]
        numbered = [event for event in tokens if "token" in event]
        self.assertEqual([event["i"] for event in numbered], list(range(20)))
        self.assertEqual("".join(e["text"] for e in tokens if e["kind"] == "content"), done["text"])
        self.assertEqual("".join(e["text"] for e in tokens if e["kind"] == "reasoning"), done["reasoning"])
        self.assertEqual(done["usage"]["completion_tokens"], 20)
        self.assertLess(done["usage"]["cached_tokens"], done["usage"]["prompt_tokens"])

    def test_logprobs_are_those_that_score_gives(self):
        bias = self.client.without_end()
        prompt = self.client.call("tokenize", text="Hello world")["tokens"]
        events = self.client.generate(tokens=prompt, max_tokens=8, temperature=0.0, logprobs=1, logit_bias=bias)
        numbered = [event for event in events if event["ev"] == "token" and "token" in event]
        ids = prompt + [event["token"] for event in numbered]
        score = self.client.call("score", tokens=ids, top=1)
        self.assertIsNone(score["logprobs"][0])
        for position, event in enumerate(numbered, start=len(prompt)):
            self.assertAlmostEqual(event["logprob"], score["logprobs"][position], places=4)

    def test_the_seed_decides_the_answer(self):
        def answer(seed):
            return self.client.generate(prompt="Hello", max_tokens=24, temperature=1.0, seed=seed)[-1]["text"]

        self.assertEqual(answer(7), answer(7))
        self.assertNotEqual(answer(7), answer(8))

    def test_messages_are_rendered_by_the_template(self):
        messages = [{"role": "user", "content": "hi"}]
        rendered = self.client.call("template", messages=messages)
        self.assertIn("<|im_start|>user\nhi<|im_end|>\n", rendered["text"])
        done = self.client.generate(messages=messages, max_tokens=4, temperature=0.0)[-1]
        self.assertEqual(done["ev"], "done")
        self.assertEqual(done["usage"]["prompt_tokens"], len(rendered["tokens"]))

    def test_tokenize_and_detokenize_are_inverse(self):
        text = "def f(x):\n    return 'é中👍' # <|im_end|>"
        for special in (False, True):
            tokens = self.client.call("tokenize", text=text, special=special)["tokens"]
            back = self.client.call("detokenize", tokens=tokens)
            self.assertEqual((back["text"], back["bytes"]), (text, text.encode()))

    def test_a_req_client_gets_one_reply_and_no_accepted(self):
        socket = zmq.Context.instance().socket(zmq.REQ)
        socket.linger = 0
        self.addCleanup(socket.close)
        socket.connect(self.daemon.endpoint)
        for request in (
            {"v": 1, "id": 1, "op": "ping"},
            {"v": 1, "id": 2, "op": "generate", "prompt": "a", "max_tokens": 3, "stream": False},
            {"v": 1, "id": 3, "op": "generate", "prompt": "a", "max_tokens": 3},
        ):
            socket.send(msgpack.packb(request))
            self.assertTrue(socket.poll(60_000), request)
            reply = msgpack.unpackb(socket.recv())
            self.assertEqual(reply["id"], request["id"])
            want = {1: "result", 2: "done", 3: "error"}[request["id"]]
            self.assertEqual(reply["ev"], want, reply)

    def test_two_requests_run_at_once_and_one_is_cancelled(self):
        bias = self.client.without_end()
        kept = self.client.send("generate", **{**ENDLESS, "max_tokens": 60}, logit_bias=bias)
        dropped = self.client.send("generate", **ENDLESS, logit_bias=bias)
        for request in (kept, dropped):
            self.assertEqual(self.client.next_event(request)["ev"], "accepted")
        while self.client.next_event(dropped)["ev"] != "token":
            pass
        answer = self.client.call("cancel", target=dropped)
        self.assertIs(answer["cancelled"], True)
        self.assertEqual(self.client.rest(dropped)[-1]["finish"], "cancelled")
        done = self.client.rest(kept)[-1]
        self.assertEqual((done["finish"], done["usage"]["completion_tokens"]), ("length", 60))
        time.sleep(0.2)
        self.assertEqual(self.client.drain(), [], "something came after `done`")

    def test_the_python_example_streams_two_and_cancels_one(self):
        example = SOURCE / "ipc" / "python" / "example_stream_two.py"
        lines = [line for line in example.read_text(encoding="utf-8").splitlines() if line.strip()]
        self.assertLess(len(lines), 40)
        result = subprocess.run(
            [sys.executable, example, self.daemon.endpoint], capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_cancelling_what_does_not_run_says_so(self):
        self.assertIs(self.client.call("cancel", target="nobody")["cancelled"], False)

    def test_status_answers_fast_while_tokens_are_made(self):
        bias = self.client.without_end()
        running = [self.client.send("generate", **ENDLESS, logit_bias=bias) for _ in range(3)]
        for request in running:
            self.client.next_event(request)
        times = []
        with self.daemon.client() as other:
            for _ in range(30):
                start = time.monotonic()
                status = other.call("status")
                times.append((time.monotonic() - start) * 1000)
                time.sleep(0.01)
        self.assertGreater(status["engines"][0]["slots"]["busy"], 0)
        for request in running:
            self.client.call("cancel", target=request)
        # The promise is 50 ms. One late answer may be the machine's fault, half of them are the daemon's.
        limit = 500 if IS_SANITIZED else 50
        self.assertLess(statistics.median(times), limit, sorted(times))

    def test_status_names_model_engine_and_state(self):
        status = self.client.call("status")
        self.assertEqual((status["protocol"], status["state"]), (1, "ready"))
        self.assertEqual(status["model"]["path"], str(small_model()))
        for key in ("fingerprint", "n_layer", "n_vocab", "nextn"):
            self.assertIn(key, status["model"])
        slots = status["engines"][0]["slots"]
        self.assertGreaterEqual(slots["configured"], slots["effective"])

    def test_credit_paces_the_stream(self):
        request = self.client.send("generate", **ENDLESS, credit=3, logit_bias=self.client.without_end())
        self.assertEqual(self.client.next_event(request)["ev"], "accepted")

        def tokens_until_silence():
            n = 0
            while (event := self.client.next_event(request, timeout_s=1.0, may_be_absent=True)) is not None:
                n += event["ev"] == "token" and "token" in event
                if event["ev"] == "progress":
                    break
            return n

        self.assertEqual(tokens_until_silence(), 3)
        self.client.send("credit", target=request, n=2)
        self.assertEqual(tokens_until_silence(), 2)
        self.client.call("cancel", target=request)
        self.assertEqual(self.client.rest(request)[-1]["finish"], "cancelled")

    def test_bad_requests_are_refused_by_name_and_the_next_one_is_served(self):
        generate = {"op": "generate", "prompt": "a", "max_tokens": 1}
        cases = [
            ({"op": "generate", "prompt": "a", "max_tokenz": 1}, "invalid_argument", "max_tokenz"),
            ({"op": "generate", "prompt": 3}, "invalid_argument", "prompt"),
            ({"op": "generate"}, "invalid_argument", "prompt"),
            ({**generate, "tokens": [1]}, "invalid_argument", "tokens"),
            ({"op": "generate", "tokens": [10**9]}, "invalid_argument", "tokens"),
            ({**generate, "temperature": float("nan")}, "invalid_argument", "temperature"),
            ({**generate, "top_p": 7.0}, "invalid_argument", "top_p"),
            ({**generate, "logprobs": 21}, "invalid_argument", "logprobs"),
            ({**generate, "stop": ["x"] * 17}, "invalid_argument", "stop"),
            ({**generate, "response_format": {"type": "json"}}, "unimplemented", "response_format"),
            ({**generate, "grammar": "root ::= x"}, "unimplemented", "grammar"),
            ({"op": "generate", "messages": [{"role": "nobody", "content": "x"}]}, "invalid_argument", "nobody"),
            ({"op": "no-such-op"}, "invalid_argument", "op"),
            ({"op": "tokenize"}, "invalid_argument", "text"),
            ({"op": "detokenize", "tokens": [-1]}, "invalid_argument", "tokens"),
            ({"op": "score", "tokens": [1, 2], "top": 21}, "invalid_argument", "top"),
            ({"op": "ping", "v": 2}, "invalid_argument", "v"),
        ]
        for fields, code, word in cases:
            with self.subTest(fields):
                reply = self.client.call(fields.pop("op"), **fields)
                self.assertEqual((reply["ev"], reply.get("code")), ("error", code), reply)
                self.assertIn(word, reply["message"])
        self.assertEqual(self.client.generate(prompt="a", max_tokens=1)[-1]["ev"], "done")

    def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(self):
        reply = self.client.call("generate", tokens=[1] * 5000)
        self.assertEqual(reply["ev"], "error")
        self.assertIn("5000", reply["message"])
        self.assertIn("4096", reply["message"])

    def test_what_cannot_be_decoded_is_answered_with_a_nil_id(self):
        for frames in ((b"\xc1",), (b"",), (msgpack.packb([1, 2]),), (msgpack.packb({"v": 1, "op": "ping"}),)):
            with self.subTest(frames):
                self.client.send_raw(*frames)
                reply = self.client.next_event(None)
                self.assertEqual((reply["ev"], reply["code"]), ("error", "invalid_argument"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
