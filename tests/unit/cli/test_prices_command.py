"""`mlp-hub prices` and `mlp-hub report`: what they ask for, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.cli.commands import prices
from mlp_hub.cli.errors import UsageFailure
from mlp_hub.settings import Settings

LIST = {
    "currency": "EUR",
    "periods": [
        {"begins": "2031-01-01", "ends": None, "core_hour": "0.04", "gib_hour": "0", "gib_month": "0", "gpu_hour": {"a\x1b[31m": "2"}}
    ],
}  # fmt: skip


class Told:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def ask(settings: Settings, method: str, path: str, body: object = None) -> Told:
        calls.append((method, path, body))
        return Told(b"# Use\x1b[2J\n| a |\n" if ":report" in path else json.dumps(LIST).encode())

    monkeypatch.setattr(prices, "ask_service", ask)
    return calls


def test_a_list_is_put_from_a_file_and_shown_without_control_characters(
    asked: list[tuple[Any, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(LIST))
    assert prices.put(Settings(), file) == 0
    assert asked == [("PUT", "/prices", LIST)]
    text = capsys.readouterr().out
    assert "core-hour 0.04" in text
    assert "\x1b" not in text
    assert prices.show(Settings(), as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == LIST


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff\xfe", b"nul"])
def test_a_file_without_a_list_is_refused_before_any_request(
    asked: list[tuple[Any, ...]], tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "prices.json"
    file.write_bytes(content)
    with pytest.raises(UsageFailure):
        prices.put(Settings(), file)
    with pytest.raises(UsageFailure):
        prices.put(Settings(), tmp_path / "absent.json")
    assert asked == []


def test_a_report_is_that_of_a_month_and_a_tenant(
    asked: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert prices.report(Settings(), month="2031-03", tenant="red/../x") == 0
    assert asked == [("GET", "/tenants/red%2F..%2Fx/accounting:report?month=2031-03", None)]
    assert "\x1b" not in capsys.readouterr().out
    prices.remove(Settings())
    assert asked[-1][:2] == ("DELETE", "/prices")


@pytest.mark.parametrize("month", ["nonsense", "2031-13", "2031-3", "03/2031", "", "a\x1b[2J" * 9])
def test_a_report_of_no_month_is_refused_with_a_right_one(asked: list[tuple[Any, ...]], month: str) -> None:
    with pytest.raises(UsageFailure, match="such as 2031-03"):
        prices.report(Settings(), month=month, tenant=None)
    assert asked == []
