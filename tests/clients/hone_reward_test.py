"""Tests of clients/hone_reward.py, with a server whose answers the tests write."""

import asyncio
import http.server
import json
import os
import sys
import threading
import unittest

sys.path.insert(
    0,
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients"),
)
import hone_reward

DOCUMENT = "## Performance Analysis\nNone.\n## Code Implementation\n```python\npass\n```\n"
MODULE = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def result(outcome="ok", speedup=2.0, conclusive=True, kind=""):
    return {
        "outcome": outcome,
        "kind": kind,
        "message": "",
        "speedup": speedup if outcome == "ok" else None,
        "conclusive": conclusive,
    }


class Server:
    """answer: a function of (method, path, body, headers) that returns (status, JSON)."""

    def __init__(self, answer):
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                outer.requests.append((self.command, self.path, body, dict(self.headers)))
                status, answered = answer(len(outer.requests), *outer.requests[-1])
                text = json.dumps(answered).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return f"http://127.0.0.1:{self.http.server_port}"

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


def done(*results):
    return 200, {"id": "a", "state": "done", "results": list(results)}


class HoneRewardTest(unittest.TestCase):
    def test_waits_for_a_judgement(self):
        def answer(count, method, path, *_):
            if count < 3:
                return 202, {"id": "a1", "state": "waiting"}
            self.assertEqual((method, path), ("GET", "/v1/judge/a1?wait_s=30"))
            return done(result())

        server = Server(answer)
        with server as url:
            judged = hone_reward.Hone(url, "secret").judge("softmax", [DOCUMENT])
        self.assertEqual(judged[0]["speedup"], 2.0)
        method, path, body, headers = server.requests[0]
        self.assertEqual((method, path), ("POST", "/v1/judge"))
        self.assertEqual(headers["Authorization"], "Bearer secret")
        self.assertEqual(body["task"], "softmax")
        self.assertEqual(body["programs"], [DOCUMENT])

    def test_asks_again_under_the_same_id_when_the_server_is_away_or_busy(self):
        server = Server(
            lambda count, *_: (503, {"error": {"message": "busy"}}) if count < 3 else done(result())
        )
        with server as url:
            hone_reward.Hone(url).judge("t", [DOCUMENT])
        self.assertEqual(len({body["id"] for _, _, body, _ in server.requests}), 1)

    def test_says_why_a_request_is_refused(self):
        server = Server(lambda *_: (404, {"error": {"message": "there is no task 't'"}}))
        with server as url, self.assertRaisesRegex(hone_reward.HoneError, "no task 't'"):
            hone_reward.Hone(url).judge("t", [DOCUMENT])

    def test_gives_up_in_time(self):
        with self.assertRaises(hone_reward.HoneError):
            hone_reward.Hone("http://127.0.0.1:9", timeout_s=0.1).judge("t", [DOCUMENT])

    def test_judges_again_what_is_not_conclusive_and_only_that(self):
        def answer(count, method, path, body, *_):
            unclear = result("unstable", conclusive=False)
            if count == 1:
                return done(result(), unclear, result("wrong_result"))
            self.assertEqual(body["programs"], ["b"])
            return done(unclear if count == 2 else result(speedup=4.0))

        with Server(answer) as url:
            judged = hone_reward.Hone(url).judge("t", ["a", "b", "c"])
        self.assertEqual([r["speedup"] for r in judged], [2.0, 4.0, None])

    def test_splits_large_batches(self):
        server = Server(
            lambda count, method, path, body, *_: done(*[result()] * len(body["programs"]))
        )
        with server as url:
            judged = hone_reward.Hone(url).judge("t", ["a"] * 600)
        self.assertEqual(len(judged), 600)
        self.assertEqual([len(r[2]["programs"]) for r in server.requests], [256, 256, 88])

    def test_sends_modules_as_python_and_does_not_repeat_what_is_unsupported(self):
        unsupported = result("unparsable", conclusive=False, kind="unsupported")
        server = Server(lambda *_: done(unsupported))
        with server as url:
            judged = hone_reward.Hone(url).judge("t", [MODULE])
        self.assertEqual(server.requests[0][2]["programs"], [{"text": MODULE, "kind": "python"}])
        self.assertEqual(len(server.requests), 1)
        self.assertFalse(judged[0]["conclusive"])

    def test_takes_programs_as_requests_have_them(self):
        program = {"text": MODULE, "kind": "python"}
        self.assertEqual(hone_reward.as_program(program), program)
        self.assertEqual(hone_reward.as_program(MODULE), program)

    def test_finds_the_program_in_an_answer(self):
        self.assertEqual(hone_reward.program_of(DOCUMENT), DOCUMENT)
        text = f"First\n```python\nx = 1\n```\nthen\n```python\n{MODULE}```\nDone."
        self.assertEqual(hone_reward.program_of(text), MODULE)
        messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
        self.assertEqual(hone_reward.program_of(messages), MODULE)

    def test_rewards_grow_with_the_speed_up(self):
        rewards = [hone_reward.score_reward(result(speedup=s)) for s in (0.01, 1.0, 2.0, 4.0)]
        self.assertEqual(rewards, [0.2, 1.0, 2.0, 3.0])
        self.assertEqual(hone_reward.score_reward(result("cheating")), 0.0)

    def test_serves_verl(self):
        with Server(lambda *_: done(result())) as url:
            os.environ["HONE_URL"] = url
            hone_reward._default.__dict__.clear()
            score = hone_reward.compute_score("kernels", DOCUMENT, '{"module": "m"}', None)
        self.assertEqual(score, {"score": 2.0, "ok": 1.0, "speedup": 2.0})
        with Server(lambda *_: done(result("infrastructure", conclusive=False))) as url:
            os.environ["HONE_URL"] = url
            hone_reward._default.__dict__.clear()
            with self.assertRaises(hone_reward.HoneError):
                hone_reward.compute_score("kernels", DOCUMENT, "softmax")

    def test_serves_trl_with_one_request_per_task(self):
        def answer(count, method, path, body, *_):
            return done(
                *[result(speedup=1.0 if body["task"] == "a" else 2.0)] * len(body["programs"])
            )

        server = Server(answer)
        with server as url:
            reward = hone_reward.trl_reward(hone_reward.Hone(url))
            chat = [[{"role": "assistant", "content": DOCUMENT}]] * 3
            scored = reward(prompts=["?"] * 3, completions=chat, task=["a", "b", "a"])
        self.assertEqual(scored, [1.0, 2.0, 1.0])
        self.assertEqual(len(server.requests), 2)
        with Server(lambda *_: done(result("unstable", conclusive=False))) as url:
            reward = hone_reward.trl_reward(hone_reward.Hone(url))
            self.assertEqual(reward(prompts=["?"], completions=[DOCUMENT], task=["a"]), [None])

    def test_serves_verifiers(self):
        with Server(lambda *_: done(result())) as url:
            reward = hone_reward.verifiers_reward(hone_reward.Hone(url))
            value = asyncio.run(reward(completion=DOCUMENT, answer="softmax", info={}, state={}))
        self.assertEqual(value, 2.0)


if __name__ == "__main__":
    unittest.main()
