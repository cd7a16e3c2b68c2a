"""Tests of scripts/campaign, with a program in the place of hone that only writes its files."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "campaign"
loader = importlib.machinery.SourceFileLoader("campaign", str(SCRIPT))
campaign = importlib.util.module_from_spec(importlib.util.spec_from_loader("campaign", loader))
loader.exec_module(campaign)

# Stops its first start of an arm, and writes the arm's worth into a report after it was resumed.
FAKE = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
folder = pathlib.Path(words[words.index("--dir") + 1])
arm = folder.name.split("-")[0]
folder.mkdir(exist_ok=True)
(folder / "pool").write_text("judged by " + arm if arm == "sft" else (folder / "pool").read_text())
with open(folder.parent / "calls", "a") as calls:
    calls.write(" ".join(words) + chr(10))
if "fail=1" in words:
    sys.exit(2)
if "--resume" not in words:
    (folder / "config.toml").write_text("")
    sys.exit(3)
worth = {{"none": 0.1, "exemplars": 0.5, "shuffled": 0.2, "sft": 0.0}}[arm]
one = lambda add: {{"log_speedup": worth + add, "log_speedup_of_best": worth + 1}}
tasks = [{{"task": str(k), **one(k / 10), "greedy": one(0), "bare": one(-2),
          "without_copies": one(-1)}} for k in range(8)]
(folder / "report.json").write_text(json.dumps({{"held_out": [{{"tasks": []}}, {{"tasks": tasks}}]}}))
"""


def report(by_task):
    tasks = [{"task": name, "log_speedup": value} for name, value in by_task.items()]
    return {"held_out": [{"tasks": tasks}]}


class Campaign(unittest.TestCase):
    def start(self, folder, *options):
        config = pathlib.Path(folder) / "some.toml"
        config.write_text("[contrastive]\nsteps = 6\n")
        hone = pathlib.Path(folder) / "hone"
        hone.write_text(FAKE.format(python=sys.executable))
        hone.chmod(0o755)
        return subprocess.run(
            [sys.executable, "-B", str(SCRIPT), str(config), f"{folder}/out", *options],
            env={**os.environ, "HONE": str(hone)},
            capture_output=True,
            text=True,
        )

    def test_goes_on_where_it_was_stopped_and_compares_all_arms(self):
        with tempfile.TemporaryDirectory() as folder:
            codes = [self.start(folder, "--seeds", "2", "--set", "a.b=1").returncode]
            while codes[-1] == campaign.STOPPED and len(codes) < 20:
                codes.append(self.start(folder, "--seeds", "2", "--set", "a.b=1").returncode)
            # The base is stopped, and then all arms in one call.
            self.assertEqual(codes, [campaign.STOPPED] * 2 + [0])
            calls = pathlib.Path(folder, "out", "calls").read_text().splitlines()
            starts = [c for c in calls if "--resume" not in c]
            self.assertEqual(len(starts), 1 + 6)
            self.assertNotIn("--extend", starts[0])
            self.assertIn("contrastive.rate=1e-12", starts[0])
            self.assertEqual(sum("a.b=1" in c for c in starts), 7)
            self.assertEqual(sum("--extend contrastive.steps=5" in c for c in starts), 6)
            self.assertEqual(sum("seed=2" in c for c in starts), 3)
            self.assertEqual(sum('pool.exemplars="none"' in c for c in starts), 2)
            self.assertEqual(sum("pool.shuffle_scores=true" in c for c in starts), 2)
            pool = pathlib.Path(folder, "out", "shuffled-2", "pool").read_text()
            self.assertEqual(pool, "judged by sft")
            printed = self.start(folder, "--seeds", "2").stdout
            self.assertIn("| exemplars less none | | 0.400 [0.400, 0.400] |", printed)
            self.assertIn("| exemplars less sft | | 0.500 [0.500, 0.500] |", printed)
            rows = [line for line in printed.splitlines() if "sft without exemplars | 1" in line]
            self.assertIn("| - | -2.000 [-2.000, -2.000] | 1.000 [1.000, 1.000] |", rows[0])

    def test_runs_an_arm_on_each_device(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ["--seeds", "2", "--devices", "cuda:0", "cuda:1"]
            while self.start(folder, *options).returncode == campaign.STOPPED:
                pass
            calls = pathlib.Path(folder, "out", "calls").read_text().splitlines()
            starts = [c for c in calls if "--resume" not in c]
            self.assertIn('node.devices=["cuda:0", "cuda:1"]', starts[0])
            for device in ("cuda:0", "cuda:1"):
                own = [c for c in starts if f'node.devices=["{device}"]' in c]
                self.assertEqual(sum(f'policy.device="{device}"' in c for c in own), len(own))
                self.assertGreater(len(own), 0)

    def test_stops_at_a_run_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = self.start(folder, "--set", "fail=1")
            self.assertEqual(ended.returncode, 1)
            self.assertIn("sft.log", ended.stderr)
            self.assertEqual(len(pathlib.Path(folder, "out", "calls").read_text().splitlines()), 1)

    def test_averages_seeds_before_it_compares_tasks(self):
        reports = [report({"a": 1.0, "b": 3.0}), report({"a": 2.0, "b": 5.0})]
        self.assertEqual(campaign.scores_of(reports, "samples"), {"a": 1.5, "b": 4.0})
        self.assertEqual(campaign.scores_of(reports, "greedy"), {})

    def test_intervals_cover_the_mean_of_tasks(self):
        mean, low, high = campaign.interval([0.0, 1.0] * 50)
        self.assertEqual(mean, 0.5)
        self.assertTrue(0.38 < low < 0.44 and 0.56 < high < 0.62, (low, high))
        self.assertEqual(campaign.interval([0.3] * 5), (0.3, 0.3, 0.3))

    def test_its_table_leaves_out_arms_without_a_run(self):
        text = campaign.table({"none": [], "exemplars": [report({"a": 1.0})]})
        self.assertNotIn("none", text)
        self.assertEqual(json.dumps(text).count("exemplars"), 1)


if __name__ == "__main__":
    unittest.main()
