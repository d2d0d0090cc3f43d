#!/usr/bin/env python3
"""Our cpu backend and llama.cpp on the same file, in turns: prefill, decode and batched decode.

Both load the file once (llama.cpp with its repacked buffers, as users run it) and then answer tests alternately,
each run in the other order, so that what else happens on the machine meets both. Printed are medians of
milliseconds per token, wall and processor time, their ratios, and the least and greatest ratio of a run; then what
the machine was doing: its load, and the share of time that the host of a virtual machine took ("steal"). On a busy
machine only one thread's processor time means something; for the wall time of several threads the machine must be
idle.
"""

import argparse
import ctypes as C
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
import llama  # noqa: E402

# name: what step_bench is asked, and (kind, n, depth) for llama.cpp
TESTS = {
    "pp512": ("pp 512", ("pp", 512, 0)),
    "tg": ("tg 48", ("tg", 48, 0)),
    "tg4096": ("tg 24 4096", ("tg", 24, 4096)),
    "bt4": ("bt 4 12", ("bt", 4, 0)),
    "bt8": ("bt 8 8", ("bt", 8, 0)),
    "bt16": ("bt 16 8", ("bt", 16, 0)),
}
CHUNK = 512


class LlamaSide:
    """llama.cpp in this process."""

    def __init__(self, model, threads):
        self.oracle = llama.Oracle(os.path.join(llama.oracle_folder(), "lib"))
        self.lib = self.oracle.lib
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = self.lib.llama_model_load_from_file(os.fsencode(model), params)
        if not self.model:
            raise llama.OracleError(f"{model}: llama.cpp does not load it:\n{self.oracle.last_log()}")
        self.n_vocab = self.lib.llama_vocab_n_tokens(self.lib.llama_model_get_vocab(self.model))
        self.threads = threads

    def _context(self, n_seq, n_ctx):
        params = self.lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = n_ctx, 2048, CHUNK, n_seq
        params.n_threads = params.n_threads_batch = self.threads
        params.offload_kqv = False
        context = self.lib.llama_init_from_model(self.model, params)
        if not context:
            raise llama.OracleError(f"llama.cpp makes no context:\n{self.oracle.last_log()}")
        return context

    def _token(self, i):
        return i * 7919 % self.n_vocab

    def _decode(self, context, rows):
        """rows: (token, position, sequence, whether logits are wanted). Seconds of wall and of processor time."""
        n = len(rows)
        sequences = [(C.c_int32 * 1)(row[2]) for row in rows]
        batch = llama._Batch(
            n_tokens=n,
            token=(C.c_int32 * n)(*(row[0] for row in rows)),
            embd=None,
            pos=(C.c_int32 * n)(*(row[1] for row in rows)),
            n_seq_id=(C.c_int32 * n)(*([1] * n)),
            seq_id=(C.POINTER(C.c_int32) * n)(*(C.cast(s, C.POINTER(C.c_int32)) for s in sequences)),
            logits=(C.c_int8 * n)(*(row[3] for row in rows)),
        )
        wall, processor = time.perf_counter(), time.process_time()
        if self.lib.llama_decode(context, batch) != 0:
            raise llama.OracleError(f"llama_decode fails:\n{self.oracle.last_log()}")
        self.lib.llama_get_logits_ith(context, -1)
        return time.perf_counter() - wall, time.process_time() - processor

    def run(self, kind, n, depth):
        """Medians of milliseconds per token, wall and processor."""
        n_seq = n if kind == "bt" else 1
        n_prompt = n if kind == "pp" else depth
        context = self._context(n_seq, max(CHUNK, n_prompt + 256) * n_seq)
        try:
            times = []
            for start in range(0, n_prompt, CHUNK):
                end = min(n_prompt, start + CHUNK)
                times.append(self._decode(context, [(self._token(i), i, 0, i == end - 1) for i in range(start, end)]))
            if kind == "pp":
                return [1e3 * sum(t[k] for t in times) / n for k in (0, 1)]
            times = [
                self._decode(
                    context, [(self._token((depth + i) * n_seq + s), depth + i, s, 1) for s in range(n_seq)]
                )
                for i in range(n if kind == "tg" else 10)
            ]
            # The first steps allocate.
            return [1e3 * statistics.median(t[k] for t in times[2:]) / n_seq for k in (0, 1)]
        finally:
            self.lib.llama_free(context)


