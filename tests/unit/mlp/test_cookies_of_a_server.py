"""A notebook server's own cookie goes over TLS alone where the hub's do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mlp import bridge


@pytest.mark.parametrize(
    ("options", "before", "then"),
    [
        (
            '{"SameSite": "Lax", "secure": true}',
            {"path": "/user/ann/"},
            {"path": "/user/ann/", "secure": True},
        ),
        ('{"secure": true}', None, {"path": "/user/ann/", "secure": True}),
        ('{"SameSite": "Lax"}', {"path": "/user/ann/"}, {"path": "/user/ann/"}),
        ("", None, None),
    ],
)
def test_the_cookie_against_forged_requests_is_guarded_as_those_of_the_hub(
    monkeypatch: pytest.MonkeyPatch, options: str, before: Any, then: Any
) -> None:
    monkeypatch.setenv("JUPYTERHUB_COOKIE_OPTIONS", options)
    settings = {} if before is None else {"xsrf_cookie_kwargs": before}
    app = SimpleNamespace(base_url="/user/ann/", web_app=SimpleNamespace(settings=settings))
    bridge._guard_cookies(app)
    assert settings.get("xsrf_cookie_kwargs") == then
