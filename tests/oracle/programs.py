"""The programs of a build, run for their output."""

import os
import subprocess


class ProgramError(RuntimeError):
    """A program of ours failed where it must not."""


class Programs:
    def __init__(self, build):
        self.build = build

    def run(self, program, *arguments, given=b""):
        """Runs BUILD/program; its standard output. Any exit code but 0 is an error that quotes standard error."""
        command = [os.fspath(self.build / program), *map(os.fspath, arguments)]
        result = subprocess.run(command, input=given, capture_output=True, check=False)
        if result.returncode != 0:
            words = result.stderr.decode("utf-8", "replace").strip()
            raise ProgramError(f"{' '.join(command)}: exit {result.returncode}\n{words[-2000:]}")
        return result.stdout

    def make_vocabulary_model(self, path, tokenizer_json, pre):
        """A model as small as can be around a real vocabulary, under the pre-tokenizer rule `pre`."""
        self.run(
            "bin/make_model", path, "--n-embd", "32", "--layers", "2", "--interval", "2", "--heads", "1", "--kv-heads", "1",
            "--head-dim", "32", "--gdn-heads-k", "1", "--gdn-heads-v", "1", "--gdn-head-dim", "32", "--experts", "1",
            "--experts-used", "1", "--ff", "32", "--shared-ff", "32", "--type", "Q4_0", "--tied", "--vocab", "0",
            "--tokenizer-json", tokenizer_json, "--set", f"tokenizer.ggml.pre=string:{pre}",
        )  # fmt: skip
