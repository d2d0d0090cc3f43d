#!/usr/bin/env python3
"""What each rung of the memory ladder gives back, and what it costs the streams.

Streams decode while a daemon is shown readings that go from OK over TIGHT to CRITICAL and back. Each rung is held for
some seconds and has one row, in MiB: what the process holds (without the mapped file), of that the prefix cache, packed
weights and keys and values; what the cache has on disk; the sequences that may run, run, and are parked; tokens/s of
all streams; what becomes of a request that comes then. At the end every request that was accepted must have had all its
tokens.

Nothing else should run on the machine. Exits with 1 when a request was lost.
"""

import argparse
import collections
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import readings  # noqa: E402
from daemon import Daemon  # noqa: E402
from gap_bench import Streams  # noqa: E402
from socket_bench import wait_until_settled  # noqa: E402

MIB = 2**20
N_STREAMS = 16
STREAM_PROMPT, CACHED_PROMPT = 256, 600  # tokens
LATE_TOKENS = 4
COLUMNS = {
    "level": 8, "rung": 4, "process": 8, "cache": 7, "packed": 7, "KV": 6, "disk": 6, "may run": 7, "run": 3,
    "parked": 6, "tokens/s": 8, "a new request": 14,
}  # fmt: skip
CONFIG = f"""kv.n_ctx = 2048
kv.format = "f16"
engine.slots = {N_STREAMS}
sessions.every = 256
sessions.disk_bytes = 2000000000
memory.tight_free_bytes = 1000000000
memory.critical_free_bytes = 400000000
"""


def print_row(values):
    print("  ".join(f"{value!s:>{width}}" for value, width in zip(values, COLUMNS.values())), flush=True)


class Requests(Streams):
    """Also those that are refused, and what became of each."""

    def __init__(self, daemon):
        super().__init__(daemon.endpoint, daemon.process.pid)
        self.asked, self.accepted, self.ends = {}, set(), {}

    def begin(self, prompt, max_tokens, cache="off"):
        request = super().begin(prompt, max_tokens, cache)
        self.asked[request] = max_tokens
        return request

    def note(self, event, now):
        request = event["id"]
        if request in self.asked and event["ev"] == "accepted":
            self.accepted.add(request)
        elif request in self.asked and event["ev"] in ("done", "error"):
            self.ends[request] = event
        else:
            super().note(event, now)

    def n_tokens(self, requests):
        return sum(len(self.times[request]) for request in requests)

    def lost(self):
        """Accepted requests that had fewer tokens than they asked for."""

        def is_whole(request):
            end = self.ends[request]
            return end.get("finish") == "length" and self.n_tokens([request]) == self.asked[request]

        return [request for request in self.accepted if not is_whole(request)]


def says(event):
    if event["ev"] == "error":
        return f"{event['code']}, again in {event['retry_after_ms']} ms"
    return ", ".join([event["finish"], *event["notes"]])


class Ladder:
    def __init__(self, daemon, requests, streams, hold_s):
        self.pid, self.requests, self.streams, self.hold_s = daemon.process.pid, requests, streams, hold_s
        self.late = []  # (when it came, request)

    def row(self, speed, answer):
        """Prints it; where the ladder stands."""
        status = self.requests.call("status")
        engine, cache, memory = status["engines"][0], status["cache"], status["memory"]
        die, slots = engine["dies"][0], engine["slots"]
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as lines:
            held = next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
        mib = [f"{n / MIB:.0f}" for n in (held, cache["bytes"], die["repack_bytes"])]
        print_row(
            [
                memory["level"], memory["rung"], *mib, f"{die['kv_used_bytes'] / MIB:.1f}",
                f"{cache['disk_bytes'] / MIB:.0f}", slots["effective"], slots["busy"], slots["parked"], speed, answer,
            ]
        )  # fmt: skip
        return f"{memory['level']}, rung {memory['rung']}"

    def measure(self, rung):
        """Waits for it and tells what it is like; a rung lasts for hold_s."""
        requests = self.requests
        requests.pump_until(lambda: requests.call("status")["memory"]["rung"] == rung)
        requests.pump_for(0.3 * self.hold_s)
        n_before, start = requests.n_tokens(self.streams), time.perf_counter()
        requests.pump_for(0.5 * self.hold_s)
        speed = (requests.n_tokens(self.streams) - n_before) / (time.perf_counter() - start)
        late = requests.begin(requests.prompt(8), LATE_TOKENS)
        requests.pump_until(lambda: late in requests.accepted or late in requests.ends)
        answer = "accepted" if late in requests.accepted else says(requests.ends[late])
        self.late.append((self.row(f"{speed:.1f}", answer), late))


def measure(daemon, shown, options):
    requests = Requests(daemon)
    try:
        for _ in range(options.cached):
            request = requests.begin(requests.prompt(CACHED_PROMPT), 1, "private")
            requests.pump_until(lambda: request in requests.ends)
        streams = [requests.begin(requests.prompt(STREAM_PROMPT), options.tokens) for _ in range(N_STREAMS)]
        requests.pump_until(lambda: all(requests.times[s] for s in streams))
        print_row(COLUMNS)
        ladder = Ladder(daemon, requests, streams, options.hold)
        ladder.measure(0)
        shown.show(readings.TIGHT_KB)
        for rung in range(1, 5):
            ladder.measure(rung)
        shown.show(readings.CRITICAL_KB)
        ladder.measure(5)
        shown.show(readings.PLENTY_KB)
        for rung in range(4, -1, -1):
            ladder.measure(rung)
        if all(stream in requests.ends for stream in streams):
            print("the streams ended before the ladder did: take more --tokens")
        requests.pump_until(lambda: all(request in requests.ends for request in requests.asked))
        wait_until_settled(daemon.process.pid, requests.client)
        ladder.row("", "all have ended")
    finally:
        requests.client.__exit__()
    for when, request in ladder.late:
        print(f"  came at {when}: {says(requests.ends[request])}")
    for what, n in collections.Counter(says(requests.ends[stream]) for stream in streams).items():
        print(f"  {n} streams: {what}")
    lost = requests.lost()
    print(f"{len(requests.asked)} requests, {len(requests.accepted)} accepted, {len(lost)} of these lost {lost}")
    return 1 if lost else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="build folder that has bin/pantheond")
    parser.add_argument("--model", type=os.path.abspath, required=True, help="GGUF file")
    parser.add_argument("--hold", type=float, default=8, metavar="S", help="seconds on each rung")
    parser.add_argument("--tokens", type=int, default=500, help="of each stream")
    parser.add_argument("--cached", type=int, default=12, help="prompts that the cache knows")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    config = f"{CONFIG}cpu.threads = {options.threads}\n"
    hold_ms = int(1000 * options.hold)
    config += f"memory.dwell_ms = {hold_ms}\nmemory.step_ms = {hold_ms}\n"
    daemon = Daemon(options.build.absolute(), options.model, config)
    shown = readings.Readings(daemon.folder / "readings")
    with open(daemon.config_path, "a", encoding="utf-8") as file:
        file.write(f'memory.readings_dir = "{shown.folder}"\nsessions.dir = "{daemon.folder}/sessions"\n')
    with daemon:
        return measure(daemon, shown, options)


if __name__ == "__main__":
    sys.exit(main())
