#!/usr/bin/env python3
"""Clients whose processes are killed in the middle of their streams, and clients that stop reading: afterwards the
daemon holds what it held before, and nobody else has noticed."""

import json
import os
import random
import subprocess
import sys
import time
import unittest
from pathlib import Path

from alone import STUCK_S, Stream, finish, lone_runs
from daemon import Daemon
from fixture import BUILD, IS_SANITIZED, IS_SOAK, SEED, embedded_model

N_KILLS = 200 if IS_SOAK else 20
N_WARM = 40 if IS_SOAK else 12  # after so many, everything that is allocated once has been
N_SLOTS = 4
CACHE_BYTES = 8_000_000
SLACK_BYTES = 12 * 2**20  # of anonymous memory: what an allocator holds moves by this much
CONFIG = f"""
engine.slots = {N_SLOTS}
kv.n_ctx = 4096
sessions.every = 64
ipc.stall_ms = 3600000
"""
SCRIPT = Path(__file__).with_name("killed_client.py")


class KilledClientsTest(unittest.TestCase):
    def setUp(self):
        self.seed = SEED if SEED is not None else random.SystemRandom().getrandbits(32)
        print(f"seed {self.seed}", flush=True)
        self.rng = random.Random(self.seed)
        self.daemon = Daemon(BUILD, embedded_model(), CONFIG)
        self.config = self.daemon.config_path.read_text(encoding="utf-8")
        self.keep(CACHE_BYTES)
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__, None, None, None)
        self.watcher = self.daemon.client()
        self.addCleanup(self.watcher.__exit__)
        bias = self.watcher.without_end()
        self.endless = {"prompt": "Once", "max_tokens": 3900, "temperature": 1.0, "logit_bias": bias}

    def keep(self, n_bytes):
        self.daemon.config_path.write_text(f"{self.config}sessions.bytes = {n_bytes}\n", encoding="utf-8")

    # ---- what the daemon holds

    def wait_for(self, condition):
        end = time.monotonic() + STUCK_S
        while not condition(status := self.watcher.call("status")):
            self.assertLess(time.monotonic(), end, status)
            time.sleep(0.02)
        return status

    def at_rest(self):
        """Slots, queue and requests once all have ended; a leak of one of them is a time-out here."""

        def rests(status):
            engine = status["engines"][0]
            return not (engine["slots"]["busy"] or engine["slots"]["parked"] or engine["queue"]["waiting"]
                        or status["requests"])  # fmt: skip

        return self.wait_for(rests)

    def kv_bytes_of_one(self):
        """What the die says it holds in KV while one stream of known length runs: pages that nobody let go of
        would show. (An idle engine says 0.)"""
        request = self.watcher.send("generate", **{**self.endless, "seed": 1}, credit=10, cache="off")
        while self.watcher.next_event(request).get("i") != 9:
            pass
        status = self.watcher.call("status")
        self.watcher.call("cancel", target=request)
        self.watcher.rest(request)
        return status["engines"][0]["dies"][0]["kv_used_bytes"]

    def anonymous_bytes(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))

    def n_descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    # ---- killed

    def kill_one(self, number):
        requests = []
        for i in range(self.rng.randrange(1, N_SLOTS + 3)):
            fields = {**self.endless, "seed": number * 10 + i, "cache": self.rng.choice(("private", "shared", "off")),
                      "prompt": f"{number} {i} once upon a time " * self.rng.randrange(1, 60),
                      "priority": self.rng.choice((0, 0, 1))}  # fmt: skip
            if i > 0 and self.rng.random() < 0.3:
                fields["credit"] = self.rng.randrange(60)
            requests.append(json.dumps(fields))
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        client = subprocess.Popen(
            [sys.executable, SCRIPT, self.daemon.endpoint, *requests],
            stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip
        try:
            self.assertEqual(client.stdout.readline(), b"streaming\n")
            time.sleep(self.rng.uniform(0, 0.05))
        finally:
            client.kill()
            client.wait()
            client.stdout.close()

    def test_killed_clients_leave_nothing_behind(self):
        kv_before = self.kv_bytes_of_one()
        memory = descriptors = None
        for number in range(N_KILLS):
            if number == N_WARM:
                self.at_rest()
                memory, descriptors = self.anonymous_bytes(), self.n_descriptors()
            self.kill_one(number)
        status = self.at_rest()
        self.assertLessEqual(status["cache"]["bytes"], CACHE_BYTES)
        self.assertEqual(self.n_descriptors(), descriptors)
        self.assertEqual(self.kv_bytes_of_one(), kv_before)
        grown = self.anonymous_bytes() - memory
        print(f"{N_KILLS} kills, after {N_WARM} of them memory {grown / 2**20:+.1f} MiB", flush=True)
        if not IS_SANITIZED:  # a sanitizer keeps freed memory
            self.assertLess(grown, SLACK_BYTES)
        self.keep(0)
        self.assertEqual(self.watcher.call("reload")["ev"], "result")
        self.assertEqual(self.watcher.call("status")["cache"]["bytes"], 0)

    # ---- not reading

    def test_others_and_memory_do_not_notice_clients_that_stop_reading(self):
        (runs,) = lone_runs(self.watcher, 1, 4, self.rng, 40 if IS_SANITIZED else 120)
        others = [self.daemon.client() for _ in range(2)]
        silent, frugal = self.daemon.client(), self.daemon.client()
        for client in (*others, silent, frugal):
            self.addCleanup(client.__exit__)
        # More streams than places of a client that never reads; and of one that grants nothing more.
        unread = [(silent, silent.send("generate", **self.endless, seed=i, cache="off")) for i in range(N_SLOTS + 2)]
        for n in (3, 0):
            unread.append((frugal, frugal.send("generate", **self.endless, seed=n, cache="off", credit=n)))

        def all_wait(status):
            return status["engines"][0]["slots"]["parked"] == len(unread)

        def serve():
            for client in others:
                sent = {client.send("generate", **fields): Stream(fields, alone) for fields, alone in runs}
                finish(client, sent)
                self.assertTrue(all(stream.is_whole for stream in sent.values()))

        serve()
        self.wait_for(all_wait)
        serve()
        before = self.anonymous_bytes()
        for _ in range(5 if IS_SANITIZED else 60 if IS_SOAK else 15):
            serve()
        self.wait_for(all_wait)
        grown = self.anonymous_bytes() - before
        print(f"beside clients that do not read: memory {grown / 2**20:+.1f} MiB", flush=True)
        if not IS_SANITIZED:
            self.assertLess(grown, SLACK_BYTES)
        # What waited for them is all there when they read.
        for client, request in unread:
            client.send("cancel", id=f"end of {request}", target=request)
        numbers = []
        for client, request in unread:
            events = client.rest(request, STUCK_S)
            self.assertEqual(events[-1]["finish"], "cancelled")
            tokens = [event["i"] for event in events if "token" in event]
            self.assertEqual(tokens, list(range(len(tokens))))
            numbers.append(len(tokens))
        self.assertEqual(numbers[-2:], [3, 0])
        self.assertGreater(max(numbers), 3)
        self.at_rest()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
