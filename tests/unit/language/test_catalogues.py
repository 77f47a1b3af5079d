"""What the sources say is found, and a translation that is wrong is named."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from babel.messages.catalog import Message

import messages
from export import ROOT, catalogues


def _found(tmp_path: Path, text: str) -> tuple[list[object], list[str]]:
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "module.py").write_text("from mlp_language.message import msg, msgs\n" + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "ROOT", tmp_path)
        patch.setattr(messages, "SOURCES", ("hub",))
        found, wrong = messages.python_messages()
    ours = messages.titles()  # of the documentation's frame, which is not in the place of the test
    return [m.id for m in found if m.id and m.id not in ours], wrong


def test_sentences_of_python_are_found_with_their_plurals(tmp_path: Path) -> None:
    text = 'msg("a {b}" " c", b=1)\nmsgs("one", "{n} of them", n=2)\n'
    assert _found(tmp_path, text) == (["a {b} c", ("one", "{n} of them")], [])


@pytest.mark.parametrize("text", ['msg(f"a {b}")', 'msg("a" + b)', "msg(b)", 'msgs("a", b, n=1)'])
def test_a_message_that_is_not_a_literal_is_named(tmp_path: Path, text: str) -> None:
    assert _found(tmp_path, text)[1] == [
        "hub/module.py:2: a sentence is a literal, its values come as arguments"
    ]


@pytest.mark.parametrize(
    "call", ['say("see {rule}")', 'msg("{a} is {b}", a=1)', 'says("{b}", "{n} {b}", n=2)']
)
def test_a_sentence_whose_value_is_missing_is_named(tmp_path: Path, call: str) -> None:
    (wrong,) = _found(tmp_path, f"from mlp_language.render import say, says\n{call}\n")[1]
    assert "has no value for" in wrong


@pytest.mark.parametrize("call", ['msg("see {rule}")', 'say("{a}", **values)', 'says("one", "{n}", n=2)'])
def test_values_that_come_later_or_together_are_none_that_are_missing(tmp_path: Path, call: str) -> None:
    assert _found(tmp_path, f"from mlp_language.render import say, says\n{call}\n")[1] == []


def test_a_sentence_with_a_plural_in_one_place_only_is_named(tmp_path: Path) -> None:
    # gettext before Python 3.13 finds the one or the other
    assert _found(tmp_path, 'msgs("one", "{n} of them", n=2)\nmsg("one")\n')[1] == [
        "hub/module.py:3: 'one' has a plural in one place and none in another"
    ]


def test_a_foreign_function_named_msg_is_not_collected(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "other.py").write_text("def msg(x): ...\nmsg(1)\n")
    assert list(messages._calls(tmp_path / "hub" / "other.py")) == []


@pytest.mark.parametrize(
    ("said", "translated", "problem"),
    [
        ("at most {limit}", "最多 {limit}", ""),
        ("at most {limit}", "最多 {lim}", "other holes"),
        ("at most {limit}", "最多", "other holes"),
        ("wait", "", "does not translate"),
        (("a job of {who}", "{n} jobs of {who}"), ("{who} 的 {n} 个作业",), ""),
        (("a job of {who}", "{n} jobs of {who}"), ("{n} 个作业",), "other holes"),
    ],
)
def test_a_translation_has_the_holes_of_its_sentence(said, translated, problem: str) -> None:
    found = list(messages.problems(Message(said), Message(said, translated)))
    assert len(found) == bool(problem)
    assert all(problem in one for one in found)


def test_messages_of_the_front_end_are_found_in_any_tsx(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "Page.tsx").write_text(
        'import { n, t } from "./language";\n'
        'const a = <p title={t("it\'s")}>It\'s here: {t(`plain`)} {n("one", "{n} of them", 3)}</p>;\n'
        "const b = t(a + `${b}`);\n"
    )
    (source / "other.ts").write_text('const t = (x: string) => x;\nt("none of ours");\n')
    (tmp_path / "messages.mjs").write_text((ROOT / "widgets" / "messages.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(ROOT / "widgets" / "node_modules")
    done = subprocess.run(
        [messages.node(), tmp_path / "messages.mjs"], check=True, stdout=subprocess.PIPE, cwd=tmp_path
    )
    said = json.loads(done.stdout)
    assert said["messages"] == [{"one": "it's"}, {"one": "plain"}, {"one": "one", "several": "{n} of them"}]
    assert len(said["wrong"]) == 1


@pytest.mark.parametrize("domain", ["mlp", "front"])
def test_every_language_has_each_catalogue(domain: str) -> None:
    assert [path.parts[-3] for path, _ in catalogues(domain)] == ["zh_CN"]


def test_sentences_call_storage_rom_only_where_they_name_the_field() -> None:
    said = [m.id for domain in ("mlp", "front") for _, one in catalogues(domain) for m in one]
    each = [one for ids in said for one in (ids if isinstance(ids, tuple) else (ids,))]
    named = {one.split(":")[0].split(" is {")[0] for one in each if re.search(r"\brom\b", one)}
    assert named == {
        "amount has rom",
        "reserved.rom",
    }
