"""Starts a pantheond of a build on a small synthetic model, in a folder and on a socket of its own."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from client import Client

# Under sanitizers everything takes longer; the limits below only have to tell "slow" from "stuck".
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:")


class DaemonError(RuntimeError):
    """The daemon did not do what every test takes for granted: start, answer, stop."""


def make_model(build, path, *options):
    """Writes a synthetic model with the project's own tool."""
    command = [os.fspath(build / "bin" / "make_model"), *options, os.fspath(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Daemon:
    """One running pantheond. Use it with `with`: the end stops it, and fails if it did not end well."""

    def __init__(self, build, model, config="", environment=None):
        self.build = build
        # The pressure on a busy machine is no concern of a test: systemd's word for "do not watch it".
        self._environment = {**os.environ, "MEMORY_PRESSURE_WATCH": "/dev/null", **(environment or {})}
        self._folder = tempfile.TemporaryDirectory(prefix="pantheon-e2e-")
        self.folder = Path(self._folder.name)
        self.endpoint = f"ipc://{self.folder}/pantheond.sock"
        self.config_path = self.folder / "pantheond.toml"
        self.config_path.write_text(
            f'model.path = "{model}"\nipc.endpoint = "{self.endpoint}"\n{config}', encoding="utf-8"
        )
        self._log_path = self.folder / "log"
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, failure, *_):
        try:
            if self.process is not None and self.process.poll() is None:
                code = self.stop()
                if failure is None and code != 0:
                    raise DaemonError(f"pantheond ended with {code}\n{self.log()}")
            if failure is None:
                self.check_sanitizers()
        finally:
            if self.process is not None and self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if failure is not None:
                print(self.log()[-6000:])
            self._folder.cleanup()

    def log(self):
        return self._log_path.read_text(encoding="utf-8", errors="replace") if self._log_path.exists() else ""

    def start(self):
        """Starts the process and waits until it answers a ping."""
        with open(self._log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.build / "bin" / "pantheond", "--config", self.config_path, "--foreground"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        end = time.monotonic() + START_TIMEOUT_S
        with self.client() as client:
            ping = client.send("ping")
            while client.next_event(ping, timeout_s=0.2, may_be_absent=True) is None:
                if self.process.poll() is not None:
                    raise DaemonError(f"pantheond ended with {self.process.returncode} at once\n{self.log()}")
                if time.monotonic() > end:
                    raise DaemonError(f"pantheond did not answer within {START_TIMEOUT_S} s\n{self.log()}")

    def client(self):
        return Client(self.endpoint)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise DaemonError(f"pantheond did not end within {STOP_TIMEOUT_S} s\n{self.log()}") from None

    def abandon(self):
        """SIGKILL, and no questions asked: for a daemon whose end is of no interest."""
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def is_running(self):
        return self.process.poll() is None

    def check_sanitizers(self):
        found = [word for word in SANITIZER_WORDS if word in self.log()]
        if found:
            raise DaemonError(f"{found[0]} in the daemon's log:\n{self.log()[-6000:]}")
