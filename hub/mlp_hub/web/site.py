"""The Tornado application: the pages' routes, and the settings of WebSockets, which are its handlers too."""

from __future__ import annotations

from typing import Any

from tornado.web import Application

from mlp_hub.api.call import BASE, Service
from mlp_hub.web.login import Callback, Login, Logout
from mlp_hub.web.pages import STATIC, Assets, Blank, Home, Nothing, Shell


def make_application(service: Service) -> Application:
    """Make the application; every path below the base that nothing else answers is the shell's."""
    given = {"service": service}
    handlers: list[Any] = [
        (BASE, Home, given),
        (f"{BASE}/login", Login, given),
        (f"{BASE}/oauth_callback", Callback, given),
        (f"{BASE}/logout", Logout, given),
        (f"{BASE}/blank", Blank, given),
        (rf"{BASE}/static/(.*)", Assets, {"path": str(STATIC)}),
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
