#!/usr/bin/env python3
"""A stream that was parked and resumed is bit for bit the one that was not, on the real executor: for each format of
keys and values, each reason to park, and whether the state was kept or has to be evaluated again from its tokens."""

import sys
import time
import unittest

import readings
from alone import STUCK_S, Stream, finish, run_alone
from daemon import Daemon
from fixture import BUILD, embedded_model

N_TOKENS = 240
KEPT_BYTES = 200_000_000
# Longer than kv.sink + kv.window, so that there are rows in the format alone; more of them come with the reply.
LONG = "Once upon a time there was a garden with a wall around it, and in it grew fern and moss. " * 16
FORMATS = {  # name: configuration
    "q4_0": 'kv.format = "q4_0"',
    "q4_0 small window": 'kv.format = "q4_0"\nkv.sink = 3\nkv.window = 5',
    "f16": 'kv.format = "f16"',
    "q4_0 slides": 'kv.format = "q4_0"\nkv.overflow = "slide"\nkv.n_ctx = 640',
}


class ParkingTest(unittest.TestCase):
    def start(self, config, is_kept):
        self.daemon = Daemon(BUILD, embedded_model(), "")
        self.shown = readings.Readings(self.daemon.folder / "readings")
        with open(self.daemon.config_path, "a", encoding="utf-8") as file:
            file.write(
                f'engine.slots = 2\nmemory.slots_tight = 1\n{readings.CONFIG}'
                f'memory.readings_dir = "{self.shown.folder}"\n'
                f"sessions.bytes = {KEPT_BYTES if is_kept else 0}\n{config}\n"
            )
        self.daemon.start()
        self.client = self.daemon.client()
        bias = self.client.without_end()
        self.requests = []
        for i in range(2):
            fields = {"prompt": f"{LONG} Number {i}.", "seed": i, "temperature": 1.0, "max_tokens": N_TOKENS,
                      "repeat_penalty": 1.3, "logit_bias": bias}  # fmt: skip
            self.requests.append((fields, run_alone(self.client, fields)))

    def stop(self):
        self.client.__exit__()
        self.daemon.__exit__(None, None, None)

    def wait_for_parked(self, n, is_kept):
        """A kept state is counted with the prefix cache; nothing else is in it, as these requests use none."""
        end = time.monotonic() + STUCK_S
        while True:
            status = self.client.call("status")
            if status["engines"][0]["slots"]["parked"] == n:
                if not self.slides:  # a context that has slid is not kept
                    self.assertEqual(status["cache"]["bytes"] > 0, is_kept)
                return
            self.assertLess(time.monotonic(), end, status)
            time.sleep(0.01)

    def send(self, number, **extra):
        fields, alone = self.requests[number]
        request = self.client.send("generate", **fields, cache="off", logprobs=2, **extra)
        return request, Stream(fields, alone, 2)

    def until(self, request, stream, n_tokens):
        while stream.n_tokens < n_tokens:
            stream.take(self.client.next_event(request, STUCK_S))

    def end(self, streams):
        finish(self.client, streams)
        self.assertTrue(all(stream.is_whole for stream in streams.values()))
        return [stream.done["notes"] for stream in streams.values()]

    def without_credit(self, is_kept):
        """Twice at once, so that each goes on in the place of the other."""
        parts = (1, 100, N_TOKENS)
        streams = dict(self.send(number, credit=0) for number in (0, 1))
        for granted, wanted in zip((0, *parts), parts):
            self.wait_for_parked(2, is_kept)
            for request in reversed(list(streams)):
                self.client.send("credit", target=request, n=wanted - granted)
            if wanted < N_TOKENS:
                for request, stream in streams.items():
                    self.until(request, stream, wanted)
        return self.end(streams)

    def by_fewer_places(self, is_kept):
        streams = dict(self.send(number, credit=20) for number in (0, 1))
        for request, stream in streams.items():
            self.until(request, stream, 20)
        self.shown.show(readings.TIGHT_KB)
        self.wait_for(lambda status: status["engines"][0]["slots"]["effective"] == 1)
        for request in streams:
            self.client.send("credit", target=request, n=N_TOKENS)
        notes = self.end(streams)
        self.shown.show(readings.PLENTY_KB)
        self.wait_for(lambda status: status["engines"][0]["slots"]["effective"] == 2)
        return notes

    def wait_for(self, condition):
        end = time.monotonic() + STUCK_S
        while not condition(status := self.client.call("status")):
            self.assertLess(time.monotonic(), end, status)
            time.sleep(0.01)

    def by_priority(self, is_kept):
        """Both streams again and again lose their places to short requests of a higher priority."""
        streams = dict(self.send(number) for number in (0, 1))
        first, stream = next(iter(streams.items()))
        for n_tokens in range(10, N_TOKENS - 40, 60):
            self.until(first, stream, n_tokens)
            urgent = [self.client.send("generate", prompt="Now", max_tokens=2, priority=1, cache="off")
                      for _ in range(3)]  # fmt: skip
            for request in urgent:
                self.assertEqual(self.client.rest(request)[-1]["ev"], "done")
        return self.end(streams)

    def check(self, name, is_kept):
        self.slides = "slides" in name
        self.start(FORMATS[name], is_kept)
        try:
            for way in (self.without_credit, self.by_priority, self.by_fewer_places):
                with self.subTest(f"{name}, {way.__name__}, state {'kept' if is_kept else 'evaluated again'}"):
                    notes = way(is_kept)
                    self.assertTrue(any("parked" in of_one for of_one in notes), notes)
        finally:
            self.stop()

    def test_with_its_state(self):
        for name in FORMATS:
            self.check(name, is_kept=True)

    def test_evaluated_again_from_its_tokens(self):
        for name in FORMATS:
            self.check(name, is_kept=False)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
