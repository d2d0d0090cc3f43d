#!/usr/bin/env python3
"""What a running stream and a newcomer see of each other: the scheduler's promises about latency, measured.

gap     Four streams decode, a long prompt arrives. The longest pause of a stream while it is read, as the client sees
        it and as the daemon counts it; the streams' throughput meanwhile against that alone; the newcomer's time to
        its first token against that of the same prompt alone. What alone means is measured before and after, as it
        drifts on a shared machine.
cancel  A prompt is cancelled while it is read: the time until its slot is free, alone and beside four streams.
cache   The time to the first token of a prompt that has been read before, against the first time; and what prompts
        that are all different pay for the cache: processor time with it against without, in turns.

With --endpoint, `gap`, `cancel` and the first half of `cache` ask a daemon that runs already. Nothing else should run
on the machine: threads that wait for each other make every number worse, processor time too (there --threads 1 helps).
With --check the exit status says whether each number is within its limit.
"""

import argparse
import dataclasses
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from client import Client  # noqa: E402
from daemon import Daemon  # noqa: E402
from socket_bench import ticks_of, wait_until_settled  # noqa: E402

PATIENCE_S = 900
N_STREAMS = 4
STREAM_PROMPT = 16
LEAST_THROUGHPUT = 0.60  # of the streams while a prompt is read, relative to before
MOST_FIRST_TOKEN = 3.0  # of the newcomer, relative to alone
MOST_CACHED = 0.05  # first token of a known prompt, relative to cold
MOST_CACHE_COST = 1.03  # processor time with a cache, relative to without


class Table:
    """Rows of what was measured, beside what was promised."""

    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, limit=None, is_least=False):
        is_kept = limit is None or (value >= limit if is_least else value <= limit)
        self.rows.append({"name": name, "value": value, "unit": unit, "limit": limit, "is_kept": is_kept})
        promise = "" if limit is None else f"{'at least' if is_least else 'at most'} {limit:.3f}"
        print(f"{name:58} {value:10.3f} {unit:9} {promise:17} {'' if is_kept else 'BROKEN'}", flush=True)

    def is_kept(self):
        return all(row["is_kept"] for row in self.rows)


class Streams:
    """Requests of one client whose `token` events are noted with the time of their coming."""

    def __init__(self, endpoint, pid):
        """pid: of a daemon that has just been started and first has to come to rest; None: it has run before."""
        self.client = Client(endpoint)
        status = wait_until_settled(pid, self.client) if pid else self.client.call("status")
        self.n_vocab = status["model"]["n_vocab"]
        self.bias = self.client.without_end()
        self.random = random.Random(time.time_ns())
        self.times, self.done = {}, {}

    def prompt(self, n):
        """Different each time, so that only what is meant to be known is."""
        return [self.random.randrange(self.n_vocab - 1000) for _ in range(n)]

    def begin(self, prompt, max_tokens, cache="off"):
        request = self.client.send(
            "generate", tokens=prompt, max_tokens=max_tokens, temperature=0.0, cache=cache, logit_bias=self.bias
        )
        self.times[request] = []
        return request

    def pump(self, seconds):
        """Notes what comes within that time, or returns with the first that came."""
        if not self.client._socket.poll(max(0, int(seconds * 1000))):
            return
        self.note(self.client._receive(), time.perf_counter())

    def note(self, event, now):
        if event["ev"] == "token" and "token" in event:
            self.times[event["id"]].append(now)
        elif event["ev"] in ("done", "error"):
            if event["ev"] == "error" or event.get("finish") == "error":
                raise RuntimeError(f"the daemon refused: {event}")
            self.done[event["id"]] = (now, event)
        elif event["ev"] == "result":
            self.client._waiting[event["id"]].append(event)

    def pump_until(self, condition):
        end = time.perf_counter() + PATIENCE_S
        while not condition():
            self.pump(0.05)
            if time.perf_counter() > end:
                raise RuntimeError(f"nothing came of it within {PATIENCE_S} s")

    def pump_for(self, seconds):
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.pump(left)

    def call(self, op, **fields):
        request = self.client.send(op, **fields)
        self.pump_until(lambda: self.client._waiting[request])
        return self.client._waiting[request].popleft()

    def finish(self, requests):
        for request in requests:
            self.call("cancel", target=request)
        self.pump_until(lambda: all(request in self.done for request in requests))

    def first_token_s(self, prompt, cache="off"):
        """Seconds from the request to its first token, and its `done`."""
        start = time.perf_counter()
        request = self.begin(prompt, 1, cache)
        self.pump_until(lambda: self.times[request] and request in self.done)
        return self.times[request][0] - start, self.done[request][1]

    def four(self):
        """The streams that somebody else will disturb, all of them decoding."""
        streams = [self.begin(self.prompt(STREAM_PROMPT), 4096) for _ in range(N_STREAMS)]
        self.pump_until(lambda: all(len(self.times[s]) >= 8 for s in streams))
        return streams

    def gaps_ms(self, streams, since, until):
        """Every pause between two tokens of a stream that touches that time."""
        gaps = []
        for stream in streams:
            times = self.times[stream]
            gaps += [1e3 * (b - a) for a, b in zip(times, times[1:]) if b > since and a < until]
        return gaps

    def throughput(self, streams, since, until):
        n = sum(1 for s in streams for t in self.times[s] if since < t <= until)
        return n / (until - since)

    def busy(self):
        return self.call("status")["engines"][0]["slots"]["busy"]


