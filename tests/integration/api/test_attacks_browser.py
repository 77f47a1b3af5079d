"""What another site can make a browser do, and what a login may be made to do."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from mlp_hub.api.auth import scopes
from mlp_hub.web.login import safe_next
from support.rigs.api_rig import HOST, ApiRig, drain
from support.waiting import PATIENCE_S

PAGES = "/services/mlp"
BODY = {"name": "forged", "code": "x", "cpu": 1, "ram": 100}


def test_a_cookie_alone_changes_nothing(rig: ApiRig) -> None:
    _, headers = rig.session("ann", rig.ann)
    cookie = {"Cookie": headers["Cookie"]}
    refused = rig.ask("POST", "/users/ann/jobs", BODY, headers=cookie)
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert rig.ask("PUT", "/users/ann/jobs/digits:cancel", headers=cookie).status == 403
    assert rig.ask("DELETE", "/users/ann/jobs/digits", headers=cookie).status == 403
    # reading is fine, and so is changing with the session's token
    assert rig.ask("GET", "/users/ann/jobs/digits", headers=cookie).status == 200
    assert rig.ask("PUT", "/users/ann/jobs/nope:cancel", headers=headers).json["reason"] == "NotFound"
    by_query = f"/users/ann/jobs/nope:cancel?_xsrf={headers['X-XSRFToken']}"
    assert rig.ask("PUT", by_query, headers=cookie).json["reason"] == "NotFound"


def test_anothers_xsrf_token_is_of_no_use(rig: ApiRig) -> None:
    _, mine = rig.session("ann", rig.ann)
    _, other = rig.session("bob", rig.bob)
    mixed = {**mine, "X-XSRFToken": other["X-XSRFToken"]}
    assert rig.ask("POST", "/users/ann/jobs", BODY, headers=mixed).json["reason"] == "Forbidden"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "navigate", "cors"])
def test_a_request_from_another_site_is_refused_even_with_the_token(
    rig: ApiRig, site: str, mode: str
) -> None:
    _, headers = rig.session("ann", rig.ann)
    sent = {**headers, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert rig.ask("POST", "/users/ann/jobs", BODY, headers=sent).json["reason"] == "Forbidden"
    assert rig.ask("GET", "/users/ann/jobs/digits", headers=sent).json["reason"] == "Forbidden"


@pytest.mark.parametrize(
    "media", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"]
)
def test_a_forms_body_is_refused(rig: ApiRig, media: str) -> None:
    answer = rig.ask("POST", "/users/ann/jobs", BODY, token=rig.ann, headers={"Content-Type": media})
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:21001", "null", f"http://{HOST}.evil.example"]
)
def test_a_websocket_from_another_origin_is_refused(rig: ApiRig, origin: str) -> None:
    _, headers = rig.session("ann", rig.ann)
    for sent in (headers, {"Authorization": f"Bearer {rig.ann}"}):
        with (
            pytest.raises(InvalidStatus) as refused,
            rig.socket("/users/ann/jobs/digits:stream", headers={**sent, "Origin": origin}),
        ):
            pass
        assert refused.value.response.status_code == 403


def test_a_websocket_of_our_own_pages_works(rig: ApiRig) -> None:
    _, headers = rig.session("ann", rig.ann)
    with rig.socket(
        "/users/ann/jobs/digits:stream", headers={**headers, "Origin": f"http://{HOST}"}
    ) as socket:
        assert '"job"' in str(socket.recv(PATIENCE_S))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "[::2]", "0"]
)
def test_a_rebound_name_gets_nothing(rig: ApiRig, host: str) -> None:
    for path in ("/services/mlp/api/v1/health", "/api/v1/auth", "/services/mlp/", "/services/mlp/login"):
        answer = rig.ask("GET", path, token=rig.ann, headers={"Host": host}, base="")
        assert (answer.status, answer.json["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "hub.example"])
def test_our_own_names_are_served(rig: ApiRig, host: str) -> None:
    assert rig.ask("GET", "/health", headers={"Host": host}).status == 200


NOWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/services/mlp/\\evil",
    "/services/mlp//evil.example",
    "/services/mlp/../../evil",
    "/services/mlp/%2e%2e/%2E%2e/evil",
    "/services/mlp/./x",
    "javascript:alert(1)",
    "/services/mlpevil",
    "/services/mlp/\r\nSet-Cookie: a=b",
    "/services/mlp/\tx",
    "/services/mlp/\0",
    " /services/mlp/",
    "",
    "/services/mlp/" + "a" * 3000,
    "/user/bob/",
    "http:/services/mlp/",
    "/services/mlp/ｅvil",
]


@pytest.mark.parametrize("wanted", NOWHERE)
def test_a_login_never_leads_elsewhere(wanted: str) -> None:
    assert safe_next(wanted) == "/services/mlp/"


@pytest.mark.parametrize("wanted", [*NOWHERE, *(f"/mlp{path}" for path in NOWHERE), "/services/mlp/jobs"])
def test_a_login_below_a_path_never_leads_elsewhere(wanted: str) -> None:
    assert safe_next(wanted, "/mlp/services/mlp") == "/mlp/services/mlp/"


def test_a_login_below_a_path_leads_back_to_our_pages() -> None:
    wanted = "/mlp/services/mlp/jobs/a?x=1&y=%20#z"
    assert safe_next(wanted, "/mlp/services/mlp") == wanted


@pytest.mark.parametrize("wanted", ["/services/mlp/", "/services/mlp/jobs/a?x=1&y=%20#z"])
def test_a_login_leads_back_to_our_pages(wanted: str) -> None:
    assert safe_next(wanted) == wanted


def begin_login(rig: ApiRig, wanted: str = "/services/mlp/jobs") -> tuple[dict[str, str], str]:
    """Begin a login; returns what the hub is asked, and the browser's cookie."""
    answer = rig.ask("GET", f"{PAGES}/login?next={quote(wanted)}", base="")
    assert answer.status == 302
    parts = urlsplit(answer.headers["location"])
    assert parts.path == "/hub/api/oauth2/authorize"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    return {k: v[0] for k, v in parse_qs(parts.query).items()}, cookie.partition(";")[0]


