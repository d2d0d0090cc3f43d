#!/usr/bin/env python3
"""`pantheon chat` on a terminal of its own, against a daemon that does what each test says."""

import argparse
import fcntl
import os
import pty
import select
import signal
import stat
import subprocess
import tempfile
import termios
import time
import unittest
from pathlib import Path

import cli_process_test as cli
from cli_process_test import DONE, INTERRUPTED, PATIENCE_S, ScriptedDaemon, accepted, done, token

CTRL_C, CTRL_D, CTRL_U, UP = b"\x03", b"\x04", b"\x15", b"\x1b[A"
PROMPT = b"> "
DIM, PLAIN, CLEAR_LINE = b"\x1b[2m", b"\x1b[0m", b"\r\x1b[K"


def progress(phase, n_done, total):
    return {"ev": "progress", "phase": phase, "done": n_done, "total": total}


class Chat:
    """A chat on a pseudo-terminal: type into it, wait for what it shows."""

    def __init__(self, endpoint, home, *options):
        self._terminal, side = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "HOME": str(home), "LANG": "C.UTF-8"}
        environment.pop("XDG_STATE_HOME", None)
        self.process = subprocess.Popen(
            [cli.PANTHEON, "--endpoint", endpoint, "chat", *options],
            stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(side)
        self.shown = b""
        self._seen = 0
        self.expect(PROMPT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def type(self, data):
        os.write(self._terminal, data)

    def say(self, line):
        """Types a line and waits until the next prompt has come."""
        self.type(line.encode() + b"\r")
        self.expect(b"\n")
        self.expect(PROMPT)

    def expect(self, wanted):
        """Waits until it shows that, after what was expected before; returns what came up to its end."""
        end = time.monotonic() + PATIENCE_S
        while True:
            at = self.shown.find(wanted, self._seen)
            if at >= 0:
                begin, self._seen = self._seen, at + len(wanted)
                if wanted == PROMPT:
                    self._await_editor(end)
                return self.shown[begin : self._seen]
            if time.monotonic() > end or not self._read(end - time.monotonic()):
                raise AssertionError(f"{wanted!r} did not come; shown since: {self.shown[self._seen:]!r}")

    def _await_editor(self, end):
        """The prompt may be shown a moment before the line editor has the terminal; what is typed in between is the
        kernel's line, which Ctrl-C empties and the editor never sees."""
        while self.process.poll() is None and time.monotonic() < end:
            if not termios.tcgetattr(self._terminal)[3] & termios.ICANON:
                return
            time.sleep(0.005)

    def _read(self, timeout_s):
        if not select.select([self._terminal], [], [], max(0, timeout_s))[0]:
            return False
        try:
            data = os.read(self._terminal, 4096)
        except OSError:  # the other side is closed
            return False
        self.shown += data
        return bool(data)

    def leave(self):
        """Ctrl-D on an empty line. What is typed before the line editor has the terminal back may be lost or end up in
        the line, so a person clears the line and types it again."""
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.type(CTRL_U + CTRL_D)
            except OSError:  # it has just ended
                break
            self._read(0.2)
        if self.wait() != DONE:
            raise AssertionError(f"ended with {self.process.returncode}; shown: {self.shown!r}")

    def wait(self):
        while self._read(PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)


class ChatTest(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory(prefix="pantheon-chat-")
        self.addCleanup(home.cleanup)
        self.home = Path(home.name)

    def open(self, script, *options):
        daemon = self.enterContext(ScriptedDaemon(script))
        return daemon, self.enterContext(Chat(daemon.endpoint, self.home, *options))

    @staticmethod
    def answer(request):
        text = f"reply {len(request.get('messages', []))}"
        return [accepted(), token(0, "hm", "reasoning"), token(1, text), done(text=text, reasoning="hm")]

    def test_each_line_is_sent_with_what_was_said_before(self):
        daemon, chat = self.open(self.answer)
        chat.say("Grüße, 漢字")
        chat.say("and again")
        self.assertIn(DIM + b"hm" + PLAIN, chat.shown)
        self.assertIn(b"reply 1", chat.shown)
        self.assertEqual(daemon.requests[0]["messages"], [{"role": "user", "content": "Grüße, 漢字"}])
        self.assertEqual(
            daemon.requests[1]["messages"],
            [
                {"role": "user", "content": "Grüße, 漢字"},
                {"role": "assistant", "content": "reply 1", "reasoning_content": "hm"},
                {"role": "user", "content": "and again"},
            ],
        )
        self.assertNotIn("thinking", daemon.requests[0])
        chat.leave()

    def test_commands_change_what_is_sent(self):
        daemon, chat = self.open(self.answer, "--thinking-budget", "9", "-n", "7", "--temp", "0")
        for line in ("/think off", "/system Be brief.", "one", "/think on", "two", "/clear", "/think", "/system",
                     "//three"):  # fmt: skip
            chat.say(line)
        one, two, three = daemon.requests
        self.assertEqual((one["thinking"], two["thinking"]), (False, True))
        self.assertNotIn("thinking", three)
        self.assertEqual(one["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual(len(two["messages"]), 4)
        self.assertEqual(three["messages"], [{"role": "user", "content": "/three"}])
        self.assertEqual((one["thinking_budget"], one["max_tokens"], one["temperature"]), (9, 7, 0))
        chat.type(b"/stats\r")
        chat.expect(b"3 prompt tokens (0 cached), 4 generated (1 reasoning)")
        chat.type(b"/help\r")
        chat.expect(b"/think on|off")
        chat.type(b"/thnik on\r")
        chat.expect(b"the nearest one is /think")
        chat.type(b"/quit\r")
        self.assertEqual(chat.wait(), DONE)

    def test_a_text_may_have_several_lines(self):
        daemon, chat = self.open(self.answer)
        chat.type(b"first\\\r")
        chat.expect(b"| ")
        chat.say("second")
        chat.type(b'"""\r')
        chat.expect(b"| ")
        chat.type(b"a\r")
        chat.expect(b"| ")
        chat.type(b"\r")
        chat.expect(b"| ")
        chat.type(b"b\r")
        chat.expect(b"| ")
        chat.say('"""')
        said = [request["messages"][-1]["content"] for request in daemon.requests]
        self.assertEqual(said, ["first\nsecond", "a\n\nb"])

    @staticmethod
    def endless(request):
        if request["op"] == "generate":
            yield accepted()
            yield token(0, "begun")
        else:
            yield {"ev": "result", "cancelled": True}
            yield {**done("cancelled", "begun"), "id": request["target"]}

    def test_ctrl_c_cancels_the_answer_and_the_chat_goes_on(self):
        daemon, chat = self.open(self.endless)
        chat.type(b"go\r")
        chat.expect(b"begun")
        chat.type(CTRL_C)
        chat.expect(b"(cancelled)")
        chat.expect(PROMPT)
        self.assertEqual([request["op"] for request in daemon.requests], ["generate", "cancel"])
        chat.type(b"more\r")
        chat.expect(b"begun")
        # What had come before the cancel is part of the conversation.
        self.assertEqual(daemon.requests[-1]["messages"][1], {"role": "assistant", "content": "begun"})
        chat.type(CTRL_C)
        chat.expect(PROMPT)
        chat.type(CTRL_C)  # nothing runs and nothing is typed: leave
        self.assertEqual(chat.wait(), INTERRUPTED)

    def test_a_second_ctrl_c_leaves_although_the_daemon_does_not_answer(self):
        def script(request):
            if request["op"] == "generate":
                yield accepted()
                yield token(0, "begun")

        _, chat = self.open(script)
        chat.type(b"go\r")
        chat.expect(b"begun")
        chat.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        chat.process.send_signal(signal.SIGINT)
        self.assertEqual(chat.wait(), INTERRUPTED)

    def test_ctrl_c_drops_the_line_that_is_typed(self):
        daemon, chat = self.open(self.answer)
        chat.type(b"not this")
        chat.expect(b"not this")
        chat.type(CTRL_C)
        chat.expect(PROMPT)
        chat.say("but this")
        self.assertEqual([r["messages"][0]["content"] for r in daemon.requests], ["but this"])

    def test_a_line_says_how_far_the_prompt_is_read_and_goes_away(self):
        def script(_):
            yield accepted()
            yield progress("queued", 0, 4000)
            yield progress("prefill", 128, 4000)
            yield token(0, "done with it")
            yield done(text="done with it")

        _, chat = self.open(script)
        chat.say("long")
        waiting = chat.shown.find(b"waiting for a free slot")
        reading = chat.shown.find(CLEAR_LINE + DIM + b"reading the prompt: 128 of 4000 tokens" + PLAIN)
        text = chat.shown.find(CLEAR_LINE + b"done with it")
        self.assertTrue(0 < waiting < reading < text, chat.shown)

    def test_lines_are_remembered_for_this_user_only(self):
        daemon, chat = self.open(self.answer)
        chat.say("the first")
        chat.type(UP + b"\r")
        chat.expect(b"reply")
        chat.expect(PROMPT)
        chat.leave()
        file = self.home / ".local" / "state" / "pantheon" / "chat_history"
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        later = self.enterContext(Chat(daemon.endpoint, self.home))
        later.type(UP + b"\r")
        later.expect(b"reply")
        self.assertEqual([r["messages"][-1]["content"] for r in daemon.requests], ["the first"] * 3)

    def test_a_refusal_is_said_and_the_question_is_forgotten(self):
        refusals = iter([{"ev": "error", "code": "resource_exhausted", "message": "full"}])

        def script(request):
            for refusal in refusals:
                return [refusal]
            return self.answer(request)

        daemon, chat = self.open(script)
        chat.type(b"one\r")
        chat.expect(b"resource_exhausted: full")
        chat.expect(PROMPT)
        chat.say("two")
        self.assertEqual(daemon.requests[1]["messages"], [{"role": "user", "content": "two"}])

    def test_without_a_terminal_there_are_lines_in_and_plain_text_out(self):
        with ScriptedDaemon(self.answer) as daemon:
            result = cli.run("chat", "--no-thinking", given=b"one\ntwo\\\nmore\n/stats\n", endpoint=daemon.endpoint)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual(result.stdout, b"reply 1reply 3")
        self.assertNotIn(b"\x1b", result.stdout + result.stderr)
        self.assertEqual(daemon.requests[1]["messages"][-1]["content"], "two\nmore")
        self.assertIs(daemon.requests[0]["thinking"], False)

    def test_no_daemon_is_said_at_once(self):
        result = cli.run("chat", endpoint="ipc:///nowhere/at.all")
        self.assertEqual(result.returncode, cli.UNREACHABLE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pantheon", type=Path, required=True, help="the program under test")
    cli.PANTHEON = parser.parse_args().pantheon.resolve()
    unittest.main(argv=["chat_process_test"], verbosity=2)
