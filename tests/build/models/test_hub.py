"""A hub id is planned from its config alone; the hub here is a small one on 127.0.0.1."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tiny_checkpoint import TINY

_FILES = {"config.json": json.dumps(TINY).encode(), "model.safetensors": b"never downloaded by a plan"}
_COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves one model, `org/tiny`, and remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass

    def _answer(self, *, with_body: bool) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/org/tiny/tree/"):
            entries = [{"type": "file", "path": name, "size": len(text), "oid": _oid(text)} for name, text in _FILES.items()]
            body, kind = json.dumps(entries).encode(), "application/json"
        elif path.startswith("/api/models/org/tiny"):
            siblings = [{"rfilename": name} for name in _FILES]
            body, kind = json.dumps({"id": "org/tiny", "sha": _COMMIT, "siblings": siblings}).encode(), "application/json"
        elif path.startswith("/org/tiny/resolve/") and path.rpartition("/")[2] in _FILES:
            body, kind = _FILES[path.rpartition("/")[2]], "application/octet-stream"
        else:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{_oid(body)}"')
        self.send_header("X-Repo-Commit", _COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _oid(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def plan(model: str, hub: Hub, cache: Path) -> subprocess.CompletedProcess[str]:
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-m", "roundhouse", "plan", model, "--gpu", "l40s", "--json"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_hub_id_is_planned_without_its_weights(hub: Hub, tmp_path: Path) -> None:
    done = plan("org/tiny", hub, tmp_path)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["checkpoint_bytes"] > 0
    assert any("no files were read" in text for text in made["assumptions"])
    assert not any("safetensors" in path for path in hub.asked)


def test_a_hub_id_that_is_not_there_is_named(hub: Hub, tmp_path: Path) -> None:
    done = plan("org/nothing", hub, tmp_path)
    assert done.returncode == 1
    assert "org/nothing could not be downloaded" in done.stderr
    assert "Traceback" not in done.stderr
