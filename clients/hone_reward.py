"""Scores programs with a Hone server (`hone serve`): a reward for verl, TRL and verifiers.

One file without dependencies: copy it, or put its folder on PYTHONPATH. The environment variables
HONE_URL (http://127.0.0.1:8470 by default) and HONE_TOKEN name the server.

    from hone_reward import Hone
    hone = Hone()
    for result in hone.judge("softmax", [open("my_variant.md").read()]):
        print(result["outcome"], result["speedup"])

A task is the name or id of one that the server has, or a dict: {"toml": a task file} or
{"module": the source of a PyTorch module in KernelBench's form}.

Results that are not conclusive (the machine failed, or was too noisy) say nothing of the program.
They are judged again, and in the end reported as None or by an exception, so that no trainer
learns from them. So are programs in Python that Hone cannot judge.

A program is a variant document, or Python with a class ModelNew in KernelBench's form.
"""

import asyncio
import json
import math
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

MAX_PROGRAMS = 256  # of one request
MAX_WAIT_S = 60  # of one answer
WARNING_S = 10  # until a server that does not answer is mentioned
ATTEMPTS = 3  # until a result that is not conclusive is given up


class HoneError(Exception):
    """The server cannot judge: it is away, refuses the request, or is not conclusive."""


class Hone:
    """A server. May be used by several threads.

    timeout_s: how long a call of judge() waits for its results.
    """

    def __init__(self, url=None, token=None, timeout_s=3600):
        self.url = (url or os.environ.get("HONE_URL") or "http://127.0.0.1:8470").rstrip("/")
        self.token = token or os.environ.get("HONE_TOKEN")
        self.timeout_s = timeout_s

    def judge(self, task, programs, want="score", device_type=None, priority="normal"):
        """Returns one result per program, a dict as doc/serving.md describes it.

        want: "score", or "verdict" for correctness alone. Raises HoneError if the server refuses
        the request, or has not answered in time.
        """
        results = [None] * len(programs)
        missing = range(len(programs))
        for _ in range(ATTEMPTS):
            for begin in range(0, len(missing), MAX_PROGRAMS):
                chosen = missing[begin : begin + MAX_PROGRAMS]
                request = {
                    "task": task,
                    "programs": [as_program(programs[i]) for i in chosen],
                    "want": want,
                    "priority": priority,
                }
                if device_type:
                    request["device_type"] = device_type
                for i, result in zip(chosen, self._judge_some(request)):
                    results[i] = result
            missing = [
                i
                for i in missing
                if not results[i]["conclusive"] and results[i]["kind"] != "unsupported"
            ]
            if not missing:
                break
        return results

    def put_task(self, task):
        """Hands in a task, {"toml": ...} or {"module": ...}; returns what the server says of it."""
        return self._call("PUT", "/v1/tasks", task, time.monotonic() + self.timeout_s)

    def status(self):
        return self._call("GET", "/v1/status", None, time.monotonic() + 30)

    def _judge_some(self, request):
        deadline = time.monotonic() + self.timeout_s
        # With an id of ours, a request that is sent again after a lost answer is the same one.
        request = dict(request, id=uuid.uuid4().hex, wait_s=MAX_WAIT_S / 2)
        answer = self._call("POST", "/v1/judge", request, deadline)
        while answer["state"] == "waiting":
            if time.monotonic() > deadline:
                self._call("DELETE", "/v1/judge/" + answer["id"], None, time.monotonic() + 10)
                raise HoneError(f"no result within {self.timeout_s} s")
            path = f"/v1/judge/{answer['id']}?wait_s={MAX_WAIT_S / 2:g}"
            answer = self._call("GET", path, None, deadline)
        if answer["state"] != "done":
            raise HoneError(f"the request was {answer['state']}")
        return answer["results"]

    def _call(self, method, path, body, deadline):
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        pause = 0.5
        begin = time.monotonic()
        is_warned = False
        while True:
            try:
                with urllib.request.urlopen(request, timeout=2 * MAX_WAIT_S) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                problem = _message_of(error)
                if error.code not in (429, 503):
                    raise HoneError(f"{method} {path}: {problem}") from None
                pause = max(pause, float(error.headers.get("Retry-After") or 0))
            except (OSError, ValueError) as error:
                problem = str(error)
            if not is_warned and time.monotonic() - begin > WARNING_S:
                is_warned = True
                print(
                    f"hone_reward: {self.url} does not answer ({problem}); trying again",
                    file=sys.stderr,
                )
            if time.monotonic() + pause > deadline:
                raise HoneError(f"{self.url} does not answer: {problem}")
            time.sleep(pause)
            pause = min(30.0, 2 * pause)


