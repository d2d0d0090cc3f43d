"""The questions of questions.jsonl, put to a running daemon."""

import json
from collections import deque
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MAX_TOKENS = 200
AT_ONCE = 16  # as many as the daemon runs together


def embedded_model():
    return FOLDER.parents[1] / "model" / "embedded" / "pantheon-tiny.gguf"


def questions():
    """[{"question": ..., "any_of": [accepted words]}]"""
    lines = (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def contains(answer, any_of):
    return any(words.casefold() in answer.casefold() for words in any_of)


def messages_of(texts):
    """User and assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def replies(daemon, conversations):
    """The `done` or `error` map for each conversation (texts in turn), greedy, AT_ONCE of them at a time."""
    result, waiting = [], deque()
    with daemon.client() as client:
        for texts in conversations:
            if len(waiting) == AT_ONCE:
                result.append(client.rest(waiting.popleft())[-1])
            waiting.append(
                client.send("generate", messages=messages_of(texts), temperature=0.0, max_tokens=MAX_TOKENS, stream=False)
            )
        return result + [client.rest(request)[-1] for request in waiting]


def answers(daemon, conversations):
    """What the model says; nothing where the request failed, as a damaged model's may."""
    return [reply.get("text", "") for reply in replies(daemon, conversations)]


def share_of_right_answers(daemon, asked):
    said = answers(daemon, [[item["question"]] for item in asked])
    return sum(contains(text, item["any_of"]) for text, item in zip(said, asked)) / len(asked)
