"""The Tornado application: the pages' routes, and the settings of WebSockets, which are its handlers too."""

from __future__ import annotations

from typing import Any

from tornado.web import Application, RedirectHandler

from mlp_hub.api.edge.call import BASE, Service
from mlp_hub.web.apps import APP_PATH, AppPage
from mlp_hub.web.client import ClientFile
from mlp_hub.web.docs import SHARED, Docs, folder
from mlp_hub.web.login import CALLBACK, Callback, LoginPage, Logout
from mlp_hub.web.pages import STATIC, Assets, HomePage, Nothing, Shell, shell, template


def make_application(service: Service) -> Application:
    """Make the application; every path below the base that nothing else answers is the shell's."""
    given = {"service": service}
    # read now, so that no request has to wait for a file
    base = service.config.pages
    shell(base)
    template("message.html")
    handlers: list[Any] = [
        (BASE, HomePage, given),
        (f"{BASE}/docs", RedirectHandler, {"url": f"{base}/docs/"}),
        (f"{BASE}/login", LoginPage, given),
        (f"{BASE}{CALLBACK}", Callback, given),
        (f"{BASE}/logout", Logout, given),
        (rf"{BASE}/static/(.*)", Assets, {"path": str(STATIC)}),
        (f"{BASE}/client/mlp.pyz", ClientFile),
        (rf"{BASE}/docs/((?:{'|'.join(SHARED)})/.*)", Assets, {"path": str(folder())}),
        (rf"{BASE}/docs/(.*)", Docs, given),
        (APP_PATH, AppPage, given),
        (rf"{BASE}/(.*)", Shell, given),
    ]
    return Application(
        handlers,
        default_handler_class=Nothing,
        default_handler_args=given,
        log_function=lambda _: None,
        websocket_ping_interval=service.config.ping_s,
        websocket_ping_timeout=service.config.ping_s,
        websocket_max_message_size=4096,
    )
