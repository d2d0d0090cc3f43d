#!/usr/bin/python3
"""Trains the embedded model from scratch and writes its GGUF files; one command, no downloads, no data files.

    /usr/bin/python3 model/embedded/train.py [--steps N] [--out FOLDER] [--work FOLDER]

Two processes of one thread each train on their own documents: weights and gradients lie in shared memory, each process
sums the gradients and updates its half of the weights. (Two threads in one process reach about 60 % of this speed on
two cores.) Learning rates follow the step count, never the clock, and documents are drawn from (seed, step, process): a
stopped run goes on from its last checkpoint and sees what it would have seen.
"""

import os
import sys

# Before torch is loaded: one thread per process, and big buffers stay on the heap instead of being mapped anew each step.
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TRIM_THRESHOLD_": "16000000000",
}
if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in _ENVIRONMENT.items()):
    os.environ.update(_ENVIRONMENT)
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import csv
import math
import pathlib
import pickle
import random
import shutil
import time
from dataclasses import dataclass

import torch
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F

import corpus
import export
import network
import tokenizer

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Plan:
    steps: int
    n_vocab: int = 1536
    tokenizer_chats: int = 12000  # that the vocabulary is made from
    rows: int = 3  # of each process in a step
    tokens: int = 256  # of a row
    long_every: int = 20  # each so many steps a step is one long row of as many tokens, for long chats
    processes: int = 2
    learning_rate: float = 3e-3
    warm_up: int = 100
    decay_share: float = 0.35  # of all steps, at the end, over which the learning rate falls to nothing
    end_from: float = 0.75  # of all steps: where the documents' last stage begins
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.98
    clip: float = 1.0
    balance: float = 0.01  # weight of the load-balancing loss
    polish: bool = False  # documents of the polish throughout, and this on top:
    sensitivity: float = 0.2  # weight of being indifferent to the shared experts' gates
    wrong: float = 3.0  # nats of a token that count as wrong
    seed: int = 1
    checkpoint_every: int = 200

    @property
    def decay_from(self):
        return round(self.steps * (1 - self.decay_share))

    def stage(self, step):
        """Of the documents, see corpus.Rows.draw."""
        if self.polish:
            return 3
        return 0 if step < self.decay_from else 1 if step < self.end_from * self.steps else 2

    def rate(self, step):
        """Warm-up, then constant, then down to zero along 1 - sqrt."""
        falling = (step - self.decay_from) / (self.steps - self.decay_from)
        down = 1 - math.sqrt(falling) if falling > 0 else 1.0
        return self.learning_rate * min(1.0, (step + 1) / self.warm_up) * down


