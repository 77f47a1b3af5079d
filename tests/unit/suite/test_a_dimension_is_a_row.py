"""How many places a dimension has that is only counted: those of the size of /dev/shm."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = {"hub/mlp_hub/domain/dimensions.py", "widgets/src/core/format/dimensions.ts"}
ACTS = {
    "hub/mlp_hub/executors/kubernetes/gang/pods.py",
    "hub/mlp_hub/executors/local/prepare.py",
    "hub/mlp_hub/sandbox/shim/diagnosis/outcome.py",
    "hub/mlp_hub/sandbox/shim/view.py",
    "hub/mlp_hub/sandbox/spec.py",
    "hub/mlp_hub/service/lifecycle/messages.py",
}
MADE = {"extensions/mlp/terms.py", "widgets/src/core/format/terms.ts"}
_NAMED = re.compile(r"(?<!/dev/)\bshm(?:_mib)?\b")


def test_shared_memory_is_named_in_two_rows_and_where_it_acts() -> None:
    sources = [
        path
        for folder, endings in (("hub", "py"), ("extensions", "py"), ("widgets/src", "ts*"))
        for path in (ROOT / folder).rglob(f"*.{endings}")
    ]
    named = {str(p.relative_to(ROOT)) for p in sources if _NAMED.search(p.read_text(encoding="utf-8"))}
    assert named == ROWS | ACTS | MADE
