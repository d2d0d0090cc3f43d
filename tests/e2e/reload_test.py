#!/usr/bin/env python3
"""Reloading: all or nothing, said with line and column, and never felt by a stream."""

import os
import signal
import subprocess
import sys
import time
import unittest

from daemon import Daemon
from fixture import BUILD, small_model

N_RELOADS = 100
N_STREAMS = 4
TOKENS_PER_RELOAD = 2


def replace(path, text):
    """As editors do it: the daemon never sees half a file."""
    aside = path.with_suffix(".new")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


class ReloadTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(BUILD, small_model())
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__, None, None, None)
        self.base = self.daemon.config_path.read_text(encoding="utf-8")
        self.client = self.daemon.client()
        self.addCleanup(self.client.__exit__)

    def write(self, more):
        replace(self.daemon.config_path, self.base + more)

    def max_tokens_in_force(self):
        request = self.client.send("generate", prompt="a")
        accepted = self.client.next_event(request)
        self.client.call("cancel", target=request)
        self.client.rest(request)
        return accepted["max_tokens"]

    def test_live_keys_are_applied_at_once_and_the_others_wait(self):
        self.write("limits.max_tokens = 7\nsampling.temperature = 0\nkv.n_ctx = 64\nlog.level = 'debug'\n")
        dry = self.client.call("reload", dry_run=True)
        self.assertEqual(dry["ev"], "result")
        self.assertTrue(dry["dry_run"])
        self.assertEqual(self.max_tokens_in_force(), 4096)
        self.assertEqual(self.client.call("status")["config"]["pending_restart"], [])

        reply = self.client.call("reload")
        self.assertEqual({**reply, "id": 0}, {**dry, "id": 0, "dry_run": False})
        self.assertEqual(
            {change["key"] for change in reply["applied"]},
            {"limits.max_tokens", "sampling.temperature", "log.level"},
        )
        self.assertEqual([change["key"] for change in reply["pending_restart"]], ["kv.n_ctx"])
        self.assertEqual(reply["pending_restart"][0], {"key": "kv.n_ctx", "before": "4096", "after": "64"})
        self.assertEqual(self.client.call("status")["config"]["pending_restart"], ["kv.n_ctx"])
        first = self.client.generate(prompt="a")
        self.assertEqual(first[0]["max_tokens"], 7)
        self.assertEqual(first[-1]["text"], self.client.generate(prompt="a")[-1]["text"])  # greedy now

        self.write("")
        self.assertEqual(self.client.call("reload")["pending_restart"], [])
        self.assertEqual(self.client.call("status")["config"]["pending_restart"], [])
        self.assertEqual(self.max_tokens_in_force(), 4096)

    def test_a_broken_file_changes_nothing_and_every_problem_is_named(self):
        self.write("limits.max_tokens = 7\nkv.n_ctxx = 1\nscheduler.queue = 'many'\n")
        reply = self.client.call("reload")
        self.assertEqual((reply["ev"], reply["code"]), ("error", "invalid_argument"))
        for words in (":4:4: ", "kv.n_ctxx", ":5:19: ", "scheduler.queue"):
            self.assertIn(words, reply["message"])
            self.assertIn(words, self.daemon.log())
        self.assertEqual(self.max_tokens_in_force(), 4096)

    def test_the_command_says_what_happened_by_its_exit_code(self):
        def pantheon(*arguments):
            return subprocess.run(
                [BUILD / "bin" / "pantheon", "--endpoint", self.daemon.endpoint, *arguments],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip

        self.write("limits.max_tokens = 9\nkv.n_ctx = 64\n")
        result = pantheon("reload", "--dry-run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("limits.max_tokens", result.stdout)
        self.assertIn("kv.n_ctx", result.stdout)
        self.assertEqual(pantheon("reload").returncode, 0)
        self.write("nonsense\n")
        result = pantheon("reload")
        self.assertEqual(result.returncode, 1)
        self.assertIn("pantheond.toml:3:", result.stderr)

    def test_a_hundred_reloads_change_no_token_of_four_streams(self):
        bias = self.client.without_end()
        n_tokens = N_RELOADS * TOKENS_PER_RELOAD

        def start(seed):
            return self.client.send(
                "generate", prompt=f"Story {seed}", seed=seed, temperature=1.0, max_tokens=n_tokens, logit_bias=bias,
                credit=0,
            )  # fmt: skip

        def tokens_of(request, n):
            tokens = []
            while len(tokens) < n:
                event = self.client.next_event(request)
                self.assertIn(event["ev"], ("accepted", "token", "progress"))
                if "token" in event:
                    tokens.append(event["token"])
            return tokens

        expected = []
        for request in [start(seed) for seed in range(N_STREAMS)]:
            self.client.send("credit", target=request, n=n_tokens)
            expected.append(tokens_of(request, n_tokens))
            self.assertEqual(self.client.rest(request)[-1]["finish"], "length")

        streams = [start(seed) for seed in range(N_STREAMS)]
        for request in streams:  # admitted under the old limits, before the first reload lowers them
            self.assertEqual(self.client.next_event(request)["max_tokens"], n_tokens)
        got = [[] for _ in streams]
        broken = 0
        for i in range(N_RELOADS):
            if i % 2:
                broken += 1
                self.write("\n" * i + "limits.max_tokenz = 1\n")
            else:
                self.write(f"limits.max_tokens = {1 + i}\nsampling.temperature = {i}.5\nscheduler.max_gap_ms = {1 + i}\n")
            for request in streams:
                self.client.send("credit", target=request, n=TOKENS_PER_RELOAD)
            self.daemon.signal(signal.SIGHUP)
            self.wait_for_log("config: reload: the configuration in force stays", broken)
            self.wait_for_log("config: reload: limits.max_tokens: ", i // 2 + 1)
            for request, tokens in zip(streams, got):
                tokens += tokens_of(request, TOKENS_PER_RELOAD)
        for request, tokens, want in zip(streams, got, expected):
            self.assertEqual(self.client.rest(request)[-1]["finish"], "length")
            self.assertEqual(tokens, want)
        log = self.daemon.log()
        for i in range(1, N_RELOADS, 2):
            place = f"pantheond.toml:{3 + i}:8: invalid_argument: limits.max_tokenz"
            self.assertTrue(place in log, f"not in the log: {place}")

    def wait_for_log(self, text, n):
        end = time.monotonic() + 60
        while self.daemon.log().count(text) < n:
            self.assertLess(time.monotonic(), end, f"{n} × {text!r} not in the log")
            time.sleep(0.005)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
