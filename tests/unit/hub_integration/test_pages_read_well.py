"""The hub's pages as people read them, one golden file a language: `pytest --golden` writes them anew."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
from jupyterhub._data import DATA_FILES_PATH

from mlp_hub import hub_integration
from mlp_hub.api.auth.scopes import USER_SCOPES as PERSON_SCOPES
from mlp_hub.domain.tenants.account_names import NAME_RULE
from mlp_hub.hub_integration.pages import language, token_page
from mlp_hub.hub_integration.tokens.cli_codes import Asked
from mlp_language.catalogue import LANGUAGES
from mlp_language.message import msg
from mlp_language.render import Reader, render
from mlp_spawner.errors import Told, sentence
from mlp_spawner.quota.options import Defaults, form
from mlp_spawner.quota.service_client import Account, Room
from mlp_spawner.server import out_of_memory

GOLDEN = Path(__file__).parent / "golden"
THEIRS = Path(DATA_FILES_PATH, "templates")
LOADERS = [
    jinja2.FileSystemLoader(Path(hub_integration.__file__).parent / "templates"),
    jinja2.PrefixLoader({"templates": jinja2.FileSystemLoader(THEIRS)}),
    jinja2.FileSystemLoader(THEIRS),
]
ENDED = out_of_memory(1024)
SERVER = SimpleNamespace(active=False, how_it_ended=ENDED, name="")
REFUSED = Told.from_message(sentence(msg("you are in no team")))
BACK = Room(cpu=4, cpu_free=0, ram=4096, ram_free=1024, cpu_borrow=1, cpu_back=3, back_from=("blue", "teal"))
FORM = {
    tag: form(
        Defaults(0.2, 1024),
        Account(1, ("red", "lab"), "red", {"red": BACK}),
        {},
        reader=Reader(tag),
        ended=ENDED,
    )
    for tag in LANGUAGES
}
"""The form of the spawner, as each language has it."""
ASKED = Asked("c" * 43, "laptop", "http://127.0.0.1:5000/", "s" * 43)
TOKEN = SimpleNamespace(
    api_id="a7",
    note="nightly",
    scopes=["custom:mlp:jobs:read!user=ann"],
    last_activity=None,
    created=datetime(2001, 9, 9),  # noqa: DTZ001 - as the hub has it
    expires_at=datetime(2001, 9, 12),  # noqa: DTZ001
)
PAGES: dict[str, dict[str, object]] = {
    "login.html": {"authenticator": SimpleNamespace(enable_signup=True), "login_error": "Invalid username or password"},
    "signup.html": {"name_max": 32, "password_min": 8},
    "home.html": {"default_server": SERVER},
    "log-out.html": {"for_name": "ann"},
    "spawn.html": {"for_user": SimpleNamespace(name="ann"), "error_message": REFUSED},
    "spawn_pending.html": {},
    "stop_pending.html": {},
    "not_running.html": {"server_name": "", "failed": True},
    "change-password.html": {"for_name": "ann", "own": True, "password_min": 8},
    "confirm.html": {"for_name": "ann", "minutes": 30},
    "mlp-login.html": {"for_name": "ann", "asked": ASKED},
    "token.html": token_page.page({"api_tokens": [TOKEN], "oauth_clients": []}, {"a7": ("10.1.2.3", 1e9)}, 1e9 + 7200, 0),
    "logout.html": {},
    "404.html": {"status_code": 404, "status_message": "Not Found"},
}  # fmt: skip


def _read(name: str, tag: str) -> str:
    env = jinja2.Environment(
        loader=jinja2.ChoiceLoader(LOADERS), autoescape=True, extensions=[language.Translated]
    )
    page = env.get_template(name).render(
        {
            "_": language.texts(tag),
            "language": tag,
            "languages": LANGUAGES,
            "user": SimpleNamespace(name="ann", admin=True, json_escaped_name="ann", spawner=SERVER),
            "static_url": lambda *_, **__: "",
            "name_rule": render(NAME_RULE, Reader(tag)),
            "spawner_options_form": FORM[tag],
            **PAGES[name],
        }
    )
    assert f'<html lang="{tag}">' in page
    said = re.findall(r'(?:aria-label|placeholder|title|value)="([^"]+)"', page)
    text = re.sub(r"(?s)<script.*?</script>|<style.*?</style>|<[^>]+>", " ", page)
    return html.unescape(re.sub(r"\s+", " ", f"{text} | {' · '.join(said)}")).strip()


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_page_reads_as_it_did(tag: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"pages.{tag}.txt", "".join(f"{name}: {_read(name, tag)}\n" for name in PAGES))


def test_a_user_who_gives_a_terminal_a_token_sees_all_its_scopes() -> None:
    words = {
        "jobs": "your jobs",
        "data": "your datasets",
        "models": "models",
        "apps": "apps",
        "tenants": "your teams",
        "notices": "your notifications",
    }
    words["users"] = "your tokens"
    kinds = {scope.removeprefix("custom:mlp:").partition(":")[0] for scope in PERSON_SCOPES}
    assert kinds == words.keys()
    page = _read("mlp-login.html", "en")
    assert [word for word in words.values() if word not in page] == []