def finish_login(rig: ApiRig, asked: dict[str, str], cookie: str, token: str) -> tuple[int, dict[str, str]]:
    """Let the hub send the browser back."""
    rig.hub.codes["code-1"] = (token, asked["code_challenge"])
    path = f"{PAGES}/oauth_callback?code=code-1&state={quote(asked['state'])}"
    answer = rig.ask("GET", path, headers={"Cookie": cookie} if cookie else {}, base="")
    return answer.status, answer.headers


def test_a_login_ends_in_a_session_that_survives_a_restart_and_ends_at_logout(rig: ApiRig) -> None:
    token = rig.hub.user("eve", "eves-oauth-token")
    asked, cookie = begin_login(rig)
    assert (asked["code_challenge_method"], asked["client_id"]) == ("S256", "service-mlp")
    status, headers = finish_login(rig, asked, cookie, token)
    assert (status, headers["location"]) == (302, "/services/mlp/jobs")
    kept = headers["set-cookie"].split("mlp-session=")[1]
    assert "HttpOnly" in kept
    assert "SameSite=Lax" in kept
    assert "Path=/services/mlp/" in kept
    session = {"Cookie": f"mlp-session={kept.partition(';')[0]}"}
    assert token not in kept
    shell = rig.ask("GET", f"{PAGES}/", headers=session, base="")
    assert (shell.status, b'id="app"' in shell.body) == (200, True)
    rig.restart_service()
    found = rig.ask("GET", "/session", headers=session)
    assert (found.status, found.json["username"]) == (200, "eve")
    # on disk lies neither the cookie nor the token, in no way of writing them
    disk = b"".join(p.read_bytes() for p in rig.root.glob("mlp.sqlite*"))
    assert b"eve" in disk
    assert token.encode().hex().encode() not in disk
    assert token.encode() not in disk
    assert kept.partition(";")[0].encode() not in disk
    assert rig.ask("POST", f"{PAGES}/logout", headers=session, base="").status == 403
    out = rig.ask("POST", f"{PAGES}/logout", headers={**session, "X-XSRFToken": found.json["xsrf"]}, base="")
    assert (out.status, out.json) == (200, {"next": "/hub/logout"})
    assert rig.ask("GET", "/session", headers=session).status == 401
    assert token not in rig.hub.tokens


@pytest.mark.parametrize("inside", ["iframe", "frame", "embed", "object", "empty", "image"])
def test_a_login_begins_only_from_a_page_of_the_platform(rig: ApiRig, inside: str) -> None:
    answer = rig.ask("GET", f"{PAGES}/login", headers={"Sec-Fetch-Dest": inside}, base="")
    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert rig.ask("GET", f"{PAGES}/login", headers={"Sec-Fetch-Dest": "document"}, base="").status == 302


