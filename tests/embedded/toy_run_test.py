#!/usr/bin/python3
"""The whole way from facts to a GGUF file on a toy scale: vocabulary, a few steps of training, export; and what the
programs of this build make of the file. Also that a stopped run goes on as if it had not been stopped.
"""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from programs import EMBEDDED, ROOT, build_from_arguments, pantheon

import corpus
import gguf
import numpy
import tokenizer
import tools

BUILD = build_from_arguments(__doc__)
TOY = ["--vocab", "500", "--tokenizer-chats", "400", "--rows", "1", "--polish-steps", "2", "--nextn-steps", "2"]


def train(folder, steps, *more):
    command = [sys.executable, EMBEDDED / "train.py", "--steps", str(steps), "--out", folder, "--work", folder, *TOY, *more]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


class ToyRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="pantheon-toy-")
        cls.folder = Path(cls._folder.name)
        train(cls.folder, 12, "--f32")
        cls.model = cls.folder / "pantheon-tiny.gguf"
        cls.reader = gguf.Reader(cls.model)
        tokens = cls.reader.metadata["tokenizer.ggml.tokens"]
        merges = [tuple(cls._bytes(half) for half in m.split(" ")) for m in cls.reader.metadata["tokenizer.ggml.merges"]]
        cls.tok = tokenizer.Tokenizer(merges)
        assert len(tokens) == cls.tok.n_vocab == 500

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    @staticmethod
    def _bytes(printable):
        back = {shown: byte for byte, shown in tokenizer.ALPHABET.items()}
        return bytes(back[c] for c in printable)

    def test_the_loss_falls(self):
        with open(self.folder / "trunk.csv", newline="", encoding="ascii") as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        self.assertLess(losses[-1], losses[0])

    def test_both_files_load_and_say_what_they_are(self):
        for name, nextn in (("pantheon-tiny", 0), ("pantheon-tiny-mtp", 1)):
            info = json.loads(pantheon(BUILD, "info", self.folder / f"{name}.gguf", "--json"))
            self.assertEqual(info["arch"], "qwen35moe")
            self.assertEqual(info["kv"].get("qwen35moe.nextn_predict_layers", 0), nextn)
            self.assertEqual(info["kv"]["qwen35moe.block_count"], 4 + nextn)

    def test_the_f32_file_holds_the_same_weights_but_for_rounding(self):
        exact = gguf.Reader(self.folder / "pantheon-tiny-f32.gguf")
        self.assertEqual(sorted(exact.tensors), sorted(self.reader.tensors))
        for name, (_, tensor_type, _) in self.reader.tensors.items():
            rounded, wanted = self.reader.tensor(name), exact.tensor(name)
            if tensor_type == gguf.F32:
                numpy.testing.assert_array_equal(rounded, wanted)
            else:  # half a step of 127, and the scale rounded to half precision
                largest = numpy.abs(wanted.reshape(-1, 32)).max(axis=1, keepdims=True)
                self.assertTrue((numpy.abs(rounded - wanted).reshape(-1, 32) <= largest * 0.0045).all(), name)

    def test_decay_is_negative_and_norms_are_plain_multipliers(self):
        self.assertTrue((self.reader.tensor("blk.0.ssm_a") < 0).all())
        self.assertGreater(self.reader.tensor("blk.0.attn_norm.weight").mean(), 0.5)

    def test_the_programs_tokenize_as_the_corpus_was(self):
        rng, source = random.Random(3), corpus.Corpus()
        text = "".join(source.chat(rng) for _ in range(60)) + source.long_chat(rng) + "  odd   spaces \n\n x's 12+30 "
        out = pantheon(BUILD, "tokenize", "--model", self.model, "--special", "-", given=text.encode())
        ids = [int(x) for x in out.split()]
        self.assertEqual(ids, self.tok.encode(text))
        self.assertEqual(self.tok.decode(ids), text)

    def render(self, messages, *options, offered=()):
        with tempfile.TemporaryDirectory() as folder:
            given, tool_file = Path(folder, "messages.json"), Path(folder, "tools.json")
            given.write_text(json.dumps(messages), encoding="utf-8")
            tool_file.write_text(json.dumps(list(offered)), encoding="utf-8")
            with_tools = ["--tools", tool_file] if offered else []
            return pantheon(BUILD, "template", "--model", self.model, given, *with_tools, *options).decode()

    def test_the_corpus_has_the_form_of_the_template(self):
        offered, question, thought, name, arguments, result, after, answer = tools.example(random.Random(5))
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": question},
            {"role": "assistant", "reasoning_content": thought, "content": "", "tool_calls": [call]},
            {"role": "tool", "content": result},
            {"role": "assistant", "reasoning_content": after, "content": answer},
        ]
        spans = corpus.system_turn(offered, "Be brief.") + corpus.user_turn(question)
        spans += corpus.assistant_turn([(thought, 1)], [(tools.call_text(name, arguments), 1)])
        spans.append((f"<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n", 0))
        spans += corpus.assistant_turn([(after, 1)], [(answer, 1)])
        wanted = corpus.text_of(spans)
        self.assertEqual(self.render(messages, "--no-generation-prompt", offered=offered), wanted)

    def test_a_generation_starts_where_the_corpus_lets_it_start(self):
        earlier = corpus.user_turn("a") + corpus.assistant_turn(None, [("b", 1)]) + corpus.user_turn("c")
        messages = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]
        for options, thought in (([], [("x", 1)]), (["--no-thinking"], [])):
            chat = corpus.text_of(earlier + corpus.assistant_turn(thought, [("y", 1)]))
            self.assertTrue(chat.startswith(self.render(messages, *options)))

    def test_a_token_weighs_what_its_text_weighs(self):
        rows = corpus.Rows(corpus.Corpus(), self.tok)
        spans = [("<|im_start|>user\nIs it?<|im_end|>\n", corpus.PROMPT), ("This is about", corpus.PLAIN)]
        spans += [(" kv.n_ctx", corpus.CHOICE), (".", corpus.PLAIN)]
        ids, weights = rows._document(spans)
        heavy = [token for token, weight in zip(ids, weights) if weight == corpus.CHOICE[0]]
        self.assertEqual(self.tok.decode(heavy), " kv.n_ctx")

    def test_a_run_that_was_stopped_ends_with_the_same_weights(self):
        with tempfile.TemporaryDirectory(prefix="pantheon-toy-") as folder:
            folder = Path(folder)
            train(folder, 12, "--stop-after", "5")
            train(folder, 12)
            self.assertEqual((folder / self.model.name).read_bytes(), self.model.read_bytes())