@dataclasses.dataclass
class GapRound:
    """Once through: the prompt alone, the streams alone, both, the streams alone, the prompt alone."""

    alone_s: list  # to the first token of the prompt alone, before and after
    newcomer_s: float  # the same beside the streams
    steps_ms: list  # pauses of the streams alone
    gaps_ms: list  # while the prompt is read
    metric_ms: float  # the longest, as the daemon counts it
    was: list  # tokens/s of the streams alone, before and after
    now: float  # while the prompt is read

    @property
    def one_step_ms(self):
        return statistics.median(self.steps_ms)

    @property
    def throughput(self):
        return self.now / statistics.mean(self.was)

    @property
    def first_token(self):
        return self.newcomer_s / statistics.mean(self.alone_s)


def gap_round(asker, options):
    prompt = asker.prompt(options.prompt)
    alone_s = [asker.first_token_s(prompt)[0]]
    streams = asker.four()
    marks = [time.perf_counter()]  # streams alone, both, streams alone
    asker.pump_for(options.before)
    marks.append(time.perf_counter())
    newcomer = asker.begin(prompt, 1)
    asker.pump_until(lambda: asker.times[newcomer])
    marks.append(asker.times[newcomer][0])
    asker.pump_until(lambda: all(asker.times[s][-1] > marks[2] for s in streams))
    metric_ms = asker.call("status")["engines"][0]["longest_gap_last_minute_ms"]
    begin = time.perf_counter()
    asker.pump_for(options.before)
    end = time.perf_counter()
    asker.finish(streams)
    alone_s.append(asker.first_token_s(prompt)[0])
    return GapRound(
        alone_s,
        marks[2] - marks[1],
        asker.gaps_ms(streams, marks[0], marks[1]),
        asker.gaps_ms(streams, marks[1], marks[2]),
        metric_ms,
        [asker.throughput(streams, marks[0], marks[1]), asker.throughput(streams, begin, end)],
        asker.throughput(streams, marks[1], marks[2]),
    )


def measure_gap(asker, options, table):
    """Pauses: the worst of all rounds. Ratios: their medians, each to the mean of before and after."""
    rounds = []
    for number in range(1, options.rounds + 1):
        r = gap_round(asker, options)
        rounds.append(r)
        if options.rounds > 1:
            print(
                f"  round {number}: pause {max(r.gaps_ms):.0f} ms, throughput {r.throughput:.3f}, "
                f"first token {r.first_token:.2f}",
                flush=True,
            )

    def median(of):
        return statistics.median(of(r) for r in rounds)

    limit = options.max_gap + median(lambda r: r.one_step_ms)
    table.add(f"first token of {options.prompt} tokens alone", median(lambda r: statistics.mean(r.alone_s)), "s")
    table.add("one step of four streams", median(lambda r: r.one_step_ms), "ms")
    table.add("longest pause before", max(max(r.steps_ms) for r in rounds), "ms")
    table.add("longest pause while the prompt is read, client", max(max(r.gaps_ms) for r in rounds), "ms", limit)
    table.add("  its median", median(lambda r: statistics.median(r.gaps_ms)), "ms")
    table.add("  as the daemon counts it (last minute)", max(r.metric_ms for r in rounds), "ms", limit)
    table.add("throughput of the streams alone", median(lambda r: statistics.mean(r.was)), "tokens/s")
    table.add(
        "  while the prompt is read, of that", median(lambda r: r.throughput), "", LEAST_THROUGHPUT, is_least=True
    )
    table.add("first token of the newcomer", median(lambda r: r.newcomer_s), "s")
    table.add("  relative to alone", median(lambda r: r.first_token), "", MOST_FIRST_TOKEN)


def measure_cancel(asker, options, table):
    streams = asker.four()
    before = time.perf_counter()
    asker.pump_for(2)
    one_step = statistics.median(asker.gaps_ms(streams, before, time.perf_counter()))
    for n_others in (N_STREAMS, 0):
        if n_others == 0:
            asker.finish(streams)
        taken = []
        for i in range(options.cancels):
            request = asker.begin(asker.prompt(options.prompt), 1)
            asker.pump_for(0.7 + 0.31 * i)
            if request in asker.done:
                raise RuntimeError("the prompt was read before it was cancelled; take a longer one (--prompt)")
            start = time.perf_counter()
            asker.call("cancel", target=request)
            asker.pump_until(lambda: asker.busy() == n_others)
            taken.append(1e3 * (time.perf_counter() - start))
            asker.pump_until(lambda: request in asker.done)
        beside = f"beside {n_others} streams" if n_others else "alone"
        table.add(f"cancelled prompt's slot free, {beside}", max(taken), "ms", options.max_gap + one_step)
        table.add("  median", statistics.median(taken), "ms")


