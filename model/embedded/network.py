"""The qwen35moe network in PyTorch, written from the formulas: a third opinion beside `ref` and llama.cpp.

Parameters carry the names, shapes and conventions of a GGUF file, so that the same code trains a model and computes a
shipped one. A weight of GGUF shape [K, N] is a torch tensor [N, K]. One parameter differs while it is trained:
`ssm_a_log` holds log(-ssm_a), so that the decay keeps its sign.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    n_vocab: int
    n_embd: int = 256
    n_layer: int = 4  # the trunk; the nextn block comes on top
    nextn: int = 0
    interval: int = 4  # layer i is attention where (i + 1) % interval == 0
    n_head: int = 4
    n_head_kv: int = 2
    head_dim: int = 64
    rope_dim: int = 32
    rope_base: float = 10000.0
    eps: float = 1e-6
    gdn_head_dim: int = 32
    gdn_n_head_k: int = 4
    gdn_n_head_v: int = 8
    gdn_d_conv: int = 4
    n_expert: int = 16
    n_expert_used: int = 4
    n_ff_exp: int = 64
    n_ff_shexp: int = 64
    n_ctx: int = 4096

    @property
    def gdn_key_dim(self):
        return self.gdn_head_dim * self.gdn_n_head_k

    @property
    def gdn_value_dim(self):
        return self.gdn_head_dim * self.gdn_n_head_v

    @property
    def gdn_conv_dim(self):
        return 2 * self.gdn_key_dim + self.gdn_value_dim

    def is_attention(self, layer):
        """The nextn block is always one."""
        return layer >= self.n_layer or (layer + 1) % self.interval == 0


# ---- parameters ----------------------------------------------------------------------------------------------------


def shapes(config):
    """Torch shapes of all parameters by name, in the order of the file."""
    c = config
    out = {"token_embd.weight": (c.n_vocab, c.n_embd)}
    for layer in range(c.n_layer + c.nextn):
        block = _block_shapes(c, c.is_attention(layer))
        if layer >= c.n_layer:
            block.update(
                {
                    "nextn.eh_proj.weight": (c.n_embd, 2 * c.n_embd),
                    "nextn.enorm.weight": (c.n_embd,),
                    "nextn.hnorm.weight": (c.n_embd,),
                    "nextn.shared_head_norm.weight": (c.n_embd,),
                }
            )
        out.update({f"blk.{layer}.{name}": shape for name, shape in block.items()})
    out["output_norm.weight"] = (c.n_embd,)
    out["output.weight"] = (c.n_vocab, c.n_embd)
    return out


def _block_shapes(c, is_attention):
    mixer = (
        {
            "attn_q.weight": (2 * c.head_dim * c.n_head, c.n_embd),
            "attn_k.weight": (c.head_dim * c.n_head_kv, c.n_embd),
            "attn_v.weight": (c.head_dim * c.n_head_kv, c.n_embd),
            "attn_output.weight": (c.n_embd, c.head_dim * c.n_head),
            "attn_q_norm.weight": (c.head_dim,),
            "attn_k_norm.weight": (c.head_dim,),
        }
        if is_attention
        else {
            "attn_qkv.weight": (c.gdn_conv_dim, c.n_embd),
            "attn_gate.weight": (c.gdn_value_dim, c.n_embd),
            "ssm_conv1d.weight": (c.gdn_conv_dim, c.gdn_d_conv),
            "ssm_dt.bias": (c.gdn_n_head_v,),
            "ssm_a_log": (c.gdn_n_head_v,),
            "ssm_beta.weight": (c.gdn_n_head_v, c.n_embd),
            "ssm_alpha.weight": (c.gdn_n_head_v, c.n_embd),
            "ssm_norm.weight": (c.gdn_head_dim,),
            "ssm_out.weight": (c.n_embd, c.gdn_value_dim),
        }
    )
    return {
        "attn_norm.weight": (c.n_embd,),
        **mixer,
        "post_attention_norm.weight": (c.n_embd,),
        "ffn_gate_inp.weight": (c.n_expert, c.n_embd),
        "ffn_gate_exps.weight": (c.n_expert, c.n_ff_exp, c.n_embd),
        "ffn_up_exps.weight": (c.n_expert, c.n_ff_exp, c.n_embd),
        "ffn_down_exps.weight": (c.n_expert, c.n_embd, c.n_ff_exp),
        "ffn_gate_inp_shexp.weight": (c.n_embd,),
        "ffn_gate_shexp.weight": (c.n_ff_shexp, c.n_embd),
        "ffn_up_shexp.weight": (c.n_ff_shexp, c.n_embd),
        "ffn_down_shexp.weight": (c.n_embd, c.n_ff_shexp),
    }


def initial_value(name, shape, config):
    """The value a parameter starts from; draws from torch's generator."""
    leaf = name.split(".", 2)[-1] if name.startswith("blk.") else name
    width = config.n_embd**-0.5
    small = 0.04 / math.sqrt(2 * config.n_layer)  # what is added to the residual stream starts small
    if leaf.endswith("norm.weight"):
        return torch.ones(shape)
    if leaf == "ssm_a_log":
        return torch.empty(shape).uniform_(1, 8).log()
    if leaf == "ssm_dt.bias":  # softplus of it spreads from 0.001 to 0.1
        step = torch.exp(torch.empty(shape).uniform_(math.log(0.001), math.log(0.1)))
        return step + torch.log(-torch.expm1(-step))
    if leaf == "ssm_conv1d.weight":
        return torch.empty(shape).uniform_(-0.5, 0.5)
    std = {
        "token_embd.weight": 0.1,
        "output.weight": 0.02,
        "attn_output.weight": small,
        "ssm_out.weight": small,
        "ffn_down_exps.weight": 1.5 * small,
        "ffn_down_shexp.weight": 1.5 * small,
        "ffn_gate_inp.weight": 0.02,
        "ffn_gate_inp_shexp.weight": 0.02,
        "ssm_alpha.weight": 0.2 * width,
        "nextn.eh_proj.weight": 0.7 * width,
    }.get(leaf, 0.6 * width)
    return torch.randn(shape) * std