def _message_of(error):
    try:
        return json.load(error)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return f"HTTP status {error.code}"


def score_reward(result):
    """Returns a reward: 0 for a program that is not ok, 1 for one that is as fast as the reference,
    one more each time that it is twice as fast, and at least 0.2 for a slow one.
    """
    if result["outcome"] != "ok":
        return 0.0
    return max(0.2, 1.0 + math.log2(result["speedup"])) if result["speedup"] else 1.0


def program_of(answer):
    """Returns the program in a model's answer, a text or the messages of a chat: the answer itself
    if it is a document, or else what its last fence holds.
    """
    text = answer
    if isinstance(answer, list):
        text = answer[-1]["content"] if answer else ""
    if "## Code Implementation" in text:
        return text
    fences = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return fences[-1] if fences else text


def as_program(text):
    """Returns a program as a request has it: Python if it has a ModelNew and is no document. A
    program that is a dict already stays as it is.
    """
    if isinstance(text, dict):
        return text
    if "## Code Implementation" not in text and re.search(r"^class ModelNew\b", text, re.MULTILINE):
        return {"text": text, "kind": "python"}
    return text


def _rewards(hone, task, completions, reward, want):
    results = hone.judge(task, [program_of(one) for one in completions], want)
    return [reward(one) if one["conclusive"] else None for one in results]


_default = threading.local()


def _default_server():
    if not hasattr(_default, "hone"):
        _default.hone = Hone()
    return _default.hone


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """verl: custom_reward_function.path=hone_reward.py. The ground truth of a sample is its task.

    Raises HoneError if the result is not conclusive, because verl has no way to leave one out.
    """
    del data_source, extra_info
    task = json.loads(ground_truth) if ground_truth.lstrip().startswith("{") else ground_truth
    result = _default_server().judge(task, [program_of(solution_str)])[0]
    if not result["conclusive"]:
        raise HoneError(f"{result['outcome']}: {result['message']}")
    return {
        "score": score_reward(result),
        "ok": float(result["outcome"] == "ok"),
        "speedup": result["speedup"] or 0.0,
    }


def trl_reward(hone=None, column="task", reward=score_reward, want="score"):
    """Returns a reward function for TRL's GRPOTrainer, whose data set has the task in a column."""

    def hone_reward(prompts, completions, **columns):
        del prompts
        tasks = columns[column]
        rewards = [None] * len(completions)
        by_task = {}
        for i, task in enumerate(tasks):
            by_task.setdefault(json.dumps(task, sort_keys=True), []).append(i)
        for members in by_task.values():
            scored = _rewards(
                hone or _default_server(),
                tasks[members[0]],
                [completions[i] for i in members],
                reward,
                want,
            )
            for i, value in zip(members, scored):
                rewards[i] = value
        return rewards

    return hone_reward


def verifiers_reward(hone=None, reward=score_reward, want="score"):
    """Returns a reward function for a Rubric of verifiers. The answer of a sample is its task."""

    async def hone_reward(completion, answer, **_):
        server = hone or _default_server()
        value = (await asyncio.to_thread(_rewards, server, answer, [completion], reward, want))[0]
        if value is None:
            raise HoneError("the result is not conclusive")
        return value

    return hone_reward