def measure_cached(asker, options, table):
    prompt = asker.prompt(options.prompt)
    cold_s, _ = asker.first_token_s(prompt, "private")
    warm_s, done = asker.first_token_s(prompt, "private")
    table.add(f"first token of {options.prompt} tokens, cold", cold_s, "s")
    table.add("  known, relative to that", warm_s / cold_s, "", MOST_CACHED)
    if done["usage"]["cached_tokens"] != options.prompt - 1:
        raise RuntimeError(f"only {done['usage']['cached_tokens']} tokens came from the cache")


def measure_cache_cost(daemon, asker, options, table):
    """Processor time of prompts that are all different, with a cache and without."""
    config = daemon.config_path.read_text(encoding="utf-8")
    seconds = {True: [], False: []}
    for run in range(options.runs):
        for has_cache in (True, False) if run % 2 == 0 else (False, True):
            daemon.config_path.write_text(config + ("" if has_cache else "sessions.bytes = 0\n"), encoding="utf-8")
            if (answer := asker.call("reload"))["ev"] != "result":
                raise RuntimeError(f"the daemon does not change its cache: {answer}")
            if (asker.call("status")["cache"]["limit_bytes"] > 0) != has_cache:
                raise RuntimeError("the daemon has not changed its cache")
            before = ticks_of(daemon.process.pid)
            asker.first_token_s(asker.prompt(options.unique), "private")
            seconds[has_cache].append((ticks_of(daemon.process.pid) - before) / os.sysconf("SC_CLK_TCK"))
    daemon.config_path.write_text(config, encoding="utf-8")
    plain, cost = statistics.median(seconds[False]), statistics.median(seconds[True])
    table.add(f"processor time of a new prompt of {options.unique}, no cache", plain, "s")
    table.add("  with a cache, relative to that", cost / plain, "", MOST_CACHE_COST)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, help="build folder that has bin/pantheond")
    parser.add_argument("--model", type=os.path.abspath, help="GGUF file")
    parser.add_argument("--endpoint", help="of a daemon that runs; instead of --build and --model")
    parser.add_argument("--parts", default="gap,cancel,cache", help="which of them, in this order")
    parser.add_argument("--prompt", type=int, default=4000, help="tokens of the long prompt")
    parser.add_argument("--unique", type=int, default=1500, help="tokens of each prompt that pays for the cache")
    parser.add_argument("--before", type=float, default=5, metavar="S", help="seconds of streams alone, and after")
    parser.add_argument("--rounds", type=int, default=1, help="of `gap`: medians of so many")
    parser.add_argument("--cancels", type=int, default=5, help="cancelled prompts, each alone and beside streams")
    parser.add_argument("--runs", type=int, default=3, help="unique prompts on each side")
    parser.add_argument("--max-gap", type=int, default=200, help="scheduler.max_gap_ms")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a limit is not kept")
    parser.add_argument("--json", metavar="FILE", help="write everything measured there too")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if not options.endpoint and not (options.build and options.model):
        parser.error("--build and --model, or --endpoint")
    if set(parts) - {"gap", "cancel", "cache"}:
        parser.error("--parts: of gap, cancel, cache")

    config = f"cpu.threads = {options.threads}\nkv.n_ctx = 8192\nscheduler.max_gap_ms = {options.max_gap}\n"
    table, load = Table(), os.getloadavg()

    def ask(endpoint, daemon=None):
        asker = Streams(endpoint, daemon.process.pid if daemon else None)
        try:
            asker.first_token_s(asker.prompt(64))  # what the first request finds cold
            if "gap" in parts:
                measure_gap(asker, options, table)
            if "cancel" in parts:
                measure_cancel(asker, options, table)
            if "cache" in parts:
                measure_cached(asker, options, table)
                if daemon:
                    measure_cache_cost(daemon, asker, options, table)
        finally:
            asker.client.__exit__()

    if options.endpoint:
        ask(options.endpoint)
    else:
        with Daemon(options.build.absolute(), options.model, config) as daemon:
            ask(daemon.endpoint, daemon)
    print(f"load {load[0]:.2f} before, {os.getloadavg()[0]:.2f} after")
    if options.json:
        report = {"model": options.model, "load_before": load, "load_after": os.getloadavg(), "rows": table.rows}
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {options.json}")
    return 1 if options.check and not table.is_kept() else 0


if __name__ == "__main__":
    sys.exit(main())
