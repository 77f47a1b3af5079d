"""An error of `mlp` shows the id of its request to the person, who gives it to the operator."""

from __future__ import annotations

import json
import pickle

import pytest

from mlp.cli import _fail
from mlp.client.connection import Answer, ServiceConnection
from mlp.errors import MLPError, Refused

BODY = {"msg": "no", "reason": "Invalid"}


def error_of(status: int, headers: dict[str, str], body: object) -> MLPError:
    connection = object.__new__(ServiceConnection)
    with pytest.raises(MLPError) as caught:
        connection.checked(Answer(status, headers, json.dumps(body).encode()))
    return caught.value


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_an_error_has_the_id_of_its_request(status: int) -> None:
    assert error_of(status, {"x-request-id": "abcdefgh"}, BODY).request_id == "abcdefgh"
    assert error_of(status, {}, BODY | {"request_id": "of-the-body"}).request_id == "of-the-body"


@pytest.mark.parametrize(
    "given", ["", "x" * 10_000, "a b", "abcdefgh\x1b[2J", "a\nmlp: done", 7, None, {"a": 1}]
)
def test_a_server_cannot_write_to_the_terminal_by_an_id(given: object) -> None:
    error = error_of(403, {}, BODY | {"request_id": given})
    assert (error.request_id, error.traced) == ("", "")


def test_the_id_has_a_separate_line_and_a_field_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(403, {"x-request-id": "abcdefgh"}, BODY)
    assert _fail(error, as_json=False) == _fail(error, as_json=True)
    text = capsys.readouterr().err.splitlines()
    assert text[:2] == ["mlp: no", "     Request abcdefgh"]
    assert json.loads(text[2]) == {"error": "Invalid", "msg": "no", "request_id": "abcdefgh"}
    assert error._render_traceback_() == ["Refused (Invalid): no", "Request abcdefgh"]
    assert Refused("Invalid", "no")._render_traceback_() == ["Refused (Invalid): no"]


def test_the_id_survives_the_way_to_another_process() -> None:
    error = error_of(403, {"x-request-id": "abcdefgh"}, BODY)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert (type(again), again.request_id) == (type(error), "abcdefgh")
