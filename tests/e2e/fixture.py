"""What every end-to-end test file needs: the build under test, from the command line, and one small model."""

import argparse
import atexit
import functools
import tempfile
from pathlib import Path

from daemon import make_model

_parser = argparse.ArgumentParser(description="An end-to-end test of one build; run it through ctest or by hand.")
_parser.add_argument("--build", type=Path, required=True, help="the build folder")
_parser.add_argument("--sanitized", action="store_true", help="the build carries sanitizers: allow it more time")
_parser.add_argument("--soak", action="store_true", help="the long version of a test that has one")
_parser.add_argument("--seed", type=int, default=None, help="of a test that does things at random; it prints its own")
_arguments = _parser.parse_args()

SOURCE = Path(__file__).resolve().parents[2]
BUILD = _arguments.build.resolve()
IS_SANITIZED = _arguments.sanitized
IS_SOAK = _arguments.soak
SEED = _arguments.seed


def embedded_model():
    """What a daemon without model.path serves."""
    return SOURCE / "model" / "embedded" / "pantheon-tiny.gguf"


@functools.cache
def small_model():
    """A synthetic model of a few hundred kilobytes, made once a test file."""
    folder = tempfile.TemporaryDirectory(prefix="pantheon-model-")
    atexit.register(folder.cleanup)
    path = Path(folder.name, "small.gguf")
    make_model(BUILD, path, "--seed", "1")
    return path
