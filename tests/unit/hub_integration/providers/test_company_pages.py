"""What the login, sign-up and password pages say where people log in with the company's account."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
from jupyterhub._data import DATA_FILES_PATH
from jupyterhub.handlers import base  # noqa: F401 - JupyterHub's own order of imports

from mlp_hub import hub_integration
from mlp_hub.hub_integration.pages import language
from mlp_language.catalogue import LANGUAGES

OURS = Path(hub_integration.__file__).parent / "templates"
THEIRS = Path(DATA_FILES_PATH, "templates")


def page(
    name: str, tag: str = "en", *, passwords: str = "admins", company: str = "<Acme>", **more: object
) -> str:
    loaders = [
        jinja2.FileSystemLoader(OURS),
        jinja2.PrefixLoader({"templates": jinja2.FileSystemLoader(THEIRS)}),
        jinja2.FileSystemLoader(THEIRS),
    ]
    env = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders), autoescape=True, extensions=[language.Translated]
    )
    authenticator = SimpleNamespace(enable_signup=passwords == "all", company=company, passwords=passwords)
    return env.get_template(name).render(
        {
            "_": language.texts(tag),
            "language": tag,
            "languages": LANGUAGES,
            "base_url": "/hub/",
            "static_url": lambda *_, **__: "",
            "user": None,
            "authenticator": authenticator,
            **more,
        }
    )


@pytest.mark.parametrize("tag", LANGUAGES)
def test_one_button_leads_to_the_provider_and_the_form_is_beside_it(tag: str) -> None:
    made = page("login.html", tag, next="%2Fhub%2Ftoken")
    assert 'href="/hub/oauth_login?next=%2Fhub%2Ftoken"' in made
    assert "&lt;Acme&gt;" in made
    assert "<Acme>" not in made, "a title is text"
    assert 'name="password"' in made
    assert made.count("<h1") == 1
    assert '<details class="mt-4" id="mlp-own-accounts" >' in made


def test_the_form_is_open_after_a_wrong_password_and_away_where_nobody_may() -> None:
    assert '<details class="mt-4" id="mlp-own-accounts" open>' in page("login.html", login_error="wrong")
    assert 'name="password"' not in page("login.html", passwords="none")
    assert "mlp-signup-hint" not in page("login.html")
    assert "mlp-signup-hint" in page("login.html", passwords="all")


def test_an_error_at_the_provider_is_shown_as_text_above_the_button() -> None:
    made = page("login.html", company_error="<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)" in made
    assert made.index("mlp-company-error") < made.index('id="mlp-company-login"')


def test_without_a_provider_the_page_is_as_it_was() -> None:
    made = page("login.html", company="", passwords="all")
    assert "mlp-company-login" not in made
    assert "<h1>" in made


def test_sign_up_and_password_give_way() -> None:
    assert 'id="mlp-signup-managed"' in page("signup.html", managed_by="Acme")
    assert "signup_password" not in page("signup.html", managed_by="Acme")
    mine = page("change-password.html", managed_by="Acme", for_name="ann", own=True)
    assert 'id="mlp-password-managed"' in mine
    assert "new_password" not in mine
    assert 'id="mlp-everywhere"' in mine


def test_the_page_on_the_way_leads_on_as_text() -> None:
    assert 'href="/hub/token?a=1&amp;b=2"' in page("arrived.html", where="/hub/token?a=1&b=2")