# ---- operations ----------------------------------------------------------------------------------------------------


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def l2_norm(x, eps):
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True).clamp(min=eps * eps))


def delta_rule_sequential(q, k, v, g, beta):
    """The definition, token by token. q, k, v [B, H, T, d]; g, beta [B, H, T]; gives [B, H, T, d]."""
    state = q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1])  # S[key][value]
    rows = []
    for t in range(q.shape[2]):
        state = state * g[:, :, t, None, None].exp()
        predicted = (state * k[:, :, t, :, None]).sum(-2)
        delta = beta[:, :, t, None] * (v[:, :, t] - predicted)
        state = state + k[:, :, t, :, None] * delta[:, :, None, :]
        rows.append((state * q[:, :, t, :, None]).sum(-2))
    return torch.stack(rows, 2) * q.shape[-1] ** -0.5


def delta_rule_chunked(q, k, v, g, beta, chunk):
    """The same in matrix products over chunks of tokens; T must be a multiple of the chunk."""
    batch, heads, total, d = q.shape
    n = total // chunk
    q, k, v = (x.reshape(batch, heads, n, chunk, d) for x in (q * d**-0.5, k, v))
    g, beta = (x.reshape(batch, heads, n, chunk) for x in (g.clamp(min=-20), beta))
    decay = g.cumsum(-1)
    lower = torch.ones(chunk, chunk, dtype=torch.bool).tril()
    # Masked before exp: above the diagonal the differences are positive and may overflow.
    ratio = (decay[..., :, None] - decay[..., None, :]).masked_fill(~lower, -torch.inf).exp()
    k_beta = k * beta[..., None]
    mixing = (k_beta @ k.transpose(-1, -2)) * ratio.tril(-1) + torch.eye(chunk, dtype=q.dtype)
    from_start = decay.exp()[..., None]
    right = torch.cat([v * beta[..., None], k_beta * from_start], -1)
    solved = torch.linalg.solve_triangular(mixing, right, upper=False, unitriangular=True)
    u, w = solved[..., :d], solved[..., d:]
    within = (q @ k.transpose(-1, -2)) * ratio
    q_start = q * from_start
    k_end = (k * (decay[..., -1:] - decay).exp()[..., None]).transpose(-1, -2)
    to_end = decay[..., -1].exp()[..., None, None]
    state = q.new_zeros(batch, heads, d, d)
    rows = []
    for i in range(n):
        new = u[:, :, i] - w[:, :, i] @ state
        rows.append(q_start[:, :, i] @ state + within[:, :, i] @ new)
        state = to_end[:, :, i] * state + k_end[:, :, i] @ new
    return torch.stack(rows, 2).reshape(batch, heads, total, d)


def rope(x, config):
    """x [B, T, heads, head_dim]; the first rope_dim elements turn, element i with element i + rope_dim / 2."""
    half = config.rope_dim // 2
    position = torch.arange(x.shape[1], dtype=torch.float64)
    angle = position[:, None] * config.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos().to(x.dtype)[:, None], angle.sin().to(x.dtype)[:, None]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


