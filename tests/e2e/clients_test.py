#!/usr/bin/env python3
"""Clients that misbehave: they vanish, do not read, come back, send too much, ask too often. The daemon's slots and
memory are looked at afterwards, and it has to serve as before."""

import re
import sys
import time
import unittest

import msgpack
import zmq
from daemon import Daemon
from fixture import BUILD, IS_SANITIZED, small_model

N_SLOTS = 2
FRAME_LIMIT = 4 * 1024 * 1024
SLOT_FREE_WITHIN_S = 2 if not IS_SANITIZED else 20
# What a misbehaving client may leave behind: allocators keep some of what they had.
MEMORY_SLACK = 48 * 1024 * 1024
CONFIG = f"""
engine.slots = {N_SLOTS}
scheduler.queue = 64
ipc.max_unread = 64
ipc.stall_ms = 1500
kv.n_ctx = 8192
"""


class ClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(BUILD, small_model(), CONFIG)
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__, None, None, None)
        with cls.daemon.client() as client:
            ids = set()
            for text in ("<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"):
                tokens = client.call("tokenize", text=text, special=True)["tokens"]
                if len(tokens) == 1:
                    ids.add(tokens[0])
            cls.endless = {"prompt": "Once", "max_tokens": 8000, "temperature": 1.0,
                           "logit_bias": [[token, -1000.0] for token in sorted(ids)]}  # fmt: skip
            # Everything that is allocated once is allocated before memory is measured.
            for _ in range(4):
                client.generate(**{**cls.endless, "max_tokens": 200})

    def setUp(self):
        self.watcher = self.daemon.client()
        self.addCleanup(self.watcher.__exit__)
        self.wait_until_free()
        self.memory_before = self.resident_bytes()

    def tearDown(self):
        self.wait_until_free()
        grown = self.resident_bytes() - self.memory_before
        print(f"memory: {grown / 2**20:+.1f} MiB")
        if not IS_SANITIZED:  # a sanitizer keeps freed memory
            self.assertLess(grown, MEMORY_SLACK)
        self.assertTrue(self.daemon.is_running())
        events = self.watcher.generate(prompt="Once", max_tokens=3, temperature=0.0)
        self.assertEqual(events[-1]["ev"], "done")

    def status(self):
        status = self.watcher.call("status")
        engine = status["engines"][0]
        return engine["slots"]["busy"], engine["queue"]["waiting"], len(status["requests"])

    def wait_until(self, condition, within_s, what):
        end = time.monotonic() + within_s
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what} within {within_s} s: {self.status()}")
            time.sleep(0.02)

    def wait_until_free(self, within_s=60):
        self.wait_until(lambda: self.status() == (0, 0, 0), within_s, "everything free")

    def resident_bytes(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no RssAnon")

    # ---- vanishing

    def test_a_client_that_vanishes_while_decoding_frees_its_slot(self):
        client = self.daemon.client()
        request = client.send("generate", **self.endless)
        while client.next_event(request)["ev"] != "token":
            pass
        self.assertEqual(self.status()[0], 1)
        client.__exit__()
        self.wait_until_free(SLOT_FREE_WITHIN_S)

    def test_a_client_that_vanishes_while_its_prompt_is_read_frees_its_slot(self):
        client = self.daemon.client()
        tokens = self.watcher.call("tokenize", text="Once upon a time ")["tokens"]
        prompt = (tokens * (7000 // len(tokens) + 1))[:7000]
        request = client.send("generate", tokens=prompt, max_tokens=8)
        self.assertEqual(client.next_event(request)["ev"], "accepted")
        self.wait_until(lambda: self.status()[0] == 1, 10, "a busy slot")
        self.assertIsNone(client.next_event(request, timeout_s=0, may_be_absent=True), "the prompt was read too fast")
        client.__exit__()
        self.wait_until_free(SLOT_FREE_WITHIN_S)

    def test_a_client_that_vanishes_while_queued_leaves_the_queue(self):
        holders = self.daemon.client()
        for _ in range(N_SLOTS):
            holders.send("generate", **self.endless)
        self.wait_until(lambda: self.status()[0] == N_SLOTS, 10, "busy slots")
        client = self.daemon.client()
        for _ in range(5):
            self.assertEqual(client.next_event(client.send("generate", **self.endless))["ev"], "accepted")
        self.assertEqual(self.status()[1], 5)
        client.__exit__()
        self.wait_until(lambda: self.status()[1] == 0, SLOT_FREE_WITHIN_S, "an empty queue")
        self.assertEqual(self.status()[0], N_SLOTS)
        holders.__exit__()
        self.wait_until_free(SLOT_FREE_WITHIN_S)

    # ---- not reading

    def test_a_client_that_never_reads_is_paused_then_ended_and_costs_bounded_memory(self):
        with self.daemon.client() as client:
            requests = [client.send("generate", **self.endless) for _ in range(N_SLOTS)]
            self.wait_until(lambda: self.status()[0] == N_SLOTS, 10, "busy slots")
            # Not one event is taken. The slots come back although nobody reads.
            self.wait_until_free(120)
            for request in requests:
                events = client.rest(request)
                self.assertEqual(events[-1]["finish"], "cancelled")
                self.assertEqual(events[-1]["code"], "resource_exhausted")
                numbers = [event["i"] for event in events if "token" in event]
                self.assertEqual(numbers, list(range(len(numbers))))  # nothing was dropped on the way

    def ended_unread(self):
        page = self.watcher.call("metrics")["text"]
        return int(re.search(r'^pantheon_requests_ended_slow_total\{reason="unread"\} (\d+)$', page, re.M)[1])

    def test_beside_a_client_that_stops_reading_others_go_on_and_memory_stays(self):
        counted_before = self.ended_unread()
        known = {**self.endless, "max_tokens": 50, "seed": 5}
        want = [event["token"] for event in self.watcher.generate(**known) if "token" in event]
        with self.daemon.client() as client:
            # Large events, so that the system's buffers on the way are full soon.
            requests = [client.send("generate", logprobs=20, **self.endless) for _ in range(N_SLOTS - 1)]
            for request in requests:
                for _ in range(10):
                    client.next_event(request)
            n_rounds, end = 0, time.monotonic() + 300
            while self.ended_unread() < counted_before + len(requests):
                self.assertLess(time.monotonic(), end, "the unread requests do not end")
                got = [event["token"] for event in self.watcher.generate(**known) if "token" in event]
                self.assertEqual(got, want)
                if not IS_SANITIZED:
                    self.assertLess(self.resident_bytes() - self.memory_before, MEMORY_SLACK)
                n_rounds += 1
            self.assertGreater(n_rounds, 1)
            self.wait_until(lambda: self.status()[0] == 0, SLOT_FREE_WITHIN_S, "their slots are free, unread as they are")
            for request in requests:
                done = client.rest(request)[-1]
                self.assertEqual((done["finish"], done["code"]), ("cancelled", "resource_exhausted"))
                self.assertIn("ipc.stall_ms", done["message"])
                self.assertIn("parked", done["notes"])

    def test_a_client_that_asks_and_never_reads_is_cut_off(self):
        with self.daemon.client() as client:
            client._socket.sndhwm = 100_000
            for i in range(20_000):
                try:
                    client._socket.send(
                        msgpack.packb({"v": 1, "id": i, "op": "tokenize", "text": "x" * 200}), zmq.DONTWAIT
                    )
                except zmq.Again:
                    time.sleep(0.01)
            self.assertEqual(self.watcher.call("ping")["ev"], "result")

    # ---- coming back

    def test_a_client_that_comes_back_under_its_identity_is_a_new_one(self):
        context = zmq.Context()
        self.addCleanup(context.term)

        def connect():
            socket = context.socket(zmq.DEALER)
            socket.linger = 0
            socket.routing_id = b"the same name"
            socket.connect(self.daemon.endpoint)
            return socket

        def receive(socket):
            self.assertTrue(socket.poll(20_000), "no answer")
            return msgpack.unpackb(socket.recv())

        first = connect()
        first.send(msgpack.packb({"v": 1, "id": "r", "op": "generate", **self.endless}))
        while receive(first)["ev"] != "token":
            pass
        first.close()
        self.wait_until_free(SLOT_FREE_WITHIN_S)  # as long as the first one lives, its name is taken
        second = connect()
        second.send(msgpack.packb({"v": 1, "id": "mine", "op": "ping"}))
        self.assertEqual(receive(second), {"id": "mine", "ev": "result"})
        self.assertFalse(second.poll(200), "an event of the request before")
        # The old name of the request is free again.
        second.send(msgpack.packb({"v": 1, "id": "r", "op": "generate", "prompt": "a", "max_tokens": 2}))
        self.assertEqual(receive(second)["ev"], "accepted")
        second.close()

    def test_two_clients_at_once_under_one_identity_do_not_mix(self):
        context = zmq.Context()
        self.addCleanup(context.term)
        sockets = []
        for _ in range(2):
            socket = context.socket(zmq.DEALER)
            socket.linger = 0
            socket.routing_id = b"twin"
            socket.connect(self.daemon.endpoint)
            sockets.append(socket)
            socket.send(msgpack.packb({"v": 1, "id": len(sockets), "op": "ping"}))
            time.sleep(0.2)
        answers = []
        for number, socket in enumerate(sockets, start=1):
            while socket.poll(500):
                event = msgpack.unpackb(socket.recv())
                self.assertEqual(event["id"], number)
                answers.append(number)
        self.assertIn(1, answers)  # the second may be refused, never answered with another's events
        for socket in sockets:
            socket.close()

    # ---- too much

    def test_an_oversized_frame_ends_the_connection_and_nothing_else(self):
        with self.daemon.client() as witness, self.daemon.client() as client:
            stream = witness.send("generate", **{**self.endless, "max_tokens": 400})
            self.assertEqual(witness.next_event(stream)["ev"], "accepted")
            own = client.send("generate", **self.endless)
            self.assertEqual(client.next_event(own)["ev"], "accepted")
            for size in (FRAME_LIMIT + 1, 4 * FRAME_LIMIT):
                client.send_raw(b"\xc6" + bytes(size))
            self.assertEqual(witness.rest(stream)[-1]["finish"], "length")
        self.wait_until_free(SLOT_FREE_WITHIN_S)

    def test_a_frame_just_below_the_limit_is_answered(self):
        with self.daemon.client() as client:
            text = "word " * ((FRAME_LIMIT - 200) // 5)
            event = client.call("generate", prompt=text)
            self.assertEqual((event["ev"], event["code"]), ("error", "invalid_argument"))

    def test_a_flood_of_1000_requests_is_answered_one_by_one(self):
        n_requests = 1000
        with self.daemon.client() as client:
            requests = [client.send("generate", prompt="Once", max_tokens=4, seed=i) for i in range(n_requests)]
            n_done = n_refused = 0
            for request in requests:
                last = client.rest(request)[-1]
                if last["ev"] == "done":
                    n_done += 1
                else:
                    self.assertEqual(last["code"], "resource_exhausted")
                    n_refused += 1
            self.assertEqual(n_done + n_refused, n_requests)
            self.assertGreater(n_done, 0)
            print(f"flood: {n_done} done, {n_refused} refused")
            self.assertEqual(client.drain(), [])

    def test_a_flood_from_many_connections_is_answered_too(self):
        clients = [self.daemon.client() for _ in range(20)]
        asked = [(c, c.send("generate", prompt="Once", max_tokens=4)) for _ in range(50) for c in clients]
        for client, request in asked:
            self.assertIn(client.rest(request)[-1]["ev"], ("done", "error"))
        for client in clients:
            client.__exit__()

    def test_no_prompt_reaches_the_log(self):
        secret = "correct horse battery staple"
        self.watcher.generate(prompt=secret, max_tokens=2)
        self.watcher.call("tokenize", text=secret, nonsense=1)
        self.watcher.call("generate", messages=[{"role": "nobody", "content": secret}])
        self.assertNotIn("horse", self.daemon.log())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
