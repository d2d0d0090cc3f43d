"""The connection: one DEALER socket, any number of requests at once."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import msgpack
import zmq
from zmq.utils.monitor import recv_monitor_message

from .values import (
    PantheonError,
    Progress,
    Reply,
    Token,
    Unreachable,
    accepted_from,
    error_from,
    progress_from,
    reply_from,
    token_from,
)

_PING_AFTER_SILENCE_S = 10.0
_GIVE_UP_AFTER_SILENCE_S = 30.0
_SERVICE_ENDPOINT = "ipc:///run/pantheon/pantheond.sock"

Message = dict[str, Any]


def default_endpoints() -> list[str]:
    """Where a daemon is looked for: the service's socket, then the user's own."""
    endpoints = [_SERVICE_ENDPOINT]
    if runtime_dir := os.environ.get("XDG_RUNTIME_DIR"):
        endpoints.append(f"ipc://{runtime_dir}/pantheond.sock")
    return endpoints


class Stream:
    """One generation under way. Iterate over it for its tokens; afterwards `reply` has the whole of it.

    Leaving a `with` block early cancels it, so that the daemon does not go on for nobody.
    """

    def __init__(self, client: Client, request_id: int, on_progress: Callable[[Progress], None] | None) -> None:
        self._client = client
        self._on_progress = on_progress
        self._reply: Reply | None = None
        self.id = request_id
        #: What was chosen for this request; None until it was accepted.
        self.seed: int | None = None
        self.max_tokens: int | None = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Token]:
        while self._reply is None:
            token = self._step()
            if token is not None:
                yield token

    @property
    def reply(self) -> Reply:
        """The finished generation; waits for its end. Raises PantheonError when it failed."""
        for _ in self:
            pass
        assert self._reply is not None
        return self._reply

    def cancel(self) -> None:
        """Asks the daemon to end it; what it gave so far is in `reply`, with finish "cancelled"."""
        if self._reply is None:
            self._client._send("cancel", target=self.id)

    def close(self) -> None:
        """Cancels it unless it is over, and forgets what still comes."""
        if self._reply is None and self._client._is_waiting_for(self.id):
            try:
                self.cancel()
            except PantheonError:
                pass  # the connection is gone, and the generation with it
            self._client._forget(self.id)

    def _step(self) -> Token | None:
        event = self._client._next_event(self.id)
        kind = event["ev"]
        if kind == "token":
            return token_from(event)
        if kind == "accepted":
            accepted = accepted_from(event)
            self.seed, self.max_tokens = accepted.seed, accepted.max_tokens
        elif kind == "progress" and self._on_progress is not None:
            self._on_progress(progress_from(event))
        elif kind == "error":
            self._client._forget(self.id)
            raise error_from(event)
        elif kind == "done":
            self._client._forget(self.id)
            if event["finish"] == "error":
                raise error_from(event)
            self._reply = reply_from(event, self.seed)
        return None


class Client:
    """A connection to pantheond. Use it from one thread; make one for each thread that needs one.

    endpoint: "ipc:///path" or "tcp://host:port"; None tries the places of default_endpoints() in turn.
    Raises Unreachable when nobody answers within `timeout_s`.
    """

    def __init__(self, endpoint: str | None = None, timeout_s: float = 2.0) -> None:
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._monitor: zmq.Socket[bytes] | None = None
        self._events: dict[int, deque[Message]] = {}
        self._last_id = 0
        tried = []
        for place in [endpoint] if endpoint else default_endpoints():
            self._open(place)
            try:
                self._call("ping", timeout_s)
                #: The endpoint that answered.
                self.endpoint: str = place
                return
            except Unreachable as failure:
                tried.append(f"{place}: {failure.message}")
                self._close_socket()
        self._context.term()
        raise Unreachable("; ".join(tried))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; requests under way are cancelled by the daemon."""
        self._close_socket()
        self._context.term()

    # ---- generation

    def stream(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[Message] | None = None,
        tokens: Sequence[int] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **fields: Any,
    ) -> Stream:
        """Starts a generation from exactly one of `prompt` (raw text), `messages` (a chat) and `tokens`.

        `fields` are those of `generate` in ipc/protocol.md: max_tokens, stop, temperature, top_k, top_p, min_p,
        repeat_penalty, presence_penalty, frequency_penalty, seed, logit_bias, logprobs, thinking, thinking_budget,
        tools, priority, deadline_ms and so on. What is None is left out. `on_progress` is called while a token
        cannot come yet.
        """
        fields.update(prompt=prompt, messages=messages, tokens=tokens)
        return Stream(self, self._send("generate", **fields), on_progress)

    def generate(self, prompt: str | None = None, **fields: Any) -> Reply:
        """Like stream(), waiting for the whole reply."""
        if "logprobs" not in fields:  # those come with token events
            fields.setdefault("stream", False)
        return self.stream(prompt, **fields).reply

    def chat(self, messages: Sequence[Message], **fields: Any) -> Reply:
        """The model's answer to a conversation in OpenAI's form."""
        return self.generate(messages=messages, **fields)

    def cancel(self, request_id: int | str) -> bool:
        """Ends a request of this user on any of their connections; False when there is none of that id."""
        return bool(self._call("cancel", target=request_id)["cancelled"])

    # ---- everything else has one reply

    def status(self) -> Message:
        """The daemon's state, as `pantheon status --json` prints it."""
        return self._call("status")

    def ping(self) -> float:
        """Seconds of a round trip."""
        begin = time.monotonic()
        self._call("ping")
        return time.monotonic() - begin

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return list(self._call("tokenize", text=text, special=special)["tokens"])

    def detokenize(self, tokens: Sequence[int], *, special: bool = True) -> bytes:
        return bytes(self._call("detokenize", tokens=list(tokens), special=special)["bytes"])

    def template(self, messages: Sequence[Message], **fields: Any) -> str:
        """The prompt that a conversation becomes."""
        return str(self._call("template", messages=list(messages), **fields)["text"])

    def score(self, tokens: Sequence[int], *, top: int = 0) -> Message:
        """Natural logarithms of the probabilities of tokens given those before: {"logprobs": …, "top": …}."""
        return self._call("score", timeout_s=None, tokens=list(tokens), top=top)

    def reload(self, *, dry_run: bool = False) -> Message:
        """Administrators: what was applied and what waits for a restart. Raises when the file is broken."""
        return self._call("reload", dry_run=dry_run)

    # ---- the socket

    def _open(self, endpoint: str) -> None:
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        # A daemon that comes back knows nothing of our requests, so a lost connection stays lost.
        self._socket.reconnect_ivl = -1
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as failure:
            self.close()
            raise PantheonError("invalid_argument", f"endpoint: {endpoint}: {failure}") from failure

    def _close_socket(self) -> None:
        if self._socket is not None:
            if self._monitor is not None:
                self._socket.disable_monitor()
                self._monitor.close(linger=0)
            self._socket.close()
        self._socket = self._monitor = None

    def _send(self, op: str, **fields: Any) -> int:
        if self._socket is None:
            raise Unreachable("the connection is closed")
        self._last_id += 1
        given = {name: value for name, value in fields.items() if value is not None}
        message = msgpack.packb({"v": 1, "id": self._last_id, "op": op, **given})
        try:
            self._socket.send(message, zmq.DONTWAIT)
        except zmq.Again:
            raise Unreachable("the daemon does not take what is sent") from None
        self._events[self._last_id] = deque()
        return self._last_id

    def _call(self, op: str, timeout_s: float | None = 60.0, **fields: Any) -> Message:
        request_id = self._send(op, **fields)
        try:
            event = self._next_event(request_id, timeout_s)
        finally:
            self._forget(request_id)
        if event["ev"] == "error":
            raise error_from(event)
        return {name: value for name, value in event.items() if name not in ("id", "ev")}

    def _is_waiting_for(self, request_id: int) -> bool:
        return request_id in self._events

    def _forget(self, request_id: int) -> None:
        self._events.pop(request_id, None)

    def _next_event(self, request_id: int, timeout_s: float | None = None) -> Message:
        """The next event of a request; those of others that come meanwhile are kept for them."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        last_sign = time.monotonic()
        is_pinged = False
        if request_id not in self._events:
            raise PantheonError("failed_precondition", "this request is over")
        while not self._events[request_id]:
            now = time.monotonic()
            silence = now - last_sign
            if end is not None and now >= end:
                raise Unreachable(f"no answer within {timeout_s} s")
            if silence > _GIVE_UP_AFTER_SILENCE_S:
                raise Unreachable(f"no sign of the daemon for {_GIVE_UP_AFTER_SILENCE_S:.0f} s")
            if silence > _PING_AFTER_SILENCE_S and not is_pinged:
                self._forget(self._send("ping"))
                is_pinged = True
            if self._receive(min(1.0, 1.0 if end is None else end - now)):
                last_sign = time.monotonic()
                is_pinged = False
        return self._events[request_id].popleft()

    def _receive(self, timeout_s: float) -> bool:
        """Sorts in one message; False when none came in time."""
        if self._socket is None or self._monitor is None:
            raise Unreachable("the connection is closed")
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        ready = dict(poller.poll(max(0, int(timeout_s * 1000))))
        if self._socket in ready:
            event = msgpack.unpackb(self._socket.recv())
            request_id = event.get("id")
            if request_id is None:  # the daemon could not read something: it is about all of us
                raise error_from(event)
            if request_id in self._events:
                self._events[request_id].append(event)
            return True
        if self._monitor in ready:
            recv_monitor_message(self._monitor)
            self._close_socket()
            raise Unreachable("the daemon closed the connection")
        return False
