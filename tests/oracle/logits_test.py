#!/usr/bin/env python3
"""Logits of `pantheon score --backend ref --kv f32` against llama.cpp, over 200 positions of synthetic models.

llama.cpp reads the F32 expansion of each file, made with ggml's own to_float; f32 KV, flash attention off. Prints one
row a case; exits 1 if a case breaks its bound, misses its shape, or leaves too few positions to compare.
"""

import argparse
import math
import random
import sys
import tempfile
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from compare import compare
from gguf import GgufFile, expand_to_f32
from llama import RoutingGaps, open_oracle
from programs import Programs

N_POSITIONS = 200
MIN_COMPARED = 100
MAX_NMSE = 1e-9
MAX_WORST = 1e-7


@dataclass
class Case:
    """A model by the options of make_model, and what the file must then say (so that no option is lost)."""

    name: str
    options: str
    keys: dict = field(default_factory=dict)  # without the "qwen35moe." in front
    types: tuple = ()  # weight types that must occur
    tensors: tuple = ()  # tensors that must exist
    absent: tuple = ()  # tensors that must not
    seed: int = 1  # of the weights; another one where the first brings a routing near-tie
    oracle_options: str = ""  # for a file that llama.cpp refuses: the options of one with the same trunk


# Small and odd on purpose; F32 unless the case says otherwise, since what is tested is the shape.
NARROW = "--n-embd 64 --head-dim 32 --gdn-head-dim 16 --ff 32 --shared-ff 32 --vocab 300 --type F32"
SMALL = f"{NARROW} --rope-dim 16"

SHAPES = [
    Case("interval_2", f"{SMALL} --layers 6 --interval 2", {"full_attention_interval": 2, "block_count": 6}),
    Case("interval_3", f"{SMALL} --layers 6 --interval 3", {"full_attention_interval": 3}),
    Case("interval_4", f"{SMALL} --layers 8 --interval 4", {"full_attention_interval": 4, "block_count": 8}),
    Case("conv_kernel_3", f"{SMALL} --gdn-conv 3", {"ssm.conv_kernel": 3}),
    Case("conv_kernel_2", f"{SMALL} --gdn-conv 2", {"ssm.conv_kernel": 2}),
    Case("odd_head_counts", f"{SMALL} --interval 2 --heads 9 --kv-heads 3 --gdn-heads-k 3 --gdn-heads-v 9",
         {"attention.head_count": 9, "attention.head_count_kv": 3, "ssm.group_count": 3, "ssm.time_step_rank": 9}),
    Case("one_kv_head", f"{SMALL} --interval 2 --heads 5 --kv-heads 1", {"attention.head_count": 5, "attention.head_count_kv": 1}),
    Case("every_head_its_own_kv", f"{SMALL} --interval 2 --heads 3 --kv-heads 3", {"attention.head_count_kv": 3}),
    Case("equal_gdn_heads", f"{SMALL} --gdn-heads-k 4 --gdn-heads-v 4", {"ssm.group_count": 4, "ssm.time_step_rank": 4}),
    Case("one_gdn_key_head", f"{SMALL} --gdn-heads-k 1 --gdn-heads-v 5", {"ssm.group_count": 1, "ssm.time_step_rank": 5}),
    Case("tied_head", f"{SMALL} --tied", absent=("output.weight",)),
    Case("fused_experts", f"{SMALL} --fused-experts", tensors=("blk.0.ffn_gate_up_exps.weight",), absent=("blk.0.ffn_up_exps.weight",)),
    Case("nextn_block", f"{SMALL} --nextn", {"nextn_predict_layers": 1, "block_count": 5},
         tensors=("blk.4.nextn.eh_proj.weight",), seed=4),
    Case("nextn_promised_only", f"{SMALL} --nextn-missing", {"nextn_predict_layers": 1, "block_count": 5},
         absent=("blk.4.nextn.eh_proj.weight",), oracle_options=SMALL),
    Case("seven_experts_three_used", f"{SMALL} --experts 7 --experts-used 3", {"expert_count": 7, "expert_used_count": 3}),
    Case("sixty_experts_ten_used", f"{SMALL} --experts 60 --experts-used 10 --router-gap wide", {"expert_count": 60, "expert_used_count": 10}, seed=2),
    Case("every_expert_used", f"{SMALL} --experts 5 --experts-used 5", {"expert_used_count": 5}),
    Case("whole_head_rotated", f"{NARROW} --interval 2 --rope-dim 32", {"rope.dimension_count": 32}, seed=3),
    Case("wide_heads", "--n-embd 96 --head-dim 256 --rope-dim 64 --gdn-head-dim 128 --ff 64 --shared-ff 96 --vocab 300 "
         "--layers 4 --interval 2 --type F32", {"attention.key_length": 256, "ssm.state_size": 128}),
]  # fmt: skip

