#!/usr/bin/env python3
"""The memory ladder of a running daemon, shown readings from a folder: what each rung frees, and that no accepted
request notices."""

import os
import sys
import time
import unittest

import readings
from daemon import Daemon
from fixture import BUILD, IS_SANITIZED, small_model
from readings import CRITICAL_KB, PLENTY_KB, TIGHT_KB

CONFIG = f"""kv.n_ctx = 2048
engine.slots = 16
sessions.every = 64
sessions.bytes = 500000000
{readings.CONFIG}"""
SECONDS = 120  # "stuck"; a rung takes one or two


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(BUILD, self.model(), CONFIG)
        self.readings = readings.Readings(self.daemon.folder / "readings")
        with open(self.daemon.config_path, "a", encoding="utf-8") as config:
            config.write(f'memory.readings_dir = "{self.readings.folder}"\n')
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__, None, None, None)
        self.client = self.daemon.client()
        self.addCleanup(self.client.__exit__)

    def model(self):
        return os.environ.get("PANTHEON_MEMORY_MODEL") or small_model()

    def status(self):
        return self.client.call("status")

    def wait_for(self, condition, what):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            status = self.status()
            if condition(status):
                return status
            time.sleep(0.05)
        self.fail(f"{what}: {status['memory']} after {SECONDS} s")

    def wait_for_rung(self, rung):
        return self.wait_for(lambda status: status["memory"]["rung"] == rung, f"rung {rung}")

    def report(self, status):
        pages = dict(
            line.split(":", 1)
            for line in open(f"/proc/{self.daemon.process.pid}/status", encoding="utf-8")
            if line.startswith("Rss")
        )
        anonymous = int(pages["RssAnon"].split()[0])
        die = status["engines"][0]["dies"][0]
        print(
            f"{status['memory']['level']:8} rung {status['memory']['rung']}: anonymous {anonymous / 1024:7.1f} MiB, "
            f"cache {status['cache']['bytes'] / 2**20:6.1f} MiB, packed {die['repack_bytes'] / 2**20:5.1f} MiB, "
            f"slots {status['engines'][0]['slots']['effective']}",
            flush=True,
        )
        return anonymous

    def fill_cache(self, n):
        for i in range(n):
            self.client.generate(tokens=[60 + (i * j) % 50 for j in range(1, 400)], max_tokens=1)

    def test_each_rung_frees_memory_and_the_streams_go_on(self):
        bias = self.client.without_end()
        n_tokens = 60

        def start(number):
            return self.client.send(
                "generate", prompt=f"Story {number}", seed=number, temperature=1.0, max_tokens=n_tokens,
                logit_bias=bias, credit=0, cache="off",
            )  # fmt: skip

        def tokens(events):
            return [event["token"] for event in events if "token" in event]

        expected = []
        for number in range(16):
            request = start(number)
            self.client.send("credit", target=request, n=n_tokens)
            expected.append(tokens(self.client.rest(request)))
            self.assertEqual(len(expected[-1]), n_tokens)

        self.fill_cache(20)
        before = self.status()
        anonymous_before = self.report(before)
        requests = [start(number) for number in range(16)]
        for request in requests:
            self.assertEqual(self.client.next_event(request)["ev"], "accepted")

        self.readings.show(TIGHT_KB)
        for rung in range(1, 5):
            status = self.wait_for(lambda status: status["memory"]["rung"] >= rung, f"rung {rung}")
            self.report(status)
        self.assertEqual(status["memory"]["level"], "TIGHT")
        self.assertLess(status["cache"]["bytes"], before["cache"]["bytes"] * 0.6)
        self.assertEqual(status["engines"][0]["slots"]["effective"], 8)
        self.assertEqual(status["engines"][0]["slots"]["reason"], "memory")
        self.assertEqual(status["engines"][0]["dies"][0]["repack_bytes"], 0)

        self.readings.show(CRITICAL_KB)
        status = self.wait_for_rung(5)
        anonymous_critical = self.report(status)
        self.assertEqual(status["cache"]["bytes"], 0)
        self.assertEqual(status["engines"][0]["slots"]["effective"], 1)
        refused = self.client.call("generate", prompt="late")
        self.assertEqual((refused["ev"], refused["code"]), ("error", "resource_exhausted"))
        self.assertEqual(refused["retry_after_ms"], 500)
        if not IS_SANITIZED:  # a sanitizer's allocator keeps what is freed
            freed = (before["cache"]["bytes"] + before["engines"][0]["dies"][0]["repack_bytes"]) // 1024
            self.assertLess(anonymous_critical, anonymous_before - freed // 2)

        for request in requests:
            self.client.send("credit", target=request, n=n_tokens)
        for request, want in zip(requests, expected):
            events = self.client.rest(request)
            self.assertEqual(tokens(events), want)
            self.assertEqual(events[-1]["finish"], "length")
            self.assertIn("memory_rung_5", events[-1]["notes"])

        self.readings.show(PLENTY_KB)
        after = self.wait_for_rung(0)
        self.assertEqual(after["memory"]["level"], "OK")
        self.assertEqual(after["engines"][0]["slots"]["effective"], 16)
        packed = before["engines"][0]["dies"][0]["repack_bytes"]
        after = self.wait_for(lambda s: s["engines"][0]["dies"][0]["repack_bytes"] == packed, "packed again")
        self.report(after)
        self.assertEqual(self.client.generate(prompt="late", max_tokens=4)[-1]["ev"], "done")

    def test_an_idle_daemon_looks_once_a_second_and_costs_nothing(self):
        def seconds_of_cpu():
            fields = open(f"/proc/{self.daemon.process.pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        time.sleep(1)
        before, start = seconds_of_cpu(), time.monotonic()
        time.sleep(5)
        used, passed = seconds_of_cpu() - before, time.monotonic() - start
        print(f"idle: {100 * used / passed:.2f} % of a core", flush=True)
        self.assertLess(used / passed, 0.1 if IS_SANITIZED else 0.02)

    def test_the_ladder_can_be_switched_off_while_it_runs(self):
        self.readings.show(CRITICAL_KB)
        self.wait_for_rung(5)
        with open(self.daemon.config_path, "a", encoding="utf-8") as config:
            config.write("memory.ladder = false\n")
        self.assertEqual(self.client.call("reload")["applied"][0]["key"], "memory.ladder")
        self.wait_for_rung(0)
        self.assertEqual(self.client.generate(prompt="a", max_tokens=4)[-1]["ev"], "done")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
