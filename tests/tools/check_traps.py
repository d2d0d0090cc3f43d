#!/usr/bin/env python3
"""Makes each known mistake of the model's trap list in a copy of the sources and shows which tests notice it.

Every file of tests/traps/ is one mistake as a patch; the lines above its diff say which tests must fail:

    trap: 07b q scaled twice by 1/sqrt(d)      row of the list, a letter where a row has variants, its name
    what: The scale is applied to q and ...    one sentence
    fails: PROGRAM FILTER                      a test program, a GoogleTest filter; at least one of its tests fails

The tracked files are copied, built and tested once as they are, which must be green. Then one patch after the other
is applied, the programs that it names are built and run, and it is taken back. A patch that does not apply, does not
compile, or leaves a program green (or crashes or hangs it, which shows nothing about its tests) is an error, as is a
row of the list without a patch. Exits 1 when there was any error. Writes only below --work. With --only-apply nothing
is built: every patch must apply to the sources as they are, each line in its place, and every row must have one.
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Rows 28 and 53 are no mistakes, 30-33 need a draft head and prefix reuse, 37 and 46 are refused with an error.
ROWS = [*range(1, 28), 29, *range(34, 37), *range(38, 46), *range(47, 53), 54]
RUN_TIMEOUT_S = 300
NOT_IN_XML = re.compile(r"[^\t\n\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")  # but failure messages may quote it
ENVIRONMENT = {"CCACHE_NOHASHDIR": "1", "GTEST_COLOR": "no", "LC_ALL": "C.UTF-8"}


class TrapError(Exception):
    """Why a patch did not show what it should; the first line fits into a table."""


@dataclasses.dataclass(frozen=True)
class Trap:
    key: str  # row and letter, "07b"
    name: str
    patch: Path
    fails: tuple  # of (program, filter)

    @property
    def row(self):
        return int(self.key[:2])

    @property
    def files(self):
        """What the patch changes, as paths from the root."""
        return re.findall(r"^\+\+\+ b/(\S+)", self.patch.read_text("utf-8"), re.MULTILINE)

    @classmethod
    def read(cls, patch):
        header = patch.read_text("utf-8").split("\n--- ", 1)[0]
        title = re.search(r"^trap: (\d\d[a-z]?) (.+)$", header, re.MULTILINE)
        fails = re.findall(r"^fails: (\S+) (\S+)$", header, re.MULTILINE)
        if not title or not fails or not re.search(r"^what: \S", header, re.MULTILINE):
            raise SystemExit(f"{patch}: its head wants trap:, what: and fails: lines")
        if not patch.name.startswith(title[1] + "-"):
            raise SystemExit(f"{patch}: its name does not start with {title[1]}-")
        return cls(title[1], title[2], patch, tuple(fails))


class Workshop:
    """A copy of the tracked sources, its build folder, and what was built there."""

    def __init__(self, work, jobs, compiler_flags):
        self.source = work / "trap_source"
        self.build = work / "trap_build"
        self.jobs = jobs
        self.compiler_flags = compiler_flags
        self.environment = {**os.environ, **ENVIRONMENT, "CCACHE_BASEDIR": str(work)}

    def command(self, *command, cwd=None, timeout=None):
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd or self.build,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )

    def copy_sources(self):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        wanted = [name for name in listed.decode("utf-8").split("\0") if name and (ROOT / name).is_file()]
        if self.source.exists():  # of an earlier run: keep what is equal, so that little is compiled again
            kept = set(wanted)
            for path in [p for p in self.source.rglob("*") if not p.is_dir()]:
                if path.relative_to(self.source).as_posix() not in kept:
                    path.unlink()
        for name in wanted:
            target = self.source / name
            content = (ROOT / name).read_bytes()
            if target.is_file() and target.read_bytes() == content:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            shutil.copymode(ROOT / name, target)

    def configure(self):
        self.build.mkdir(parents=True, exist_ok=True)
        options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS_RELEASE={self.compiler_flags}"]
        result = self.command("cmake", "-S", self.source, "-B", self.build, *options)
        if result.returncode:
            raise TrapError("the copy cannot be configured\n" + result.stdout)

    def make(self, programs):
        result = self.command("ninja", "-j", self.jobs, *sorted(programs))
        if result.returncode:
            raise TrapError("does not compile\n" + result.stdout)

    def failing_tests(self, program, test_filter):
        """Names of the tests that fail. A TrapError when there is no such test, or no verdict."""
        report = self.build / "report.xml"
        report.unlink(missing_ok=True)
        try:
            result = self.command(
                self.build / "tests" / program,
                f"--gtest_filter={test_filter}",
                f"--gtest_output=xml:{report}",
                timeout=RUN_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise TrapError(f"{program} ran for more than {RUN_TIMEOUT_S} s") from None
        if result.returncode not in (0, 1) or not report.is_file():
            raise TrapError(f"{program} crashed ({result.returncode})\n" + result.stdout[-3000:])
        text = NOT_IN_XML.sub("?", report.read_text("utf-8", "replace"))
        cases = ElementTree.fromstring(text).findall("./testsuite/testcase")
        if not cases:
            raise TrapError(f"{program} has no test {test_filter}")
        return [f"{c.get('classname')}.{c.get('name')}" for c in cases if c.find("failure") is not None]

    def apply(self, trap):
        command = ["patch", "-p1", "--fuzz=3", "--forward", "--no-backup-if-mismatch", "--reject-file=-"]
        result = self.command(*command, "--input", trap.patch, cwd=self.source)
        if result.returncode:
            raise TrapError("does not apply\n" + result.stdout)

    def restore(self, trap, content):
        """Written anew, so that the build sees a change."""
        for name in trap.files:
            (self.source / name).write_bytes(content[name])
            (self.source / f"{name}.orig").unlink(missing_ok=True)

    def spring(self, trap):
        """{program: names of failing tests}; every program of the trap has some, or a TrapError says why not."""
        content = {name: (self.source / name).read_bytes() for name in trap.files}
        try:
            self.apply(trap)
            self.make({program for program, _ in trap.fails})
            failed = {}
            for program, test_filter in trap.fails:
                names = self.failing_tests(program, test_filter)
                if not names:
                    raise TrapError(f"no test of {program} {test_filter} fails")
                failed[program] = failed.get(program, []) + names
            return failed
        finally:
            self.restore(trap, content)


def shown(names):
    """Names in one cell: the instances of a parametrised test are counted."""
    counts = {}
    for name in names:
        whole = re.sub(r"^[^/.]+/([^/]+)/.*$", r"\1", name)
        counts[whole] = counts.get(whole, 0) + 1
    return ", ".join(f"{name} ({n} shapes)" if n > 1 else name for name, n in counts.items())


def is_chosen(trap, only):
    return not only or str(trap.row) in only or trap.key.lstrip("0") in only


def patches_that_apply_nowhere(traps):
    """What is wrong with patches that no longer fit the sources."""
    faults = []
    for trap in traps:
        command = ["patch", "-p1", "--fuzz=0", "--dry-run", "--forward", "--reject-file=-", "--input", str(trap.patch)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if result.returncode:
            faults.append(f"{trap.patch.name} does not apply\n{result.stdout}{result.stderr}")
    return faults


def check_baseline(workshop, traps):
    """Builds every program that the traps name and runs what they name."""
    programs = {program for trap in traps for program, _ in trap.fails}
    print(f"building {len(programs)} test programs of the sources as they are", flush=True)
    workshop.make(programs)
    for program, test_filter in sorted({pair for trap in traps for pair in trap.fails}):
        failed = workshop.failing_tests(program, test_filter)
        if failed:
            raise TrapError(f"{program} fails without any patch: {shown(failed)}")
    print("all are green", flush=True)


def check(workshop, traps, is_whole_list):
    """Prints the table; the number of errors."""
    n_errors = 0
    details = []
    print("\n| trap | mistake | tests that failed | s |\n|---|---|---|---|")
    for trap in traps:
        start = time.monotonic()
        try:
            failed = workshop.spring(trap)
            cell = "; ".join(f"{program}: {shown(names)}" for program, names in failed.items())
        except TrapError as error:
            n_errors += 1
            message = str(error)
            cell = "ERROR: " + message.split("\n", 1)[0]
            details.append(f"{trap.patch.name}: {message}")
        print(f"| {trap.key} | {trap.name} | {cell} | {time.monotonic() - start:.0f} |", flush=True)
    if is_whole_list:
        for row in sorted(set(ROWS) - {trap.row for trap in traps}):
            n_errors += 1
            print(f"| {row:02} | | ERROR: no patch | |")
    for detail in details:
        print("\n" + detail)
    print(f"\n{len(traps)} traps of {len({trap.row for trap in traps})} rows, {n_errors} errors")
    return n_errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows or single traps, as 10,11a; others are left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once (default: all CPUs)")
    parser.add_argument("--work", type=Path, help="keep copy and build here, to be quicker the next time")
    parser.add_argument("--flags", default="-O1 -DNDEBUG", help="compiler flags of the build (default %(default)s)")
    parser.add_argument("--only-apply", action="store_true", help="check that every patch applies, and end")
    parser.add_argument("--list", action="store_true", help="print the traps and end")
    args = parser.parse_args()

    only = [key.lstrip("0") for key in args.only.split(",") if key]
    every = [Trap.read(patch) for patch in sorted((ROOT / "tests/traps").glob("*.patch"))]
    traps = [trap for trap in every if is_chosen(trap, only)]
    if not traps:
        parser.error(f"no trap is called {args.only}")
    if args.list:
        for trap in traps:
            print(f"{trap.key:4} {trap.name}")
        return 0

    if args.only_apply:
        faults = patches_that_apply_nowhere(traps)
        faults += [f"row {row:02} has no patch" for row in sorted(set(ROWS) - {trap.row for trap in every})]
        print("\n".join([*faults, f"{len(traps)} patches, {len(faults)} errors"]))
        return 1 if faults else 0

    work = args.work or Path(tempfile.mkdtemp(prefix="traps-"))
    work.mkdir(parents=True, exist_ok=True)
    work = work.resolve()
    try:
        workshop = Workshop(work, args.jobs, args.flags)
        workshop.copy_sources()
        workshop.configure()
        check_baseline(workshop, traps)
        return 1 if check(workshop, traps, not only) else 0
    except TrapError as error:
        print(error)
        return 1
    finally:
        if not args.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
