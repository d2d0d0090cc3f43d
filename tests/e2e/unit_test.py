#!/usr/bin/env python3
"""The systemd unit: systemd finds nothing to object to, and the sandbox is as tight as it was meant to be."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from fixture import BUILD

UNIT = BUILD / "systemd" / "of-build" / "pantheond.service"
ANALYZE = shutil.which("systemd-analyze")


def analyze(*arguments):
    return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=120, check=False)


@unittest.skipUnless(ANALYZE, "no systemd-analyze")
class UnitTest(unittest.TestCase):
    def test_systemd_objects_to_nothing(self):
        # The exit status is 0 even for unknown keys; what counts is what it prints.
        result = analyze("verify", "--man=no", UNIT)
        about_us = [line for line in result.stderr.splitlines() if "pantheon" in line]
        self.assertEqual(about_us, [])
        self.assertIsNone(re.search(r"Unknown|Failed to parse|ignoring", result.stderr), result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_wrong_key_would_be_noticed(self):
        broken = UNIT.with_name("broken.service")
        broken.write_text(UNIT.read_text(encoding="utf-8").replace("Type=notify", "Type=notify-reload"), encoding="utf-8")
        self.addCleanup(broken.unlink)
        self.assertRegex(analyze("verify", "--man=no", broken).stderr, "broken.service")

    def test_the_sandbox_is_tight(self):
        result = analyze("security", "--offline=true", "--threshold=30", UNIT)
        if "Unknown command" in result.stderr:
            self.skipTest("systemd-analyze has no offline security check")
        self.assertEqual(result.returncode, 0, result.stdout[-2000:] + result.stderr)


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="pantheon-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.prefix = Path(folder.name)
        subprocess.run(
            ["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL, timeout=120
        )

    def read(self, path):
        return (self.prefix / path).read_text(encoding="utf-8")

    def test_the_installed_unit_names_installed_programs(self):
        unit = self.read("lib/systemd/system/pantheond.service")
        self.assertIn(f"\nExecStart={self.prefix}/bin/pantheond --config {self.prefix}/etc/pantheon/pantheond.toml\n", unit)
        self.assertIn(f"\nExecReload={self.prefix}/bin/pantheon reload\n", unit)
        for key in ("Type=notify", "RestartPreventExitStatus=78", "RuntimeDirectoryMode=0750", "WatchdogSec="):
            self.assertIn(f"\n{key}", unit)
        for path in ("bin/pantheond", "bin/pantheon", "etc/pantheon/pantheond.toml"):
            self.assertTrue((self.prefix / path).is_file(), path)

    def test_the_user_and_the_folders_are_declared(self):
        self.assertIn("\nu pantheon ", self.read("lib/sysusers.d/pantheon.conf"))
        self.assertIn("\nd /var/lib/pantheon ", self.read("lib/tmpfiles.d/pantheon.conf"))

    def test_the_python_module_can_be_imported(self):
        result = subprocess.run(
            [sys.executable, "-c", "import pantheon_client; print(pantheon_client.default_endpoints()[0])"],
            env={**os.environ, "PYTHONPATH": str(self.prefix / "lib/python3/dist-packages")},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        self.assertIn("/run/pantheon/pantheond.sock", result.stdout)
        self.assertTrue((self.prefix / "lib/python3/dist-packages/pantheon_client/py.typed").is_file())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