class OurSide:
    """step_bench in a process of its own."""

    def __init__(self, build, model, threads, options):
        program = [str(Path(build) / "tests" / "step_bench"), model, "--threads", str(threads), *options]
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.about = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("step_bench ended early")
        return json.loads(line)

    def run(self, test):
        self.process.stdin.write(test + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        return answer["ms"], answer["cpu_ms"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def stolen_and_all_ticks():
    """Of all processors since they started."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def summary(our_times, their_times):
    """Medians, and the ratio theirs / ours: above 1 we are faster."""
    ours, theirs = ([statistics.median(t[k] for t in times) for k in (0, 1)] for times in (our_times, their_times))
    ratios = [b[0] / a[0] for a, b in zip(our_times, their_times)]
    return {
        "ours_ms": ours[0], "ours_cpu_ms": ours[1], "llama_ms": theirs[0], "llama_cpu_ms": theirs[1],
        "ratio": theirs[0] / ours[0], "ratio_cpu": theirs[1] / ours[1], "ratio_min": min(ratios),
        "ratio_max": max(ratios), "ours_runs_ms": [t[0] for t in our_times],
        "llama_runs_ms": [t[0] for t in their_times],
    }  # fmt: skip


def table(results, n_runs):
    lines = [f"{'test':8}{'ours ms':>10}{'cpu':>9}{'llama ms':>10}{'cpu':>9}{'ratio':>8}{'of cpu':>8}{'min':>7}{'max':>7}"
             f"   medians of {n_runs} runs, ms per token"]  # fmt: skip
    for test, s in results.items():
        lines.append(
            f"{test:8}{s['ours_ms']:10.2f}{s['ours_cpu_ms']:9.2f}{s['llama_ms']:10.2f}{s['llama_cpu_ms']:9.2f}"
            f"{s['ratio']:8.2f}{s['ratio_cpu']:8.2f}{s['ratio_min']:7.2f}{s['ratio_max']:7.2f}"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder that has tests/step_bench")
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="alternations; medians are over these")
    parser.add_argument("--tests", default="tg,pp512,bt8,bt16,tg4096", help="of " + ", ".join(TESTS))
    parser.add_argument("--repack", choices=["all", "dense", "none"], default="all", help="of our side")
    parser.add_argument("--json", metavar="FILE", help="write everything measured there too")
    options = parser.parse_args()
    tests = options.tests.split(",")
    unknown = [t for t in tests if t not in TESTS]
    if unknown:
        parser.error(f"no such test: {unknown[0]}")
    if options.runs < 1:
        parser.error("--runs must be at least 1")

    flags = {"all": [], "dense": ["--dense"], "none": ["--rows"]}[options.repack]
    ours = OurSide(options.build, options.model, options.threads, flags)
    theirs = LlamaSide(options.model, options.threads)
    load_before, (stolen, ticks) = os.getloadavg(), stolen_and_all_ticks()
    print(f"{options.model}: ours {json.dumps(ours.about)}; load {' '.join(f'{x:.2f}' for x in load_before)}", flush=True)
    times = {test: ([], []) for test in tests}
    for run in range(options.runs):
        for test in tests:
            sides = [lambda: times[test][0].append(ours.run(TESTS[test][0])),
                     lambda: times[test][1].append(theirs.run(*TESTS[test][1]))]  # fmt: skip
            for side in sides if run % 2 == 0 else reversed(sides):
                side()
        print(f"run {run + 1} of {options.runs}", file=sys.stderr, flush=True)
    ours.close()
    results = {test: summary(*both) for test, both in times.items()}
    load_after, (stolen_after, ticks_after) = os.getloadavg(), stolen_and_all_ticks()
    steal = (stolen_after - stolen) / max(1, ticks_after - ticks)
    print(table(results, options.runs))
    print(f"load {' '.join(f'{x:.2f}' for x in load_after)}, steal {100 * steal:.1f} %")
    if options.json:
        report = {
            "model": options.model, "threads": options.threads, "repack": options.repack, "runs": options.runs,
            "ours": ours.about, "load_before": load_before, "load_after": load_after, "steal": steal, "tests": results,
        }  # fmt: skip
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
