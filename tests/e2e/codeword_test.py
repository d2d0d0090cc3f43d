#!/usr/bin/env python3
"""Sixteen clients, each with a codeword in its prompts and seeds of its own: whatever else runs, arrives, ends, is
cancelled, parked or moved, a reply is bit for bit the one that the request has when it runs alone, and what was cut
off is a beginning of it; but for replies that say in their notes that memory was short and KV kept in q4_0. What
happens when is drawn from a seed, which is printed; --seed repeats it."""

import random
import sys
import time
import unittest

import readings
from alone import STUCK_S, ScoreJob, Stream, finish, lone_runs, lone_scores
from daemon import Daemon
from fixture import BUILD, IS_SANITIZED, IS_SOAK, SEED, embedded_model, small_model
from readings import CRITICAL_KB, PLENTY_KB, TIGHT_KB

N_CLIENTS = 16
N_EACH = 1 if IS_SANITIZED else 4 if IS_SOAK else 2
N_TOKENS = 60 if IS_SANITIZED else 160
SECONDS = 600 if IS_SOAK else 30
N_LIVE = 24  # more than there are places
CONFIG = f"""
engine.slots = 5
scheduler.queue = 200
sessions.every = 64
ipc.max_unread = 64
ipc.stall_ms = 3600000
memory.slots_tight = 3
memory.slots_critical = 1
{readings.CONFIG}"""
KV = (  # one of these, drawn as well
    'kv.n_ctx = 2048\nkv.format = "q4_0"',
    'kv.n_ctx = 2048\nkv.format = "f16"',
    'kv.n_ctx = 800\nkv.format = "q4_0"\nkv.overflow = "slide"',
)
BYTES = (0, 3_000_000, 200_000_000)  # of sessions.bytes: parked states are not kept, some are, all are
GAPS = (1, 1, 5, 200)  # scheduler.max_gap_ms: prompts are read unit by unit, in a few parts, whole


