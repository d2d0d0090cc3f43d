#!/usr/bin/env python3
"""`pantheond --check-config`: what it says about a file, and its exit code."""

import argparse
import subprocess
import tempfile
import unittest
from pathlib import Path

GOOD, BAD = 0, 78
SOURCE = Path(__file__).resolve().parents[3]


class CheckConfigTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pantheon-config-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "m.gguf"
        self.model.write_bytes(b"only its presence is checked")
        self.file = self.folder / "c.toml"

    def check(self, text, code):
        """Checks a file of this text; returns what was said on stderr."""
        self.file.write_text(text, encoding="utf-8")
        result = subprocess.run(
            [PANTHEOND, "--config", self.file, "--check-config"],
            capture_output=True, timeout=60, check=False, encoding="utf-8",
            env={"XDG_RUNTIME_DIR": str(self.folder)},
        )  # fmt: skip
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def test_a_file_with_the_model_alone_is_valid(self):
        self.assertEqual(self.check(f'model.path = "{self.model}"\n', GOOD), "")
        self.assertEqual(self.check(f'[model]\npath = "{self.model}"\n', GOOD), "")

    def test_the_annotated_file_needs_nothing_but_a_model(self):
        annotated = (SOURCE / "etc" / "pantheond.toml").read_text(encoding="utf-8")
        self.assertIn('#path = "auto"\n', annotated)
        self.check(annotated.replace('#path = "auto"\n', f'path = "{self.model}"\n'), GOOD)

    def test_each_problem_has_file_line_and_column(self):
        said = self.check(f'model.path = "{self.model}"\n[kv]\nn_ctxx = 32\noverflow = 4\n[log]\nlevel = 1\n', BAD)
        self.assertEqual(
            said.splitlines(),
            [
                f"{self.file}:3:1: invalid_argument: kv.n_ctxx: unknown key; the nearest valid one is kv.n_ctx",
                f'{self.file}:4:12: invalid_argument: kv.overflow: want one of "stop", "slide", got an integer',
                f'{self.file}:6:9: invalid_argument: log.level: want one of "debug", "info", "warning", "error", "off", '
                "got an integer",
            ],
        )

    def test_a_missing_file_and_a_missing_model_are_78(self):
        missing = self.folder / "none.toml"
        result = subprocess.run(
            [PANTHEOND, "--config", missing, "--check-config"], capture_output=True, timeout=60, check=False
        )
        self.assertEqual(result.returncode, BAD)
        self.assertIn(str(missing).encode(), result.stderr)
        self.assertIn("c.toml:1:14: not_found: model.path: /nowhere/m.gguf", self.check('model.path = "/nowhere/m.gguf"', BAD))

    def test_broken_toml_is_78(self):
        self.assertIn("c.toml:2:", self.check("[kv]\nn_ctx = = 3\n", BAD))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pantheond", type=Path, required=True, help="the program under test")
    PANTHEOND = parser.parse_args().pantheond.resolve()
    unittest.main(argv=["check_config_test"], verbosity=2)
