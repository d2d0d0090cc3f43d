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
