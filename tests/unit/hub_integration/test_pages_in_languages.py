from __future__ import annotations

import re
from pathlib import Path

import jinja2
import jupyterhub
import pytest
from jupyterhub.handlers import base  # noqa: F401 - JupyterHub's own order of imports
from markupsafe import Markup

from mlp_hub import hub_integration
from mlp_hub.hub_integration.pages import language
from mlp_hub.hub_integration.pages.jupyterhub_texts import RAW, TEXTS

OURS = Path(hub_integration.__file__).parent / "templates"


def _templates() -> Path:
    from jupyterhub._data import DATA_FILES_PATH

    return Path(DATA_FILES_PATH, "templates")


@pytest.mark.parametrize("name", sorted({*TEXTS, *RAW}))
def test_translated_texts_exist_in_the_templates_of_jupyterhub(name: str) -> None:
    source = (_templates() / name).read_text()
    missing = [old for old in RAW.get(name, {}) if old not in source]
    missing += [text for text in TEXTS.get(name, {}) if not re.search(language.pattern_of(text), source)]
    assert missing == [], f"JupyterHub {jupyterhub.__version__} says something else"


@pytest.mark.parametrize("name", sorted(path.name for path in _templates().glob("*.html")))
def test_every_template_still_compiles(name: str) -> None:
    loader = jinja2.FileSystemLoader(_templates())
    env = jinja2.Environment(loader=loader, autoescape=True, extensions=[language.Translated])
    env.get_template(name)


@pytest.mark.parametrize("name", sorted(path.name for path in _templates().glob("*.html")))
def test_whatever_is_pressed_is_a_button_and_whatever_leads_somewhere_a_link(name: str) -> None:
    loader = jinja2.FileSystemLoader(_templates())
    env = jinja2.Environment(loader=loader, autoescape=True, extensions=[language.Translated])
    source = env.extensions[language.Translated.identifier].preprocess(
        (_templates() / name).read_text(), name, name
    )
    links = re.findall(r"<a\b[^>]*>", source)
    assert [link for link in links if "href" not in link] == [], "Tab passes it over"
    # Bootstrap has the links that open menus do what Space does
    pretend = [link for link in links if 'role="button"' in link and "data-bs-toggle" not in link]
    assert pretend == [], "Space does nothing there"


def test_texts_are_asked_for_when_the_page_is_made() -> None:
    loader = jinja2.DictLoader({})
    env = jinja2.Environment(loader=loader, autoescape=True, extensions=[language.Translated])
    source = '<h1>Sign\n in</h1> <a id="login">Username:</a>'
    made = env.extensions[language.Translated.identifier].preprocess(source, "login.html", "/x/login.html")
    assert made == '<h1>{{ _("Log in") }}</h1> <a id="login">{{ _("Username:") }}</a>'


def test_values_inserted_into_a_text_are_escaped_and_markup_is_not() -> None:
    text = language.texts("en")
    assert text("Password of {name}", name="<b>") == "Password of &lt;b&gt;"
    assert text("of {name}", name=Markup("<b>x</b>")) == "of <b>x</b>"
    assert text("plain {braces}") == "plain {braces}"


@pytest.mark.parametrize("path", sorted(OURS.glob("*.html")), ids=lambda path: path.name)
def test_our_templates_say_nothing_past_the_catalogue(path: Path) -> None:
    source = re.sub(
        r"(?s)<style>.*?</style>|<script>.*?</script>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", path.read_text()
    )
    said = [text.strip() for text in re.findall(r">([^<]+)", source)]
    assert [text for text in said if re.search(r"[A-Za-z]", text)] in ([], ["MLP Hub"])
    assert not re.findall(r'(?:aria-label|value|title|placeholder)="[^"{]*[A-Za-z]', source)
