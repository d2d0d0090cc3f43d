"""A wire-level client for the tests: it sends maps, sorts what comes back by id, and hides nothing."""

import time
from collections import defaultdict, deque

import msgpack
import zmq

END_TEXTS = ("<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
EVENT_TIMEOUT_S = 60  # "stuck", also under sanitizers on a busy machine


class Silence(RuntimeError):
    """Nothing came within the time."""


class Client:
    """A DEALER socket. `send` gives the request's id; `next_event(id)` its next event."""

    def __init__(self, endpoint):
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(endpoint)
        self._waiting = defaultdict(deque)
        self._n_sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, op, **fields):
        self._n_sent += 1
        request = {"v": 1, "id": fields.pop("id", f"r{self._n_sent}"), "op": op, **fields}
        self.send_raw(msgpack.packb(request))
        return request["id"]

    def send_raw(self, *frames):
        self._socket.send_multipart(list(frames))

    def next_event(self, request_id, timeout_s=EVENT_TIMEOUT_S, may_be_absent=False):
        """The next event of that request; others that come meanwhile are kept for later."""
        end = time.monotonic() + timeout_s
        while not self._waiting[request_id]:
            left_ms = max(0, int((end - time.monotonic()) * 1000))
            if not self._socket.poll(left_ms):
                if may_be_absent:
                    return None
                raise Silence(f"no event for {request_id!r} within {timeout_s} s")
            event = self._receive()
            self._waiting[event["id"]].append(event)
        return self._waiting[request_id].popleft()

    def _receive(self):
        frames = self._socket.recv_multipart()
        if len(frames) != 1:
            raise ValueError(f"a reply of {len(frames)} frames")
        return msgpack.unpackb(frames[0])

    def drain(self):
        """Takes what has already come; events of all requests, in order."""
        while self._socket.poll(0):
            event = self._receive()
            self._waiting[event["id"]].append(event)
        events = [event for queue in self._waiting.values() for event in queue]
        self._waiting.clear()
        return events

    def call(self, op, timeout_s=EVENT_TIMEOUT_S, **fields):
        """Sends a request that has one reply, and waits for it."""
        return self.next_event(self.send(op, **fields), timeout_s)

    def rest(self, request_id, timeout_s=EVENT_TIMEOUT_S):
        """Every event of a request up to its `done` or `error`."""
        events = []
        while not events or events[-1]["ev"] not in ("done", "error"):
            events.append(self.next_event(request_id, timeout_s))
        return events

    def without_end(self):
        """A logit_bias that makes the end-of-generation tokens impossible, so that only max_tokens ends an answer."""
        ids = set()
        for text in END_TEXTS:
            tokens = self.call("tokenize", text=text, special=True)["tokens"]
            if len(tokens) == 1:
                ids.add(tokens[0])
        return [[token, -1000.0] for token in sorted(ids)]

    def generate(self, **fields):
        """One generation, whole: its events."""
        return self.rest(self.send("generate", **fields))
