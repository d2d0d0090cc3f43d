#!/usr/bin/env python3
"""The systemd unit: systemd finds nothing to object to, and the sandbox is as tight as it was meant to be."""

import re
import shutil
import subprocess
import sys
import unittest

from fixture import BUILD, SOURCE

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
    def test_the_installed_unit_names_installed_programs(self):
        text = (BUILD / "systemd" / "pantheond.service").read_text(encoding="utf-8")
        self.assertNotIn(str(BUILD), text)
        self.assertNotIn("@UNIT", text)
        for key in ("Type=notify", "RestartPreventExitStatus=78", "RuntimeDirectoryMode=0750", "WatchdogSec="):
            self.assertIn(f"\n{key}", text)

    def test_the_user_and_the_folders_are_declared(self):
        self.assertIn("\nu pantheon ", (SOURCE / "systemd" / "pantheon.sysusers").read_text(encoding="utf-8"))
        self.assertIn("\nd /var/lib/pantheon ", (SOURCE / "systemd" / "pantheon.tmpfiles").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
