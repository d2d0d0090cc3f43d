"""What comes back from the daemon, as plain values. Fields that this version does not know are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class PantheonError(Exception):
    """The daemon said no, or a request failed. `code` is one of the codes of ipc/protocol.md, section 7."""

    def __init__(self, code: str, message: str, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after_ms = retry_after_ms


class Unreachable(PantheonError):
    """There is no daemon, or the connection broke. Requests under way on it are lost; make a new Client."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True)
class Accepted:
    """The request waits or runs: how many are ahead of it, and what was chosen for it."""

    queue: int
    seed: int
    max_tokens: int


@dataclass(frozen=True)
class Progress:
    """No token can come yet. `phase` is "queued", "prefill" or "parked"; `done` of `total` prompt tokens are read."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True)
class Token:
    """One accepted token. `token` is None on a last event that only brings text that was held back."""

    i: int
    text: str
    kind: str = "content"  # content | reasoning | tool_call
    token: int | None = None
    logprob: float | None = None
    top: list[tuple[int, float]] = field(default_factory=list)


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model wants called."""

    name: str
    arguments: dict[str, Any]
    incomplete: bool = False


@dataclass(frozen=True)
class Usage:
    """Token counts."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Timings:
    """Milliseconds."""

    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    first_token_ms: float = 0.0
    decode_ms: float = 0.0


@dataclass(frozen=True)
class Reply:
    """A finished generation. `finish` is "stop", "length", "cancelled" or "deadline"."""

    finish: str
    text: str
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    stop_match: str | None = None
    usage: Usage = Usage()
    timings: Timings = Timings()
    notes: list[str] = field(default_factory=list)
    seed: int | None = None


def _known(cls: type, event: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event that the class has."""
    return {name: event[name] for name in cls.__dataclass_fields__ if name in event}  # type: ignore[attr-defined]


def accepted_from(event: dict[str, Any]) -> Accepted:
    return Accepted(**_known(Accepted, event))


def progress_from(event: dict[str, Any]) -> Progress:
    return Progress(**_known(Progress, event))


def token_from(event: dict[str, Any]) -> Token:
    known = _known(Token, event)
    if "top" in known:
        known["top"] = [(token, logprob) for token, logprob in known["top"]]
    return Token(**known)


def reply_from(event: dict[str, Any], seed: int | None) -> Reply:
    known = _known(Reply, event)
    known["tool_calls"] = [ToolCall(**_known(ToolCall, call)) for call in event.get("tool_calls", [])]
    known["usage"] = Usage(**_known(Usage, event.get("usage", {})))
    known["timings"] = Timings(**_known(Timings, event.get("timings", {})))
    known["seed"] = seed
    return Reply(**known)


def error_from(event: dict[str, Any]) -> PantheonError:
    return PantheonError(
        event.get("code", "internal"), event.get("message", "no message"), event.get("retry_after_ms")
    )
