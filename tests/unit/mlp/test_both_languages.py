"""What the magics, the command and the pictures say, whole, in each language (`golden/`; `pytest --golden` writes it anew)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlp.client.rest import Client
from mlp.commands import actions
from mlp.errors import MLPError, Refused, UsageError
from mlp.grammar.help_text import overview, usage
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND, MAGIC, find
from mlp.handles.job import Job
from mlp.language import headers, say
from mlp.rendering import job_picture, reasons, tables, words
from mlp_language import catalogue
from mlp_language.catalogue import LANGUAGES
from support.clients.mlp_stand_in import FAILED, FINISHED, TOKEN, StandIn, job_record, ranks

GOLDEN = Path(__file__).parent / "golden"
BEFORE = "2020-01-01T10:00:00Z"
ENDED = {"submitted_at": BEFORE, "started_at": BEFORE, "finished_at": "2020-01-01T12:05:00Z", "ran_s": 7500}
QUEUED = {
    "phase": "queued",
    "position": 2,
    "submitted_at": None,
    "waiting_since": None,
    "waited_s": 75,
    "message": "red: 4 / 4",
    "workers": "2:4",
}
FACTS = [
    {"label": "bob", "value": "4", "who": ""},
    {"label": "red: 4 / 4", "value": "10", "who": "ann"},
]
WHY = {
    "job": "digits",
    "run": 3,
    "phase": "queued",
    "reasons": [{"reason": "WaitingForQuota", "message": "red: 4 / 4", "numbers": {}, "facts": FACTS}],
    "position": 2,
    "queue_length": 5,
    "expected_start": BEFORE,
    "expected_because": "bob",
    "how_sure": "sure",
    "sure_because": "bob",
    "would_start_now": ["--cpu 0.4"],
    "stopped": {
        "kind": "preempted",
        "time": BEFORE,
        "message": "bob",
        "kept": "bob",
        "checkpoint_at": BEFORE,
    },
}
DECISION = {
    "time": BEFORE,
    "summary": "bob",
    "waited_for": "bob",
    "changed": ["bob", "ann"],
    "nodes": [{"node": "node-2", "chosen": False}],
    "victims": [
        {"job": None, "tenant": "red", "priority": 50, "chosen": True, "gives": 2, "why": "bob"},
        {"job": "a", "user": "bob", "priority": 100, "chosen": False, "gives": 0, "why": "bob"},
    ],
    "spared": ["bob"],
    "passed": [{"job": "a", "user": "bob", "tenant": "red", "reason": "WaitingForQuota"}],
    "passed_count": 3,
}
QUOTA = {
    "tenant": {
        "name": "red", "cpu": 4, "cpu_inuse": 5, "ram": 8192, "ram_inuse": 2048, "gpu": 0, "gpu_inuse": 0,
        "lent": {"ram": 1024}, "over": {"cpu": 0.5}, "free": {"cpu": 0, "ram": 6144}, "queue_order": "fair", "job_network": "none",
    },
    "holdings": [{"user": "bob", "holder": "digits", "cpu": 5, "ram": 2048, "gpu": 0}],
}  # fmt: skip
OFFER = {
    "cpu": 2, "gpu": 0, "ram": 2048, "fits_now": True, "placement": {"node-1": 1, "node-2": 2}, "gives_way": ["bob"],
    "grace": 30, "would_start_now": ["--cpu 1"], "tenant": "red", "network": "outbound",
}  # fmt: skip


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MLP_LANGUAGE", request.param)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def told() -> Iterator[str]:
    """Tell one of each."""
    failed = job_record(**{**FAILED, **ENDED})
    finished = job_record(**{**FINISHED, **ENDED, "run": 2, "ranks": ranks("finished")})
    queued = job_record(**QUEUED)
    for surface in (MAGIC, COMMAND):
        yield overview(surface)
    for verb in ("submit", "jobs", "resubmit"):
        yield usage(find(verb, COMMAND), COMMAND)
    yield repr(tables.jobs([failed, finished, queued]))
    yield tables.jobs([failed])._repr_html_()
    yield repr(tables.jobs([]))
    yield repr(tables.quota([QUOTA]))
    yield repr(reasons.offer(OFFER))
    yield repr(reasons.offer({"reasons": [{"reason": "ExceedsMaxQuota", "message": "bob"}]}))
    yield repr(reasons.why(WHY, None, [DECISION]))
    yield repr(reasons.why({"job": "digits", "run": 1, "phase": "failed"}, failed))
    for job in (failed, finished, queued):
        yield job_picture.text({"job": job})
        yield job_picture.html({"job": job, "saved_at": BEFORE, "why": WHY if job is queued else None})
    yield repr(Job(None, failed))  # type: ignore[arg-type] - asks nobody
    yield words.still_there(queued)
    for line in (
        ["sbmit"],
        ["jobs", "--stat", "x"],
        ["jobs", "--state", "runing"],
        ["submit", "--ram", "2", "gb"],
        ["why"],
    ):
        with pytest.raises(UsageError) as wrong:
            parse(line, COMMAND)
        yield "\n".join(wrong.value._render_traceback_())
    yield "\n".join(Refused("WaitingForQuota", "bob")._render_traceback_())


def test_all_that_is_told_is_as_it_was_read(language: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{language}.txt", "\n\n----\n\n".join(told()) + "\n")


def test_a_request_says_for_whom_its_answer_is_made(language: str) -> None:
    assert headers() == {"Accept-Language": language, "Time-Zone": "UTC"}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a notebook server; the file is where its JupyterLab keeps the language that was chosen there."""
    monkeypatch.setattr(catalogue, "_told", "")
    monkeypatch.setenv("JUPYTERHUB_USER", "ann")
    monkeypatch.setenv("MLP_LANGUAGE", "en")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR"):
        monkeypatch.delenv(name, raising=False)
    file = (
        tmp_path / ".jupyter/lab/user-settings/@jupyterlab/translation-extension/plugin.jupyterlab-settings"
    )
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize(
    ("chosen", "asked"), [("zh_CN", "zh-CN"), ("en_GB", "en"), ("default", "en"), ("de_DE", "en")]
)
def test_a_notebook_speaks_the_language_that_was_chosen_in_jupyterlab(
    lab: Path, chosen: str, asked: str
) -> None:
    assert headers()["Accept-Language"] == "en"
    lab.write_text(f'{{\n    // Language of the interface\n    "locale": "{chosen}"\n}}')
    assert headers()["Accept-Language"] == asked


