#!/usr/bin/env python3
"""Start and stop: exit codes, the socket file, and what becomes of running requests."""

import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from daemon import Daemon
from fixture import BUILD, small_model


def run_pantheond(*arguments):
    return subprocess.run(
        [BUILD / "bin" / "pantheond", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


class StoppingTest(unittest.TestCase):
    def test_sigterm_ends_an_idle_daemon_with_0_and_it_can_start_again(self):
        with Daemon(BUILD, small_model()) as daemon:
            self.assertEqual(daemon.stop(), 0)
            daemon.check_sanitizers()
            daemon.start()
            with daemon.client() as client:
                self.assertEqual(client.generate(prompt="a", max_tokens=2)[-1]["ev"], "done")
            self.assertEqual(daemon.stop(), 0)

    def test_sigterm_ends_running_requests_with_one_done_each(self):
        with Daemon(BUILD, small_model(), "daemon.drain_s = 1\n") as daemon, daemon.client() as client:
            requests = [client.send("generate", prompt="Once", max_tokens=3000) for _ in range(3)]
            for request in requests:
                self.assertEqual(client.next_event(request)["ev"], "accepted")
            daemon.signal(signal.SIGTERM)
            for request in requests:
                self.assertEqual(client.rest(request)[-1]["ev"], "done")
            self.assertEqual(daemon.wait(), 0)

    def test_a_killed_daemon_leaves_a_socket_that_the_next_one_takes_over(self):
        with Daemon(BUILD, small_model()) as daemon:
            daemon.signal(signal.SIGKILL)
            daemon.process.wait()
            daemon.start()
            self.assertEqual(daemon.stop(), 0)

    def test_a_second_daemon_on_the_same_socket_is_refused(self):
        with Daemon(BUILD, small_model()) as daemon:
            second = run_pantheond("--config", daemon.config_path, "--foreground")
            self.assertNotEqual(second.returncode, 0)
            with daemon.client() as client:
                self.assertEqual(client.call("ping")["ev"], "result")


class ConfigTest(unittest.TestCase):
    CASES = [  # (name, text of the file, exit code, words of the message)
        ("good", 'model.path = "{model}"\n', 0, ()),
        ("unknown key", 'model.path = "{model}"\n[kv]\nn_ctxx = 4096\n', 78, ("n_ctxx", "n_ctx", ":4:")),
        ("wrong type", 'model.path = "{model}"\nkv.n_ctx = "many"\n', 78, ("kv.n_ctx", ":3:")),
        ("out of range", 'model.path = "{model}"\nkv.n_ctx = 1\n', 78, ("kv.n_ctx", "16")),
        ("no TOML", "model.path = \n", 78, (":2:",)),
    ]

    def run_with(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "pantheond.toml")
            path.write_text(f'ipc.endpoint = "ipc://{folder}/sock"\n{text}', encoding="utf-8")
            return run_pantheond("--config", path, *options)

    def test_check_config_says_where_and_what(self):
        for name, text, code, words in self.CASES:
            with self.subTest(name):
                result = self.run_with(text.format(model=small_model()), "--check-config")
                self.assertEqual(result.returncode, code, result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr + result.stdout)

    def test_a_bad_config_or_model_ends_with_78(self):
        for text in ("[kv]\nn_ctxx = 1\n", 'model.path = "/nowhere/model.gguf"\n', f'model.path = "{Path(__file__)}"\n'):
            with self.subTest(text):
                result = self.run_with(text, "--foreground")
                self.assertEqual(result.returncode, 78, result.stderr)

    def test_wrong_usage_ends_with_2(self):
        for arguments in (("--no-such-option",), ("--config",)):
            with self.subTest(arguments):
                self.assertEqual(run_pantheond(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
