"""A write of one request that fails is over once that request is answered: all of the hub share one session of its database."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from jupyterhub import orm
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.handlers import BaseHandler
from sqlalchemy.orm import Session
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError

from mlp_hub.hub_integration import database

HALF = "\ud800"
"""Half a surrogate pair, for which a driver raises no error of a database."""


def _fails(db: Session) -> None:
    db.add(orm.Group(name=HALF))
    db.flush()


class RefusesPage(APIHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Takes what the driver raises for a value that is wrong, as JupyterHub does with the note of a token."""

    async def prepare(self) -> None:
        self._jupyterhub_user = None

    async def get(self) -> None:
        try:
            _fails(self.db)
        except ValueError as error:
            raise HTTPError(400, "wrong") from error


class FailsPage(RefusesPage):
    """Lets it through."""

    async def get(self) -> None:
        _fails(self.db)


class AnswersPage(RefusesPage):
    """Goes on as if nothing were."""

    async def get(self) -> None:
        try:
            _fails(self.db)
        except ValueError:
            self.finish("done")


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("send_error", "finish"):
        monkeypatch.setattr(BaseHandler, name, getattr(BaseHandler, name))
    database.undo_failed_writes()


@pytest.mark.usefixtures("undone")
@pytest.mark.parametrize(("page", "status"), [(RefusesPage, 400), (FailsPage, 500), (AnswersPage, 200)])
async def test_attack_a_write_that_fails_is_nobody_elses_error(page: type[Any], status: int) -> None:
    db: Session = orm.new_session_factory("sqlite:///:memory:")()
    server = HTTPServer(
        Application([("/", page)], db=db, log_function=lambda _: None, hub=SimpleNamespace(base_url="/hub/"))
    )
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    try:
        url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
        answer = await asyncio.to_thread(httpx.get, url, trust_env=False)
        assert answer.status_code == status
        assert db.is_active
        assert db.query(orm.Group).count() == 0
    finally:
        server.stop()
        db.close()
