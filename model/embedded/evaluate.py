#!/usr/bin/python3
"""Asks a model the questions of a file through pantheond, greedily, and counts the answers that hold the fact.

    /usr/bin/python3 model/embedded/evaluate.py [--build FOLDER] [--model FILE] QUESTIONS.jsonl

Each line of the file is {"question": ..., "any_of": [...]}: the answer counts if it holds one of these texts, letter case
and spaces aside; "all_of", if given, must all be in it. Ends with 1 if the share is below --at-least.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ipc" / "python"))
from pantheon_client import Client, Unreachable  # noqa: E402

START_TIMEOUT_S = 60
AT_ONCE = 16


class Daemon:
    """A pantheond of its own on a model, for as long as the `with` block lasts."""

    def __init__(self, build, model):
        self._folder = tempfile.TemporaryDirectory(prefix="pantheon-evaluate-")
        folder = pathlib.Path(self._folder.name)
        self.endpoint = f"ipc://{folder}/pantheond.sock"
        config = folder / "pantheond.toml"
        config.write_text(f'model.path = "{model.resolve()}"\nipc.endpoint = "{self.endpoint}"\n', encoding="utf-8")
        self._log = open(folder / "log", "w+", encoding="utf-8", errors="replace")
        command = [build / "bin" / "pantheond", "--config", config, "--foreground"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    def __enter__(self):
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end and self._process.poll() is None:
            try:
                return Client(self.endpoint, timeout_s=0.5)
            except Unreachable:
                pass
        self._log.seek(0)
        log = self._log.read()
        self.__exit__()
        sys.exit(f"pantheond does not answer; its log:\n{log}")

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()


def ask(client, questions, thinking=True, max_tokens=400):
    """The replies to all questions, each of which is a conversation of one message; AT_ONCE of them at a time."""
    replies, waiting = [], []
    for question in questions:
        message = [{"role": "user", "content": question}]
        waiting.append(client.stream(messages=message, temperature=0, thinking=thinking, max_tokens=max_tokens, stream=False))
        if len(waiting) == AT_ONCE:
            replies.append(waiting.pop(0).reply)
    return replies + [stream.reply for stream in waiting]


def _plain(text):
    return " ".join(text.lower().replace("`", "").split())


def holds(answer, item):
    answer = _plain(answer)
    any_of, all_of = item.get("any_of", []), item.get("all_of", [])
    return (not any_of or any(_plain(f) in answer for f in any_of)) and all(_plain(f) in answer for f in all_of)


def main():
    parser = argparse.ArgumentParser(description="Counts the answers of a model that hold the expected fact.")
    parser.add_argument("questions", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--model", type=pathlib.Path, default=pathlib.Path(__file__).with_name("pantheon-tiny.gguf"))
    parser.add_argument("--no-thinking", action="store_true")
    parser.add_argument("--at-least", type=float, default=0.0, help="the share (0 to 1) that must be reached")
    parser.add_argument("--quiet", action="store_true", help="do not print the answers that miss")
    args = parser.parse_args()
    items = [json.loads(line) for line in args.questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not items:
        sys.exit(f"{args.questions}: no questions")
    with Daemon(args.build, args.model) as client:
        replies = ask(client, [item["question"] for item in items], thinking=not args.no_thinking)
    good = 0
    for item, reply in zip(items, replies):
        if holds(reply.text, item):
            good += 1
        elif not args.quiet:
            print(f"MISSED {item['question']!r}\n  wanted {item.get('any_of') or item.get('all_of')}\n  answer {reply.text!r}")
    share = good / len(items)
    print(f"{good} of {len(items)} answers hold the fact ({share:.1%})")
    return 0 if share >= args.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
