"""Tests monitoring/ with Debian's Prometheus and a real run: monitoring_test.py HONE

A run with simulated devices and a joined node are scraped for a few seconds. Every expression of
the dashboard must then have an answer, and every expression of the alerts must be valid.
"""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
HONE = ""  # the program, an argument of the test
LIMIT_S = 60  # for everything that the test waits for

# Slow enough to leave a core to other tests. The run does not end.
RUN = """
directory = "run"
trace = false
[node]
devices = ["simulated:a"]
metrics = "127.0.0.1:0"
[tasks]
folder = "%TASKS%"
names = ["softmax", "layer_norm"]
[policy]
kind = "scripted"
[generation]
group_size = 8
[pool]
max_groups = 16
[sft]
updates = 0
[self_supervised]
steps = 2
groups = 4
rate = 1e-4
[contrastive]
steps = 1000000
groups = 4
rate = 1e-4
[simulated.a]
verify_us = 1000
measure_us = 20000
"""
PROMETHEUS = """
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: ["%RULES%"]
scrape_configs:
  - job_name: hone
    static_configs:
      - targets: [%TARGETS%]
"""
# What Grafana puts in for its variables.
VARIABLES = {
    "$__rate_interval": "1m",
    "$instance": ".*",
    "$device_type": ".*",
    "$job": "hone",
}


def wait_for(what, find):
    """Returns the first true result of find(), or fails."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if found := find():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {LIMIT_S} s")


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def process(log, *command):
    with (
        open(log, "w") as out,
        subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=subprocess.STDOUT
        ) as child,
    ):
        try:
            yield child
        finally:
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()


def metrics_url(log):
    def find():
        return re.search(r"metrics at (http://\S+)", log.read_text())

    try:
        return wait_for(f"metrics in {log}", find)[1]
    except AssertionError as failed:
        raise AssertionError(log.read_text()) from failed


def dashboard_expressions():
    board = json.loads((MONITORING / "grafana.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression


def setUpModule():
    if not HONE:
        raise unittest.SkipTest("names no program")
    if shutil.which("promtool") and shutil.which("prometheus"):
        return
    # In the form in which tests/skipped.py finds it.
    print(f"{__file__}:1: Skipped\nPrometheus is not installed: scripts/setup --tests", flush=True)
    raise unittest.SkipTest("Prometheus is not installed")


class Rules(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(
            ["promtool", *arguments], capture_output=True, text=True, cwd=MONITORING, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_are_valid(self):
        self.promtool("check", "rules", "alerts.yml")

    def test_fire_and_do_not_fire(self):
        self.promtool("test", "rules", "alerts_test.yml")

    def test_each_alert_has_a_test_that_fires_and_one_that_does_not(self):
        alerts = re.findall(r"alert: (\w+)", (MONITORING / "alerts.yml").read_text())
        self.assertEqual(len(alerts), 6)
        tests = re.split(r"\n  - name: ", (MONITORING / "alerts_test.yml").read_text())
        for alert in alerts:
            ours = [test for test in tests if f"alertname: {alert}\n" in test]
            self.assertEqual({"exp_alerts" in test for test in ours}, {True, False}, alert)


class ScrapedRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

        def start(*command):
            cls.enterClassContext(process(*command))

        (folder / "run.toml").write_text(RUN.replace("%TASKS%", f"{ROOT}/configs/tasks"))
        start(folder / "run.log", HONE, "run", folder / "run.toml", "--dir", folder / "run")
        head = metrics_url(folder / "run.log")
        address = folder / "run" / "address"
        wait_for("the run's address", address.exists)
        node = ("--devices", "simulated:a", "--name", "second", "--metrics", "127.0.0.1:0")
        start(folder / "node.log", HONE, "node", "--join", address, *node)
        cls.urls = [head, metrics_url(folder / "node.log")]
        wait_for("the node's report", lambda: 'node="second"' in get(head))
        targets = ", ".join(f'"{urllib.parse.urlparse(url).netloc}"' for url in cls.urls)
        (folder / "prometheus.yml").write_text(
            PROMETHEUS.replace("%TARGETS%", targets).replace(
                "%RULES%", str(MONITORING / "alerts.yml")
            )
        )
        cls.prometheus = f"http://127.0.0.1:{free_port()}"
        start(
            folder / "prometheus.log",
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={urllib.parse.urlparse(cls.prometheus).netloc}",
        )
        wait_for("two scrapes with a rate", cls.has_scraped)

    @classmethod
    def query(cls, expression):
        encoded = urllib.parse.urlencode({"query": expression})
        return json.loads(get(f"{cls.prometheus}/api/v1/query?{encoded}"))

    @classmethod
    def has_scraped(cls):
        try:
            answer = cls.query("count(rate(hone_work_processed_total[1m])) by (instance)")
        except OSError:
            return False
        return len(answer["data"]["result"]) == 2

    def test_every_target_is_up(self):
        result = self.query("up")["data"]["result"]
        self.assertEqual([one["value"][1] for one in result], ["1", "1"])

    def test_the_exposition_is_clean(self):
        for url in self.urls:
            done = subprocess.run(
                ["promtool", "check", "metrics"],
                input=get(url),
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_joined_node_serves_its_own_actors(self):
        head, node = (get(url) for url in self.urls)
        self.assertIn("hone_queue_items", head)
        self.assertNotIn("hone_queue_items", node)
        self.assertIn('hone_actors{room="compiler"} 1', head)
        self.assertIn('hone_actors{room="compiler"} 1', node)
        self.assertEqual(get(self.urls[1].replace("/metrics", "/healthz")), "ok\n")

    def test_every_expression_of_the_dashboard_has_an_answer(self):
        expressions = list(dashboard_expressions())
        self.assertGreater(len(expressions), 20)

        def unanswered():
            return [
                f"{title}: {expression}"
                for title, expression in expressions
                if not self.query(expression)["data"]["result"]
            ]

        with contextlib.suppress(AssertionError):
            wait_for("answers", lambda: not unanswered())
        self.assertEqual(unanswered(), [])

    def test_every_expression_of_the_alerts_is_evaluated(self):
        def rules():
            groups = json.loads(get(f"{self.prometheus}/api/v1/rules"))["data"]["groups"]
            return [rule for group in groups for rule in group["rules"]]

        wait_for("rules", lambda: all(rule["health"] != "unknown" for rule in rules()))
        found = rules()
        self.assertEqual(len(found), 7)
        for rule in found:
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
            self.assertEqual(self.query(rule["query"])["status"], "success")
            self.assertNotEqual(rule.get("state"), "firing", rule["name"])


if __name__ == "__main__":
    HONE = sys.argv.pop(1)
    unittest.main()
