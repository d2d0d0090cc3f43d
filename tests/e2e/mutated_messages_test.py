#!/usr/bin/env python3
"""10,000 damaged messages from a fixed seed: the daemon answers what it can and goes on serving."""

import copy
import random
import socket
import sys
import time
import unittest

import msgpack
from daemon import Daemon
from fixture import BUILD, small_model

SEED = 20261129
N_MESSAGES = 10_000
PING_EVERY = 100
GRACE_S = 0.1

BASES = [
    {"v": 1, "id": "a", "op": "generate", "prompt": "hello", "max_tokens": 2},
    {"v": 1, "id": 7, "op": "generate", "tokens": [1, 2, 3], "max_tokens": 1, "stop": ["x", "yz"], "logprobs": 2},
    {"v": 1, "id": "m", "op": "generate", "max_tokens": 1, "thinking": True, "temperature": 0.5, "top_k": 5,
     "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"},
                  {"role": "assistant", "content": "", "tool_calls": [
                      {"function": {"name": "f", "arguments": {"a": [1, {"b": None}]}}}]},
                  {"role": "tool", "content": "r"}],
     "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
     "logit_bias": [[1, -1.5], [2, 3.0]], "seed": 2**63},
    {"v": 1, "id": "c", "op": "cancel", "target": "a"},
    {"v": 1, "id": "k", "op": "credit", "target": 7, "n": 3},
    {"v": 1, "id": "t", "op": "tokenize", "text": "é中 <|im_end|>", "special": True},
    {"v": 1, "id": "d", "op": "detokenize", "tokens": [1, 2, 3]},
    {"v": 1, "id": "s", "op": "score", "tokens": [5, 6, 7, 8], "top": 2},
    {"v": 1, "id": "p", "op": "template", "messages": [{"role": "user", "content": "x"}], "thinking": False},
    {"v": 1, "id": "u", "op": "status"},
]  # fmt: skip
# Type bytes of every msgpack family, lengths that lie, and bytes that are no UTF-8.
TOKENS = [b"\xc0", b"\xc1", b"\xc3", b"\xc4\xff", b"\xc7\xff\x01", b"\xca\x7f\xc0\x00\x00", b"\xcb\x7f\xf8" + bytes(6),
          b"\xcf" + b"\xff" * 8, b"\xd3\x80" + bytes(7), b"\xd4\x00\x00", b"\xd9\xff", b"\xdb\xff\xff\xff\xff",
          b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\x91" * 40, b"\x81\xa1a" * 40, b"\xa2\xff\xfe",
          b"\xa2op", b"\xa2id", b"\xdc\x00\x10", b"\xde\x00\x10"]  # fmt: skip


# Values that some field or other does not expect.
VALUES = [None, True, False, 0, 1, 3, -1, 2**31, 2**63, 2**64 - 1, -(2**63), 0.5, -0.0, 1e308, float("nan"), float("inf"),
          "", "a", "x" * 300, "\x00", "system", "<|im_end|>", b"\xff\xfe", [], [1], [[1, 2.0]], [None], {}, {"a": {}},
          {"role": "user", "content": "y"}]  # fmt: skip


def damaged_bytes(rng):
    """A valid message with one to four things done to its bytes; most of these do not decode."""
    data = bytearray(msgpack.packb(rng.choice(BASES)))
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + rng.randrange(1, 9)]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 4:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 5:
            data[at : at + 1] = rng.choice(TOKENS)
        elif kind == 6:
            other = msgpack.packb(rng.choice(BASES))
            data[at:] = other[rng.randrange(len(other)) :]
        if not data:
            break
    return bytes(data)


def places(tree):
    """Every (container, key) inside a message."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from places(value)


def odd_values(rng):
    """A message that decodes, with one or two values replaced, removed, added or taken from another message. The
    envelope mostly stays as it is, or nothing but complaints about it would come back."""
    message = {**copy.deepcopy(rng.choice(BASES)), "id": rng.randrange(2**63)}
    for _ in range(rng.randrange(1, 3)):
        inside = [(c, key) for c, key in places(message) if c is not message or key not in ("v", "id", "op")]
        container, key = rng.choice(inside if inside and rng.randrange(10) else list(places(message)))
        kind = rng.randrange(4)
        if kind == 0:
            container[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 1 and isinstance(container, dict):
            container[rng.choice(sorted(rng.choice(BASES)))] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 2 and len(container) > 1:
            del container[key]
        else:
            other, other_key = rng.choice(list(places(rng.choice(BASES))))
            container[key] = copy.deepcopy(other[other_key])
    return msgpack.packb(message)


def mutated(rng):
    return damaged_bytes(rng) if rng.randrange(2) else odd_values(rng)


class Tally:
    """Counts what came back, and knows which requests still run."""

    def __init__(self):
        self.kinds, self._live = {}, set()

    def add(self, event):
        self.kinds[event["ev"]] = self.kinds.get(event["ev"], 0) + 1
        if event["ev"] == "accepted":
            self._live.add(event["id"])
        elif event["ev"] == "done":
            self._live.discard(event["id"])

    def take(self, client):
        for event in client.drain():
            self.add(event)

    def finish(self, client):
        """Gives what runs a moment to end by itself; the rest, of thousands of tokens perhaps, is cancelled."""
        end = time.monotonic() + GRACE_S
        while self._live and time.monotonic() < end:
            time.sleep(0.005)
            self.take(client)
        for request in sorted(self._live, key=str):
            client.call("cancel", id="canceller", target=request)
        while self._live:
            self.add(client.next_event(next(iter(self._live))))


class MutatedMessagesTest(unittest.TestCase):
    def test_the_daemon_outlives_10000_damaged_messages(self):
        rng = random.Random(SEED)
        tally = Tally()
        with Daemon(BUILD, small_model()) as daemon, daemon.client() as client:
            for n in range(N_MESSAGES):
                frames = [mutated(rng)]
                if rng.randrange(50) == 0:
                    frames.append(mutated(rng))  # one message is one frame
                client.send_raw(*frames)
                if n % PING_EVERY == PING_EVERY - 1:
                    self.assertEqual(client.call("ping", id=f"ping {n}")["ev"], "result")
                    tally.take(client)
                    tally.finish(client)
            print(f"{N_MESSAGES} messages, seed {SEED}: {dict(sorted(tally.kinds.items()))}")
            self.assertGreater(tally.kinds["error"], N_MESSAGES // 2)
            self.assertGreater(tally.kinds["done"], 100)
            self.assertEqual(tally.kinds["done"], tally.kinds["accepted"])
            self.assertEqual(client.generate(id="after", prompt="still there?", max_tokens=3)[-1]["ev"], "done")

    def test_bytes_that_are_no_zmtp_disturb_nobody(self):
        rng = random.Random(SEED)
        with Daemon(BUILD, small_model()) as daemon, daemon.client() as client:
            for _ in range(50):
                with socket.socket(socket.AF_UNIX) as raw:
                    raw.connect(daemon.endpoint.removeprefix("ipc://"))
                    raw.sendall(rng.randbytes(rng.randrange(1, 300)))
            self.assertEqual(client.generate(prompt="still there?", max_tokens=3)[-1]["ev"], "done")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
