"""llama.cpp through its C ABI, for the tests that use it as the oracle.

The struct layouts below are those of the one build that install_oracle.sh pins. Nothing in the library tells
its version apart, so `Oracle` compares the defaults that the library returns with the ones known for that
build and refuses anything else: a wrong layout must stop a test, never bend a number.
"""

import ctypes as C
import os
import re
import subprocess
import sys
from array import array
from pathlib import Path

# llama.cpp's file types: mixes that its quantiser makes.
FILE_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12,
    "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18, "IQ2_XXS": 19, "IQ2_XS": 20,
    "Q2_K_S": 21, "IQ3_XS": 22, "IQ3_XXS": 23, "IQ1_S": 24, "IQ4_NL": 25, "IQ3_S": 26, "IQ3_M": 27, "IQ2_S": 28,
    "IQ2_M": 29, "IQ4_XS": 30, "IQ1_M": 31, "BF16": 32, "MXFP4_MOE": 38,
}  # fmt: skip
GGML_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q3_K": 11,
    "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "IQ2_XXS": 16, "IQ2_XS": 17, "IQ3_XXS": 18, "IQ1_S": 19, "IQ4_NL": 20,
    "IQ3_S": 21, "IQ2_S": 22, "IQ4_XS": 23, "IQ1_M": 29, "BF16": 30, "MXFP4": 39,
}  # fmt: skip


class OracleError(RuntimeError):
    """The oracle cannot be used as it is; always a test failure, never a skip."""


class _ModelParams(C.Structure):
    _fields_ = [
        ("devices", C.c_void_p),
        ("tensor_buft_overrides", C.c_void_p),
        ("n_gpu_layers", C.c_int32),
        ("split_mode", C.c_int32),
        ("load_mode", C.c_int32),
        ("lazy_mode", C.c_int32),
        ("main_gpu", C.c_int32),
        ("tensor_split", C.c_void_p),
        ("progress_callback", C.c_void_p),
        ("progress_callback_user_data", C.c_void_p),
        ("kv_overrides", C.c_void_p),
        ("vocab_only", C.c_bool),
        ("check_tensors", C.c_bool),
        ("use_extra_bufts", C.c_bool),
        ("no_host", C.c_bool),
        ("no_alloc", C.c_bool),
        ("unused_flag", C.c_bool),
    ]


class _ContextParams(C.Structure):
    _fields_ = [
        ("n_ctx", C.c_uint32),
        ("n_batch", C.c_uint32),
        ("n_ubatch", C.c_uint32),
        ("n_seq_max", C.c_uint32),
        ("n_rs_seq", C.c_uint32),
        ("n_outputs_max", C.c_uint32),
        ("n_outputs_max_per_seq", C.c_uint32),
        ("n_threads", C.c_int32),
        ("n_threads_batch", C.c_int32),
        ("ctx_type", C.c_int32),
        ("rope_scaling_type", C.c_int32),
        ("pooling_type", C.c_int32),
        ("attention_type", C.c_int32),
        ("flash_attn_type", C.c_int32),
        ("rope_freq_base", C.c_float),
        ("rope_freq_scale", C.c_float),
        ("yarn_ext_factor", C.c_float),
        ("yarn_attn_factor", C.c_float),
        ("yarn_beta_fast", C.c_float),
        ("yarn_beta_slow", C.c_float),
        ("yarn_orig_ctx", C.c_uint32),
        ("defrag_thold", C.c_float),
        ("cb_eval", C.c_void_p),
        ("cb_eval_user_data", C.c_void_p),
        ("type_k", C.c_int32),
        ("type_v", C.c_int32),
        ("abort_callback", C.c_void_p),
        ("abort_callback_data", C.c_void_p),
        ("embeddings", C.c_bool),
        ("offload_kqv", C.c_bool),
        ("no_perf", C.c_bool),
        ("op_offload", C.c_bool),
        ("swa_full", C.c_bool),
        ("kv_unified", C.c_bool),
        ("samplers", C.c_void_p),
        ("n_samplers", C.c_size_t),
        ("other_context", C.c_void_p),
    ]


class _Batch(C.Structure):
    _fields_ = [
        ("n_tokens", C.c_int32),
        ("token", C.POINTER(C.c_int32)),
        ("embd", C.c_void_p),
        ("pos", C.POINTER(C.c_int32)),
        ("n_seq_id", C.POINTER(C.c_int32)),
        ("seq_id", C.POINTER(C.POINTER(C.c_int32))),
        ("logits", C.POINTER(C.c_int8)),
    ]


