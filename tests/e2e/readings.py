"""Memory readings that a test writes and a daemon takes for the host's (memory.readings_dir)."""

import os

TOTAL_KB = 10_000_000
PLENTY_KB, TIGHT_KB, CRITICAL_KB = 9_000_000, 900_000, 100_000
CONFIG = """memory.tight_free_bytes = 1000000000
memory.critical_free_bytes = 400000000
memory.dwell_ms = 500
memory.step_ms = 0
"""


class Readings:
    def __init__(self, folder):
        self.folder = folder
        (folder / "proc").mkdir(parents=True)
        self.show(PLENTY_KB)

    def show(self, available_kb):
        aside = self.folder / "aside"
        aside.write_text(f"MemTotal: {TOTAL_KB} kB\nMemAvailable: {available_kb} kB\n", encoding="utf-8")
        os.replace(aside, self.folder / "proc" / "meminfo")
