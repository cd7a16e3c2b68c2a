"""Tests `hone ui` and `hone report --html` with a run of simulated devices: ui_test.py HONE

Walks all pages by their links. Each must be well-formed, load nothing from elsewhere, and show the
numbers that the commands print.
"""

import http.client
import json
import os
import pathlib
import re
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import xml.etree.ElementTree

import viewer

HONE = ""  # the program, an argument of the test
HOSTILE = "<script>alert(1)</script>\u202e<img onerror=x>"


def hone(*words):
    return viewer.hone(HONE, *words)


def well_formed(text):
    """Returns the root of a page, which is XML but for its first line."""
    return xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])


class Viewer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        home = pathlib.Path(cls.folder.name)
        cls.run_folder = viewer.make_run(HONE, home, "run <b>&")
        cls.viewer, cls.port, cls.token = viewer.start_viewer(HONE, cls.run_folder)

    @classmethod
    def tearDownClass(cls):
        cls.viewer.terminate()
        cls.viewer.wait(10)
        cls.viewer.stdout.close()
        cls.folder.cleanup()

    def get(self, target, method="GET", **fields):
        headers = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": f"a=b; hone-{self.port}={self.token}",
        }
        headers.update({name.replace("_", "-"): value for name, value in fields.items()})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(
                method, target, headers={k: v for k, v in headers.items() if v is not None}
            )
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def page(self, target):
        status, headers, text = self.get(target)
        self.assertEqual(status, 200, f"{target}: {text}")
        self.assertTrue(headers["Content-Type"].startswith("text/html"), target)
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        return well_formed(text)

    def test_all_pages_are_well_formed_and_stay_on_the_server(self):
        seen = {"/"}
        open_pages = ["/"]
        kinds = {"": 1}
        while open_pages:
            target = open_pages.pop(0)
            for element in self.page(target).iter():
                self.assertNotIn(element.tag, {"iframe", "style", "object"}, target)
                for name, value in element.attrib.items():
                    self.assertFalse(name.startswith("on") or name == "style", f"{target}: {name}")
                    if name in {"href", "src", "action"}:
                        self.assertRegex(value, r"^[/#](?!/)", target)
                link = element.get("href", "").split("#")[0]
                kind = link.split("?")[0].split("/")[1] if link else ""
                # Pages of one kind are alike: some of each are enough.
                if element.tag != "a" or not link or link in seen or kinds.get(kind, 0) == 25:
                    continue
                kinds[kind] = kinds.get(kind, 0) + 1
                seen.add(link)
                open_pages.append(link)
        for kind in ["", "tasks", "task", "variant", "group", "diff", "failures", "cluster"]:
            self.assertGreater(kinds.get(kind, 0), 0, f"no link leads to /{kind}")

    def test_the_best_variants_are_those_of_the_commands(self):
        report = json.loads(hone("report", self.run_folder, "--json"))
        served = json.loads(self.get("/api/report")[2])
        for key in ["tasks", "stages", "comparison", "judged", "samples"]:
            self.assertEqual(report[key], served[key], key)
        top = [
            json.loads(line)
            for line in hone(
                "pool", "top", "-n", 1, "--json", "--pool", self.run_folder
            ).splitlines()
        ]
        best = {(row["task"], row["device_type"]): row for row in top}
        rows = [
            [(cell.itertext(), cell) for cell in row] for row in self.page("/tasks").iter("tr")
        ][1:]
        self.assertEqual(len(rows), len(report["tasks"]))
        for cells in rows:
            texts = ["".join(content) for content, _ in cells]
            known = best[texts[0], texts[1]]
            self.assertEqual(texts[-1], known["variant"][:10])
            self.assertAlmostEqual(float(texts[4].rstrip("x")) / known["speedup"], 1, places=1)

    def test_a_variant_is_the_one_of_the_command(self):
        line = hone("pool", "ls", "--json", "--limit", 1, "--pool", self.run_folder)
        listed = json.loads(line.splitlines()[0])
        shown = json.loads(
            hone("pool", "show", listed["variant"], "--json", "--pool", self.run_folder)
        )
        served = json.loads(self.get(f"/api/variant/{listed['variant'][:12]}")[2])
        self.assertEqual(shown, served)
        self.assertIsInstance(shown["evaluations"][0]["seed"], str)
        for rollout in shown["rollouts"]:
            self.assertEqual(len(rollout["tokens"]), len(rollout["log_probabilities"]))
        text = "".join(self.page(f"/variant/{listed['variant']}").itertext())
        self.assertIn(shown["python"].splitlines()[0].strip(), text)

    def test_descendants_were_shown_their_ancestor(self):
        rows = [
            json.loads(line)
            for line in hone("pool", "export", "--pool", self.run_folder).splitlines()
        ]
        children = {}
        for row in rows:
            for rollout in row["rollouts"]:
                for exemplar in rollout["exemplars"]:
                    children.setdefault(exemplar["variant"], set()).add(row["variant"])
        shown = max(children, key=lambda one: len(children[one]))
        found = json.loads(hone("pool", "descendants", shown, "--json", "--pool", self.run_folder))
        self.assertEqual(
            {one["variant"] for one in found["descendants"]}, children[shown] - {shown}
        )

    def test_find_leads_to_tasks_and_variants(self):
        status, headers, _ = self.get("/find?q=softmax")
        self.assertEqual((status, headers["Location"]), (303, "/task/softmax"))
        listed = json.loads(
            hone("pool", "ls", "--json", "--limit", 1, "--pool", self.run_folder).splitlines()[0]
        )
        status, headers, _ = self.get(f"/find?q={listed['variant'][:10]}")
        self.assertEqual((status, headers["Location"]), (303, f"/variant/{listed['variant']}"))
        # A part of one task's name, spaces as forms send them, a group's id.
        status, headers, _ = self.get("/find?q=+oftma+")
        self.assertEqual((status, headers["Location"]), (303, "/task/softmax"))
        _, _, text = self.get(f"/variant/{listed['variant']}")
        group = re.search(r'href="/group/([0-9a-f]{32})"', text).group(1)
        status, headers, _ = self.get(f"/find?q={group[:14]}")
        self.assertEqual((status, headers["Location"]), (303, f"/group/{group}"))
        self.page(f"/group/{group[:14]}")
        # A part of several names lists them; nothing is an error that says what to give.
        listing = self.page("/find?q=a")
        targets = {link.get("href") for link in listing.iter("a")}
        self.assertLessEqual({"/task/softmax", "/task/layer_norm"}, targets)
        for nothing in ["/find?q=", "/find?q=no+such+task"]:
            self.assertEqual(self.get(nothing)[0], 404)

    def test_any_two_variants_are_compared(self):
        first, second = (
            json.loads(line)["variant"]
            for line in hone(
                "pool", "ls", "--json", "--limit", 2, "--pool", self.run_folder
            ).splitlines()[:2]
        )
        status, headers, _ = self.get(f"/compare?before={first[:12]}&after={second}")
        self.assertEqual((status, headers["Location"]), (303, f"/diff/{first[:12]}/{second}"))
        for before, after in [(first, second), ("reference", first), (first, "reference")]:
            self.page(f"/diff/{before}/{after}")

    def test_filters_that_mean_nothing_are_refused(self):
        for target in ["/failures?outcome=foo", "/task/softmax?outcome=foo", "/tasks?sort=foo"]:
            status, _, text = self.get(target)
            self.assertEqual(status, 404, target)
            self.assertIn("foo", text)
        for target in ["/find?q=%00", "/variant/%00", "/task/a%0a", "/task/softmax?on=%07"]:
            self.assertEqual(self.get(target)[0], 400, target)
        # Rows after the last are the last page's.
        self.assertIn("/variant/", self.get("/task/softmax?from=9999")[2])

    def test_what_the_run_lacks_is_named_as_text(self):
        wanted = urllib.parse.quote(HOSTILE)
        for target in [
            f"/task/{wanted}",
            f"/variant/{wanted}",
            f"/find?q={wanted}",
            f"/group/{wanted}",
            f"/diff/{wanted}/{wanted}",
            f"/{wanted}",
            "/task/a/b",
            "/variant",
            "/diff/x",
        ]:
            status, _, text = self.get(target)
            self.assertEqual(status, 404, target)
            self.assertNotIn("<script>alert", text)
            self.assertNotIn("<img", text)
            self.assertNotIn("\u202e", text)
            well_formed(text)
        for target in [
            "/task/softmax?from=99999999999999999999&version=x&outcome=",
            "/tasks?from=-1&on=nowhere",
            "/failures?from=<b>",
        ]:
            self.page(target)
        status, _, text = self.get("/api/nothing")
        self.assertEqual(status, 404)
        self.assertIn("message", json.loads(text)["error"])

    def test_only_the_owner_reads_pages(self):
        link = f"/?token={self.token}"
        status, headers, _ = self.get(link, Cookie=None)
        self.assertEqual((status, headers["Location"]), (303, "/"))
        self.assertIn("HttpOnly; SameSite=Strict", headers["Set-Cookie"])
        for refused in [
            self.get("/", Cookie=None),
            self.get("/", Cookie=f"hone-{self.port}=wrong"),
            self.get("/style.css", Cookie=None),
            self.get("/?token=wrong", Cookie=None),
        ]:
            self.assertEqual(refused[0], 401)
        self.assertEqual(self.get("/", Host="evil.example")[0], 421)
        self.assertEqual(self.get("/", Host=f"evil.example:{self.port}")[0], 421)
        self.assertEqual(self.get("/", Host=f"127.0.0.1.evil.example:{self.port}")[0], 421)
        self.assertEqual(self.get("/", Host="127.0.0.1:1")[0], 421)
        self.assertEqual(self.get("/", Origin="http://evil.example")[0], 403)
        self.assertEqual(self.get("/", Sec_Fetch_Site="cross-site")[0], 403)
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"]:
            self.assertEqual(self.get("/", method=method)[0], 405, method)
        status, headers, text = self.get("/", method="HEAD")
        self.assertEqual((status, text), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 1000)

    def test_other_addresses_than_loopback_are_refused(self):
        done = subprocess.run(
            [HONE, "ui", str(self.run_folder), "--listen", "0.0.0.0:0"],
            capture_output=True,
            text=True,
            timeout=viewer.LIMIT_S,
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("ssh -L", done.stderr)

    def test_a_unix_socket_serves_its_user_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ui.sock")
            for attempt in range(2):  # the file of a killed server is replaced
                served = subprocess.Popen(
                    [HONE, "ui", str(self.run_folder), "--listen", f"unix:{path}"],
                    stdout=subprocess.PIPE,
                    text=True,
                )
                link = urllib.parse.urlsplit(served.stdout.readline().strip())
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                for host, status in [("localhost", 303), ("127.0.0.1:99", 303), ("a.example", 421)]:
                    client = http.client.HTTPConnection("localhost")
                    client.sock = socket.socket(socket.AF_UNIX)
                    client.sock.connect(path)
                    client.request("GET", f"/?{link.query}", headers={"Host": host})
                    self.assertEqual(client.getresponse().status, status, host)
                    client.close()
                served.kill()
                served.wait()
                served.stdout.close()
                self.assertTrue(os.path.exists(path), attempt)

    def test_hostile_clients_leave_it_answering(self):
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(300)]
        for i, one in enumerate(idle):
            try:
                one.sendall(
                    [
                        b"GET /" + b"a" * 9000,
                        b"\x16\x03\x01\x02\x00",
                        b"GET / HTTP/1.1\r\n",
                        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789",
                    ][i % 4]
                )
            except OSError:
                pass
        begin = time.monotonic()
        self.assertEqual(self.get("/tasks")[0], 200)
        self.assertLess(time.monotonic() - begin, 5)
        for one in idle:
            one.close()

    def test_a_report_is_one_small_file_without_scripts(self):
        file = pathlib.Path(self.folder.name) / "report.html"
        hone("report", self.run_folder, "--html", file)
        text = file.read_text()
        self.assertLess(len(text), 2_000_000)
        root = well_formed(text.replace('<meta charset="utf-8"/>', "", 1))
        tags = {element.tag for element in root.iter()}
        self.assertFalse(tags & {"script", "link", "img", "iframe", "object"})
        for element in root.iter():
            self.assertNotIn("src", element.attrib)
            self.assertTrue(element.get("href", "#").startswith("#"))
        report = json.loads(hone("report", self.run_folder, "--json"))
        content = "".join(root.itertext())
        for row in report["tasks"]:
            if row.get("best"):
                self.assertIn(row["best"][:10], content)
        two = pathlib.Path(self.folder.name) / "two.html"
        hone("report", self.run_folder, self.run_folder, "--html", two)
        self.assertIn("Hone: 2 runs", two.read_text())

    def test_lists_are_sorted_and_bounded(self):
        lines = hone("pool", "ls", "--pool", self.run_folder, "--task", "softmax").splitlines()
        self.assertRegex(lines[0], r"^variant +task +outcome +speed-up +measured +device type")
        scores = [
            float(found[1]) if (found := re.search(r"([0-9.]+)x ", line)) else 0
            for line in lines[1:]
            if "simulated-a" in line
        ]
        self.assertEqual(scores, sorted(scores, reverse=True))
        limited = hone("pool", "ls", "--pool", self.run_folder, "--limit", 3).splitlines()
        self.assertEqual(len(limited), 5)
        self.assertRegex(limited[-1], r"^and \d+ more")
        self.assertEqual(hone("pool", "ls", "--pool", self.run_folder, "--since", "1s"), "")


if __name__ == "__main__":
    HONE = sys.argv.pop(1)
    unittest.main()
