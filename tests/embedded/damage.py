"""The embedded model with one convention of the file format undone."""

import struct

from gguf import GgufFile

# (elements, bytes) of a block, for the types that the model has.
BLOCKS = {"F32": (1, 4), "Q8_0": (32, 34)}


def floats(tensor):
    return list(struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data))


def set_floats(tensor, values):
    tensor.data[:] = struct.pack(f"<{len(values)}f", *values)


def each(model, *endings):
    """Tensors of the layers by the ends of their names; a convention that touches none would show nothing."""
    found = [t for name, t in model.tensors.items() if name.startswith("blk.") and name.endswith(endings)]
    if not found:
        raise ValueError(f"no tensor ends with {endings}")
    return found


def change_f32(model, endings, change):
    for tensor in each(model, *endings):
        set_floats(tensor, [change(x) for x in floats(tensor)])


def permute(data, n_before, size, order):
    """Units of `size` bytes behind the first n_before bytes, each row of them put in the given order."""
    row = size * len(order)
    for start in range(n_before, len(data), row):
        units = bytes(data[start : start + row])
        data[start : start + row] = b"".join(units[i * size : (i + 1) * size] for i in order)


def head_pairing(model):
    """V heads in the order of the checkpoint: beside their K head instead of in one round over the K heads after the
    other."""
    n_k, n_v = model.metadata["qwen35moe.ssm.group_count"], model.metadata["qwen35moe.ssm.time_step_rank"]
    head_dim = model.metadata["qwen35moe.ssm.state_size"]
    order = [r * n_k + k for k in range(n_k) for r in range(n_v // n_k)]  # order[new] = old

    def row_bytes(tensor):
        elements, size = BLOCKS[tensor.type_name]
        return tensor.ne[0] // elements * size

    for tensor in each(model, "attn_qkv.weight", "ssm_conv1d.weight"):  # rows of Q, K, then V
        permute(tensor.data, 2 * n_k * head_dim * row_bytes(tensor), head_dim * row_bytes(tensor), order)
    for tensor in each(model, "attn_gate.weight"):
        permute(tensor.data, 0, head_dim * row_bytes(tensor), order)
    for tensor in each(model, "ssm_alpha.weight", "ssm_beta.weight"):
        permute(tensor.data, 0, row_bytes(tensor), order)
    for tensor in each(model, "ssm_a", "ssm_dt.bias"):
        permute(tensor.data, 0, 4, order)
    for tensor in each(model, "ssm_out.weight"):  # columns
        permute(tensor.data, 0, row_bytes(tensor) // n_v, order)


def norms_without_one(model):
    """Norm weights as deviations from 1, as the checkpoint has them."""
    endings = ("attn_norm.weight", "post_attention_norm.weight", "attn_q_norm.weight", "attn_k_norm.weight")
    change_f32(model, endings, lambda x: x - 1)


def decay_sign(model):
    """ssm_a = exp(A_log) instead of -exp(A_log): states grow."""
    change_f32(model, ("ssm_a",), lambda x: -x)


def convolution_order(model):
    """The tap of the newest token first."""
    for tensor in each(model, "ssm_conv1d.weight"):
        n_taps, values = tensor.ne[0], floats(tensor)
        set_floats(tensor, [v for i in range(0, len(values), n_taps) for v in values[i : i + n_taps][::-1]])


def shared_expert_gate(model):
    """The shared expert added whole: its gate is sigmoid(0) = 1/2, its output twice as large."""
    change_f32(model, ("ffn_gate_inp_shexp.weight",), lambda x: 0.0)
    for tensor in each(model, "ffn_down_shexp.weight"):
        elements, size = BLOCKS[tensor.type_name]
        for at in range(0, len(tensor.data), size):
            (scale,) = struct.unpack_from("<e", tensor.data, at)
            struct.pack_into("<e", tensor.data, at, 2 * scale)


DAMAGES = {
    "head pairing": head_pairing,
    "+1 in the norms": norms_without_one,
    "sign of the decay": decay_sign,
    "order of the convolution": convolution_order,
    "gate of the shared expert": shared_expert_gate,
}


def damaged_copy(source, target, damage):
    model = GgufFile(source, BLOCKS.__getitem__)
    before = model.whole()
    damage(model)
    if model.whole() == before:
        raise ValueError("the damage changed nothing")
    target.write_bytes(model.whole())