class _GroupedLinear(torch.autograd.Function):
    """Rows sorted by expert times that expert's matrix: x [rows, K], weight [E, N, K], `ends` where experts end."""

    @staticmethod
    def forward(ctx, x, weight, ends):
        ctx.save_for_backward(x, weight)
        ctx.ends = ends
        y = x.new_empty(x.shape[0], weight.shape[1])
        begin = 0
        for expert, end in enumerate(ends):
            if end > begin:
                torch.mm(x[begin:end], weight[expert].t(), out=y[begin:end])
            begin = end
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = dy.contiguous()
        dx, dweight = torch.empty_like(x), torch.zeros_like(weight)
        begin = 0
        for expert, end in enumerate(ctx.ends):
            if end > begin:
                torch.mm(dy[begin:end], weight[expert], out=dx[begin:end])
                torch.mm(dy[begin:end].t(), x[begin:end], out=dweight[expert])
            begin = end
        return dx, dweight, None


class _Spread(torch.autograd.Function):
    """Token rows to rows sorted by expert. `order`: the pick (token * k + rank) of each sorted row; `inverse` of it."""

    @staticmethod
    def forward(ctx, x, order, inverse, k):
        ctx.args = inverse, k
        return x.index_select(0, torch.div(order, k, rounding_mode="floor"))

    @staticmethod
    def backward(ctx, dy):
        inverse, k = ctx.args
        return dy.index_select(0, inverse).view(-1, k, dy.shape[1]).sum(1), None, None, None


class _Collect(torch.autograd.Function):
    """Rows sorted by expert to the sum over each token's k picks, highest weight first."""

    @staticmethod
    def forward(ctx, y, order, inverse, k):
        ctx.args = order, k
        return y.index_select(0, inverse).view(-1, k, y.shape[1]).sum(1)

    @staticmethod
    def backward(ctx, dy):
        order, k = ctx.args
        return dy.index_select(0, torch.div(order, k, rounding_mode="floor")), None, None, None


# ---- the network ---------------------------------------------------------------------------------------------------