class FactsTest(unittest.TestCase):
    """What the model is taught against what the project says elsewhere."""

    # In the manual of features to come, while a build without them has another value.
    AHEAD = {"kv.format", "cpu.repack", "sessions.every", "sessions.bytes", "sessions.dir"}

    # Newer than the training.
    NOT_TAUGHT = ("memory.", "sessions.disk_bytes", "sessions.f16")

    def setUp(self):
        self.facts = {f.subject: f for f in corpus.Corpus().facts}

    def test_every_configuration_key_is_a_fact_with_its_default(self):
        section = ""
        for line in (ROOT / "etc" / "pantheond.toml").read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif line.startswith("#") and " = " in line and line[1].islower() and " " not in line.split(" = ")[0]:
                name, _, value = line[1:].partition(" = ")
                if f"{section}.{name}".startswith(self.NOT_TAUGHT):
                    continue
                fact = self.facts[f"{section}.{name}"]
                if value not in ('"auto"', "[]") and fact.subject not in self.AHEAD:
                    self.assertTrue(fact.default.startswith(value.strip('"')), f"{fact.subject}: {fact.default}, not {value}")

    def test_every_error_code_is_a_fact(self):
        table = (ROOT / "ipc" / "protocol.md").read_text(encoding="utf-8").partition("## 7. Codes")[2].partition("## 8.")[0]
        codes = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")][1:]
        self.assertEqual(len(codes), 11)
        for code in codes:
            self.assertEqual(self.facts[code].kind, "code")


if __name__ == "__main__":
    unittest.main()
