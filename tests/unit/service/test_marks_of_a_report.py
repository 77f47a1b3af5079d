"""Names in the report of a month: Markdown shows them as they are, and people read them without escapes."""

from __future__ import annotations

import pytest

from mlp_hub.service.accounting.report import _plain


@pytest.mark.parametrize("name", ["red-team", "v1.2", "* 2.5, a100 3", "my_team", "ann (guest) + 1!", "a:b"])
def test_a_name_without_marks_is_written_as_it_is(name: str) -> None:
    assert _plain(name) == name


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("*bold*", r"\*bold\*"),
        ("_x_", r"\_x\_"),
        ("a|b", r"a\|b"),
        ("~~x~~", r"\~\~x\~\~"),
        ("[a](javascript:b)", r"\[a\](javascript:b)"),
        ("![a](b)", r"!\[a\](b)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("&lt;", r"\&lt;"),
        ("a\\", r"a\\"),
        ("`x`", r"\`x\`"),
        ("# x #", r"\# x \#"),
        ("https://x.org WWW.x.org", r"https\://x.org WWW\.x.org"),
        ("a\n# b", r"a \# b"),
    ],
)
def test_a_mark_is_escaped(name: str, written: str) -> None:
    assert _plain(name) == written
