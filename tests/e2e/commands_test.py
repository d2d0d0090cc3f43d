#!/usr/bin/env python3
"""The `pantheon` command: what it prints where, and its exit codes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from daemon import Daemon
from fixture import BUILD, small_model

DONE, REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130


def pantheon(*arguments, given=b""):
    return subprocess.run(
        [BUILD / "bin" / "pantheon", *arguments], input=given, capture_output=True, timeout=120, check=False
    )


class WithDaemonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(BUILD, small_model())
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__, None, None, None)

    def run_command(self, *arguments, given=b"", code=DONE):
        result = pantheon("--endpoint", self.daemon.endpoint, *arguments, given=given)
        self.assertEqual(result.returncode, code, result.stderr.decode("utf-8", "replace"))
        return result.stdout

    def test_generate_streams_the_answer_to_stdout(self):
        printed = self.run_command("generate", "-p", "hello", "-n", "16", "--raw", "--temp", "0")
        done = json.loads(self.run_command("generate", "-p", "hello", "-n", "16", "--raw", "--temp", "0", "--json"))
        self.assertIn(done["finish"], ("length", "stop"))
        self.assertEqual(printed.decode("utf-8").rstrip("\n"), done["text"].rstrip("\n"))

    def test_generate_through_the_template_works_with_and_without_thinking(self):
        for options in ([], ["--no-thinking"]):
            done = json.loads(self.run_command("generate", "-p", "hello", "-n", "8", "--seed", "1", "--json", *options))
            self.assertLessEqual(done["usage"]["completion_tokens"], 8)

    def test_status_and_ping(self):
        self.assertEqual(json.loads(self.run_command("status", "--json"))["state"], "ready")
        self.assertIn(b"ready", self.run_command("status"))
        self.run_command("ping")

    def test_top_looks_again_and_again(self):
        printed = self.run_command("top", "--interval", "0.1", "--frames", "3").decode()
        frames = printed.split("\n\n")
        self.assertEqual(len(frames), 3)
        for frame in frames:
            self.assertRegex(frame, r"^pantheond [0-9.]+ ready, up 0:[0-9]{2}, ")
            self.assertRegex(frame, r"\n[a-z0-9]+ +ready +slots \[\.+\] 0/[0-9]+, 0 parked  queue 0/64  KV ")
        self.assertNotIn("/s)", frames[0])
        self.assertIn("/s)", frames[1])

    def test_tokenize_and_detokenize_through_the_daemon_and_from_the_file_agree(self):
        text = "héllo <|im_end|>\n 1".encode()
        for options in ([], ["--special"]):
            ids = self.run_command("tokenize", *options, "-", given=text)
            self.assertEqual(pantheon("tokenize", "--model", small_model(), *options, "-", given=text).stdout, ids)
            self.assertEqual(self.run_command("detokenize", "-", given=ids), text)
            self.assertEqual(self.run_command("detokenize", *ids.decode().split()), text)

    def test_template_prints_the_prompt(self):
        messages = json.dumps([{"role": "user", "content": "hi"}]).encode()
        rendered = self.run_command("template", "-", given=messages)
        self.assertIn(b"<|im_start|>user\nhi<|im_end|>\n", rendered)
        self.assertEqual(pantheon("template", "--model", small_model(), "-", given=messages).stdout, rendered)

    def test_a_refusal_ends_with_1(self):
        self.run_command("generate", "-p", "x", "--temp", "-5", code=REFUSED)

    def test_ctrl_c_cancels_and_ends_with_130(self):
        process = subprocess.Popen(
            [BUILD / "bin" / "pantheon", "--endpoint", self.daemon.endpoint, "generate", "-p", "x", "-n", "4000", "--raw"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.assertTrue(os.read(process.stdout.fileno(), 1))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), INTERRUPTED)
        process.stdout.close()
        end = time.monotonic() + 10
        with self.daemon.client() as client:
            while client.call("status")["engines"][0]["slots"]["busy"] > 0:
                self.assertLess(time.monotonic(), end, "the slot is still busy")
                time.sleep(0.05)


class WithoutDaemonTest(unittest.TestCase):
    def test_an_absent_daemon_is_3_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            result = pantheon("--endpoint", f"ipc://{folder}/nobody.sock", "ping")
            self.assertEqual(result.returncode, UNREACHABLE)
            self.assertIn(b"nobody.sock", result.stderr)

    def test_wrong_usage_is_2_and_help_is_0(self):
        for arguments in ((), ("no-such-command",), ("generate", "--no-such-option"), ("score",)):
            self.assertEqual(pantheon(*arguments).returncode, USAGE, arguments)
        for arguments in (("--help",), ("generate", "--help"), ("score", "--help")):
            result = pantheon(*arguments)
            self.assertEqual((result.returncode, result.stderr), (DONE, b""))
            self.assertIn(b"pantheon", result.stdout)

    def test_info_describes_a_file_and_refuses_what_is_none(self):
        info = json.loads(pantheon("info", small_model(), "--json").stdout)
        self.assertEqual(info["arch"], "qwen35moe")
        names = {tensor["name"] for tensor in info["tensors"]}
        self.assertIn("token_embd.weight", names)
        self.assertEqual(set(info["tensors"][0]), {"name", "type", "ne", "offset", "bytes", "file"})
        self.assertEqual(pantheon("info", Path(__file__)).returncode, REFUSED)

    def test_the_same_logits_for_every_chunk_and_thread_count(self):
        with tempfile.TemporaryDirectory() as folder:
            ids = Path(folder, "ids.txt")
            ids.write_text(" ".join(str(7 * i * i % 250) for i in range(150)), encoding="ascii")
            rows = {}
            for chunk in (1, 7, 64, 512):
                for threads in (1, 2):
                    out = Path(folder, f"{chunk}-{threads}.f32")
                    result = pantheon(
                        "score", "--model", small_model(), "--tokens", ids, "--logits", out,
                        "--backend", "ref", "--chunk", str(chunk), "--threads", str(threads),
                    )  # fmt: skip
                    self.assertEqual(result.returncode, DONE, result.stderr)
                    rows[chunk, threads] = out.read_bytes()
            self.assertEqual(len(set(rows.values())), 1, "the bits depend on chunk or threads")


    def test_perplexity_of_a_text(self):
        text = "The quick brown fox jumps over the lazy dog. " * 8
        command = ("perplexity", "--model", small_model(), "--text")
        lines = {}
        for backend in ("ref", "cpu"):
            result = pantheon(*command, "-", "--backend", backend, given=text.encode())
            self.assertEqual(result.returncode, DONE, result.stderr)
            lines[backend] = result.stdout.decode()
            self.assertRegex(lines[backend], r"^perplexity [0-9.]+, mean negative log-likelihood [0-9.]+ ± ")
        exact, fast = (float(line.split()[1].rstrip(",")) for line in lines.values())
        self.assertLess(abs(fast / exact - 1), 0.05)
        result = pantheon(*command, "-", "--n-ctx", "10", given=text.encode())
        self.assertRegex(result.stdout.decode(), r"over 9 tokens \(the text has [0-9]+ more\)$")
        for words, says in ((("-",), b"one token or none"), (("-", "--window", "1"), b"q4_0"), (("/no/such",), b"")):
            result = pantheon(*command, *words, given=b"")
            self.assertIn(result.returncode, (REFUSED, USAGE))
            self.assertIn(says, result.stderr)

    def test_bench_prints_what_it_measured(self):
        command = ("bench", "--model", small_model(), "-p", "8", "-n", "2", "--batch", "1,3", "--depth", "0,5")
        command += ("--repetitions", "2", "--threads", "1")
        result = pantheon(*command, "--json")
        self.assertEqual(result.returncode, DONE, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(sorted(report), ["backend", "isa", "kv", "model", "repack", "rows", "threads"])
        self.assertEqual((report["backend"], report["kv"], report["threads"]), ("cpu", "f16", 1))
        rows = [(row["test"], row["n"], row["batch"], row["depth"]) for row in report["rows"]]
        each = [("pp", 8, 1), ("tg", 2, 1), ("tg", 2, 3)]
        self.assertEqual(rows, [(*row, depth) for depth in (0, 5) for row in each])
        for row in report["rows"]:
            self.assertEqual(len(row), 8, row)
            self.assertTrue(0 < row["min"] <= row["tps"] <= row["max"], row)
            self.assertGreater(row["gbps"], 0)
        text = pantheon(*command).stdout.decode()
        self.assertRegex(text, r"(?m)^tg 2 +3 +5 +[0-9.]+ +[0-9.]+ … [0-9.]+ +[0-9.]+ +([0-9]+ %|\?)$")
        result = pantheon("bench", "--model", "/no/such", "-p", "1")
        self.assertEqual(result.returncode, REFUSED)
        self.assertIn(b"/no/such", result.stderr)
        self.assertEqual(pantheon("bench", "-p", "0", "-n", "0").returncode, USAGE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
