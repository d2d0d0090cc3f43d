"""A trained network and its tokenizer as a GGUF file, and back."""

import pathlib

import torch

import gguf
import network
import tokenizer

HERE = pathlib.Path(__file__).resolve().parent
CONTROL_TYPE, USER_DEFINED_TYPE = 3, 4

# What stays F32 in every file: the router, the convolution and everything with one axis.
_NEVER_QUANTIZED = ("ffn_gate_inp.weight", "ssm_conv1d.weight")


def _rope_sections(n_pairs):
    """Pairs of time, height and width in turn, so that every pair turns with the position of plain text."""
    return [(n_pairs + 2) // 3, (n_pairs + 1) // 3, n_pairs // 3, 0]


def _metadata(config, vocabulary, merges, special, file_type):
    c, a = config, "qwen35moe."
    tokens = [tokenizer.printable(t) for t in vocabulary] + tokenizer.SPECIAL
    types = [1] * len(vocabulary)
    types += [CONTROL_TYPE] * len(tokenizer.CONTROL) + [USER_DEFINED_TYPE] * len(tokenizer.USER_DEFINED)
    return [
        ("general.architecture", "string", "qwen35moe"),
        ("general.name", "string", "Pantheon Tiny"),
        ("general.description", "string", "Answers questions about pantheond, tells tiny stories and adds small numbers"),
        ("general.license", "string", "mit"),
        ("general.size_label", "string", "16x0.4M"),
        ("general.file_type", "u32", file_type),
        ("general.quantization_version", "u32", 2),
        ("general.sampling.temp", "f32", 0.2),
        ("general.sampling.top_k", "i32", 20),
        ("general.sampling.top_p", "f32", 0.95),
        (a + "block_count", "u32", c.n_layer + c.nextn),
        *([(a + "nextn_predict_layers", "u32", c.nextn)] if c.nextn else []),
        (a + "context_length", "u32", c.n_ctx),
        (a + "embedding_length", "u32", c.n_embd),
        (a + "attention.head_count", "u32", c.n_head),
        (a + "attention.head_count_kv", "u32", c.n_head_kv),
        (a + "attention.key_length", "u32", c.head_dim),
        (a + "attention.value_length", "u32", c.head_dim),
        (a + "attention.layer_norm_rms_epsilon", "f32", c.eps),
        (a + "rope.dimension_count", "u32", c.rope_dim),
        (a + "rope.dimension_sections", "[i32]", _rope_sections(c.rope_dim // 2)),
        (a + "rope.freq_base", "f32", c.rope_base),
        (a + "full_attention_interval", "u32", c.interval),
        (a + "ssm.conv_kernel", "u32", c.gdn_d_conv),
        (a + "ssm.state_size", "u32", c.gdn_head_dim),
        (a + "ssm.group_count", "u32", c.gdn_n_head_k),
        (a + "ssm.time_step_rank", "u32", c.gdn_n_head_v),
        (a + "ssm.inner_size", "u32", c.gdn_value_dim),
        (a + "expert_count", "u32", c.n_expert),
        (a + "expert_used_count", "u32", c.n_expert_used),
        (a + "expert_feed_forward_length", "u32", c.n_ff_exp),
        (a + "expert_shared_feed_forward_length", "u32", c.n_ff_shexp),
        ("tokenizer.ggml.model", "string", "gpt2"),
        ("tokenizer.ggml.pre", "string", "qwen35"),
        ("tokenizer.ggml.tokens", "[string]", tokens),
        ("tokenizer.ggml.token_type", "[i32]", types),
        ("tokenizer.ggml.merges", "[string]", [" ".join(map(tokenizer.printable, pair)) for pair in merges]),
        ("tokenizer.ggml.eos_token_id", "u32", special["<|im_end|>"]),
        ("tokenizer.ggml.padding_token_id", "u32", special["<|endoftext|>"]),
        ("tokenizer.ggml.add_bos_token", "bool", False),
        ("tokenizer.chat_template", "string", (HERE / "chat_template.jinja").read_text(encoding="utf-8")),
    ]


def write(path, config, parameters, tok, quantized=True):
    """parameters: tensors by name, as in training (with ssm_a_log) or as in a file. Blocks past
    n_layer + nextn of `config` are left out."""
    tensors = []
    for name in network.shapes(config):
        value = parameters[name].detach().to(torch.float32)
        if name.endswith("ssm_a_log"):
            name, value = name[: -len("_log")], -value.exp()
        small = value.dim() == 1 or name.endswith(_NEVER_QUANTIZED)
        tensors.append((name, value.numpy(), gguf.Q8_0 if quantized and not small else gguf.F32))
    metadata = _metadata(config, tok.vocabulary, tok.merges, tok.special, 7 if quantized else 0)
    gguf.write(path, metadata, tensors)


def read_config(metadata):
    """The network of a file's metadata."""
    get = lambda key: metadata["qwen35moe." + key]
    nextn = metadata.get("qwen35moe.nextn_predict_layers", 0)
    return network.Config(
        n_vocab=len(metadata["tokenizer.ggml.tokens"]),
        n_embd=get("embedding_length"),
        n_layer=get("block_count") - nextn,
        nextn=nextn,
        interval=get("full_attention_interval"),
        n_head=get("attention.head_count"),
        n_head_kv=get("attention.head_count_kv"),
        head_dim=get("attention.key_length"),
        rope_dim=get("rope.dimension_count"),
        rope_base=get("rope.freq_base"),
        eps=get("attention.layer_norm_rms_epsilon"),
        gdn_head_dim=get("ssm.state_size"),
        gdn_n_head_k=get("ssm.group_count"),
        gdn_n_head_v=get("ssm.time_step_rank"),
        gdn_d_conv=get("ssm.conv_kernel"),
        n_expert=get("expert_count"),
        n_expert_used=get("expert_used_count"),
        n_ff_exp=get("expert_feed_forward_length"),
        n_ff_shexp=get("expert_shared_feed_forward_length"),
        n_ctx=get("context_length"),
    )


def read(path, dtype=torch.float32):
    """(config, parameters by name) of a file."""
    reader = gguf.Reader(path)
    return read_config(reader.metadata), {n: torch.from_numpy(reader.tensor(n)).to(dtype) for n in reader.tensors}
