"""A notebook with cells of `%mlp` that somebody else wrote and ran: it runs as who opens it, and what it keeps says nothing of who ran it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from mlp.display.job_monitor import JOB_VIEW
from support.clients import mlp_stand_in
from support.clients.mlp_stand_in import FINISHED, RUNNING, StandIn
from support.waiting import PATIENCE_S

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
CELLS = (
    "%load_ext mlp",
    "%%mlp submit --name digits --wait\nprint(1)",
    "%mlp jobs",
    "%mlp watch digits",
    "_mlp",
)


@pytest.fixture(autouse=True)
def kernels_of_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD", "MLP_DISPLAY", "MLP_JOB", "JUPYTERHUB_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory of a dataset that both may read."""
    made = tmp_path / "shared"
    made.mkdir()
    return made


def run_as(
    world: StandIn, token: str, notebook: Any, where: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Run all cells as whose server this is; return the notebook as it is kept."""
    monkeypatch.setattr(mlp_stand_in, "TOKEN", token)
    for name, value in {**world.env(), "MLP_TOKEN": token}.items():
        monkeypatch.setenv(name, value)
    kept = copy.deepcopy(notebook)
    NotebookClient(kept, timeout=PATIENCE_S, resources={"metadata": {"path": str(where)}}).execute()
    nbformat.write(kept, where / "shared.ipynb")
    found: dict[str, Any] = json.loads((where / "shared.ipynb").read_text())
    return found


class _Tags(HTMLParser):
    """Takes note of what a browser would make of HTML: each tag with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def bundles(kept: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for cell in kept["cells"]:
        for output in cell.get("outputs", ()):
            yield output.get("data", {})


def test_a_notebook_of_anothers_submits_as_who_runs_it_and_keeps_no_token(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    with StandIn() as of_ann:
        of_ann.script = [RUNNING, FINISHED]
        run_as(of_ann, "token-of-ann-alone", notebook, shared, monkeypatch)
        first = len(of_ann.requests)
        saved = (shared / "shared.ipynb").read_text()
        assert first == 1
        assert "token-of-ann-alone" not in saved
        assert of_ann.url not in saved, "nor where the service is"
        with StandIn() as of_bob:
            of_bob.script = [RUNNING, FINISHED]
            opened = nbformat.read(shared / "shared.ipynb", as_version=4)  # type: ignore[no-untyped-call]
            run_as(of_bob, "token-of-bob-alone", opened, shared, monkeypatch)
            assert len(of_bob.requests) == 1
            assert len(of_ann.requests) == first, "nothing is asked in the name of who ran it before"
        saved = (shared / "shared.ipynb").read_text()
        assert "token-of" not in saved


def test_a_stored_notebook_runs_nothing_in_another_users_browser(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever jobs are called and say, its HTML has no script, and of a job that is drawn live only its name is kept as an address."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    evil = {"message": EVIL, "tenant": EVIL, "runtime": EVIL, "priority": EVIL}
    with StandIn() as world:
        world.script = [{**RUNNING, **evil}, {**FINISHED, **evil}]
        kept = run_as(world, "token-of-ann-alone", notebook, shared, monkeypatch)
    drawn = 0
    for data in bundles(kept):
        assert set(data) <= {"text/plain", "text/html", JOB_VIEW}, "nothing that a browser would run"
        tags = _Tags()
        tags.feed("".join(data.get("text/html", "")))
        for tag, attributes in tags.seen:
            assert tag not in {"script", "iframe", "object", "embed", "link", "meta", "base", "form", "style"}
            assert not [name for name in attributes if name.startswith("on")]
            for name in ("href", "src", "action", "formaction", "srcdoc"):
                address = attributes.get(name) or ""
                assert address.startswith(("data:image/svg+xml", "http://", "https://")) or not address, (
                    address
                )
        if JOB_VIEW in data:
            drawn += 1
            assert set(data[JOB_VIEW]) == {"user", "name", "snapshot"}
    assert drawn