def test_the_client_switches_to_the_language_of_the_service_since_it_knows_the_users_setting(
    lab: Path,
) -> None:
    assert say("Examples") == "Examples"
    with StandIn() as world:
        world.language = "zh-CN"
        Client(world.url, TOKEN).preferences()
    assert say("Examples") == "示例"
    assert headers()["Accept-Language"] == "en"  # what is asked for where the setting is empty again


def test_the_language_is_chosen_by_a_magic_and_by_a_command_and_told_in_it(lab: Path) -> None:
    with StandIn() as world:
        client = Client(world.url, TOKEN)
        chosen = actions.language(client, parse(["language", "zh-CN"], MAGIC))
        assert (world.language, chosen.data) == ("zh-CN", {"language": "zh-CN"})
        assert "简体中文" in repr(chosen)
        assert actions.language(client, parse(["language"], COMMAND)).data == {"language": "zh-CN"}
        assert actions.language(client, parse(["language", "auto"], COMMAND)).data == {"language": ""}
    with pytest.raises(UsageError):
        parse(["language", "tlh"], COMMAND)


def test_columns_of_a_terminal_are_straight_in_chinese_too() -> None:
    table = tables.Table(("名称", "状态"), [["数字", "排队中"], ["abc", "运行"]], None)
    assert repr(table).split("\n") == ["名称  状态", "数字  排队中", "abc   运行"]
    assert tables._lines(["等待节点空位", "red"], [6, 3]) == ["等待节  red", "点空位"]
    assert tables._clip("等" * 40) == "等" * 28 + "..."


def test_values_inserted_into_a_message_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLP_LANGUAGE", "zh-CN")
    error = UsageError("{what} <b>%s")
    assert error._render_traceback_() == ["输入有误：{what} <b>%s"]
    assert isinstance(error, MLPError)
