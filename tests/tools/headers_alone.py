#!/usr/bin/env python3
"""Compiles every header of the project alone (syntax only), so that each brings what it uses.

The headers in kernels/ are read as C++17, because CUDA sources include them; all others as C++20.
Prints the compiler's words for each header that fails and exits 1.
"""

import argparse
import concurrent.futures
import subprocess
import sys
from pathlib import Path

FOLDERS = ("runtime", "kernels", "model", "actors", "ipc")


def standard(path):
    return "c++17" if path.startswith("kernels/") else "c++20"


def compile_alone(compiler, root, path, flags):
    """The compiler's complaints about the header `path`, or an empty string."""
    command = [compiler, f"-std={standard(path)}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags]
    command += [f"-I{root}", "-x", "c++", "-"]
    source = f'#include "{path}"\n'
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return result.stderr.strip() or "no message" if result.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="the project's root folder")
    parser.add_argument("--compiler", default="g++", help="the C++ compiler (default g++)")
    parser.add_argument("--flag", action="append", default=[], help="one more compiler flag; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at once (default 2)")
    args = parser.parse_args()

    headers = [p for folder in FOLDERS for p in sorted((args.root / folder).rglob("*.h"))]
    if not headers:
        print(f"no headers under {args.root}")
        return 1
    paths = [header.relative_to(args.root).as_posix() for header in headers]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        complaints = list(pool.map(lambda path: compile_alone(args.compiler, args.root, path, args.flag), paths))
    failed = [(path, complaint) for path, complaint in zip(paths, complaints) if complaint]
    for path, complaint in failed:
        print(f"{path} does not compile alone:\n{complaint}\n")
    print(f"{len(paths) - len(failed)} of {len(paths)} headers compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
