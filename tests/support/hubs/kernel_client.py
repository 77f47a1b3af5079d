"""Runs code in a kernel through the public port, as a notebook in the browser does."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
from websockets.sync.client import connect

from support.local_names import LocalNames
from support.waiting import PATIENCE_S


class Kernel:
    """A kernel of a running notebook server, of its own kind where none is named; `url` is the origin of its user's servers.

    With a `session`, as each page has one, it is given what was kept for that while it was away.
    """

    def __init__(self, url: str, user: str, token: str, name: str = "", session: str = "") -> None:
        self.port = httpx.URL(url).port
        self.base = f"{url}/user/{user}"
        self.headers = {"Authorization": f"token {token}"}
        with httpx.Client(transport=LocalNames(), timeout=PATIENCE_S) as client:
            answer = client.post(
                f"{self.base}/api/kernels", headers=self.headers, json={"name": name} if name else {}
            )
        assert answer.status_code == 201, f"{answer.status_code} {answer.text}"
        self.id = answer.json()["id"]
        self.session = session
        self.ws: Any = None
        self.last = ""
        self.open()

    def open(self) -> None:
        """Connect anew."""
        page = f"?session_id={self.session}" if self.session else ""
        url = f"{self.base}/api/kernels/{self.id}/channels{page}".replace("http", "ws", 1)
        self.ws = connect(
            url,
            legacy=True,
            address=("127.0.0.1", self.port),
            additional_headers=self.headers,
            max_size=None,
            proxy=None,
            open_timeout=PATIENCE_S,
        )

    def send(self, code: str) -> str:
        """Ask for the code to be run; return the request's id, which is `last` too."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "version": "5.3",
            "session": "t",
            "username": "t",
        }
        content = {
            "code": code,
            "silent": False,
            "store_history": False,
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
            "buffers": [],
        }
        self.last = header["msg_id"]
        self.ws.send(json.dumps(message))
        return self.last

    def run(self, code: str, timeout: float = PATIENCE_S) -> str:
        """Return what the code printed and its value; an exception's traceback, if it raised one."""
        return self.rest(self.send(code), timeout)

    def rest(self, asked: str, timeout: float = PATIENCE_S) -> str:
        """Return the same of a request that was sent, as far as it is still to come."""
        parts: list[str] = []
        idle = replied = False
        while not (idle and replied):
            got = json.loads(self.ws.recv(timeout=timeout))
            if got["parent_header"].get("msg_id") != asked:
                continue
            kind, body = got["header"]["msg_type"], got["content"]
            if kind == "stream":
                parts.append(body["text"])
            elif kind == "execute_result":
                parts.append(body["data"]["text/plain"])
            elif kind == "error":
                parts.append("\n".join(body["traceback"]))
            idle = idle or (kind == "status" and body["execution_state"] == "idle")
            replied = replied or kind == "execute_reply"
        return "".join(parts)

    def close(self) -> None:
        """Hang up; the kernel lives on."""
        self.ws.close()
