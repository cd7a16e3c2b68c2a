"""Tests `hone ui --connect` with heads of simulated devices: connect_test.py HONE"""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import viewer

HONE = ""  # the program, an argument of the test
START_LIMIT_S = 30


def stop(process):
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


class Connect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.home = pathlib.Path(self.folder.name)

    def start_head(self, *more):
        """Starts a run that lasts longer than the test. Returns its address and its folder."""
        config = self.home / "ui.toml"
        config.write_text(viewer.RUN.replace("%TASKS%", str(viewer.ROOT / "configs/tasks")))
        run = self.home / "run"
        head = subprocess.Popen(
            [HONE, "run", config, "--dir", run, "--set", "contrastive.steps=100000", *more],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(stop, head)
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and not (run / "address").exists():
            self.assertIsNone(head.poll(), "the run has ended")
            time.sleep(0.1)
        return (run / "address").read_text().strip(), run

    def connect(self, address, *more):
        """Returns the link that `hone ui --connect` prints."""
        tunnel = subprocess.Popen(
            [HONE, "ui", "--connect", address, *more], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(stop, tunnel)
        link = tunnel.stdout.readline().strip()
        self.assertTrue(link.startswith("http://127.0.0.1:"), link)
        return urllib.parse.urlsplit(link)

    def get(self, link, target):
        token = urllib.parse.parse_qs(link.query)["token"][0]
        client = http.client.HTTPConnection("127.0.0.1", link.port, timeout=20)
        try:
            client.request("GET", target, headers={"Cookie": f"hone-{link.port}={token}"})
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        finally:
            client.close()

    def expect_pages(self, link):
        # The first page may say that the pool is being read.
        end = time.monotonic() + START_LIMIT_S
        status = 503
        while status == 503 and time.monotonic() < end:
            status, page = self.get(link, "/")
        self.assertEqual(status, 200, page)
        self.assertIn("This run is going on.", page)
        status, report = self.get(link, "/api/report")
        self.assertEqual(status, 200)
        self.assertIn("tasks", json.loads(report))
        self.assertEqual(self.get(link, "/script.js")[0], 200)

    def test_pages_come_from_the_head_and_end_with_it(self):
        address, run = self.start_head()
        link = self.connect(address)
        self.expect_pages(link)
        self.expect_pages(self.connect(address))  # a second reader
        status, page = self.get(urllib.parse.urlsplit(link.geturl() + "x"), "/")
        self.assertEqual(status, 401, "another token")
        self.assertFalse(any("ui.sock" in name for _, _, names in os.walk(run) for name in names))

    def test_another_machine_needs_a_certificate(self):
        authority = self.home / "authority"
        viewer.hone(HONE, "identity", "init", authority)
        viewer.hone(HONE, "identity", "make", authority, "head", "--head")
        viewer.hone(HONE, "identity", "make", authority, "reader")
        address, _ = self.start_head("--set", f"node.identity={authority}/identities/head")
        self.expect_pages(self.connect(address, "--identity", f"{authority}/identities/reader"))
        for more, said in [
            ([], "hone ui: "),
            (["--identity", str(self.home)], "hone ui: "),
        ]:
            refused = subprocess.run(
                [HONE, "ui", "--connect", address, *more],
                capture_output=True,
                text=True,
                timeout=viewer.LIMIT_S,
            )
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn(said, refused.stderr)

    def test_wrong_arguments_are_refused(self):
        for words, said in [
            (["--connect", "head.example:4242"], "--identity"),
            (["--connect", "127.0.0.1:1"], "nothing listens there"),
            (["--connect", "127.0.0.1:1", str(self.home)], "either"),
            ([], "either"),
            (["--connect", "127.0.0.1"], "expected HOST:PORT"),
            (["--connect", "127.0.0.1:1", "--listen", "0.0.0.0:0"], "ssh -L"),
        ]:
            refused = subprocess.run(
                [HONE, "ui", *words], capture_output=True, text=True, timeout=viewer.LIMIT_S
            )
            self.assertEqual(refused.returncode, 2, words)
            self.assertIn(said, refused.stderr)


if __name__ == "__main__":
    HONE = sys.argv.pop(1)
    unittest.main()
