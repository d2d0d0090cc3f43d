#!/usr/bin/env python3
"""Checks every #include line of the project against the picture of which folder may include which.

    runtime ──► ipc ──► actors' two message headers ──► runtime/base
       ├──────► actors ──► model ──► kernels

Prints one line for each include that breaks a rule and exits 1; exits 0 when there is none.
"""

import argparse
import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".hpp", ".cuh", ".cpp", ".cu"}
HEADERS = {".h", ".hpp", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)

# Folder → what it may include, as path prefixes from the root. The first matching folder counts.
ALLOWED = {
    "runtime/base/": ("runtime/base/",),
    "kernels/": ("kernels/",),
    "model/": ("model/", "kernels/", "runtime/base/"),
    "actors/": ("actors/", "model/", "runtime/base/"),
    "ipc/": ("ipc/", "actors/messages.h", "actors/client_messages.h", "runtime/base/"),
    "runtime/": ("runtime/", "actors/", "ipc/", "model/"),
}

# Outside libraries that only some folders may know: what the include starts with → folders.
LIBRARIES = {
    "caf/": ("actors/", "runtime/"),
    "toml++/": ("runtime/",),
    "zmq": ("ipc/", "runtime/"),
    "msgpack": ("ipc/", "runtime/"),
    "sys/socket.h": ("ipc/", "runtime/"),
    "systemd/": ("runtime/",),
    "CLI/": ("runtime/",),
    "cuda": ("kernels/",),
}
# runtime/base lies below everything, so what is allowed to runtime/ is not allowed to it.
BASE = "runtime/base/"


def owner(path):
    """The rule's folder for a path from the root, or None for what the rules leave free (tests)."""
    return next((folder for folder in ALLOWED if path.startswith(folder)), None)


def faults(root):
    """Every broken rule under `root`, as text, in file order."""
    found = []
    for file in sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        path = file.relative_to(root).as_posix()
        if owner(path) is None and not path.startswith("tests/"):
            continue
        text = file.read_text(encoding="utf-8")
        if file.suffix in HEADERS and "#pragma once" not in text:
            found.append(f"{path}: no #pragma once")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(1) if match.group(1) else match.start(2)) + 1
            for fault in line_faults(root, path, quoted=match.group(1), angled=match.group(2)):
                found.append(f"{path}:{line}: {fault}")
    return found


def line_faults(root, path, quoted, angled):
    """The rules that one include in the file `path` breaks."""
    folder = owner(path)
    if quoted is not None:
        if not (root / quoted).is_file():
            yield f'"{quoted}" is no file from the project\'s root'
        elif folder is not None and not quoted.startswith(ALLOWED[folder]):
            yield f'{folder} may not include "{quoted}"'
    if angled is not None and folder is not None:
        if (root / angled).is_file():
            yield f"<{angled}> is a file of the project: write it in quotes"
        for library, folders in LIBRARIES.items():
            if angled.startswith(library) and (folder == BASE or not path.startswith(folders)):
                yield f"{folder} may not include <{angled}>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="the project's root folder")
    root = parser.parse_args().root
    found = faults(root)
    for fault in found:
        print(fault)
    print(f"{len(found)} includes break a rule" if found else "every include follows the picture")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
