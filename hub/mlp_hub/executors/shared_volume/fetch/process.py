"""Process that copies a source, run by `mlp_hub.confined` with a root, a user, and a dataset.

The source, with its credentials, comes on standard input alone.

in:   one line of JSON, then `go` when there is room; it ends when the input does. Without a source: its files are removed
out:  lines of JSON: {"room": bytes}, {"percent": n} each second, and one of the ends
      {"files": n, "size": bytes}, {"reason": name, "message": message}, {"errno": number}
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from msgspec import convert

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.shared_volume.fetch.landing import Landing, opened
from mlp_hub.executors.workspace import OpenSource
from mlp_language.message import msg, to_data

SAID_S = 1.0
"""Tuning: seconds between two words on how far it is."""
_OUT = threading.Lock()


def _say(**what: Any) -> None:
    with _OUT:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


_opened = contextlib.ExitStack()
_places: list[tuple[int, int]] = []


def prepare() -> None:
    """Open the directories of the dataset, while that can be done, and load all that is needed later."""
    root, user, name, owner = sys.argv[1:]
    with contextlib.suppress(OSError):  # `main` says so
        where = opened(Path(root), user, name, int(owner) if owner else None)
        _places.append(_opened.enter_context(where))
    with contextlib.suppress(ImportError):  # whoever has not installed it is told
        for name in ("store", "copier"):
            importlib.import_module(f"mlp_hub.executors.shared_volume.fetch.{name}")


def shown() -> list[str]:
    """Return the certificates of authorities, which are read for each connection."""
    with contextlib.suppress(ImportError):
        import certifi  # noqa: PLC0415 - of mlp-hub[s3]

        return [certifi.where()]
    return []


def main() -> int:
    """Copy; the status is 0 whenever an end was said."""
    asked = json.loads(sys.stdin.readline())
    go = threading.Event()
    threading.Thread(target=_listen, args=(go,), daemon=True).start()
    try:
        _say(**_copy(asked, go))
    except ImportError:
        text = msg("this hub cannot copy from object stores: its operator must install mlp-hub[s3]")
        _say(reason=Reason.WRONG_STATE.value, message=to_data(text))
    except Refused as refused:
        _say(reason=refused.reason.value, message=to_data(refused.message))
    except OSError as error:
        _say(errno=error.errno or 0)
    except MemoryError:
        text = msg("the answer of the endpoint is too large")
        _say(reason=Reason.INVALID.value, message=to_data(text))
    return 0


def _listen(go: threading.Event) -> None:
    for line in sys.stdin:
        if line.strip() == "go":
            go.set()
    os._exit(3)  # nobody is there any more


def _copy(asked: dict[str, Any], go: threading.Event) -> dict[str, int]:
    if not _places:
        raise OSError(errno.EIO, "the dataset's directory cannot be opened, or another process has it")
    landing = Landing(*_places[0])
    if asked["source"] is None:
        landing.clear()
        return {"files": 0, "size": 0}
    # here, so that whoever has not installed it is told
    from mlp_hub.executors.shared_volume.fetch.copier import CopyProgress, SourceCopy, Standstill  # noqa: PLC0415
    from mlp_hub.executors.shared_volume.fetch.store import ObjectStore  # noqa: PLC0415

    progress = CopyProgress()

    def tell() -> None:
        still = Standstill(progress, time.monotonic)
        while True:
            _say(percent=progress.percent)
            if still.is_over():
                text = msg(
                    "the source sends almost nothing; sync again when it works. Received files are kept"
                )
                _say(reason=Reason.INVALID.value, message=to_data(text))
                os._exit(0)
            threading.Event().wait(SAID_S)

    def admit(size: int) -> None:
        _say(room=size)
        go.wait()

    threading.Thread(target=tell, daemon=True).start()
    source = convert(asked["source"], OpenSource)
    copy = SourceCopy(ObjectStore(source), landing, progress)
    if source.wanted is None:
        extent = copy.run(source.prefix, admit)
    elif source.wanted:
        extent = copy.bring(source.prefix, source.wanted, admit)
    else:
        extent = copy.check_source(source.prefix)
    return {"files": extent.files, "size": extent.size}
