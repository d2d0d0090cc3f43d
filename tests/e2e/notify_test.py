#!/usr/bin/env python3
"""What the service manager hears: a socket in the place of systemd's, from loading to the end."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from daemon import Daemon
from fixture import BUILD, IS_SANITIZED, small_model


class NotifySocket:
    """Collects what is sent to $NOTIFY_SOCKET: one dict of assignments a datagram."""

    def __init__(self, folder):
        self.path = os.fspath(Path(folder, "notify"))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self.messages = []

    def close(self):
        self._socket.close()

    def wait_for(self, key, timeout_s=60, since=0):
        """The index of the first message from `since` on that has the assignment (KEY or KEY=VALUE)."""
        end = time.monotonic() + timeout_s
        while True:
            for i in range(since, len(self.messages)):
                name, _, value = key.partition("=")
                if name in self.messages[i] and value in ("", self.messages[i][name]):
                    return i
            self._socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                text = self._socket.recv(4096).decode()
            except TimeoutError:
                raise AssertionError(f"no {key} within {timeout_s} s; heard {self.messages}") from None
            self.messages.append(dict(line.partition("=")[::2] for line in text.splitlines()))

    def take_what_came(self):
        self._socket.setblocking(False)
        try:
            while True:
                text = self._socket.recv(4096).decode()
                self.messages.append(dict(line.partition("=")[::2] for line in text.splitlines()))
        except BlockingIOError:
            return self.messages


class NotifyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pantheon-notify-")
        self.addCleanup(folder.cleanup)
        self.notify = NotifySocket(folder.name)
        self.addCleanup(self.notify.close)

    def environment(self, **more):
        return {"NOTIFY_SOCKET": self.notify.path, **more}

    def test_everything_from_loading_to_the_end_is_told_in_order(self):
        # 600 ms without a sign of life and systemd would kill: one comes every 300 ms.
        with Daemon(BUILD, small_model(), environment=self.environment(WATCHDOG_USEC="600000")) as daemon:
            ready = self.notify.wait_for("READY=1")
            extended = self.notify.wait_for("EXTEND_TIMEOUT_USEC")
            self.assertLess(extended, ready)
            self.assertGreater(int(self.notify.messages[extended]["EXTEND_TIMEOUT_USEC"]), 1_000_000)
            self.assertTrue(any(m.get("STATUS", "").startswith("Loading") for m in self.notify.messages[:ready]))
            self.assertEqual(self.notify.messages[ready]["STATUS"], "Serving")

            first = self.notify.wait_for("WATCHDOG=1", since=ready)
            second = self.notify.wait_for("WATCHDOG=1", since=first + 1)
            with daemon.client() as client:
                request = client.send("generate", prompt="Once", max_tokens=3000, credit=1)
                client.next_event(request)
                self.notify.wait_for("STATUS=Serving: 1 running, 0 waiting", since=second)

            daemon.signal(signal.SIGHUP)
            reloading = self.notify.wait_for("RELOADING=1", since=second)
            self.assertIn("MONOTONIC_USEC", self.notify.messages[reloading])
            self.notify.wait_for("READY=1", since=reloading + 1)

            daemon.config_path.write_text("no toml", encoding="utf-8")
            daemon.signal(signal.SIGHUP)
            reloading = self.notify.wait_for("RELOADING=1", since=reloading + 1)
            self.notify.wait_for("READY=1", since=reloading + 1)

            daemon.signal(signal.SIGTERM)
            stopping = self.notify.wait_for("STOPPING=1", since=reloading)
            self.assertGreater(int(self.notify.messages[stopping]["EXTEND_TIMEOUT_USEC"]), 30_000_000)
            self.assertEqual(daemon.wait(), 0)

    def test_a_model_that_computes_nonsense_is_never_ready_and_ends_with_78(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "flat.gguf")
            data = bytearray(small_model().read_bytes())
            info = json.loads(
                subprocess.run(
                    [BUILD / "bin" / "pantheon", "info", "--json", small_model()], capture_output=True, check=True
                ).stdout
            )
            # No embedding, no difference between tokens: the logits are flat.
            for tensor in info["tensors"]:
                if tensor["name"] == "output_norm.weight":
                    data[tensor["offset"] : tensor["offset"] + tensor["bytes"]] = bytes(tensor["bytes"])
            broken.write_bytes(data)
            config = Path(folder, "pantheond.toml")
            config.write_text(f'model.path = "{broken}"\nipc.endpoint = "ipc://{folder}/sock"\n', encoding="utf-8")
            result = subprocess.run(
                [BUILD / "bin" / "pantheond", "--config", config, "--foreground"],
                env={**os.environ, **self.environment()}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        self.assertEqual(result.returncode, 78, result.stderr)
        self.assertIn("canary", result.stderr)
        heard = self.notify.take_what_came()
        self.assertFalse(any("READY" in message for message in heard), heard)
        self.assertTrue(any("canary" in message.get("STATUS", "") for message in heard), heard)


class IdleTest(unittest.TestCase):
    def test_an_idle_daemon_sleeps(self):
        with Daemon(BUILD, small_model()) as daemon:
            with daemon.client() as client:
                client.generate(prompt="Once", max_tokens=3)
            time.sleep(1)  # timers of what ran
            before = self.counters(daemon.process.pid)
            seconds = 5
            time.sleep(seconds)
            after = self.counters(daemon.process.pid)
            wakeups = {thread: n - before[0].get(thread, 0) for thread, n in after[0].items()}
            cpu_ticks = after[1] - before[1]
            print(f"idle: {sum(wakeups.values()) / seconds:.1f} wake-ups a second, {cpu_ticks} ticks of CPU in {seconds} s")
            if not IS_SANITIZED:  # a sanitizer has a thread of its own
                # One thread looks at the memory once a second; the others hear of it only when it is short.
                self.assertLessEqual(max(wakeups.values()), seconds + 2, wakeups)
                self.assertLessEqual(sum(wakeups.values()), 2 * seconds, wakeups)
                self.assertLessEqual(cpu_ticks, 1)

    def counters(self, pid):
        """Voluntary context switches of each thread, and CPU time in ticks."""
        wakeups = {}
        for task in Path(f"/proc/{pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    wakeups[task.name] = int(line.split()[1])
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return wakeups, int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
