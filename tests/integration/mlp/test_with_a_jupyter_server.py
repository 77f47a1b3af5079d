"""A real Jupyter Server with our part in it: notebooks that it saved, and what it keeps for a page that is away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from mlp.notebook_server.absent_pages import MOST_BYTES
from support.files.notebook_files import document, made
from support.hubs.jupyter_servers import TOKEN, JupyterServer, jupyter_server
from support.hubs.kernel_client import Kernel
from support.waiting import PATIENCE_S, wait_for

PRINTED = 480_000
"""Lines of 1 kB."""
CHATTY = """
import pathlib
print("first", flush=True)
while not pathlib.Path({go!r}).exists():
    pass
for number in range({lines}):
    print(number, "x" * 1000)
print("last", flush=True)
pathlib.Path({done!r}).touch()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    with jupyter_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def kernel_of(server: JupyterServer, session: str) -> Kernel:
    return Kernel(server.url, "ann", TOKEN, session=session)


def leave(kernel: Kernel) -> None:
    """Close a page, and return when the server has noticed."""
    kernel.close()
    with pytest.raises(ConnectionClosed):
        kernel.ws.recv()


def away(server: JupyterServer, kernel: Kernel) -> bool:
    return server.client.get(f"/kernels/{kernel.id}").json()["connections"] == 0


def idle(server: JupyterServer, kernel: Kernel) -> bool:
    return server.client.get(f"/kernels/{kernel.id}").json()["execution_state"] == "idle"


def run_while_away(server: JupyterServer, kernel: Kernel, folder: Path, lines: int) -> str:
    """Run a cell that prints so many KiB while no page is open; return the request's id."""
    go, done = folder / "go", folder / "done"
    asked = kernel.send(CHATTY.format(go=str(go), done=str(done), lines=lines))
    while json.loads(kernel.ws.recv(timeout=PATIENCE_S))["content"].get("text") != "first\n":
        pass
    leave(kernel)
    wait_for(lambda: away(server, kernel))
    go.touch()
    wait_for(done.exists, message="for the cell to have printed all")
    wait_for(lambda: idle(server, kernel), message="for the server to have read all that the kernel sent")
    return asked


def test_output_of_a_cell_without_a_page_is_bounded_and_the_page_learns_how_much_is_missing(
    server: JupyterServer, tmp_path: Path
) -> None:
    kernel = kernel_of(server, "page-a")
    assert kernel.run("1") == "1"
    before = server.peak
    asked = run_while_away(server, kernel, tmp_path, lines=PRINTED)
    kernel.open()
    shown = kernel.rest(asked)
    note, *_ = shown.strip().partition("\n")
    assert note.endswith("MiB of output were dropped while no page was open; its newest part follows.]")
    dropped = float(note.removeprefix("[").split()[0])
    numbers = [int(number) for number in re.findall(r"^(\d+) x{1000}$", shown, re.MULTILINE)]
    assert 20 < dropped < 480, "a kernel that is faster than its server loses some by itself"
    assert numbers == list(range(PRINTED - len(numbers), PRINTED)), "the newest, without a gap"
    assert len(numbers) > 3_000
    assert shown.endswith("last\n")
    # what was kept, and what was on its way to the page by another socket than the one that tells of the end
    assert len(shown) < 2 * MOST_BYTES
    # messages of some MiB are on their way at any time, however much is printed
    assert server.peak - before < PRINTED * 1000 / 2, "far less than what was printed"
    assert kernel.run("'on'") == "'on'"
    kernel.close()


def test_output_that_fits_is_replayed_whole_for_each_kernel_separately(
    server: JupyterServer, tmp_path: Path
) -> None:
    kernels = [kernel_of(server, f"page-{n}") for n in range(2)]
    asked = []
    for number, kernel in enumerate(kernels):
        (tmp_path / str(number)).mkdir()
        asked.append(run_while_away(server, kernel, tmp_path / str(number), lines=3_500 - number))
    for number, kernel in enumerate(kernels):
        kernel.open()
        lines = kernel.rest(asked[number]).splitlines()
        assert [line.split()[0] for line in lines[:-1]] == [str(n) for n in range(3_500 - number)]
        assert lines[-1] == "last"
        kernel.close()


@pytest.mark.parametrize("directory", ["", "sub"])
def test_a_notebook_that_jupyter_saved_is_a_job_s_program(
    server: JupyterServer, tmp_path: Path, directory: str
) -> None:
    (server.root / directory).mkdir(exist_ok=True)
    path = f"{directory}/saved.ipynb".removeprefix("/")
    content = made("lr = 1\nname = 'a'", "print('lr is', lr)\nprint('over')")
    put = server.client.put(f"/contents/{path}", json={"type": "notebook", "content": content})
    assert put.status_code == 201, put.text
    assert isinstance(json.loads((server.root / path).read_text())["cells"][0]["source"], list)
    ran = subprocess.run(
        [sys.executable, "-m", "mlp.notebook_run", path],
        cwd=server.root,
        env={**os.environ, "HOME": str(server.root), "MLP_WORKSPACE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "lr is 1\nover\n" in ran.stdout
    assert json.loads((tmp_path / "saved.ipynb").read_text())["cells"][1]["outputs"]


def test_the_notebooks_that_tests_write_are_those_that_jupyter_saves(server: JupyterServer) -> None:
    content = made("a\nb", ("c", "parameters"))
    server.client.put(
        "/contents/same.ipynb", json={"type": "notebook", "content": content}
    ).raise_for_status()
    saved = json.loads((server.root / "same.ipynb").read_text())
    ours = document("a\nb", ("c", "parameters"))
    assert (saved["cells"], saved["nbformat"]) == (ours["cells"], ours["nbformat"])
