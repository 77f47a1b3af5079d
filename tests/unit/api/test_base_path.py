"""What the service and the hub make of addresses where all of the hub is below a path."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from mlp_hub.api.edge.call import Config
from mlp_hub.api.edge.server import _strip
from mlp_hub.hub_integration.bodies import LARGE, SMALL, limit_of


def asked(uri: str) -> HTTPServerRequest:
    start_line = RequestStartLine("GET", uri, "HTTP/1.1")
    return HTTPServerRequest(start_line=start_line, headers=HTTPHeaders({"Host": "hub.example.org"}))


@pytest.mark.parametrize(
    ("uri", "inside"),
    [
        ("/mlp/services/mlp/api/v1/jobs?x=/mlp/", "/services/mlp/api/v1/jobs?x=/mlp/"),
        ("/mlp/mlp/x", "/mlp/x"),
        # the operator's commands come by the same socket, and without it
        ("/services/mlp/api/v1/jobs", "/services/mlp/api/v1/jobs"),
        ("/mlpx/services/mlp/", "/mlpx/services/mlp/"),
        ("/mlp", "/mlp"),
    ],
)
def test_the_path_is_taken_from_browsers_addresses_once(uri: str, inside: str) -> None:
    request = asked(uri)
    _strip(request, "/mlp")
    assert (request.uri, request.path) == (inside, inside.partition("?")[0])


def test_without_a_path_nothing_is_taken() -> None:
    request = asked("/services/mlp/")
    _strip(request, "")
    assert request.path == "/services/mlp/"


def test_addresses_sent_to_browsers_contain_the_base_path() -> None:
    config = Config("1", base="/mlp")
    assert (config.pages, config.hub_prefix) == ("/mlp/services/mlp", "/mlp/hub")
    assert config.cookie_path == "/mlp/services/mlp/"
    assert Config("1", base="/mlp", host_cookies=True).cookie_path == "/", (
        "browsers keep no other `__Host-` cookie"
    )
    assert (Config("1").pages, Config("1").hub_prefix) == ("/services/mlp", "/hub")


def test_bodies_have_the_same_limits_below_a_path() -> None:
    assert limit_of("/mlp/hub/api/users", "/mlp") == LARGE
    assert limit_of("/mlp/hub/api/groups/a/users?x", "/mlp") == LARGE
    assert limit_of("/mlp/hub/login", "/mlp") == SMALL
