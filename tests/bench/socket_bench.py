#!/usr/bin/env python3
"""What the daemon adds to a model: through its socket against in this process, on the same file, in turns.

Three checks. Tokens a second of one greedy stream: the time from its first to its last token against that of the
steps alone (step_bench). Time to first token for a short and a long prompt: from the client's send to its first
`token` event against the prompt's step alone. Idle: processor ticks and context switches of a daemon that has a
model and nothing to do. Each run of the first two asks both sides, in the other order than the run before; printed
are medians. Neither side samples into the other's time: one waits, parked, while the other works.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from compare_llama import OurSide  # noqa: E402
from daemon import Daemon  # noqa: E402

SHORT_PROMPT = 16
MODEL_PATIENCE_S = 600  # a big file is read and packed first
SETTLE_S = 5


class SocketSide:
    """One client of one daemon. Nothing is taken from its cache: every prompt is evaluated whole."""

    def __init__(self, daemon, n_vocab):
        self.client = daemon.client()
        self.n_vocab = n_vocab
        self.bias = self.client.without_end()

    def generate(self, n_prompt, n_tokens):
        """Seconds to the first token, and those between each token and the next."""
        prompt = [i * 7919 % self.n_vocab for i in range(n_prompt)]
        start = time.perf_counter()
        request = self.client.send(
            "generate", tokens=prompt, max_tokens=n_tokens, temperature=0.0, cache="off", logit_bias=self.bias
        )
        times = []
        while True:
            event = self.client.next_event(request, timeout_s=MODEL_PATIENCE_S)
            if event["ev"] == "token" and "token" in event:
                times.append(time.perf_counter())
            elif event["ev"] in ("done", "error"):
                break
        if event["ev"] == "error" or event["finish"] != "length" or len(times) != n_tokens:
            raise RuntimeError(f"the daemon gave {len(times)} of {n_tokens} tokens and ended with {event}")
        if event["usage"]["cached_tokens"] != 0:
            raise RuntimeError("the daemon took a prompt from its cache")
        return times[0] - start, [after - before for before, after in zip(times, times[1:])]


def in_turns(n_runs, first, second):
    """The results of both, asked alternately."""
    results = ([], [])
    for run in range(n_runs):
        for side in (0, 1) if run % 2 == 0 else (1, 0):
            results[side].append((first, second)[side]())
    return results


def measure_decode(socket, steps, n_runs, n_tokens):
    """By the median step of each run, as step_bench counts; `socket_whole_tps` is by the whole of each stream."""
    gaps, alone = in_turns(
        n_runs,
        lambda: socket.generate(SHORT_PROMPT, n_tokens)[1],
        lambda: 1e3 / steps.run(f"tg {n_tokens} {SHORT_PROMPT}")[0],
    )
    through = [1 / statistics.median(run) for run in gaps]
    whole = [len(run) / sum(run) for run in gaps]
    ours, theirs = statistics.median(through), statistics.median(alone)
    return {"socket_tps": ours, "socket_whole_tps": statistics.median(whole), "in_process_tps": theirs,
            "ratio": ours / theirs, "socket_runs": through, "socket_whole_runs": whole,
            "in_process_runs": alone}  # fmt: skip


def measure_first_token(socket, steps, n_runs, n_prompt):
    through, alone = in_turns(
        n_runs,
        lambda: 1e3 * socket.generate(n_prompt, 1)[0],
        lambda: n_prompt * steps.run(f"pp {n_prompt}")[0],
    )
    ours, theirs = statistics.median(through), statistics.median(alone)
    return {"prompt": n_prompt, "socket_ms": ours, "in_process_ms": theirs, "added_ms": ours - theirs,
            "socket_runs": through, "in_process_runs": alone}  # fmt: skip


def switches_by_thread(pid):
    counts = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = dict(line.split(":", 1) for line in (task / "status").read_text(encoding="utf-8").splitlines())
        counts[task.name] = (
            fields["Name"].strip(),
            int(fields["voluntary_ctxt_switches"]),
            int(fields["nonvoluntary_ctxt_switches"]),
        )
    return counts


def ticks_of(pid):
    # The name may hold spaces; what follows its bracket does not.
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return int(after_name[11]) + int(after_name[12])


def measure_idle(pid, seconds):
    time.sleep(SETTLE_S)
    ticks, before, start = ticks_of(pid), switches_by_thread(pid), time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - start
    ticks, after = ticks_of(pid) - ticks, switches_by_thread(pid)
    wakeups = {
        f"{name} {thread}": voluntary - before.get(thread, (name, 0, 0))[1]
        for thread, (name, voluntary, _) in after.items()
    }
    forced = sum(counts[2] - before.get(thread, (0, 0, 0))[2] for thread, counts in after.items())
    return {
        "seconds": elapsed, "ticks": ticks, "core_share": ticks / os.sysconf("SC_CLK_TCK") / elapsed,
        "wakeups_per_s": sum(wakeups.values()) / elapsed, "fastest_thread_per_s": max(wakeups.values()) / elapsed,
        "preempted": forced, "wakeups": {name: n for name, n in wakeups.items() if n},
    }  # fmt: skip


def wait_until_settled(pid, client):
    """Until the daemon is ready and no longer packs weights, which it does in the background: until it rests."""
    end = time.monotonic() + MODEL_PATIENCE_S
    rest_s, least_share = 2, 0.05
    while time.monotonic() < end:
        before = ticks_of(pid)
        time.sleep(rest_s)
        share = (ticks_of(pid) - before) / os.sysconf("SC_CLK_TCK") / rest_s
        status = client.call("status", timeout_s=MODEL_PATIENCE_S)
        if status["state"] == "ready" and share < least_share:
            return status
    raise RuntimeError("the daemon does not come to rest")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=Path, help="build folder that has bin/pantheond, tests/step_bench")
    parser.add_argument("--model", required=True, type=os.path.abspath, help="GGUF file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="alternations; medians are over these")
    parser.add_argument("--tokens", type=int, default=48, help="of a stream")
    parser.add_argument("--prompts", default=f"{SHORT_PROMPT},512", help="lengths for the time to first token")
    parser.add_argument("--idle", type=float, default=30, metavar="S", help="seconds of the idle check; 0: none")
    parser.add_argument("--json", metavar="FILE", help="write everything measured there too")
    options = parser.parse_args()
    prompts = [int(n) for n in options.prompts.split(",")]
    if options.runs < 1 or options.tokens < 2 or min(prompts) < 1:
        parser.error("--runs must be at least 1, --tokens 2 and every prompt 1")

    load = os.getloadavg()
    config = f"cpu.threads = {options.threads}\nkv.format = \"f16\"\n"
    with Daemon(options.build.absolute(), options.model, config) as daemon, daemon.client() as client:
        status = wait_until_settled(daemon.process.pid, client)
        report = {"model": options.model, "threads": options.threads, "runs": options.runs, "load_before": load}
        print(f"{options.model}: {options.threads} threads, {options.runs} runs, load {load[0]:.2f}", flush=True)
        if options.idle > 0:
            # First, while nothing else of ours runs.
            idle = report["idle"] = measure_idle(daemon.process.pid, options.idle)
            print(f"idle         {100 * idle['core_share']:.2f} % of a core ({idle['ticks']} ticks in "
                  f"{idle['seconds']:.0f} s), {idle['wakeups_per_s']:.2f} wake-ups/s, fastest thread "
                  f"{idle['fastest_thread_per_s']:.2f}/s: {idle['wakeups']}", flush=True)  # fmt: skip
        socket = SocketSide(daemon, status["model"]["n_vocab"])
        packed = any(die["repack_bytes"] for engine in status["engines"] for die in engine["dies"])
        steps = OurSide(options.build, options.model, options.threads, [] if packed else ["--rows"])
        try:
            socket.generate(SHORT_PROMPT, 4)  # what the first request finds cold
            steps.run(f"tg 4 {SHORT_PROMPT}")
            decode = report["decode"] = measure_decode(socket, steps, options.runs, options.tokens)
            print(f"decode       {decode['socket_tps']:.2f} tokens/s through the socket "
                  f"({decode['socket_whole_tps']:.2f} with every pause), {decode['in_process_tps']:.2f} in process: "
                  f"{100 * decode['ratio']:.1f} %", flush=True)  # fmt: skip
            report["first_token"] = []
            for n_prompt in prompts:
                first = measure_first_token(socket, steps, options.runs, n_prompt)
                report["first_token"].append(first)
                print(f"first token  {first['socket_ms']:.2f} ms through the socket, {first['in_process_ms']:.2f} "
                      f"in process, prompt of {n_prompt}: {first['added_ms']:+.2f} ms", flush=True)  # fmt: skip
        finally:
            steps.close()
        status = client.call("status")
        report["memory"] = status["memory"]
        report["repack_bytes"] = sum(die["repack_bytes"] for engine in status["engines"] for die in engine["dies"])
        print(f"packed       {report['repack_bytes'] / 2**30:.1f} GiB, memory {status['memory']['level']}")
    report["load_after"] = os.getloadavg()
    print("load", *(f"{x:.2f}" for x in report["load_after"]))
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