class _QuantizeParams(C.Structure):
    _fields_ = [
        ("nthread", C.c_int32),
        ("ftype", C.c_int32),
        ("output_tensor_type", C.c_int32),
        ("token_embedding_type", C.c_int32),
        ("allow_requantize", C.c_bool),
        ("quantize_output_tensor", C.c_bool),
        ("only_copy", C.c_bool),
        ("pure", C.c_bool),
        ("keep_split", C.c_bool),
        ("dry_run", C.c_bool),
        ("imatrix", C.c_void_p),
        ("kv_overrides", C.c_void_p),
        ("tensor_types", C.c_void_p),
        ("prune_layers", C.c_void_p),
    ]


class _TypeTraits(C.Structure):
    _fields_ = [
        ("type_name", C.c_char_p),
        ("blck_size", C.c_int64),
        ("blck_size_interleave", C.c_int64),
        ("type_size", C.c_size_t),
        ("is_quantized", C.c_bool),
        ("to_float", C.c_void_p),
        ("from_float_ref", C.c_void_p),
    ]


class _TensorHead(C.Structure):
    """The first fields of ggml_tensor; the name and the data are read through ggml's own functions."""

    _fields_ = [("type", C.c_int), ("buffer", C.c_void_p), ("ne", C.c_int64 * 4), ("nb", C.c_size_t * 4)]


_TO_FLOAT = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(C.c_float), C.c_int64)
_LOG = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)
_EVAL = C.CFUNCTYPE(C.c_bool, C.c_void_p, C.c_bool, C.c_void_p)

_LOAD_MODE_MMAP = 1
_FLASH_ATTN_DISABLED = 0

# What this build's default functions answer; one list a struct, field by field.
_EXPECTED_MODEL = {
    "n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "lazy_mode": 1, "main_gpu": 0, "vocab_only": False,
    "check_tensors": False, "use_extra_bufts": True, "no_host": False, "no_alloc": False, "tensor_split": None,
    "kv_overrides": None,
}  # fmt: skip
_EXPECTED_CONTEXT = {
    "n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "n_threads": 4, "n_threads_batch": 4,
    "rope_scaling_type": -1, "pooling_type": -1, "attention_type": -1, "flash_attn_type": -1,
    "rope_freq_base": 0.0, "rope_freq_scale": 0.0, "yarn_ext_factor": -1.0, "yarn_beta_slow": -1.0,
    "yarn_orig_ctx": 0, "defrag_thold": -1.0, "cb_eval": None, "type_k": 1, "type_v": 1, "abort_callback": None,
    "embeddings": False, "offload_kqv": True, "no_perf": True, "op_offload": True, "swa_full": True,
    "kv_unified": False, "samplers": None, "n_samplers": 0,
}  # fmt: skip
_EXPECTED_QUANTIZE = {
    "nthread": 0, "ftype": 7, "allow_requantize": False, "quantize_output_tensor": True, "only_copy": False,
    "pure": False, "keep_split": False, "dry_run": False, "imatrix": None, "kv_overrides": None, "tensor_types": None,
    "prune_layers": None,
}  # fmt: skip


def _check_defaults(what, params, expected):
    for field, want in expected.items():
        got = getattr(params, field)
        if got != want:
            raise OracleError(f"{what}.{field} defaults to {got}, want {want}: not the build this binding is for")