def test_a_login_that_somebody_else_began_is_refused(rig: ApiRig) -> None:
    asked, _ = begin_login(rig)
    assert finish_login(rig, asked, "", rig.bob)[0] == 403
    _, other = begin_login(rig)
    assert finish_login(rig, asked, other, rig.bob)[0] == 403
    forged = {**asked, "state": asked["state"][:-1] + ("0" if asked["state"][-1] != "0" else "1")}
    assert finish_login(rig, forged, other, rig.bob)[0] == 403


def test_a_code_is_of_no_use_without_its_verifier(rig: ApiRig) -> None:
    asked, cookie = begin_login(rig)
    wrong = base64.urlsafe_b64encode(hashlib.sha256(b"other").digest()).decode().rstrip("=")
    assert finish_login(rig, {**asked, "code_challenge": wrong}, cookie, rig.bob)[0] == 403


def test_a_login_with_a_token_of_another_service_is_refused(rig: ApiRig) -> None:
    token = rig.hub.user("bob", "foreign", held=("access:services!service=other",))
    asked, cookie = begin_login(rig)
    assert finish_login(rig, asked, cookie, token)[0] == 403


@pytest.mark.parametrize(
    "path", ["login?next=%ff", "oauth_callback?code=%ed%a0%80&state=x", "login?next=%00"]
)
def test_attack_bytes_that_are_not_text_are_not_a_fault(
    rig: ApiRig, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert rig.ask("GET", f"/services/mlp/{path}", base="").status < 500
    assert not [one for one in caplog.records if one.exc_info]


def test_pages_send_who_is_not_logged_in_to_the_login(rig: ApiRig) -> None:
    for path in ("/", "/admin/tenants", "/tenants"):
        answer = rig.ask("GET", f"{PAGES}{path}", base="")
        assert (answer.status, answer.headers["location"]) == (
            302,
            f"{PAGES}/login?next={quote(PAGES + path, safe='')}",
        )
    assert rig.ask("GET", PAGES, base="").headers["location"] == f"{PAGES}/"


def test_pages_carry_headers_that_let_no_foreign_script_in(rig: ApiRig) -> None:
    _, headers = rig.session("ann", rig.ann)
    answer = rig.ask("GET", f"{PAGES}/jobs/%3Cscript%3E", headers=headers, base="")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "frame-src" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"<script>" not in answer.body
    assert b"<script src=" in answer.body


def test_a_script_in_a_name_or_a_log_line_never_comes_back_as_html(rig: ApiRig) -> None:
    for path in (
        "/users/%3Cscript%3Ealert(1)%3C%2Fscript%3E/jobs",
        "/users/ann/jobs/%3Cscript%3E",
        "/%3Cscript%3E",
    ):
        answer = rig.ask("GET", path, token=rig.ann)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    text = rig.ask("GET", "/users/ann/jobs/digits/logs", token=rig.ann)
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in text.headers["content-security-policy"]


def test_a_revoked_token_ends_at_once_on_rest_and_on_open_sockets(rig: ApiRig) -> None:
    token = rig.hub.user("ann", "soon-gone")
    _, headers = rig.session("ann", token)
    with (
        rig.socket("/users/ann/jobs/digits:stream", token=token) as one,
        rig.socket("/users/ann/jobs/digits:stream", headers={**headers, "Origin": f"http://{HOST}"}) as two,
    ):
        assert rig.ask("GET", "/auth", token=token).status == 200
        del rig.hub.tokens[token]
        for socket in (one, two):
            assert drain(socket)[1] == 4401
    assert rig.ask("GET", "/auth", token=token).status == 401
    assert rig.ask("GET", "/session", headers=headers).status == 401


def test_a_member_who_is_put_out_of_the_tenant_loses_the_open_socket(rig: ApiRig) -> None:
    lea = rig.hub.user("lea", "lea-token")
    rig.ask("PUT", "/tenants/red/members/lea", {"role": "admin"}, token=rig.root_user)
    with rig.socket("/users/ann/jobs/digits:stream", token=lea) as socket:
        rig.ask("DELETE", "/tenants/red/members/lea", token=rig.root_user)
        assert drain(socket)[1] == 4401


def test_scopes_that_the_hub_limits_to_the_owner_reach_no_further(rig: ApiRig) -> None:
    held = (scopes.ACCESS, *(f"{s}!user=rita" for s in scopes.ADMIN_SCOPES))
    token = rig.hub.user("rita", "own-only", held=held)
    assert rig.ask("GET", "/users/rita/jobs", token=token).status == 200
    assert rig.ask("GET", "/users/ann/jobs/digits", token=token).status == 403
    assert rig.ask("GET", "/nodes", token=token).status == 403