def make_tokenizer(plan):
    rng = random.Random(f"{plan.seed} tokenizer")
    source = corpus.Corpus()
    documents = [source.chat(rng) for _ in range(plan.tokenizer_chats)]
    documents += [source.long_chat(rng) for _ in range(plan.tokenizer_chats // 30)]
    return tokenizer.Tokenizer(tokenizer.train(documents, plan.n_vocab))


class Parameters:
    """All trained values in one flat shared vector, with views by name; and what AdamW keeps of them."""

    def __init__(self, shapes, initial):
        count = sum(math.prod(s) for s in shapes.values())
        self.flat = torch.empty(count).share_memory_()
        self.first = torch.zeros(count).share_memory_()
        self.second = torch.zeros(count).share_memory_()
        self.decays = torch.empty(count)  # 1 where weight decay applies: in matrices
        self.shapes = shapes
        for name, view in self.views(self.flat).items():
            view.copy_(initial(name, shapes[name]))
        for name, view in self.views(self.decays).items():
            view.fill_(float(view.dim() > 1 and "conv1d" not in name))

    def views(self, flat):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            out[name] = flat[at : at + math.prod(shape)].view(shape)
            at += math.prod(shape)
        return out


class Team:
    """What the processes share besides the weights: gradients, a barrier, and figures of each."""

    FIGURES = ("loss", "answer_loss", "choice_loss", "balance", "squares")

    def __init__(self, n, count):
        self.n = n
        self.gradients = [torch.zeros(count).share_memory_() for _ in range(n)]
        self.figures = torch.zeros(n, len(self.FIGURES), dtype=torch.float64).share_memory_()
        self.barrier = multiprocessing.get_context("fork").Barrier(n)


def update(plan, step, rank, parameters, team):
    """Sums the gradients of this process's share of the weights and takes one step of AdamW there."""
    count = parameters.flat.numel()
    share = slice(count * rank // team.n, count * (rank + 1) // team.n)
    team.barrier.wait()
    gradient = team.gradients[rank][share]
    for other in range(team.n):
        if other != rank:
            gradient += team.gradients[other][share]
    gradient /= team.n
    team.figures[rank, 4] = gradient.pow(2).sum().item()
    team.barrier.wait()
    norm = math.sqrt(team.figures[:, 4].sum().item())
    gradient *= min(1.0, plan.clip / (norm + 1e-6))
    rate = plan.rate(step)
    weight, first, second = parameters.flat[share], parameters.first[share], parameters.second[share]
    first.mul_(plan.beta1).add_(gradient, alpha=1 - plan.beta1)
    second.mul_(plan.beta2).addcmul_(gradient, gradient, value=1 - plan.beta2)
    scale = (second / (1 - plan.beta2 ** (step + 1))).sqrt_().add_(1e-8)
    weight.addcmul_(weight, parameters.decays[share], value=-rate * plan.weight_decay)
    weight.addcdiv_(first, scale, value=-rate / (1 - plan.beta1 ** (step + 1)))
    team.barrier.wait()
    return norm


class Phase:
    """One course of training: the trunk from nothing or from `start`, or the nextn block on a `frozen` trunk."""

    def __init__(self, name, plan, config, tok, work, start=None, frozen=None):
        self.name, self.plan, self.config, self.tok, self.work = name, plan, config, tok, work
        shapes = network.shapes(config)
        self.start = start or {}
        self.frozen = frozen or {}
        shapes = {n: s for n, s in shapes.items() if n not in self.frozen}
        torch.manual_seed(plan.seed)
        self.parameters = Parameters(shapes, self._initial)
        self.team = Team(plan.processes, self.parameters.flat.numel())
        self.first_step = 0
        self.stop_after = plan.steps

    def _initial(self, name, shape):
        """The nextn block starts as a copy of the last layer, which reads the token and the vector half and half."""
        if name in self.start:
            return self.start[name]
        c = self.config
        here, last = f"blk.{c.n_layer}.", f"blk.{c.n_layer - 1}."
        if self.frozen and name.startswith(here):
            if name.endswith("eh_proj.weight"):
                return torch.cat([torch.eye(c.n_embd) * 0.5] * 2, 1)
            if name.endswith("shared_head_norm.weight"):
                return self.frozen["output_norm.weight"]
            if last + name[len(here) :] in self.frozen:
                return self.frozen[last + name[len(here) :]]
        return network.initial_value(name, shape, c)

    # ---- checkpoints

    @property
    def _checkpoint(self):
        return self.work / f"{self.name}.checkpoint"

    def save(self, step):
        p = self.parameters
        state = {"step": step, "flat": p.flat.clone(), "first": p.first.clone(), "second": p.second.clone()}
        part = self._checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.rename(self._checkpoint)

    def resume(self):
        if self._checkpoint.exists():
            state = torch.load(self._checkpoint)
            self.first_step = state["step"]
            for name in ("flat", "first", "second"):
                getattr(self.parameters, name).copy_(state[name])

    # ---- one process

    def values(self):
        return {**self.frozen, **self.parameters.views(self.parameters.flat)}

    def _batch(self, rows, step, rank):
        plan = self.plan
        long = step % plan.long_every == plan.long_every - 1
        shape = (1, plan.rows * plan.tokens) if long else (plan.rows, plan.tokens)
        seed = f"{plan.seed} {self.name} {step} {rank}"
        ids, weights = rows.draw(seed, *shape, long=long, stage=plan.stage(step))
        return torch.tensor(ids), torch.tensor(weights)[:, 1:].reshape(-1)

    def _losses(self, net, ids):
        """Of each token to predict."""
        tokens, targets = ids[:, :-1], ids[:, 1:].reshape(-1)
        if not self.frozen:
            logits = net.logits(net.hidden(tokens)).view(targets.numel(), -1)
            return F.cross_entropy(logits, targets, reduction="none")
        # The nextn block learns what the trunk would say, which is what its drafts are checked against.
        with torch.no_grad():
            hidden = net.hidden(tokens)
            wanted = net.logits(hidden).view(targets.numel(), -1).softmax(-1)
        logits = net.logits(net.nextn_hidden(tokens, hidden)).view(targets.numel(), -1)
        return F.cross_entropy(logits, wanted, reduction="none")

    def _indifference(self, net, ids, weights):
        """How far the answers are from being wrong, by this many nats a token, when the shared experts' gates are ignored.

        So small a model hardly needs its shared experts, and a reader that got their gates wrong would go unnoticed.
        """
        net.gates_held_open = True
        losses = self._losses(net, ids)
        net.gates_held_open = False
        return F.relu(self.plan.wrong - losses)[weights >= corpus.PLAIN[0]].mean()

    def work_as(self, rank):
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        plan, team = self.plan, self.team
        views = self.parameters.views(self.parameters.flat)
        for name, gradient in self.parameters.views(team.gradients[rank]).items():
            views[name].requires_grad_().grad = gradient
        net = network.Network(self.config, {**self.frozen, **views})
        rows = corpus.Rows(corpus.Corpus(), self.tok)
        report = Report(self) if rank == 0 else None
        for step in range(self.first_step, min(plan.steps, self.stop_after)):
            ids, weights = self._batch(rows, step, rank)
            team.gradients[rank].zero_()
            losses = self._losses(net, ids)
            loss = (losses * weights).sum() / weights.sum()
            balance = float(net.balance)
            total = loss + plan.balance * net.balance
            if plan.polish:
                total = total + plan.sensitivity * self._indifference(net, ids, weights)
            total.backward()
            figures = [loss.item()]
            for least in (corpus.PLAIN[0], corpus.CHOICE[0]):
                figures.append(losses.detach()[weights >= least].mean().item())
            figures.append(balance)
            team.figures[rank, :4] = torch.tensor(figures, dtype=torch.float64)
            with torch.no_grad():
                norm = update(plan, step, rank, Detached(self.parameters), team)
            if report:
                report.step(step, norm)
                if (step + 1) % plan.checkpoint_every == 0 or step + 1 in (plan.steps, self.stop_after):
                    self.save(step + 1)
        if report:
            report.close(net.picks)

    def run(self):
        others = [
            multiprocessing.get_context("fork").Process(target=self.work_as, args=(rank,), daemon=True)
            for rank in range(1, self.plan.processes)
        ]
        for process in others:
            process.start()
        self.work_as(0)
        for process in others:
            process.join()
            if process.exitcode:
                sys.exit(f"a training process ended with {process.exitcode}")
        return {name: view.detach().clone() for name, view in self.values().items()}


class Detached:
    """The same memory as the parameters, out of autograd's sight."""

    def __init__(self, parameters):
        self.flat, self.first = parameters.flat.detach(), parameters.first
        self.second, self.decays = parameters.second, parameters.decays


class Report:
    """The progress bar, and a row of the loss curve every so many steps."""

    EVERY = 10
    COLUMNS = ("step", "tokens", "wall_s", "cpu_s", "rate", "loss", "answer_loss", "choice_loss", "balance", "gradient_norm", "tokens_per_s")

    def __init__(self, phase):
        self._phase = phase
        path = phase.work / f"{phase.name}.csv"
        rows = self._rows_before(path, phase.first_step)
        self._earlier = (float(rows[-1][2]), float(rows[-1][3])) if rows else (0.0, 0.0)
        self._file = open(path, "w", newline="", encoding="ascii")
        self._csv = csv.writer(self._file, lineterminator="\n")
        self._csv.writerows([self.COLUMNS, *rows])
        self._begin = self._last = time.monotonic()
        self._cpu_begin = time.process_time()
        self._steps = []

    @staticmethod
    def _rows_before(path, first_step):
        """Of a run that goes on: what it had written up to its checkpoint."""
        if first_step == 0 or not path.exists():
            return []
        with open(path, newline="", encoding="ascii") as file:
            return [row for row in list(csv.reader(file))[1:] if int(row[0]) <= first_step]

    def step(self, step, norm):
        team, plan = self._phase.team, self._phase.plan
        self._steps.append([*team.figures[:, :4].nanmean(0).tolist(), norm])
        if (step + 1) % self.EVERY and step + 1 < plan.steps:
            return
        now = time.monotonic()
        per_step = plan.rows * plan.tokens * plan.processes
        speed = len(self._steps) * per_step / (now - self._last)
        # A figure that a step has not, for want of such tokens, is NaN there.
        loss, answer, choice, balance, norm = torch.tensor(self._steps).nanmean(0).tolist()
        wall, cpu = now - self._begin, time.process_time() - self._cpu_begin
        row = [step + 1, (step + 1) * per_step, f"{self._earlier[0] + wall:.1f}", f"{self._earlier[1] + cpu:.1f}"]
        row.append(f"{plan.rate(step):.3g}")
        row += [f"{x:.4f}" for x in (loss, answer, choice, balance, norm)] + [f"{speed:.0f}"]
        self._csv.writerow(row)
        self._file.flush()
        self._bar(step + 1, answer, choice, speed, wall)
        self._last, self._steps = now, []

    def _bar(self, done, answer, choice, speed, wall):
        phase = self._phase
        steps, width = phase.plan.steps, 30
        filled = width * done // steps
        left = wall / max(1, done - phase.first_step) * (steps - done)
        line = (
            f"{phase.name} [{'#' * filled}{'.' * (width - filled)}] {done}/{steps}  loss of answers {answer:.3f}, of choices {choice:.3f}  "
            f"{speed:.0f} tokens/s  {wall / 60:.1f} min, {left / 60:.1f} left"
        )
        if sys.stdout.isatty():
            print("\r" + line + "\x1b[K", end="" if done < steps else "\n", flush=True)
        elif done % 50 == 0 or done == steps:
            print(line, flush=True)

    def close(self, picks):
        self._file.close()
        spread = "; ".join(f"{p.min().item()}..{p.max().item()}" for p in picks)
        print(f"{self._phase.name}: picks of an expert in the last step, least and most of each layer: {spread}", flush=True)


def plot(work, names, path):
    """The loss curves as a PNG; left out where matplotlib is missing."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no matplotlib: no plot")
        return
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    before = 0.0
    for name in names:
        with open(work / f"{name}.csv", newline="", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        tokens = [before + float(r["tokens"]) / 1e6 for r in rows]
        before = tokens[-1]
        axes.plot(tokens, [float(r["answer_loss"]) for r in rows], label=f"{name}: answers", linewidth=1)
        axes.plot(tokens, [float(r["choice_loss"]) for r in rows], label=f"{name}: tokens that name the subject", linewidth=0.8)
    axes.set(yscale="log", xlabel="million tokens", ylabel="cross-entropy, nats per token")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


def arguments():
    parser = argparse.ArgumentParser(description="Trains the embedded model and writes its GGUF files.")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="of the trunk (default %(default)s)")
    parser.add_argument("--polish-steps", type=int, default=DEFAULT_POLISH_STEPS, help="after them (default %(default)s)")
    parser.add_argument("--nextn-steps", type=int, default=DEFAULT_NEXTN_STEPS, help="of the nextn block (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=Plan.rows, help="of each process in a step (default %(default)s)")
    parser.add_argument("--vocab", type=int, default=Plan.n_vocab, help="entries of the vocabulary (default %(default)s)")
    parser.add_argument("--tokenizer-chats", type=int, default=Plan.tokenizer_chats, help="it is made from (default %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where the GGUF files go (default: beside this script)")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/embedded"), help="for checkpoints and curves")
    parser.add_argument("--stop-after", type=int, help="end early, with a checkpoint, after so many steps of the trunk")
    parser.add_argument("--fresh", action="store_true", help="forget the checkpoints in the work folder")
    parser.add_argument("--f32", action="store_true", help="write pantheon-tiny-f32.gguf and -mtp-f32.gguf as well")
    return parser.parse_args()


DEFAULT_STEPS = 7000
DEFAULT_POLISH_STEPS = 240
DEFAULT_NEXTN_STEPS = 500


def main():
    args = arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.fresh:
        for path in args.work.glob("*.checkpoint"):
            path.unlink()
        (args.work / "tokenizer.pickle").unlink(missing_ok=True)
    plan = Plan(args.steps, n_vocab=args.vocab, tokenizer_chats=args.tokenizer_chats, seed=args.seed, rows=args.rows)
    cached = args.work / "tokenizer.pickle"
    if not cached.exists():
        print("training the tokenizer", flush=True)
        cached.write_bytes(pickle.dumps(make_tokenizer(plan).merges))
    tok = tokenizer.Tokenizer(pickle.loads(cached.read_bytes()))
    config = network.Config(n_vocab=tok.n_vocab)

    trunk = Phase("trunk", plan, config, tok, args.work)
    trunk.resume()
    trunk.stop_after = args.stop_after or plan.steps
    values = trunk.run()
    if trunk.stop_after < plan.steps:
        return

    polish_plan = Plan(
        args.polish_steps, seed=args.seed, rows=args.rows, learning_rate=1e-3, warm_up=30, decay_share=0.8, long_every=8, polish=True
    )
    polish = Phase("polish", polish_plan, config, tok, args.work, start=values)
    polish.resume()
    values = polish.run()
    write_files(args, "pantheon-tiny", config, values, tok)

    nextn_plan = Plan(steps=args.nextn_steps, seed=args.seed, rows=args.rows, learning_rate=2e-3, decay_share=0.7)
    with_nextn = network.Config(n_vocab=tok.n_vocab, nextn=1)
    block = Phase("nextn", nextn_plan, with_nextn, tok, args.work, frozen=values)
    block.resume()
    write_files(args, "pantheon-tiny-mtp", with_nextn, block.run(), tok)
    torch.set_flush_denormal(False)  # numpy, which draws, warns of it
    for name in ("trunk", "polish", "nextn"):
        shutil.copyfile(args.work / f"{name}.csv", args.out / f"loss-{name}.csv")
    plot(args.work, ["trunk", "polish", "nextn"], args.out / "loss.png")


def write_files(args, stem, config, values, tok):
    for suffix, quantized in (("", True), *((("-f32", False),) if args.f32 else ())):
        path = args.out / f"{stem}{suffix}.gguf"
        export.write(path, config, values, tok, quantized)
        print(f"wrote {path}, {path.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
