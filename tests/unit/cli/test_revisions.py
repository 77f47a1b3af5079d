"""Which revision is the newest is read from migrations however they write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import database


def write(folder: Path, *texts: str) -> None:
    for n, text in enumerate(texts):
        (folder / f"{n}.py").write_text(
            f'"""A step."""\nfrom alembic import op\n{text}\n\ndef upgrade(): ...\n'
        )


@pytest.mark.parametrize(
    "last",
    [
        "revision = 'c'\ndown_revision = 'b'",
        'revision: str = "c"\ndown_revision: str | None = "b"',
        'revision = "c"\ndown_revision: Union[str, None] = (\n    "b"\n)',
        'revision = "c"\ndown_revision = ("a", "b")',
    ],
)
def test_it_is_the_one_that_no_other_comes_after(tmp_path: Path, last: str) -> None:
    write(tmp_path, "revision = 'a'\ndown_revision = None", "revision = 'b'; down_revision = 'a'", last)
    (tmp_path / "__init__.py").touch()
    assert database._chain(tmp_path) == ({"a", "b", "c"}, "c")


@pytest.mark.parametrize("text", ["revision = name()\ndown_revision = 'a'", "revision = 'b'"])
def test_one_that_does_not_say_it_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, "revision = 'a'\ndown_revision = None", text)
    with pytest.raises(CommandFailed, match=r"1\.py has no newest revision"):
        database._chain(tmp_path)
