#!/usr/bin/env python3
"""A Kubernetes API for tests, with what Hone asks of one: Secrets, and StatefulSets whose pods are
processes of this machine. A container that ends is started again after a pause, as by Kubernetes.
  kubernetes_api.py up FOLDER     starts it on a loopback port and writes FOLDER/config for kubectl
  kubernetes_api.py down FOLDER   ends it and its pods
The logs of pods are FOLDER/POD.log.
"""

import http.server
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

KINDS = {
    ("v1", "secrets"): "Secret",
    ("v1", "pods"): "Pod",
    ("apps/v1", "statefulsets"): "StatefulSet",
}
BACK_OFF = 1.0  # seconds until a container is started again
PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>apps/v1))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>\w+))?"
)


class Pod:
    """A pod of one container, which is a process that belongs to this one."""

    def __init__(self, namespace, name, template, mount, log):
        self.namespace = namespace
        self.name = name
        self.template = template
        self.mount = mount
        self.log = log
        self.exit_code = None  # of the container that ran before this one
        self.restarts = 0
        self.start_at = 0.0
        self.kill_at = None  # set when the pod is being deleted
        self.process = None

    def command(self):
        container = self.template["spec"]["containers"][0]
        words = list(container["command"])
        for volume in container.get("volumeMounts", []):
            words = [self.mount if word == volume["mountPath"] else word for word in words]
        # As Kubernetes does: $(NAME) is replaced, $$( is a literal $(.
        return [
            re.sub(r"\$\$\(|\$\(POD_NAME\)", lambda m: "$(" if m[0] == "$$(" else self.name, word)
            for word in words
        ]

    def delete(self):
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.template["spec"]["terminationGracePeriodSeconds"]
            if self.process:
                self.process.terminate()

    def advance(self):
        """Sees to the process. Returns False once the pod has been deleted."""
        if self.process and self.process.poll() is not None:
            code = self.process.returncode
            self.exit_code = code if code >= 0 else 128 - code
            self.process = None
            self.start_at = time.monotonic() + BACK_OFF
        if self.kill_at is not None:
            if self.process and time.monotonic() > self.kill_at:
                self.process.kill()
            return self.process is not None
        if self.process is None and time.monotonic() >= self.start_at:
            self.restarts += self.exit_code is not None
            with open(self.log, "a") as log:
                self.process = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        return True

    def describe(self):
        state = {"running": {}}
        if self.process is None:
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        ended = {} if self.exit_code is None else {"terminated": {"exitCode": self.exit_code}}
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": self.name, "namespace": self.namespace}
            | {"labels": self.template["metadata"]["labels"]},
            "spec": {"nodeName": "box1", "containers": self.template["spec"]["containers"]},
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "name": "node",
                        "state": state,
                        "lastState": ended,
                        "restartCount": self.restarts,
                    }
                ],
            },
        }


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.lock = threading.Lock()
        self.objects = {}  # by kind, namespace and name
        self.pods = {}  # by namespace and name
        self.is_ending = False

    def work(self):
        while True:
            with self.lock:
                if self.is_ending:
                    return
                self.reconcile()
            time.sleep(0.02)

    def reconcile(self):
        wanted = {}
        for (kind, namespace, name), made in self.objects.items():
            for number in range(made["spec"]["replicas"] if kind == "statefulsets" else 0):
                wanted[(namespace, f"{name}-{number}")] = made["spec"]["template"]
        for key, template in wanted.items():
            if key not in self.pods:
                log = os.path.join(self.folder, key[1] + ".log")
                mount = self.mount(key[0], template)
                if mount is None:
                    continue  # the pod waits for its Secret
                self.pods[key] = Pod(*key, template, mount, log)
        for key in list(self.pods):
            if key not in wanted:
                self.pods[key].delete()
            if not self.pods[key].advance():
                del self.pods[key]

    def mount(self, namespace, template):
        folder = os.path.join(self.folder, "mount")
        for volume in template["spec"].get("volumes", []):
            secret = self.objects.get(("secrets", namespace, volume["secret"]["secretName"]))
            if secret is None:
                return None
            os.makedirs(folder, exist_ok=True)
            for file, text in secret["stringData"].items():
                with open(os.path.join(folder, file), "w") as out:
                    out.write(text)
        return folder

    def list_pods(self, namespace, selector):
        wanted = dict(pair.split("=") for pair in selector.split(",") if pair)
        return [
            pod.describe()
            for (its_namespace, _), pod in sorted(self.pods.items(), key=lambda item: item[0])
            if its_namespace == namespace
            and wanted.items() <= pod.template["metadata"]["labels"].items()
        ]

    def end(self):
        with self.lock:
            self.is_ending = True
            for pod in self.pods.values():
                if pod.process:
                    pod.process.kill()
                    pod.process.wait()


def merge(into, change):
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value


def scale_of(made):
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": made["metadata"],
        "spec": {"replicas": made["spec"]["replicas"]},
    }