class Storm:
    """Requests of sixteen connections, and everything that can happen to them."""

    def __init__(self, daemon, shown, runs, scores, rng):
        self._daemon, self._shown, self._runs, self._scores, self._rng = daemon, shown, runs, scores, rng
        self._clients = [daemon.client() for _ in range(N_CLIENTS)]
        self._live = [{} for _ in range(N_CLIENTS)]  # {id: Stream or ScoreJob}
        self._silent_until = [0.0] * N_CLIENTS  # connections that do not read
        self._has_credit = set()  # (client, id) that live on credit
        self._n_sent = 0
        self._config = daemon.config_path.read_text(encoding="utf-8")
        self.counts = dict.fromkeys(
            ("whole", "cut", "parked", "refused", "vanished", "tokens", "cached", "scores", "memory", "reloads",
             "silences"), 0
        )  # fmt: skip
        # While memory is short the daemon keeps q4_0, and says so.
        self._may_be_q4_0 = 'kv.format = "q4_0"' not in self._config
        if self._may_be_q4_0:
            self.counts["in q4_0"] = 0

    def close(self):
        for client in self._clients:
            client.__exit__()

    # ---- what happens

    def act(self):
        actions = {self.begin: 12, self.score: 0.5, self.cancel: 1, self.grant: 8, self.show: 0.3, self.vanish: 0.2,
                   self.be_silent: 0.4, self.reload: 0.3, self.use_session: 0.5}  # fmt: skip
        self._rng.choices(list(actions), list(actions.values()))[0]()

    def begin(self):
        number = self._rng.randrange(N_CLIENTS)
        fields, alone = self._rng.choice(self._runs[number])
        n_top = self._rng.choice((None, None, 0, 2))
        credit = self._rng.choice((None, None, 0, 1, 20))
        priority = self._rng.choice((-1, 0, 0, 0, 2))
        cache = self._rng.choice(("private", "private", "shared", "off"))
        extra = {"priority": priority, "cache": cache}
        if n_top is not None:
            extra["logprobs"] = n_top
        if credit is not None:
            extra["credit"] = credit
        if cache != "off" and self._rng.random() < 0.2:
            extra["session"] = self._session()
        if request := self._send(number, "generate", Stream(fields, alone, n_top, self._may_be_q4_0), **fields, **extra):
            if credit is not None:
                self._has_credit.add((number, request))

    def score(self):
        number = self._rng.randrange(N_CLIENTS)
        fields, alone = self._rng.choice(self._scores)
        self._send(number, "score", ScoreJob(alone), **fields)

    def _session(self):
        return f"session {self._rng.randrange(4)}"

    def use_session(self):
        """What came of it is of no interest, only that no reply is another for it."""
        op = self._rng.choice(("session.save", "session.load", "session.drop"))
        self._clients[0].send(op, session=self._session(), cache=self._rng.choice(("private", "shared")))

    def _send(self, number, op, expected, **fields):
        if sum(len(live) for live in self._live) >= N_LIVE:
            return None
        # Names are this client's alone: a cancel that comes too late must not find another's of the same user.
        self._n_sent += 1
        request = self._clients[number].send(op, id=f"{number}:{self._n_sent}", **fields)
        self._live[number][request] = expected
        return request

    def _pick(self, where=lambda number, request: True):
        found = [(n, r) for n, live in enumerate(self._live) for r in live if where(n, r)]
        return self._rng.choice(found) if found else None

    def cancel(self):
        if picked := self._pick():
            self._clients[picked[0]].send("cancel", target=picked[1])

    def grant(self):
        n = self._rng.choice((1, 8, 40, 200))
        if picked := self._pick(lambda number, request: (number, request) in self._has_credit):
            self._clients[picked[0]].send("credit", target=picked[1], n=n)

    def show(self):
        self._shown.show(self._rng.choice((PLENTY_KB, PLENTY_KB, TIGHT_KB, TIGHT_KB, CRITICAL_KB)))
        self.counts["memory"] += 1

    def vanish(self):
        number = self._rng.randrange(N_CLIENTS)
        self._clients[number].__exit__()
        self._clients[number] = self._daemon.client()
        self.counts["vanished"] += len(self._live[number])
        self._live[number] = {}
        self._silent_until[number] = 0.0

    def be_silent(self):
        number, seconds = self._rng.randrange(N_CLIENTS), self._rng.uniform(0.5, 4)
        self._silent_until[number] = time.monotonic() + seconds
        self.counts["silences"] += 1

    def reload(self):
        live = f"sessions.bytes = {self._rng.choice(BYTES)}\nscheduler.max_gap_ms = {self._rng.choice(GAPS)}\n"
        self._daemon.config_path.write_text(self._config + live, encoding="utf-8")
        self._clients[0].send("reload")
        self.counts["reloads"] += 1

    # ---- what comes

    def read(self):
        """Takes what has come; how many events that were."""
        now, n = time.monotonic(), 0
        for number, client in enumerate(self._clients):
            if now < self._silent_until[number]:
                continue
            for event in client.drain():
                n += 1
                self._take(number, event)
        return n

    def _take(self, number, event):
        expected = self._live[number].get(event["id"])
        if expected is None:
            if event["ev"] not in ("result", "error"):  # of a cancel, a reload, a session
                raise AssertionError(f"client {number} has not asked for {event}")
            return
        if event["ev"] == "error" and event["code"] == "resource_exhausted" and expected.n_events == 0:
            self.counts["refused"] += 1
        else:
            expected.take(event)
            if not expected.is_over:
                return
            self._count(expected)
        del self._live[number][event["id"]]
        self._has_credit.discard((number, event["id"]))

    def _count(self, over):
        if isinstance(over, ScoreJob):
            self.counts["scores"] += 1
            return
        if over.is_in_q4_0:
            self.counts["in q4_0"] += 1  # a KeyError: kv.format is q4_0 and needs no such note
        else:
            self.counts["whole" if over.is_whole else "cut"] += 1
        self.counts["parked"] += "parked" in over.done["notes"]
        self.counts["tokens"] += over.n_tokens
        self.counts["cached"] += over.done["usage"]["cached_tokens"]

    # ---- the whole

    def rage(self, seconds):
        """For so long, and on until everything has happened at least once."""
        end = time.monotonic() + seconds
        n_since, last = 0, time.monotonic()
        while time.monotonic() < end or (not all(self.counts.values()) and time.monotonic() < end + STUCK_S):
            # As fast as the daemon serves, so that a slow machine has time to end requests as well.
            if n_since >= 5 or time.monotonic() - last > 0.1:
                self.act()
                n_since, last = 0, time.monotonic()
            n = self.read()
            n_since += n
            if n == 0:
                time.sleep(0.002)

    def calm_down(self):
        """Everything that is under way comes to its end."""
        self._shown.show(PLENTY_KB)
        self._silent_until = [0.0] * N_CLIENTS
        for number, live in enumerate(self._live):
            for request in live:
                if (number, request) in self._has_credit:
                    self._clients[number].send("credit", target=request, n=100_000)
        end = time.monotonic() + STUCK_S
        while any(self._live):
            if time.monotonic() > end:
                raise AssertionError(f"after {STUCK_S} s these have not ended: {self._live}")
            if self.read() == 0:
                time.sleep(0.002)