# 256 columns in every matrix, so that each type fits everywhere; 3 layers, one of them attention.
TYPED = (
    "--n-embd 256 --layers 3 --interval 3 --heads 4 --kv-heads 2 --head-dim 64 --rope-dim 32 --gdn-heads-k 2 "
    "--gdn-heads-v 4 --gdn-head-dim 64 --experts 4 --experts-used 2 --ff 256 --shared-ff 256 --vocab 300"
)


def typed(*type_names):
    # Q6_K and Q4_0 keep their near-ties: a few positions are left out there, and counted.
    other_seeds = {"F32": 2, "Q4_K": 2, "IQ3_S": 2}
    return [Case(name, f"{TYPED} --type {name}", types=(name,), seed=other_seeds.get(name, 1)) for name in type_names]


# Every tensor may have any type, routers, gates and the draft head included.
WILD = {
    "token_embd": "IQ3_S", "^output.weight": "Q6_K", "attn_qkv": "Q5_K", "attn_gate": "IQ4_XS", "ssm_alpha": "BF16",
    "ssm_beta": "F16", "ssm_out": "Q8_0", "attn_q.weight": "Q3_K", "attn_k.weight": "Q4_1", "attn_v": "Q5_1",
    "attn_output": "Q5_0", "ffn_gate_inp": "BF16", "ffn_gate_exps": "IQ1_S", "ffn_up_exps": "IQ2_XS",
    "ffn_down_exps": "MXFP4", "ffn_gate_shexp": "Q2_K", "ffn_up_shexp": "IQ4_NL", "ffn_down_shexp": "IQ3_XXS",
}  # fmt: skip
MIXES = [
    Case("q4_k_m", f"{TYPED} --mix q4_k_m", types=("F32", "Q4_K", "Q6_K"), seed=2),
    Case("q3_k_m", f"{TYPED} --mix q3_k_m", types=("F32", "Q3_K", "Q4_K", "Q5_K", "Q6_K")),
    Case("mxfp4_moe", f"{TYPED} --mix mxfp4_moe", types=("F32", "MXFP4", "Q8_0")),
    Case("a_type_a_tensor", f"{TYPED} --type Q4_0 --nextn" + "".join(f" --tensor-type {name}={kind}" for name, kind in WILD.items()),
         {"nextn_predict_layers": 1}, types=tuple(sorted(set(WILD.values())))),
]  # fmt: skip

GROUPS = {
    "shapes": SHAPES,
    "mixes": MIXES,
    "plain_types": typed("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4", "IQ4_NL"),
    "k_types": typed("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"),
    "iq_types": typed("IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M"),
}


class CaseFailed(AssertionError):
    """The case could not be judged, or not as it was meant."""


def check_file(case, model):
    """The file is what the case is about."""
    for key, want in case.keys.items():
        got = model.metadata.get(f"qwen35moe.{key}")
        if got != want:
            raise CaseFailed(f"{key} is {got}, want {want}")
    found = {tensor.type_name for tensor in model.tensors.values()}
    if not set(case.types) <= found:
        raise CaseFailed(f"types {sorted(found)}, want {case.types}")
    for name in case.tensors:
        if name not in model.tensors:
            raise CaseFailed(f"no tensor {name}")
    for name in case.absent:
        if name in model.tensors:
            raise CaseFailed(f"tensor {name} should be absent")


