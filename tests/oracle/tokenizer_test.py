#!/usr/bin/env python3
"""The tokenizer against llama.cpp's, with the real Qwen3 vocabulary and both pre-tokenizer rules.

For some 2,600 generated texts: the same ids with and without control tokens, and decode(encode(x)) = x for valid
UTF-8. For every code point: the same pieces around it. For every id: the same bytes. Prints one row a check.
"""

import argparse
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import tokenizer_texts
from llama import oracle_folder, open_oracle
from programs import Programs

PRE_RULES = ("qwen35", "qwen2")
N_SHOWN = 5  # differences printed a check


class Reader:
    """Walks over what tokenize_stdin wrote."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def number(self):
        self._at += 4
        return struct.unpack_from("=I", self._data, self._at - 4)[0]

    def ids(self):
        n = self.number()
        self._at += 4 * n
        return list(struct.unpack_from(f"={n}I", self._data, self._at - 4 * n))

    def bytes(self):
        n = self.number()
        self._at += n
        return self._data[self._at - n : self._at]

    def is_at_end(self):
        return self._at == len(self._data)


def is_valid_utf8(text):
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Check:
    """Counts what was compared under one name, and keeps the first differences."""

    def __init__(self, name):
        self.name, self.n_compared, self.faults = name, 0, []

    def equal(self, what, ours, theirs):
        self.n_compared += 1
        if ours != theirs:
            self.faults.append(f"{what!r}\n    ours   {ours!r}\n    theirs {theirs!r}")

    def report(self):
        """Prints the row; the number of differences."""
        print(f"{self.name:44} {self.n_compared:8} compared {len(self.faults):6} differ")
        for fault in self.faults[:N_SHOWN]:
            print("  " + fault[:800])
        return len(self.faults)


def our_tokens(programs, model_path, texts):
    """For each text: (ids, decoded, ids with control tokens, decoded)."""
    given = b"".join(struct.pack("=I", len(text)) + text for text in texts)
    reader = Reader(programs.run("tests/tokenize_stdin", model_path, given=given))
    answers = [(reader.ids(), reader.bytes(), reader.ids(), reader.bytes()) for _ in texts]
    if not reader.is_at_end():
        raise ValueError("tokenize_stdin answered more than it was asked")
    return answers


def check_texts(pre, programs, model, model_path):
    made = tokenizer_texts.texts()
    ids = Check(f"{pre}: texts, user's")
    special = Check(f"{pre}: texts, with control tokens")
    identity = Check(f"{pre}: decode(encode(x)) = x")
    for (_, text), ours in zip(made, our_tokens(programs, model_path, [text for _, text in made])):
        ids.equal(text, ours[0], model.tokenize(text, special=False))
        special.equal(text, ours[2], model.tokenize(text, special=True))
        if is_valid_utf8(text):
            identity.equal(text, ours[1], text)
            identity.equal(text, ours[3], text)
    return [ids, special, identity]


def check_code_points(pre, programs, model, model_path):
    check = Check(f"{pre}: every code point")
    texts = list(tokenizer_texts.code_point_texts())
    for text, ours in zip(texts, our_tokens(programs, model_path, texts)):
        check.equal(text, ours[0], model.tokenize(text, special=False))
    return [check]


def check_pieces(pre, programs, model, model_path):
    check = Check(f"{pre}: the bytes of every id")
    reader = Reader(programs.run("tests/tokenize_stdin", model_path, "--pieces"))
    for token in range(model.n_vocab):
        check.equal(token, reader.bytes(), model.piece(token, special=False))
        check.equal(token, reader.bytes(), model.piece(token, special=True))
    return [check]


def check_command(pre, programs, model, model_path):
    """The command line gives what the library gives; a few texts, since each run reads the whole vocabulary."""
    check = Check(f"{pre}: pantheon tokenize and detokenize")
    for text in ("Hello, wörld! 123\n\tx=1;", "नमस्ते <think> <|im_end|>", "  two  spaces  ", "👨‍👩‍👧 ok"):
        for options in ([], ["--special"]):
            printed = programs.run("bin/pantheon", "tokenize", "--model", model_path, *options, "-", given=text.encode())
            ids = [int(word) for word in printed.split()]
            check.equal((text, options), ids, model.tokenize(text.encode(), special=bool(options)))
            words = " ".join(map(str, ids)).encode()
            back = programs.run("bin/pantheon", "detokenize", "--model", model_path, "-", given=words)
            check.equal((text, "back"), back, text.encode())
    return [check]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    programs = Programs(parser.parse_args().build)

    oracle = open_oracle()
    n_different = 0
    with tempfile.TemporaryDirectory(prefix="pantheon-tokenizer-") as folder:
        for pre in PRE_RULES:
            path = Path(folder, f"{pre}.gguf")
            programs.make_vocabulary_model(path, oracle_folder() / "tokenizer.json", pre)
            with oracle.load(path, vocab_only=True) as model:
                for run_check in (check_texts, check_code_points, check_pieces, check_command):
                    n_different += sum(check.report() for check in run_check(pre, programs, model, path))
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