class CodewordTest(unittest.TestCase):
    model = staticmethod(embedded_model)
    seconds = SECONDS

    @classmethod
    def setUpClass(cls):
        cls.seed = SEED if SEED is not None else random.SystemRandom().getrandbits(32)
        cls.rng = random.Random(cls.seed)
        kv = cls.rng.choice(KV)
        print(f"seed {cls.seed}: {kv.splitlines()}", flush=True)
        cls.daemon = Daemon(BUILD, cls.model(), f"{CONFIG}{kv}\n")
        cls.shown = readings.Readings(cls.daemon.folder / "readings")
        with open(cls.daemon.config_path, "a", encoding="utf-8") as config:
            config.write(f'memory.readings_dir = "{cls.shown.folder}"\nsessions.dir = "{cls.daemon.folder}/states"\n')
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__, None, None, None)
        cls.client = cls.daemon.client()
        cls.addClassCleanup(cls.client.__exit__)
        start = time.monotonic()
        cls.runs = lone_runs(cls.client, N_CLIENTS, N_EACH, cls.rng, N_TOKENS)
        cls.scores = lone_scores(cls.client, 4, cls.rng)
        n_tokens = sum(len(alone[0]) for runs in cls.runs for _, alone in runs)
        print(f"{N_CLIENTS * N_EACH} lone runs, {n_tokens} tokens, {time.monotonic() - start:.1f} s", flush=True)

    def test_all_at_once_each_gets_what_it_has_alone(self):
        for n_top in (None, 2):
            clients = [self.daemon.client() for _ in range(N_CLIENTS)]
            extra = {} if n_top is None else {"logprobs": n_top}
            streams = []
            for client, runs in zip(clients, self.runs):
                sent = {client.send("generate", **fields, **extra): Stream(fields, alone, n_top)
                        for fields, alone in runs}  # fmt: skip
                streams.append(sent)
            for client, sent in zip(clients, streams):
                finish(client, sent)
                self.assertTrue(all(stream.is_whole for stream in sent.values()))
                client.__exit__()

    def test_whatever_happens_each_gets_what_it_has_alone(self):
        storm = Storm(self.daemon, self.shown, self.runs, self.scores, self.rng)
        self.addCleanup(storm.close)
        storm.rage(self.seconds)
        storm.calm_down()
        print(storm.counts, flush=True)
        self.assertTrue(all(storm.counts.values()), "the storm was none")
        self.rests()

    def rests(self):
        end = time.monotonic() + STUCK_S
        while True:
            status = self.client.call("status")
            engine = status["engines"][0]
            left = (engine["slots"]["busy"], engine["slots"]["parked"], engine["queue"]["waiting"],
                    engine["dies"][0]["kv_used_bytes"], len(status["requests"]))  # fmt: skip
            if left == (0, 0, 0, 0, 0):
                return
            self.assertLess(time.monotonic(), end, left)
            time.sleep(0.05)


class RandomWeightsTest(CodewordTest):
    """The same on weights that mean nothing, where every token is a draw among equals."""

    model = staticmethod(small_model)
    seconds = SECONDS / 3


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