def discover(path):
    """Returns what a client learns about the API before it uses it, or None."""
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        version = {"groupVersion": "apps/v1", "version": "v1"}
        group = {"name": "apps", "versions": [version], "preferredVersion": version}
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}
    if path in ("/api/v1", "/apis/apps/v1"):
        asked = path.split("/", 2)[2]
        verbs = ["create", "delete", "get", "list", "patch"]
        resources = [
            {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind}
            | {"verbs": verbs}
            for (version, name), kind in KINDS.items()
            if version == asked
        ]
        if asked == "apps/v1":
            scale = {"name": "statefulsets/scale", "namespaced": True, "kind": "Scale"}
            resources.append(scale | {"group": "autoscaling", "version": "v1", "verbs": verbs})
        return {"kind": "APIResourceList", "groupVersion": asked, "resources": resources}
    return None


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, code, value):
        is_text = isinstance(value, str)
        body = (value if is_text else json.dumps(value)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, code, reason, message):
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
        self.answer(code, status | {"reason": reason, "code": code, "message": message})

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not url.path.startswith(self.server.root):
            return self.fail(401, "Unauthorized", "who are you?")
        path = url.path.removeprefix(self.server.root)
        if path == "/openapi/v2":
            return self.answer(200, "")  # as a protocol buffer: a document that says nothing
        found = discover(path) if self.command == "GET" else None
        if found is not None:
            return self.answer(200, found)
        at = PATH.fullmatch(path)
        if not at or (at["core"] or at["group"], at["kind"]) not in KINDS:
            return self.fail(404, "NotFound", "there is no " + path)
        cluster = self.server.cluster
        key = (at["kind"], at["namespace"], at["name"])
        with cluster.lock:
            if at["kind"] == "pods":
                return self.answer_of_pods(cluster, at, asked)
            if self.command == "POST":
                made = json.loads(body)
                made["metadata"].setdefault("namespace", at["namespace"])
                key = (at["kind"], at["namespace"], made["metadata"]["name"])
                if key in cluster.objects:
                    return self.fail(409, "AlreadyExists", f"{key[2]} already exists")
                cluster.objects[key] = made
                return self.answer(201, made)
            if key not in cluster.objects:
                return self.fail(404, "NotFound", f'{at["kind"]} "{at["name"]}" not found')
            made = cluster.objects[key]
            if self.command == "DELETE":
                del cluster.objects[key]
                cluster.reconcile()
                return self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
            if self.command == "PATCH":
                merge(made, json.loads(body))
                cluster.reconcile()
            self.answer(200, scale_of(made) if at["part"] == "scale" else made)

    def answer_of_pods(self, cluster, at, asked):
        if at["name"] is None:
            pods = cluster.list_pods(at["namespace"], asked.get("labelSelector", ""))
            return self.answer(200, {"kind": "PodList", "apiVersion": "v1", "items": pods})
        pod = cluster.pods.get((at["namespace"], at["name"]))
        if pod is None:
            return self.fail(404, "NotFound", f'pods "{at["name"]}" not found')
        if at["part"] != "log":
            return self.answer(200, pod.describe())
        if asked.get("previous") == "true" and pod.exit_code is None:
            return self.fail(400, "BadRequest", "previous terminated container not found")
        with open(pod.log) as log:
            return self.answer(200, "".join(log.readlines()[-int(asked.get("tailLines", 1000)) :]))

    do_GET = do_POST = do_PATCH = do_DELETE = handle_request


def serve(folder, ready):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.daemon_threads = True
    server.cluster = Cluster(folder)
    # Other users of the machine must not start pods. kubectl sends no token without TLS.
    server.root = "/" + secrets.token_hex()
    cluster = {
        "name": "box",
        "cluster": {"server": f"http://127.0.0.1:{server.server_port}{server.root}"},
    }
    context = {"name": "box", "context": {"cluster": "box", "user": "box"}}
    user = {"name": "box", "user": {}}
    with open(os.path.join(folder, "config"), "w") as config:
        json.dump(
            {"apiVersion": "v1", "kind": "Config", "current-context": "box"}
            | {"clusters": [cluster], "contexts": [context], "users": [user]},
            config,
        )
    with open(os.path.join(folder, "pid"), "w") as file:
        file.write(str(os.getpid()))
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    os.write(ready, b"ready")
    os.close(ready)
    threading.Thread(target=server.cluster.work, daemon=True).start()
    server.serve_forever(poll_interval=0.05)
    server.cluster.end()
    os.remove(os.path.join(folder, "pid"))


def up(folder):
    os.makedirs(folder, exist_ok=True)
    from_server, ready = os.pipe()
    if os.fork() == 0:
        os.close(from_server)
        os.setsid()
        log = os.open(
            os.path.join(folder, "api.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, number)
        serve(folder, ready)
        os._exit(0)
    os.close(ready)
    if os.read(from_server, 5) != b"ready":
        sys.exit("the API does not start: " + os.path.join(folder, "api.log"))


def down(folder):
    file = os.path.join(folder, "pid")
    if not os.path.exists(file):
        return
    with open(file) as text:
        os.kill(int(text.read()), signal.SIGTERM)
    for _ in range(200):
        if not os.path.exists(file):
            return
        time.sleep(0.05)
    sys.exit("the API does not end")


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](sys.argv[2])
