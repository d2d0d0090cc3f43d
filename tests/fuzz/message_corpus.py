#!/usr/bin/env python3
"""Writes the seed corpus of the message fuzzer: one file per message, in the folder given.

    tests/fuzz/message_corpus.py tests/fuzz/message_corpus

Standard library only. The messages cover every operation, every msgpack type and each kind of refusal.
"""
import argparse
import pathlib
import struct


def pack(v):
    """The subset of msgpack that the protocol uses, each value in its shortest form; bytes are taken as raw."""
    if isinstance(v, bytes):
        return v
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        if 0 <= v < 128:
            return struct.pack("B", v)
        if -32 <= v < 0:
            return struct.pack("b", v)
        return b"\xcf" + struct.pack(">Q", v) if v >= 0 else b"\xd3" + struct.pack(">q", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        raw = v.encode()
        return (bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xdb" + struct.pack(">I", len(raw))) + raw
    if isinstance(v, list):
        head = bytes([0x90 | len(v)]) if len(v) < 16 else b"\xdd" + struct.pack(">I", len(v))
        return head + b"".join(map(pack, v))
    head = bytes([0x80 | len(v)]) if len(v) < 16 else b"\xdf" + struct.pack(">I", len(v))
    return head + b"".join(pack(k) + pack(x) for k, x in v.items())


def request(op, **fields):
    return pack({"v": 1, "id": "r1", "op": op, **fields})


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Grüße, 世界 🙂"}]},
    {"role": "assistant", "content": None, "reasoning_content": "hm",
     "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"x": -3, "y": 1.5, "z": [True, None]}}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
]

SEEDS = {
    "generate_prompt": request("generate", prompt="Once upon a time"),
    "generate_tokens": request("generate", tokens=[0, 1, 248319, 2147483647], stream=False, credit=16),
    "generate_chat": request("generate", messages=MESSAGES, tools=[TOOL], thinking=True, thinking_budget=100),
    "generate_all": request(
        "generate", prompt="x", max_tokens=10, stop=["\n\n", "END"], temperature=0.7, top_k=40, top_p=0.95, min_p=0.05,
        repeat_penalty=1.1, presence_penalty=0.5, frequency_penalty=-0.5, seed=2**64 - 1, logit_bias=[[1, 2.5], [2, -3]],
        logprobs=5, priority=-3, deadline_ms=60000, cache="shared", session="s1"),
    "generate_format": request("generate", prompt="x", response_format={"type": "json_object"}),
    "cancel": request("cancel", target="r0"),
    "credit": request("credit", target=17, n=64),
    "tokenize": request("tokenize", text="a b c", special=True),
    "detokenize": request("detokenize", tokens=[1, 2, 3], special=False),
    "template": request("template", messages=MESSAGES, add_generation_prompt=False),
    "score": request("score", tokens=list(range(40)), top=20),
    "status": request("status"),
    "ping_uint_id": pack({"v": 1, "id": 2**64 - 1, "op": "ping"}),
    "metrics": request("metrics"),
    "reload": request("reload", dry_run=True),
    "drain": request("drain", timeout_s=2.5),
    "sessions": request("sessions", cache="shared"),
    "session_drop": request("session.drop", session="s1"),
    "bad_utf8": request("tokenize", text=b"\xa2\xc0\x80"),
    "bad_duplicate": b"\x84" + pack("v") + pack(1) + 2 * (pack("id") + pack("a")) + pack("op") + pack("ping"),
    "bad_nan": request("generate", prompt="x", temperature=float("nan")),
    "bad_float32": request("generate", prompt="x", top_p=b"\xca\x3f\x80\x00\x00"),
    "bad_binary": request("tokenize", text=b"\xc4\x02ab"),
    "bad_ext": request("tokenize", text=b"\xd4\x01z"),
    "bad_array_header": request("score", tokens=b"\xdd\xff\xff\xff\xff"),
    "bad_depth": request("template", messages=b"\x91" * 40),
    "bad_root": pack([1, 2, 3]),
    "bad_cut": request("generate", prompt="a rather long prompt that is cut")[:-9],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, message in SEEDS.items():
        (folder / f"{name}.msgpack").write_bytes(message)
    print(f"{len(SEEDS)} messages in {folder}")


if __name__ == "__main__":
    main()
