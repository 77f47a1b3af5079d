"""Doctor's checks of the part that holds datasets' files: the process, its token, directory and room."""

from __future__ import annotations

import os
import shutil

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.http import request
from mlp_hub.cli.supervisor import processes
from mlp_hub.service.disk.rules import policy_for
from mlp_hub.settings import Settings
from mlp_language.render import say

NAME = "data"


def data(settings: Settings) -> list[Check]:
    """Tell whether files of datasets can be read and written."""
    where = settings.data_dir
    if not where.is_dir():
        return [Check(NAME, OK, say("{where} is made at the first start", where=str(where)))]
    return [_directory(settings), *_process(settings)]


def _directory(settings: Settings) -> Check:
    where = settings.data_dir
    closed = [
        path for path in (where, where / "datasets", where / "models") if path.exists() and not _open(path)
    ]
    if closed:
        return Check(
            NAME,
            FAIL,
            say("the hub cannot write to {where}", where=str(closed[0])),
            say("Change its owner back to the user of the hub (chown)."),
        )
    found = shutil.disk_usage(where)
    floor = policy_for(found.total, *settings.disk_limits).floor
    free = say("{free} GiB free in {place}", free=f"{found.free / 2**30:.1f}", place=str(where))
    if found.free < floor:
        return Check(NAME, WARN, free, say("Make room: uploads are refused once the disk is full."))
    return Check(NAME, OK, free)


def _open(path: os.PathLike[str]) -> bool:
    return os.access(path, os.R_OK | os.W_OK | os.X_OK)


def _process(settings: Settings) -> list[Check]:
    if processes.find(settings, "data") is None:
        return []  # the check of the hub says so where others run
    answer = request(settings.data_at, "GET", "/health", timeout=10)
    logs = say("See `mlp-hub logs data`.")
    if answer.status != 200:
        return [Check(NAME, FAIL, say("files of datasets: {message}", message=answer.message), logs)]
    said = answer.json()
    if said.get("token") == "refused":
        return [
            Check(
                NAME,
                FAIL,
                say("the service does not recognize the token of the data component"),
                say("`mlp-hub down` and `mlp-hub up` give both the same token; jobs continue."),
            )
        ]
    if not said.get("ready"):
        return [
            Check(NAME, WARN, say("files of datasets are not served yet: the service did not answer"), logs)
        ]
    return [Check(NAME, OK, say("files of datasets are served"))]
