#!/usr/bin/env python3
"""The include checker itself: each rule is broken once in a throw-away tree and must be reported."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import include_arrows  # noqa: E402  (found through the line above)

FINE = {
    "runtime/base/status.h": "#pragma once\n",
    "kernels/op.h": "#pragma once\n",
    "model/layer.h": '#pragma once\n#include "kernels/op.h"\n#include "runtime/base/status.h"\n',
    "actors/messages.h": '#pragma once\n#include "model/layer.h"\n#include <caf/all.hpp>\n',
    "actors/slot.h": "#pragma once\n",
    "ipc/codec.cpp": '#include "actors/messages.h"\n#include <zmq.hpp>\n',
    "runtime/main.cpp": '#include "ipc/codec.h"\n#include "actors/slot.h"\n#include <toml++/toml.h>\n',
    "ipc/codec.h": "#pragma once\n",
    "tests/any_test.cpp": '#include "kernels/op.h"\n#include "ipc/codec.h"\n#include <toml++/toml.h>\n',
}

BROKEN = [  # (file, its text, what the report must say)
    ("kernels/bad.cpp", '#include "runtime/base/status.h"\n', 'kernels/ may not include "runtime/base/status.h"'),
    ("runtime/base/bad.h", '#pragma once\n#include "ipc/codec.h"\n', 'runtime/base/ may not include "ipc/codec.h"'),
    ("model/bad.cpp", '#include "actors/slot.h"\n', 'model/ may not include "actors/slot.h"'),
    ("actors/bad.cpp", '#include "kernels/op.h"\n', 'actors/ may not include "kernels/op.h"'),
    ("ipc/bad.cpp", '#include "actors/slot.h"\n', 'ipc/ may not include "actors/slot.h"'),
    ("ipc/bad2.cpp", '#include "model/layer.h"\n', 'ipc/ may not include "model/layer.h"'),
    ("runtime/bad.cpp", '#include "kernels/op.h"\n', 'runtime/ may not include "kernels/op.h"'),
    ("model/bad2.cpp", "#include <caf/all.hpp>\n", "model/ may not include <caf/all.hpp>"),
    ("actors/bad2.cpp", "  #  include <zmq.h>\n", "actors/ may not include <zmq.h>"),
    ("ipc/bad3.cpp", "#include <toml++/toml.h>\n", "ipc/ may not include <toml++/toml.h>"),
    ("runtime/base/bad2.cpp", "#include <caf/all.hpp>\n", "runtime/base/ may not include <caf/all.hpp>"),
    ("model/bad3.cpp", "#include <kernels/op.h>\n", "write it in quotes"),
    ("model/bad4.cpp", '#include "layer.h"\n', "no file from the project's root"),
    ("ipc/bad5.h", "int x;\n", "no #pragma once"),
]


class IncludeArrowsTest(unittest.TestCase):
    def faults_of(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return include_arrows.faults(Path(folder))

    def test_accepts_what_the_picture_allows(self):
        self.assertEqual(self.faults_of(FINE), [])

    def test_reports_each_broken_rule_once_with_file_and_line(self):
        for path, text, want in BROKEN:
            with self.subTest(path):
                found = self.faults_of({**FINE, path: text})
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(path + ":"), found)
                self.assertIn(want, found[0])


if __name__ == "__main__":
    unittest.main()
