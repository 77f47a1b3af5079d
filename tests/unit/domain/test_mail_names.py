"""Names of mail addresses are hidden wherever they are in a text; the rest of it stays."""

from __future__ import annotations

import pytest

from mlp_hub.domain.notices.mail_names import without_names


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("", ""),
        ("work (ann@example.org)", "work (***@example.org)"),
        (
            "a (ann@x.org), b (https://hooks.x.org:8443), c (slack)",
            "a (***@x.org), b (https://hooks.x.org:8443), c (slack)",
        ),
        ("a (ann.o'hara+ml{1}@x.org), b (bob@y.org)", "a (***@x.org), b (***@y.org)"),
        ("work (***@example.org)", "work (***@example.org)"),
        ("odd (a@b@example.org)", "odd (***@example.org)"),
        ('quoted ("a b"@example.org)', "quoted (***@example.org)"),
        ("ann@example.org (bob@example.org)", "***@example.org (***@example.org)"),
        ("cut (ann@example.org, more (bob@example.org", "cut (***@example.org, more (***@example.org"),
        ("@ (at) @", "@ (at) @"),
        ("a" * 100_000 + " (" + "b" * 100_000, "a" * 100_000 + " (" + "b" * 100_000),
        ("(" * 50_000 + "a@" * 50_000 + "b", "(" * 50_000 + "***@b"),
    ],
)
def test_the_name_before_the_domain_is_hidden(stored: str, shown: str) -> None:
    assert without_names(stored) == shown
    assert without_names(shown) == shown