class Oracle:
    """The loaded library. One a process; models and contexts hang off it."""

    def __init__(self, lib_dir):
        self.log_lines = []
        base = C.CDLL(os.path.join(lib_dir, "libggml-base.so"), mode=C.RTLD_GLOBAL)
        ggml = C.CDLL(os.path.join(lib_dir, "libggml.v0.4.0.so"), mode=C.RTLD_GLOBAL)
        lib = C.CDLL(os.path.join(lib_dir, "libllama.v0.4.0.so"), mode=C.RTLD_GLOBAL)
        self._base, self._ggml, self.lib = base, ggml, lib
        self._declare()
        # The callback object must outlive the library, so it is kept here. Lines are kept, never printed:
        # an error message quotes the last ones.
        self._log = _LOG(self._keep_log_line)
        lib.llama_log_set(self._log, None)
        ggml.ggml_backend_load_all_from_path(os.fsencode(lib_dir))
        lib.llama_backend_init()
        _check_defaults("llama_model_params", lib.llama_model_default_params(), _EXPECTED_MODEL)
        _check_defaults("llama_context_params", lib.llama_context_default_params(), _EXPECTED_CONTEXT)

    def _declare(self):
        lib, base = self.lib, self._base
        signatures = {
            "llama_log_set": (None, [_LOG, C.c_void_p]),
            "llama_backend_init": (None, []),
            "llama_model_default_params": (_ModelParams, []),
            "llama_context_default_params": (_ContextParams, []),
            "llama_model_load_from_file": (C.c_void_p, [C.c_char_p, _ModelParams]),
            "llama_model_free": (None, [C.c_void_p]),
            "llama_model_get_vocab": (C.c_void_p, [C.c_void_p]),
            "llama_model_n_layer": (C.c_int32, [C.c_void_p]),
            "llama_vocab_n_tokens": (C.c_int32, [C.c_void_p]),
            "llama_vocab_is_control": (C.c_bool, [C.c_void_p, C.c_int32]),
            "llama_vocab_is_eog": (C.c_bool, [C.c_void_p, C.c_int32]),
            "llama_model_quantize_default_params": (_QuantizeParams, []),
            "llama_model_quantize": (C.c_uint32, [C.c_char_p, C.c_char_p, C.POINTER(_QuantizeParams)]),
            "llama_init_from_model": (C.c_void_p, [C.c_void_p, _ContextParams]),
            "llama_free": (None, [C.c_void_p]),
            "llama_n_ctx": (C.c_uint32, [C.c_void_p]),
            "llama_decode": (C.c_int32, [C.c_void_p, _Batch]),
            "llama_get_logits_ith": (C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
            "llama_tokenize": (
                C.c_int32,
                [C.c_void_p, C.c_char_p, C.c_int32, C.POINTER(C.c_int32), C.c_int32, C.c_bool, C.c_bool],
            ),
            "llama_token_to_piece": (
                C.c_int32,
                [C.c_void_p, C.c_int32, C.c_char_p, C.c_int32, C.c_int32, C.c_bool],
            ),
            "llama_detokenize": (
                C.c_int32,
                [C.c_void_p, C.POINTER(C.c_int32), C.c_int32, C.c_char_p, C.c_int32, C.c_bool, C.c_bool],
            ),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        base.ggml_get_type_traits.restype = C.POINTER(_TypeTraits)
        base.ggml_get_type_traits.argtypes = [C.c_int]
        base.ggml_get_name.restype, base.ggml_get_name.argtypes = C.c_char_p, [C.c_void_p]
        base.ggml_backend_tensor_get.restype = None
        base.ggml_backend_tensor_get.argtypes = [C.c_void_p, C.c_void_p, C.c_size_t, C.c_size_t]
        self._ggml.ggml_backend_load_all_from_path.restype = None
        self._ggml.ggml_backend_load_all_from_path.argtypes = [C.c_char_p]

    def _keep_log_line(self, _level, text, _user):
        self.log_lines.append(text.decode("utf-8", "replace").rstrip("\n"))
        del self.log_lines[:-200]

    def last_log(self, n=12):
        return "\n".join(self.log_lines[-n:])

    def type_shape(self, type_name):
        """(elements, bytes) of one block of a weight type."""
        traits = self._traits(type_name)
        return traits.blck_size, traits.type_size

    def _traits(self, type_name):
        traits = self._base.ggml_get_type_traits(GGML_TYPES[type_name]).contents
        if traits.type_name.decode().upper() != type_name:
            raise OracleError(f"type {type_name}: the library calls it {traits.type_name.decode()}")
        return traits

    def dequantize(self, type_name, data):
        """The f32 values that ggml's own to_float gives for whole blocks, as array('f')."""
        traits = self._traits(type_name)
        if len(data) % traits.type_size:
            raise OracleError(f"{type_name}: {len(data)} bytes are no whole number of {traits.type_size}-byte blocks")
        if type_name == "F32":
            return array("f", bytes(data))
        n = len(data) // traits.type_size * traits.blck_size
        out = (C.c_float * n)()
        source = C.create_string_buffer(bytes(data), len(data))
        _TO_FLOAT(traits.to_float)(C.addressof(source), out, n)
        return array("f", bytes(out))

    def tensor_name(self, tensor):
        return self._base.ggml_get_name(tensor).decode()

    def tensor_rows(self, tensor):
        """A contiguous f32 tensor of a running graph as (row length, array('f') of all rows)."""
        head = C.cast(tensor, C.POINTER(_TensorHead)).contents
        n = head.ne[0] * head.ne[1] * head.ne[2] * head.ne[3]
        if head.type != GGML_TYPES["F32"] or head.nb[0] != 4 or head.nb[1] != 4 * head.ne[0]:
            raise OracleError(f"{self.tensor_name(tensor)}: no contiguous f32 tensor")
        out = (C.c_float * n)()
        self._base.ggml_backend_tensor_get(tensor, out, 0, 4 * n)
        return head.ne[0], array("f", bytes(out))

    def quantize(self, source, target, file_type, n_threads=2):
        """Writes `target`: the F32 file `source` in the mix of a file type, by llama.cpp's own quantiser."""
        params = self.lib.llama_model_quantize_default_params()
        _check_defaults("llama_model_quantize_params", params, _EXPECTED_QUANTIZE)
        params.ftype, params.nthread = FILE_TYPES[file_type], n_threads
        if self.lib.llama_model_quantize(os.fsencode(source), os.fsencode(target), C.byref(params)) != 0:
            raise OracleError(f"{file_type}: llama.cpp does not quantise {source}:\n{self.last_log(3)}")

    def load(self, path, vocab_only=False):
        return Model(self, path, vocab_only)


class Model:
    """A GGUF file as llama.cpp loads it; free it with close() or `with`."""

    def __init__(self, oracle, path, vocab_only=False):
        self.oracle, self.lib = oracle, oracle.lib
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = 0
        params.load_mode = _LOAD_MODE_MMAP
        params.use_extra_bufts = False  # no repacked weights: plain f32 arithmetic on what the file holds
        params.vocab_only = vocab_only
        self.handle = self.lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self.handle:
            raise OracleError(f"{path}: llama.cpp does not load it:\n{oracle.last_log()}")
        self.vocab = self.lib.llama_model_get_vocab(self.handle)
        self.n_vocab = self.lib.llama_vocab_n_tokens(self.vocab)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.handle:
            self.lib.llama_model_free(self.handle)
            self.handle = None

    def tokenize(self, text, special):
        """ids of `text` (bytes): no BOS or EOS; control tokens are matched only if `special`."""
        room = len(text) + 16
        ids = (C.c_int32 * room)()
        n = self.lib.llama_tokenize(self.vocab, text, len(text), ids, room, False, special)
        if n < 0:
            raise OracleError(f"llama_tokenize wants {-n} places for {len(text)} bytes")
        return list(ids[:n])

    def detokenize(self, ids, special=True):
        """The bytes of `ids`; control tokens are printed only if `special`."""
        given = (C.c_int32 * max(1, len(ids)))(*ids)
        room = 64
        while True:
            out = C.create_string_buffer(room)
            n = self.lib.llama_detokenize(self.vocab, given, len(ids), out, room, False, special)
            if n >= 0:
                return out.raw[:n]
            room = -n

    def piece(self, token, special):
        """The bytes of one id; a control token gives none unless `special`."""
        out = C.create_string_buffer(512)
        n = self.lib.llama_token_to_piece(self.vocab, token, out, len(out), 0, special)
        if n < 0:
            raise OracleError(f"token {token} is longer than {len(out)} bytes")
        return out.raw[:n]

    def logits(self, tokens, n_batch=64, n_threads=1, watch=None, as_users_run_it=False):
        """One array('f') of n_vocab logits after each token; f32 KV, flash attention off.

        Flash attention is on by default on the CPU and rounds K and V to f16 whatever the cache type says.
        as_users_run_it: that default, with f16 KV.
        watch(name, row length, values), if given, sees every tensor of the graph that watch.wants(name).
        """
        callback = self._eval_callback(watch) if watch else None
        context = self._context(len(tokens), n_batch, n_threads, as_users_run_it, callback)
        try:
            if not as_users_run_it:
                self._check_context_log()
            rows = []
            for start in range(0, len(tokens), n_batch):
                rows += self._decode(context, tokens[start : start + n_batch], start)
            return rows
        finally:
            self.lib.llama_free(context)

    def greedy(self, prompt, n, end_ids):
        """The most likely ids after the prompt, as users run it, up to n or up to and without one of end_ids."""
        context = self._context(len(prompt) + n, 512, 1, True, None)
        try:
            for start in range(0, len(prompt), 512):
                rows = self._decode(context, prompt[start : start + 512], start)
            ids = []
            while len(ids) < n:
                row = rows[-1]
                best = max(range(len(row)), key=row.__getitem__)
                if best in end_ids:
                    break
                ids.append(best)
                rows = self._decode(context, [best], len(prompt) + len(ids) - 1)
            return ids
        finally:
            self.lib.llama_free(context)

    def _context(self, n_tokens, n_batch, n_threads, as_users_run_it, callback):
        """A context to be freed by the caller; `callback` must live as long."""
        params = self.lib.llama_context_default_params()
        params.n_ctx = max(256, n_tokens)
        params.n_batch = params.n_ubatch = n_batch
        params.n_outputs_max = n_batch
        params.n_threads = params.n_threads_batch = n_threads
        if not as_users_run_it:
            params.type_k = params.type_v = GGML_TYPES["F32"]
            params.flash_attn_type = _FLASH_ATTN_DISABLED
        params.offload_kqv = False
        if callback:
            params.cb_eval = C.cast(callback, C.c_void_p)
        context = self.lib.llama_init_from_model(self.handle, params)
        if not context:
            raise OracleError(f"llama.cpp makes no context:\n{self.oracle.last_log()}")
        return context

    def _eval_callback(self, watch):
        def on_tensor(tensor, is_question, _user):
            # Asked first whether the tensor is wanted, then told that it is there. True also means: go on.
            name = self.oracle.tensor_name(tensor)
            wanted = watch.wants(name)
            if wanted and not is_question:
                watch(name, *self.oracle.tensor_rows(tensor))
            return wanted or not is_question

        return _EVAL(on_tensor)

    def _check_context_log(self):
        lines = [line for line in self.oracle.log_lines if "flash_attn" in line]
        if not lines or "disabled" not in lines[-1]:
            raise OracleError(f"flash attention is not off: {lines[-1:]}")

    def _decode(self, context, tokens, start):
        n = len(tokens)
        sequence = (C.c_int32 * 1)(0)
        batch = _Batch(
            n_tokens=n,
            token=(C.c_int32 * n)(*tokens),
            embd=None,
            pos=(C.c_int32 * n)(*range(start, start + n)),
            n_seq_id=(C.c_int32 * n)(*([1] * n)),
            seq_id=(C.POINTER(C.c_int32) * n)(*([C.cast(sequence, C.POINTER(C.c_int32))] * n)),
            logits=(C.c_int8 * n)(*([1] * n)),
        )
        status = self.lib.llama_decode(context, batch)
        if status != 0:
            raise OracleError(f"llama_decode at position {start}: status {status}:\n{self.oracle.last_log()}")
        rows = []
        for i in range(n):
            row = self.lib.llama_get_logits_ith(context, i)
            if not row:
                raise OracleError(f"no logits at position {start + i}")
            rows.append(array("f", C.string_at(row, 4 * self.n_vocab)))
        return rows


class RoutingGaps:
    """Watches the router: for each position the smallest gap, over the layers, between the probability of the
    last expert taken and that of the first one left out."""

    def __init__(self, n_expert_used, n_tokens):
        self._n_used = n_expert_used
        self._next = {}  # layer → the position that its next row belongs to
        self.gaps = [float("inf")] * n_tokens

    def wants(self, name):
        return re.fullmatch(r"ffn_moe_probs-\d+", name) is not None

    def __call__(self, name, n_expert, values):
        position = self._next.get(name, 0)
        for start in range(0, len(values), n_expert):
            if n_expert > self._n_used:
                p = sorted(values[start : start + n_expert], reverse=True)
                self.gaps[position] = min(self.gaps[position], p[self._n_used - 1] - p[self._n_used])
            position += 1
        self._next[name] = position

    @property
    def n_layers(self):
        return len(self._next)

    def is_complete(self):
        """Did every layer's router speak for every position?"""
        return bool(self._next) and set(self._next.values()) == {len(self.gaps)}


def oracle_folder():
    """The folder with the library and the vocabulary, fetched if it is not there yet."""
    script = Path(__file__).with_name("install_oracle.sh")
    answer = subprocess.run([str(script)], stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        raise OracleError(f"{script.name} failed, and without the oracle nothing can be compared")
    return Path(answer.stdout.strip())


def open_oracle():
    """The pinned llama.cpp, ready for use."""
    if sys.byteorder != "little":
        raise OracleError("the oracle is a little-endian build")
    return Oracle(oracle_folder() / "lib")
