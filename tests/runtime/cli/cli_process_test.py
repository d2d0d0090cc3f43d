#!/usr/bin/env python3
"""The `pantheon` program against a daemon that does exactly what each test says, and against none."""

import argparse
import json
import os
import signal
import stat
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import msgpack
import zmq

DONE, REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
PATIENCE_S = 60

USAGE_COUNTS = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 4, "reasoning_tokens": 1}
TIMINGS = {"queue_ms": 0.0, "prefill_ms": 1.0, "first_token_ms": 2.0, "decode_ms": 3.0}


def accepted():
    return {"ev": "accepted", "queue": 0, "seed": 7, "max_tokens": 8}


def token(i, text, kind="content"):
    return {"ev": "token", "i": i, "token": i, "text": text, "kind": kind}


def done(finish="stop", text="", **more):
    fields = {"ev": "done", "finish": finish, "text": text, "reasoning": "", "tool_calls": [], "usage": USAGE_COUNTS,
              "timings": TIMINGS, "notes": []}  # fmt: skip
    return {**fields, **more}


class ScriptedDaemon:
    """Answers pings by itself, and each other request with what `script(request)` yields; keeps all requests."""

    def __init__(self, script):
        self.requests = []
        self._script = script
        self._folder = tempfile.TemporaryDirectory(prefix="pantheon-cli-")
        self.endpoint = f"ipc://{self._folder.name}/d.sock"
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.linger = 0
        self._socket.bind(self.endpoint)
        self._is_over = False
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over = True
        self._thread.join()
        self._socket.close()
        self._context.term()
        self._folder.cleanup()

    def _serve(self):
        while not self._is_over:
            if not self._socket.poll(20):
                continue
            client, *_, frame = self._socket.recv_multipart()
            request = msgpack.unpackb(frame)
            is_ping = request["op"] == "ping"
            if not is_ping:
                self.requests.append(request)
            for reply in [{"ev": "result"}] if is_ping else self._script(request):
                message = {"id": request["id"], **reply}
                self._socket.send_multipart([client, msgpack.packb(message)])


def run(*arguments, given=b"", endpoint=None, environment=None):
    command = [PANTHEON, *(["--endpoint", endpoint] if endpoint else []), *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, timeout=PATIENCE_S, check=False, env=environment
    )


