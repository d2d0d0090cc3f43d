#!/usr/bin/env python3
"""A KV pool of its own size, with the embedded model: too small a one is refused, and streams that need more than there
is say what they say alone, bit for bit. And what rung 4 of the memory ladder does to KV that is not in q4_0."""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from daemon import Daemon
from fixture import BUILD, SOURCE

MODEL = SOURCE / "model" / "embedded" / "pantheon-tiny.gguf"
N_CTX = 512
SECONDS = 120  # "stuck"


def refusal(pool_bytes, *options):
    """Exit code and stderr of a daemon with a pool of that size."""
    with tempfile.TemporaryDirectory(prefix="pantheon-pool-") as folder:
        file = Path(folder, "c.toml")
        file.write_text(
            f'model.path = "{MODEL}"\nipc.endpoint = "ipc://{folder}/s"\nkv.n_ctx = {N_CTX}\n'
            f"kv.pool_bytes = {pool_bytes}\n",
            encoding="utf-8",
        )
        command = [BUILD / "bin" / "pantheond", "--config", file, *options]
        result = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, encoding="utf-8")
        return result.returncode, result.stderr


def least_pool():
    """The smallest pool that holds a sequence, as the refusal says."""
    code, said = refusal(1, "--check-config")
    found = re.search(r"c\.toml:4:17: invalid_argument: kv\.pool_bytes: 1 bytes .* kv\.n_ctx = (\d+) .* (\d+)$", said)
    if code != 78 or not found or int(found[1]) != N_CTX:
        raise AssertionError(f"{code}: {said}")
    return int(found[2])


def tokens_of(events):
    return [event["token"] for event in events if "token" in event]


class KvPoolTest(unittest.TestCase):
    def test_a_pool_without_room_for_one_sequence_is_refused_with_both_numbers(self):
        least = least_pool()
        for options in ([], ["--check-config"], ["--plan"]):
            code, said = refusal(least - 1, *options)
            self.assertEqual(code, 78, said)
            self.assertIn(str(least - 1), said)
            self.assertIn(str(least), said)
        self.assertEqual(refusal(least, "--check-config"), (0, ""))

    def test_streams_that_need_more_than_there_is_say_what_they_say_alone(self):
        n_streams, n_tokens = 6, 200
        pool = least_pool()
        config = f"kv.n_ctx = {N_CTX}\nkv.pool_bytes = {pool}\n"
        for more in ("", "sessions.bytes = 0\n"):  # parked with their states, or read again
            with self.subTest(more), Daemon(BUILD, MODEL, config + more) as daemon, daemon.client() as client:
                bias = client.without_end()

                def start(number):
                    return client.send(
                        "generate", tokens=[300 + (number * j) % 500 for j in range(1, 150)], seed=number,
                        temperature=1.0, max_tokens=n_tokens, logit_bias=bias, logprobs=0, cache="off",
                    )  # fmt: skip

                alone = [client.rest(start(number)) for number in range(n_streams)]
                requests = [start(number) for number in range(n_streams)]
                most = 0
                for request, want in zip(requests, alone):
                    events = []
                    while not events or events[-1]["ev"] != "done":
                        events.append(client.next_event(request))
                        if len(events) % 50 == 0:
                            die = client.call("status")["engines"][0]["dies"][0]
                            self.assertEqual(die["kv_pool_bytes"], pool)
                            most = max(most, die["kv_used_bytes"])
                    self.assertEqual(events[-1]["finish"], "length")
                    self.assertEqual(tokens_of(events), tokens_of(want))
                    logprobs = [[event["logprob"] for event in e if "token" in event] for e in (events, want)]
                    self.assertEqual(logprobs[0], logprobs[1], "same bits")
                    last = events[-1]
                print(f"{n_streams} streams in {pool} bytes, {most} seen in use, the last: {last['notes']}", flush=True)
                self.assertIn("parked", last["notes"])
                self.assertGreater(most, pool // 2)
                self.assertLessEqual(most, pool)


class Q4UnderPressureTest(unittest.TestCase):
    CONFIG = """kv.n_ctx = 2048
kv.format = "f16"
kv.window = 16
memory.tight_free_bytes = 1000000000
memory.critical_free_bytes = 400000000
memory.dwell_ms = 500
memory.step_ms = 0
"""

    def test_new_sequences_and_then_running_ones_keep_their_kv_in_q4_0(self):
        daemon = Daemon(BUILD, MODEL, self.CONFIG)
        readings = daemon.folder / "readings"
        (readings / "proc").mkdir(parents=True)
        with open(daemon.config_path, "a", encoding="utf-8") as config:
            config.write(f'memory.readings_dir = "{readings}"\n')

        def show(available_kb):
            aside = readings / "aside"
            aside.write_text(f"MemTotal: 10000000 kB\nMemAvailable: {available_kb} kB\n", encoding="utf-8")
            os.replace(aside, readings / "proc" / "meminfo")

        show(9_000_000)
        with daemon, daemon.client() as client:
            bias = client.without_end()

            def start(number):
                request = client.send(
                    "generate", tokens=[300 + (number * j) % 500 for j in range(1, 1000)], seed=number,
                    temperature=1.0, max_tokens=50, logit_bias=bias, credit=10,
                )  # fmt: skip
                for _ in range(10):
                    self.next_token(client, request)
                return request

            def kv_used():
                return client.call("status")["engines"][0]["dies"][0]["kv_used_bytes"]

            def wait_for_rung(rung):
                end = time.monotonic() + SECONDS
                while client.call("status")["memory"]["rung"] != rung:
                    self.assertLess(time.monotonic(), end, f"rung {rung}")
                    time.sleep(0.05)

            first = start(1)
            in_f16 = kv_used()
            show(100_000)
            wait_for_rung(5)
            client.send("credit", target=first, n=1)
            self.next_token(client, first)
            converted = kv_used()
            print(f"1000 tokens: {in_f16} bytes in f16, {converted} converted", flush=True)
            self.assertLess(converted, 0.6 * in_f16)
            client.send("credit", target=first, n=100)
            done = client.rest(first)[-1]
            self.assertEqual(done["finish"], "length")
            self.assertIn("kv_q4_0", done["notes"])

            show(900_000)  # TIGHT
            wait_for_rung(4)
            second = start(1)
            self.assertLess(kv_used(), 0.6 * in_f16)
            client.send("credit", target=second, n=100)
            self.assertIn("kv_q4_0", client.rest(second)[-1]["notes"])
            show(9_000_000)
            wait_for_rung(0)
            third = start(1)
            self.assertEqual(kv_used(), in_f16)
            client.send("credit", target=third, n=100)
            self.assertEqual(client.rest(third)[-1]["notes"], [])

    def next_token(self, client, request):
        while "token" not in (event := client.next_event(request)):
            self.assertIn(event["ev"], ("accepted", "progress", "token"), event)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