def our_logits(programs, folder, model_path, tokens, n_vocab):
    ids, out = folder / "ids.txt", folder / "ours.f32"
    ids.write_text(" ".join(map(str, tokens)), encoding="ascii")
    programs.run("bin/pantheon", "score", "--model", model_path, "--tokens", ids, "--logits", out,
                 "--backend", "ref", "--kv", "f32", "--threads", "1")  # fmt: skip
    values = array("f", out.read_bytes())
    if len(values) != len(tokens) * n_vocab:
        raise CaseFailed(f"{len(values)} logits, want {len(tokens)} × {n_vocab}")
    return [values[i * n_vocab : (i + 1) * n_vocab] for i in range(len(tokens))]


def their_logits(oracle, path, tokens, n_used):
    watch = RoutingGaps(n_used, len(tokens))
    with oracle.load(path) as model:
        rows = model.logits(tokens, watch=watch)
    if not watch.is_complete():
        raise CaseFailed("llama.cpp did not show its router for every position and layer")
    return rows, watch.gaps


def run_case(case, oracle, programs, folder):
    """The comparison of one case and the smallest routing gap."""
    subject, expansion = folder / "subject.gguf", folder / "expansion.gguf"
    seed = ("--seed", str(case.seed))
    programs.run("bin/make_model", subject, *case.options.split(), *seed)
    model = GgufFile(subject, oracle.type_shape)
    check_file(case, model)
    source = subject
    if case.oracle_options:
        source = folder / "same_trunk.gguf"
        programs.run("bin/make_model", source, *case.oracle_options.split(), *seed)
    expand_to_f32(oracle, source, expansion)

    n_vocab = len(model.metadata["tokenizer.ggml.tokens"])
    rng = random.Random(case.name)
    tokens = [rng.randrange(n_vocab) for _ in range(N_POSITIONS)]
    ours = our_logits(programs, folder, subject, tokens, n_vocab)
    theirs, gaps = their_logits(oracle, expansion, tokens, model.metadata["qwen35moe.expert_used_count"])
    return compare(ours, theirs, gaps), min(gaps)


def judge(result):
    """Why the comparison is not good enough, or an empty string."""
    if result.compared < MIN_COMPARED:
        return f"only {result.compared} positions compared: give the case another seed or wider router gaps"
    if not result.nmse <= MAX_NMSE:
        return f"NMSE above {MAX_NMSE}"
    if not result.worst <= MAX_WORST:
        return f"worst position above {MAX_WORST}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    parser.add_argument("--group", choices=sorted(GROUPS), action="append", help="only this group; may be repeated")
    parser.add_argument("--only", help="only the case of this name")
    args = parser.parse_args()
    cases = [case for group in args.group or GROUPS for case in GROUPS[group] if args.only in (None, case.name)]
    if not cases:
        parser.error(f"no case named {args.only}")

    oracle, programs = open_oracle(), Programs(args.build)
    print(f"{'case':26} {'NMSE':>9} {'worst':>9} {'at':>4} {'compared':>8} {'excluded':>8} {'smallest gap':>12}")
    n_failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="pantheon-oracle-") as folder:
            try:
                result, gap = run_case(case, oracle, programs, Path(folder))
                fault = judge(result)
                gap_text = "-" if math.isinf(gap) else f"{gap:.1e}"
                print(
                    f"{case.name:26} {result.nmse:9.1e} {result.worst:9.1e} {result.worst_position:4} "
                    f"{result.compared:8} {result.excluded:8} {gap_text:>12} {fault}"
                )
            except (CaseFailed, RuntimeError) as error:
                fault = f"{type(error).__name__}: {error}"
                print(f"{case.name:26} {fault}")
        n_failed += bool(fault)
        sys.stdout.flush()
    print(f"{len(cases) - n_failed} of {len(cases)} cases within NMSE {MAX_NMSE:g}, worst position {MAX_WORST:g}")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
