"""A short run of simulated devices and the program that shows it, for the tests of the pages."""

import pathlib
import subprocess
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 60

RUN = """
directory = "run"
trace = false
[node]
devices = ["simulated:a", "simulated:b"]
[tasks]
folder = "%TASKS%"
names = ["softmax", "layer_norm"]
[policy]
kind = "scripted"
[generation]
group_size = 8
[pool]
max_groups = 16
max_lag = 4
[sft]
updates = 0
[self_supervised]
steps = 2
groups = 4
rate = 1e-4
[contrastive]
steps = 6
groups = 4
rate = 1e-4
one_per_task = false
[comparison]
samples = 4
[simulated.a]
verify_us = 100
measure_us = 300
[simulated.b]
verify_us = 100
measure_us = 500
"""


def hone(program, *words):
    done = subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, f"hone {words}: {done.stdout}\n{done.stderr}"
    return done.stdout


def start_viewer(program, run):
    """Returns the process, the port and the token that it prints."""
    viewer = subprocess.Popen([program, "ui", str(run)], stdout=subprocess.PIPE, text=True)
    link = urllib.parse.urlsplit(viewer.stdout.readline().strip())
    return viewer, link.port, urllib.parse.parse_qs(link.query)["token"][0]


def make_run(program, home, name, *more):
    """Returns the directory of a finished run."""
    config = home / "ui.toml"
    config.write_text(RUN.replace("%TASKS%", str(ROOT / "configs/tasks")))
    hone(program, "run", config, "--dir", home / name, *more)
    return home / name