class AgainstADaemonTest(unittest.TestCase):
    def check(self, script, *arguments, code, out=None, err=None, given=b""):
        """Runs a command against a scripted daemon; returns its one request."""
        with ScriptedDaemon(script) as daemon:
            result = run(*arguments, given=given, endpoint=daemon.endpoint)
        self.assertEqual(result.returncode, code, result.stderr)
        if out is not None:
            self.assertEqual(result.stdout, out)
        if err is not None:
            self.assertEqual(result.stderr, err)
        self.assertEqual(len(daemon.requests), 1)
        return daemon.requests[0]

    def test_content_goes_to_stdout_and_reasoning_to_stderr(self):
        def script(_):
            yield accepted()
            yield {"ev": "progress", "phase": "prefill", "done": 1, "total": 3}
            yield token(0, "hm", "reasoning")
            yield token(1, "Hé")
            yield token(2, "")
            yield token(3, "llo\n!")
            yield done(text="Héllo\n!")

        request = self.check(script, "generate", "-p", "hi", code=DONE, out="Héllo\n!".encode(), err=b"hm\n")
        self.assertEqual(request["op"], "generate")
        self.assertEqual(request["v"], 1)
        self.assertEqual(request["messages"], [{"role": "user", "content": "hi"}])
        for absent in ("prompt", "max_tokens", "temperature", "seed", "thinking"):
            self.assertNotIn(absent, request)

    def test_options_become_fields(self):
        request = self.check(
            lambda _: [accepted(), done()],
            "generate", "-p", "hi", "-n", "5", "--temp", "0.5", "--seed", "18446744073709551615", "--no-thinking",
            code=DONE,
        )  # fmt: skip
        self.assertEqual(request["max_tokens"], 5)
        self.assertEqual(request["temperature"], 0.5)
        self.assertEqual(request["seed"], 18446744073709551615)
        self.assertIs(request["thinking"], False)

    def test_raw_sends_the_prompt_as_it_is(self):
        request = self.check(lambda _: [accepted(), done()], "generate", "--raw", "-p", "-", given=b"a\nb", code=DONE)
        self.assertEqual(request["prompt"], "a\nb")
        self.assertNotIn("messages", request)

    def test_bytes_that_are_no_text_are_replaced(self):
        request = self.check(lambda _: [accepted(), done()], "generate", "--raw", "-p", b"a\xff\xe4\xb8", code=DONE)
        self.assertEqual(request["prompt"], "a\ufffd\ufffd\ufffd")

    def test_json_prints_the_closing_map_alone(self):
        with ScriptedDaemon(lambda _: [accepted(), token(0, "x"), done("length", "x")]) as daemon:
            result = run("generate", "-p", "hi", "--json", endpoint=daemon.endpoint)
        self.assertEqual((result.returncode, result.stderr), (DONE, b""))
        printed = json.loads(result.stdout)
        want = done("length", "x")
        del want["ev"]
        self.assertEqual(printed, want)

    def test_metrics_prints_the_page_as_it_is(self):
        self.check(lambda _: [{"ev": "result", "text": "# TYPE a counter\na 1\n"}], "metrics", code=DONE,
                   out=b"# TYPE a counter\na 1\n")  # fmt: skip
        self.check(lambda _: [{"ev": "result"}], "metrics", code=REFUSED, out=b"",
                   err=b"pantheon: the daemon sent no text\n")  # fmt: skip

    def test_what_the_daemon_refuses_ends_with_1(self):
        refusal = {"ev": "error", "code": "resource_exhausted", "message": "full", "retry_after_ms": 50}
        self.check(lambda _: [refusal], "generate", "-p", "hi", code=REFUSED, out=b"",
                   err=b"pantheon: resource_exhausted: full (retry in 50 ms)\n")  # fmt: skip
        for command in (["metrics"], ["sessions"], ["drain"], ["reload"]):
            self.check(lambda _: [{"ev": "error", "code": "unimplemented", "message": "later"}], *command, code=REFUSED,
                       out=b"", err=b"pantheon: unimplemented: later\n")  # fmt: skip

    def test_an_answer_that_fails_midway_ends_with_1(self):
        failed = done("error", "x", code="internal", message="the die broke")
        self.check(lambda _: [accepted(), token(0, "x"), failed], "generate", "-p", "hi", code=REFUSED, out=b"x",
                   err=b"pantheon: internal: the die broke\n")  # fmt: skip

    def test_tokens_are_printed_as_they_come_and_ctrl_c_cancels(self):
        def script(request):
            if request["op"] == "generate":
                yield accepted()
                yield token(0, "first")
            else:
                yield {"ev": "result", "cancelled": True}
                yield {**done("cancelled", "first"), "id": daemon.requests[0]["id"]}

        with ScriptedDaemon(script) as daemon:
            process = subprocess.Popen(
                [PANTHEON, "generate", "-p", "hi", "--endpoint", daemon.endpoint], stdout=subprocess.PIPE
            )
            self.assertEqual(os.read(process.stdout.fileno(), 100), b"first")  # flushed: nothing has ended yet
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE_S), INTERRUPTED)
            process.stdout.close()
        self.assertEqual([request["op"] for request in daemon.requests], ["generate", "cancel"])
        self.assertEqual(daemon.requests[1]["target"], daemon.requests[0]["id"])

    def test_a_second_ctrl_c_does_not_wait(self):
        with ScriptedDaemon(lambda request: [accepted(), token(0, "x")] if request["op"] == "generate" else []) as daemon:
            process = subprocess.Popen(
                [PANTHEON, "generate", "-p", "hi", "--endpoint", daemon.endpoint], stdout=subprocess.PIPE
            )
            os.read(process.stdout.fileno(), 100)
            process.send_signal(signal.SIGINT)
            while len(daemon.requests) < 2:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(5), INTERRUPTED)
            process.stdout.close()

    def test_a_stdout_that_is_full_ends_with_1(self):
        with ScriptedDaemon(lambda _: [accepted(), token(0, "x"), done(text="x")]) as daemon, open("/dev/full", "wb") as full:
            result = subprocess.run(
                [PANTHEON, "generate", "-p", "hi", "--endpoint", daemon.endpoint],
                stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False,
            )  # fmt: skip
        self.assertEqual(result.returncode, REFUSED)

    def test_text_commands_ask_the_daemon(self):
        request = self.check(lambda _: [{"ev": "result", "tokens": [1, 22, 333]}], "tokenize", "--special", "x",
                             code=DONE, out=b"1 22 333\n")  # fmt: skip
        self.assertEqual((request["text"], request["special"]), ("x", True))
        request = self.check(lambda _: [{"ev": "result", "bytes": b"\xff\0a", "text": "?"}], "detokenize", "1", "2 3",
                             code=DONE, out=b"\xff\0a")  # fmt: skip
        self.assertEqual(request["tokens"], [1, 2, 3])
        messages = [{"role": "user", "content": "é"}]
        request = self.check(lambda _: [{"ev": "result", "text": "P", "tokens": [1]}], "template", "-", "--no-thinking",
                             "--no-generation-prompt", given=json.dumps(messages).encode(), code=DONE, out=b"P")  # fmt: skip
        self.assertEqual(request["messages"], messages)
        self.assertIs(request["thinking"], False)
        self.assertIs(request["add_generation_prompt"], False)

    def test_status_for_people_and_as_json(self):
        status = {"version": "9", "protocol": 1, "state": "ready", "engines": []}
        self.check(lambda _: [{"ev": "result", **status}], "status", code=DONE,
                   out=b"daemon    ready, version 9, protocol 1\n")  # fmt: skip
        with ScriptedDaemon(lambda _: [{"ev": "result", **status}]) as daemon:
            self.assertEqual(json.loads(run("status", "--json", endpoint=daemon.endpoint).stdout), status)

    def test_cancel_takes_numbers_and_names(self):
        yes, no = [{"ev": "result", "cancelled": True}], [{"ev": "result", "cancelled": False}]
        self.assertEqual(self.check(lambda _: yes, "cancel", "17", code=DONE)["target"], 17)
        self.assertEqual(self.check(lambda _: no, "cancel", "a7", code=REFUSED)["target"], "a7")

    def test_ping_names_the_endpoint(self):
        with ScriptedDaemon(lambda _: []) as daemon:
            result = run("ping", endpoint=daemon.endpoint)
        self.assertEqual(result.returncode, DONE)
        self.assertIn(daemon.endpoint.encode(), result.stdout)

    def test_the_users_own_socket_is_found(self):
        with ScriptedDaemon(lambda _: []) as daemon, tempfile.TemporaryDirectory() as folder:
            os.symlink(daemon.endpoint.removeprefix("ipc://"), f"{folder}/pantheond.sock")
            self.assertEqual(run("ping", environment={"XDG_RUNTIME_DIR": folder}).returncode, DONE)


class WithoutADaemonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="pantheon-cli-")
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = Path(cls._folder.name)
        cls.model = str(cls.folder / "m.gguf")
        subprocess.run([PANTHEON.parent / "make_model", cls.model], check=True, stdout=subprocess.DEVNULL)

    def test_nobody_there_is_3(self):
        for command in (["ping"], ["status"], ["generate", "-p", "x"], ["tokenize", "x"], ["detokenize", "1"],
                        ["cancel", "1"], ["metrics"]):  # fmt: skip
            result = run(*command, endpoint=f"ipc://{self.folder}/none.sock")
            self.assertEqual((result.returncode, result.stdout), (UNREACHABLE, b""), command)
            self.assertIn(b"none.sock", result.stderr)

    def test_wrong_usage_is_2(self):
        for command in ([], ["nothing"], ["generate"], ["score"], ["chat", "--temp", "x"], ["detokenize", "--model", self.model, "x"],
                        ["template", "--model", self.model, f"{self.folder}/none.json"],
                        ["--endpoint", "nonsense", "ping"]):  # fmt: skip
            result = run(*command)
            self.assertEqual((result.returncode, result.stdout), (USAGE, b""), command)
            self.assertTrue(result.stderr.startswith(b"pantheon"), result.stderr)
        self.assertEqual(run("template", "--model", self.model, "-", given=b"{}").returncode, USAGE)
        self.assertEqual(run("template", "--model", self.model, "-", given=b"[").returncode, USAGE)

    def test_help_is_0_and_on_stdout(self):
        for command in (["--help"], ["generate", "--help"], ["score", "-h"]):
            result = run(*command)
            self.assertEqual((result.returncode, result.stderr), (DONE, b""))
            self.assertIn(b"\nEXIT STATUS\n", result.stdout)

    def test_a_model_that_is_none_is_1(self):
        for command in (["tokenize", "--model", __file__, "x"], ["info", __file__],
                        ["info", f"{self.folder}/none.gguf"]):  # fmt: skip
            result = run(*command)
            self.assertEqual((result.returncode, result.stdout), (REFUSED, b""), command)

    def test_detokenize_inverts_tokenize(self):
        for text in ("", "plain", "Füße \n\t 中文 👩‍👩‍👧 <|im_end|>"):
            for special in ([], ["--special"]):
                ids = run("tokenize", "--model", self.model, *special, "-", given=text.encode()).stdout
                self.assertRegex(ids, rb"^[0-9 ]*\n$")
                self.assertEqual(run("detokenize", "--model", self.model, "-", given=ids).stdout, text.encode())

    def test_a_token_outside_the_vocabulary_is_1(self):
        self.assertEqual(run("detokenize", "--model", self.model, "2147483647").returncode, REFUSED)

    def test_template_renders_without_a_newline_of_its_own(self):
        messages = json.dumps([{"role": "user", "content": "hi"}]).encode()
        result = run("template", "--model", self.model, "-", "--no-generation-prompt", given=messages)
        self.assertEqual(result.stdout, b"<|im_start|>user\nhi<|im_end|>\n")
        self.assertEqual(run("template", "--model", self.model, "-", given=b'[{"role": "x"}]').returncode, REFUSED)

    def test_info_has_its_json_shape(self):
        info = json.loads(run("info", self.model, "--json").stdout)
        self.assertEqual(list(info), ["arch", "kv", "tensors", "types"])
        self.assertEqual(info["arch"], "qwen35moe")
        self.assertEqual(info["kv"]["general.architecture"], "qwen35moe")
        self.assertEqual(sum(info["types"].values()), len(info["tensors"]))
        size = os.stat(self.model).st_size
        for tensor in info["tensors"]:
            self.assertEqual(list(tensor), ["name", "type", "ne", "offset", "bytes", "file"])
            self.assertLessEqual(tensor["offset"] + tensor["bytes"], size)
        self.assertIn(b"token_embd.weight", run("info", self.model).stdout)

    def test_score_writes_a_row_for_each_token_or_nothing(self):
        n_vocab = len(json.loads(run("info", self.model, "--json").stdout)["kv"]["tokenizer.ggml.tokens"])
        ids, out = self.folder / "ids.txt", self.folder / "out.f32"
        score = ["score", "--model", self.model, "--tokens", str(ids), "--logits", str(out)]

        ids.write_text("5 6\n7\t8", encoding="ascii")
        result = run(*score)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (DONE, b"", b""))
        rows = out.read_bytes()
        self.assertEqual(len(rows), 4 * n_vocab * 4)
        self.assertTrue(all(abs(x) < 1e6 for x in struct.unpack(f"<{4 * n_vocab}f", rows)))
        out.unlink()
        self.assertEqual(run(*score, "--chunk", "1", "--threads", "1", "--kv", "f32", "--backend", "ref").returncode, DONE)
        self.assertEqual(out.read_bytes(), rows)
        out.unlink()

        self.assertEqual(run(*score, "--backend", "cpu").returncode, DONE)
        fast = out.read_bytes()
        self.assertEqual(len(fast), len(rows))
        out.unlink()
        self.assertEqual(run(*score, "--backend", "cpu", "--kv", "f16", "--chunk", "1", "--threads", "3").returncode, DONE)
        self.assertEqual(out.read_bytes(), fast)
        out.unlink()

        quantised = {}
        for kv in ("q8_0", "q4_0"):
            self.assertEqual(run(*score, "--backend", "cpu", "--kv", kv).returncode, DONE)
            quantised[kv] = out.read_bytes()
            out.unlink()
            self.assertEqual(run(*score, "--backend", "cpu", "--kv", kv, "--chunk", "1", "--threads", "3").returncode, DONE)
            self.assertEqual(out.read_bytes(), quantised[kv])
            out.unlink()
        self.assertEqual(quantised["q4_0"], fast, "so short a text is read in f16 throughout")
        self.assertEqual(run(*score, "--backend", "cpu", "--kv", "q4_0", "--sink", "0", "--window", "0").returncode, DONE)
        self.assertNotIn(out.read_bytes(), (fast, *quantised.values()))
        out.unlink()

        for more, says in ((["--backend", "cuda"], b"unimplemented: "), (["--sink", "1"], b"belong to --kv q4_0")):
            result = run(*score, *more)
            self.assertEqual(result.returncode, REFUSED)
            self.assertIn(says, result.stderr)
        for text, code in (("5 999999999", REFUSED), ("", REFUSED), ("5 x", USAGE)):
            ids.write_text(text, encoding="ascii")
            self.assertEqual(run(*score).returncode, code, text)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith("out")], [])

    def test_ctrl_c_leaves_no_part_of_a_score(self):
        folder = self.folder / "interrupted"
        folder.mkdir()
        ids = folder / "ids.txt"
        ids.write_text("5 " * 200000, encoding="ascii")
        process = subprocess.Popen(
            [PANTHEON, "score", "--model", self.model, "--tokens", ids, "--logits", folder / "out.f32"]
        )
        end = time.monotonic() + PATIENCE_S
        while len(list(folder.iterdir())) < 2 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), INTERRUPTED)
        self.assertEqual([path.name for path in folder.iterdir()], ["ids.txt"])

    def test_score_into_a_device_keeps_the_device(self):
        result = run("score", "--model", self.model, "--tokens", "-", "--logits", "/dev/null", given=b"1 2 3")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pantheon", type=Path, required=True, help="the program under test")
    PANTHEON = parser.parse_args().pantheon.resolve()
    unittest.main(argv=["cli_process_test"], verbosity=2)