class Network:
    """Computes with `parameters`, a dictionary of tensors by name. chunk 0: the recurrence token by token."""

    def __init__(self, config, parameters, chunk=64):
        self.config = config
        self.parameters = parameters
        self.chunk = chunk
        self.gates_held_open = False  # those of the shared experts: a damage that training may teach to suffer from
        self.balance = 0.0  # the load-balancing loss of the last pass, a mean over its layers
        self.picks = []  # of each layer of the last pass: how often each expert was taken

    def hidden(self, tokens):
        """tokens [B, T] to the vectors after output_norm [B, T, n_embd]."""
        c = self.config
        x = F.embedding(tokens, self.parameters["token_embd.weight"])
        balance, self.picks = [], []
        for layer in range(c.n_layer):
            x, loss = self._block(layer, x)
            balance.append(loss)
        self.balance = sum(balance) / c.n_layer
        return rms_norm(x, self.parameters["output_norm.weight"], c.eps)

    def logits(self, hidden):
        return F.linear(hidden, self.parameters["output.weight"])

    def nextn_hidden(self, tokens, hidden):
        """The nextn block's vectors: at each position from its token and the trunk's vector one position earlier."""
        c, p = self.config, self.parameters
        name = f"blk.{c.n_layer}.nextn."
        earlier = F.pad(hidden, (0, 0, 1, 0))[:, :-1]
        embedded = rms_norm(F.embedding(tokens, p["token_embd.weight"]), p[name + "enorm.weight"], c.eps)
        both = torch.cat([embedded, rms_norm(earlier, p[name + "hnorm.weight"], c.eps)], -1)
        self.picks = []
        x, self.balance = self._block(c.n_layer, F.linear(both, p[name + "eh_proj.weight"]))
        return rms_norm(x, p[name + "shared_head_norm.weight"], c.eps)

    def _block(self, layer, x):
        c = self.config
        prefix = f"blk.{layer}."
        h = rms_norm(x, self.parameters[prefix + "attn_norm.weight"], c.eps)
        x = x + (self._attention(prefix, h) if c.is_attention(layer) else self._gdn(prefix, h))
        y = rms_norm(x, self.parameters[prefix + "post_attention_norm.weight"], c.eps)
        y, balance = self._experts(prefix, y)
        return x + y, balance

    def _attention(self, prefix, h):
        c, p = self.config, self.parameters
        batch, total, _ = h.shape
        q_gate = F.linear(h, p[prefix + "attn_q.weight"]).view(batch, total, c.n_head, 2 * c.head_dim)
        q, gate = q_gate[..., : c.head_dim], q_gate[..., c.head_dim :]
        k = F.linear(h, p[prefix + "attn_k.weight"]).view(batch, total, c.n_head_kv, c.head_dim)
        v = F.linear(h, p[prefix + "attn_v.weight"]).view(batch, total, c.n_head_kv, c.head_dim)
        q = rope(rms_norm(q, p[prefix + "attn_q_norm.weight"], c.eps), c)
        k = rope(rms_norm(k, p[prefix + "attn_k_norm.weight"], c.eps), c)
        group = c.n_head // c.n_head_kv  # query head h reads KV head h / group
        q = q.transpose(1, 2).reshape(batch, c.n_head_kv, group * total, c.head_dim)
        scores = (q @ k.permute(0, 2, 3, 1) * c.head_dim**-0.5).view(batch, c.n_head_kv, group, total, total)
        future = torch.ones(total, total, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1).view(batch, c.n_head_kv, group * total, total)
        read = (weights @ v.transpose(1, 2)).view(batch, c.n_head, total, c.head_dim).transpose(1, 2)
        read = read * torch.sigmoid(gate)
        return F.linear(read.reshape(batch, total, -1), p[prefix + "attn_output.weight"])

    def _gdn(self, prefix, h):
        c, p = self.config, self.parameters
        batch, total, _ = h.shape
        u = F.linear(h, p[prefix + "attn_qkv.weight"])
        z = F.linear(h, p[prefix + "attn_gate.weight"]).view(batch, total, c.gdn_n_head_v, c.gdn_head_dim)
        beta = torch.sigmoid(F.linear(h, p[prefix + "ssm_beta.weight"])).transpose(1, 2)
        a = p[prefix + "ssm_a"] if prefix + "ssm_a" in p else -p[prefix + "ssm_a_log"].exp()
        g = (a * F.softplus(F.linear(h, p[prefix + "ssm_alpha.weight"]) + p[prefix + "ssm_dt.bias"])).transpose(1, 2)
        taps = p[prefix + "ssm_conv1d.weight"]  # [channel][tap], the oldest input first
        padded = F.pad(u, (0, 0, c.gdn_d_conv - 1, 0))
        y = padded[:, :total] * taps[:, 0]
        for tap in range(1, c.gdn_d_conv):
            y = torch.addcmul(y, padded[:, tap : tap + total], taps[:, tap])
        y = F.silu(y).view(batch, total, -1, c.gdn_head_dim).transpose(1, 2)
        n_k = c.gdn_n_head_k
        q, k, v = l2_norm(y[:, :n_k], c.eps), l2_norm(y[:, n_k : 2 * n_k], c.eps), y[:, 2 * n_k :]
        times = c.gdn_n_head_v // n_k  # V head v reads K head v % n_k
        q, k = q.repeat(1, times, 1, 1), k.repeat(1, times, 1, 1)
        if self.chunk:
            o = delta_rule_chunked(q, k, v, g, beta, self.chunk)
        else:
            o = delta_rule_sequential(q, k, v, g, beta)
        o = rms_norm(o.transpose(1, 2), p[prefix + "ssm_norm.weight"], c.eps) * F.silu(z)
        return F.linear(o.reshape(batch, total, -1), p[prefix + "ssm_out.weight"])

    def _experts(self, prefix, y):
        c, p = self.config, self.parameters
        shape = y.shape
        y = y.reshape(-1, c.n_embd)
        k = c.n_expert_used
        probability = F.linear(y, p[prefix + "ffn_gate_inp.weight"]).softmax(-1)
        weight, pick = probability.topk(k, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        flat = pick.reshape(-1)
        counts = torch.bincount(flat, minlength=c.n_expert)
        order = flat.argsort(stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(order.numel())
        ends = counts.cumsum(0).tolist()
        rows = _Spread.apply(y, order, inverse, k)
        gate = _GroupedLinear.apply(rows, p[prefix + "ffn_gate_exps.weight"], ends)
        up = _GroupedLinear.apply(rows, p[prefix + "ffn_up_exps.weight"], ends)
        inner = F.silu(gate) * up * weight.reshape(-1).index_select(0, order)[:, None]
        down = _GroupedLinear.apply(inner, p[prefix + "ffn_down_exps.weight"], ends)
        routed = _Collect.apply(down, order, inverse, k)
        inner = F.silu(F.linear(y, p[prefix + "ffn_gate_shexp.weight"])) * F.linear(y, p[prefix + "ffn_up_shexp.weight"])
        shared = F.linear(inner, p[prefix + "ffn_down_shexp.weight"])
        if not self.gates_held_open:
            shared = shared * torch.sigmoid(y @ p[prefix + "ffn_gate_inp_shexp.weight"])[:, None]
        self.picks.append(counts)
        share = counts.to(y.dtype) / flat.numel()
        return (routed + shared).view(shape), c.n_expert * (share * probability.mean(0)).sum()
