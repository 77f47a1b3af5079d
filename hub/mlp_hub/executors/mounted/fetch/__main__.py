"""The process: `python -m mlp_hub.executors.mounted.fetch`. What to copy, with its credentials, comes on standard input alone.

in:   one line of JSON, then `go` when there is room; it ends when the input does. Without a source: what came of it is removed
out:  lines of JSON: {"room": bytes}, {"percent": n} each second, and one of the ends
      {"files": n, "size": bytes}, {"reason": name, "message": message}, {"errno": number}
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

from msgspec import convert

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.workspace import OpenSource
from mlp_language.message import msg, to_data

MEMORY = 2 << 30
"""Safety: bytes of address space: what an endpoint answers is in memory for a moment."""
SAID_S = 1.0
"""Tuning: seconds between two words on how far it is."""
_OUT = threading.Lock()


def _say(**what: Any) -> None:
    with _OUT:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


def main() -> int:
    """Copy; the status is 0 whenever an end was said."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    asked = json.loads(sys.stdin.readline())
    go = threading.Event()
    threading.Thread(target=_listen, args=(go,), daemon=True).start()
    try:
        _say(**_copy(asked, go))
    except ImportError:
        text = msg("this hub copies from no object store: its operator installs mlp-hub[s3]")
        _say(reason=Reason.WRONG_STATE.value, message=to_data(text))
    except Refused as refused:
        _say(reason=refused.reason.value, message=to_data(refused.message))
    except OSError as error:
        _say(errno=error.errno or 0)
    except MemoryError:
        text = msg("what the endpoint answers is too much")
        _say(reason=Reason.INVALID.value, message=to_data(text))
    return 0


def _listen(go: threading.Event) -> None:
    for line in sys.stdin:
        if line.strip() == "go":
            go.set()
    os._exit(3)  # nobody is there any more


def _copy(asked: dict[str, Any], go: threading.Event) -> dict[str, int]:
    from mlp_hub.executors.mounted.fetch.landing import Landing  # noqa: PLC0415 - as below

    landing = Landing(Path(asked["root"]), asked["user"], asked["name"], asked["owner"])
    if asked["source"] is None:
        landing.clear()
        return {"files": 0, "size": 0}
    # here, so that whoever has not installed it is told
    from mlp_hub.executors.mounted.fetch.copier import CopyProgress, SourceCopy  # noqa: PLC0415
    from mlp_hub.executors.mounted.fetch.store import ObjectStore  # noqa: PLC0415

    progress = CopyProgress()

    def tell() -> None:
        while True:
            _say(percent=progress.percent)
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
        extent = copy.look(source.prefix)
    return {"files": extent.files, "size": extent.size}


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
