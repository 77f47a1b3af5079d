"""Lines of logs: one an event, with what the event concerns, whatever names and messages contain."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest

from mlp_hub.cli.supervisor import notes
from mlp_hub.hub_integration.log import SafeFormatter, formatter_of
from mlp_hub.logs import concern
from mlp_hub.logs.lines import FIELD_MOST, JsonLines, TextLines, formatter, set_up
from mlp_hub.service.state.leadership import LeaseLost

ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
FORGED = f'{{"level": "info", "message": "User logged in: admin"}}{ENDS}\x1b[2J\x7f\u202e\0"}}\ud800'


def record(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    found = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("mlp_hub.x", logging.WARNING, "f", 1, message, args, found)


def test_a_json_line_has_what_is_known_and_no_more() -> None:
    made = record("job %s", "digits")
    made.created = 1_700_000_000.1239
    want = {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "warning",
        "logger": "mlp_hub.x",
        "message": "job digits",
    }
    assert json.loads(JsonLines().format(made)) == want
    with concern.about("0123456789abcdef", "ann", "digits@2"):
        found = json.loads(JsonLines().format(made))
    assert found == want | {"request_id": "0123456789abcdef", "user": "ann", "job": "digits@2"}


@pytest.mark.parametrize("kind", ["service", "hub"])
def test_no_text_makes_a_second_json_line(kind: str) -> None:
    lines = formatter("json") if kind == "service" else formatter_of("json")("%(message)s", datefmt="%H")
    try:
        raise RuntimeError(FORGED)  # noqa: TRY301 - a traceback is wanted
    except RuntimeError as error:
        made = record("it is %s", FORGED, error=error)
    with concern.about("abcdefgh", FORGED, FORGED * 100):
        line = lines.format(made)
    assert line.isascii()
    assert line.isprintable()
    assert len(line.splitlines()) == 1
    found = json.loads(line)
    assert found["message"] == f"it is {FORGED}"
    assert found["level"] == "warning"
    assert found["user"] == FORGED
    assert len(found["job"]) == FIELD_MOST
    assert "RuntimeError" in found["exception"]


def test_a_text_line_has_the_id_of_its_request() -> None:
    with concern.about("abcdefgh"):
        assert TextLines().format(record("job\n%s", "x")).endswith(r"WARNING mlp_hub.x [abcdefgh] job\nx")
        hub = SafeFormatter(fmt="%(message)s").format(record("one\ntwo"))
    assert hub == "one [abcdefgh]\n    two"
    assert TextLines().format(record("job")).endswith("WARNING mlp_hub.x job")


@pytest.mark.parametrize("json_lines", [False, True], ids=["text", "json"])
def test_no_text_makes_a_second_line_of_the_supervisor(json_lines: bool) -> None:
    log = notes._Log()
    log.set_format("json" if json_lines else "text")
    line = log._line(f"hub ended: {FORGED}").decode()
    assert line.endswith("\n")
    assert not {"\n", "\r", "\x0b", "\x1b", "\x85", "\0"} & set(line[:-1])
    if json_lines:
        found = json.loads(line)
        assert (found["logger"], found["message"]) == ("supervisor", f"hub ended: {FORGED}")


async def test_work_that_a_request_starts_keeps_its_id_and_others_do_not_see_it() -> None:
    seen: dict[str, str] = {}

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        seen[name] = concern.current().request_id
        seen[f"thread of {name}"] = await asyncio.to_thread(lambda: concern.current().request_id)

    async def request(name: str) -> None:
        concern.concerns(name)
        await asyncio.create_task(later(name))

    await asyncio.gather(request("one"), request("two"))
    assert seen == {n: n.removeprefix("thread of ") for n in ("one", "two", "thread of one", "thread of two")}
    assert concern.current() == concern.NOTHING


@pytest.mark.parametrize(
    "given",
    [None, "", "short", "x" * 65, "x" * 10_000, "abcdefgh\n", "abcdefgh\r\nSet-Cookie: a=b", "a b c d e f", "-abcdefgh", "äöüäöüäö"],
)  # fmt: skip
def test_a_bad_id_is_replaced(given: str | None) -> None:
    made = concern.accepted(given)
    assert made != given
    assert concern.WELL_FORMED.fullmatch(made)


def test_a_good_id_is_kept_and_made_ones_differ() -> None:
    assert concern.accepted("edge-7f3a.2026_01") == "edge-7f3a.2026_01"
    assert len({concern.new_id() for _ in range(100)}) == 100


@pytest.fixture
def restored() -> Iterator[None]:
    """Have the root logger as it was after the test."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.usefixtures("restored")
def test_the_service_logs_to_standard_error_in_the_chosen_form(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("INFO", "json")
    logging.getLogger("mlp_hub.y").info("here")
    assert json.loads(capsys.readouterr().err)["logger"] == "mlp_hub.y"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("error", "level", "has_trace"), [(LeaseLost(), "WARNING", False), (RuntimeError("x"), "ERROR", True)]
)
def test_an_unavailable_service_is_logged_as_a_warning_of_one_line(
    error: Exception, level: str, has_trace: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up("INFO", "text")
    try:
        raise error
    except type(error):
        logging.getLogger("mlp_hub.x").exception("a cycle of %s failed", "team")
    lines = capsys.readouterr().err.splitlines()
    assert f" {level} mlp_hub.x a cycle of team failed" in lines[0]
    assert ("Traceback" in "\n".join(lines)) is has_trace
    assert has_trace or (len(lines) == 1 and lines[0].endswith(f": {error}"))
