"""A hub on this machine: as much of the Hugging Face Hub's protocol as push and pull speak.

Files over 1,000 bytes go by Git LFS, as large ones do there. `Hub.repositories` is what it has, for
a test to look at and to damage.
"""

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

LARGE = 1_000


@dataclass
class Hub:
    """What the hub has, and who may come."""

    address: str = ""
    repositories: dict[str, list[dict[str, bytes]]] = field(default_factory=dict)
    """For each "models/OWNER/NAME" its commits, each with all its files."""
    objects: dict[str, bytes] = field(default_factory=dict)
    """Large files by their SHA-256."""
    private: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    """Method and path of every request."""
    is_closed: bool = False
    """Refuse everyone."""

    def files(self, name: str) -> dict[str, bytes]:
        """The files of the newest commit."""
        return self.repositories[name][-1]


def sha_of(number: int) -> str:
    """A commit's name."""
    return f"{number:040x}"


class _Answer(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.hub.asked.append(f"{self.command} {path}")
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        parts = path.split("/")
        if self.hub.is_closed:
            self._send(403, b'{"error":"closed"}')
        elif path == "api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif path == "api/repos/create":
            self._create(json.loads(body))
        elif parts[0] == "objects":
            self._store(parts[1], body)
        elif path.endswith(".git/info/lfs/objects/batch"):
            self._batch(json.loads(body))
        elif parts[0] == "api":
            self._api(parts[1:], body)
        else:
            self._resolve(parts)

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked.get('type') or 'model'}s/{asked['organization']}/{asked['name']}"
        is_new = name not in self.hub.repositories
        self.hub.repositories.setdefault(name, [{}])
        if asked.get("visibility") == "private" or asked.get("private"):
            self.hub.private.add(name)
        url = {"url": f"{self.hub.address}/{name.removeprefix('models/')}"}
        self._json(url, 200 if is_new else 409)

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = []
        for each in asked["objects"]:
            told = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in self.hub.objects:
                href = f"{self.hub.address}/objects/{each['oid']}"
                told["actions"] = {"upload": {"href": href, "header": {}}}
            objects.append(told)
        self._json({"transfer": "basic", "objects": objects})

    def _store(self, oid: str, body: bytes) -> None:
        is_right = hashlib.sha256(body).hexdigest() == oid
        if is_right:
            self.hub.objects[oid] = body
        self._send(200 if is_right else 400, b"")

    def _api(self, parts: list[str], body: bytes) -> None:
        name, rest = "/".join(parts[:3]), parts[3:]
        commits = self.hub.repositories.get(name)
        if commits is None:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        if rest[:1] == ["preupload"]:
            files = [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["size"] > LARGE else "regular",
                    "shouldIgnore": False,
                }
                for each in json.loads(body)["files"]
            ]
            self._json({"files": files})
        elif rest[:1] == ["commit"]:
            self._commit(name, body)
        elif rest[:1] == ["tree"]:
            self._paths(name, list(commits[-1]))
        elif rest[:1] == ["paths-info"]:
            self._paths(name, parse_qs(body.decode())["paths"])
        else:
            wanted = rest[1] if rest[:1] == ["revision"] else "main"
            if wanted not in ("main", sha_of(len(commits) - 1)):
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
                return
            siblings = [{"rfilename": path} for path in commits[-1]]
            told = {"id": "/".join(parts[1:3]), "sha": sha_of(len(commits) - 1)}
            self._json({**told, "siblings": siblings})

    def _commit(self, name: str, body: bytes) -> None:
        files = dict(self.hub.files(name))
        for line in body.decode().splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
        commits = self.hub.repositories[name]
        commits.append(files)
        sha = sha_of(len(commits) - 1)
        self._json({"commitOid": sha, "commitUrl": f"{self.hub.address}/{name}/commit/{sha}"})

    def _paths(self, name: str, paths: list[str]) -> None:
        files = self.hub.files(name)
        self._json(
            [
                {
                    "type": "file",
                    "path": path,
                    "size": len(files[path]),
                    "oid": hashlib.sha1(files[path]).hexdigest(),
                }
                for path in paths
                if path in files
            ]
        )

    def _resolve(self, parts: list[str]) -> None:
        if parts[0] != "datasets":
            parts = ["models", *parts]
        name, inside = "/".join(parts[:3]), "/".join(parts[5:])
        commits = self.hub.repositories.get(name)
        if commits is None or parts[3] != "resolve" or inside not in commits[-1]:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = commits[-1][inside]
        etag = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": parts[4]}
        self._send(200, content, etag)

    def _json(self, value: Any, code: int = 200) -> None:
        self._send(code, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def local_hub() -> Iterator[Hub]:
    """A hub that this process and the processes it starts know as the only one."""
    from huggingface_hub import constants

    hub = Hub()
    handler = type("Answer", (_Answer,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.address)
        patch.setenv("HF_HUB_DISABLE_XET", "1")
        patch.setenv("HF_TOKEN", "hf_test")
        # Read from the environment when the library was imported, which may be long ago.
        files = hub.address + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        patch.setattr(constants, "ENDPOINT", hub.address)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield hub
    server.shutdown()
    server.server_close()
    thread.join()
