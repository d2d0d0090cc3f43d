"""What the tests of the embedded model share: the build under test, its programs, and the scripts that made the model."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EMBEDDED = ROOT / "model" / "embedded"
MODEL = EMBEDDED / "pantheon-tiny.gguf"
MODEL_WITH_NEXTN = EMBEDDED / "pantheon-tiny-mtp.gguf"
sys.path.insert(0, os.fspath(EMBEDDED))


def build_from_arguments(description):
    """The build folder named by --build; what follows stays for unittest."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    arguments, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return arguments.build.resolve()


def pantheon(build, *arguments, given=b"", environment=None):
    """The output of the command; any exit code but 0 is an error that quotes what it said."""
    command = [build / "bin" / "pantheon", *map(os.fspath, arguments)]
    result = subprocess.run(command, input=given, capture_output=True, check=False, env=environment)
    if result.returncode != 0:
        words = result.stderr.decode("utf-8", "replace").strip()
        raise RuntimeError(f"{' '.join(map(os.fspath, command))}: exit {result.returncode}\n{words[-2000:]}")
    return result.stdout
