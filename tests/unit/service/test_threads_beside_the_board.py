"""What a transaction reads of the board it reads in a thread, while the loop goes on to change the board."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlp_hub.service.storage_migration.worker import still_running


class Job:
    """A job; whoever looks at it finds another one on the board after that."""

    def __init__(self, board: Any) -> None:
        self.board, self.ref = board, "digits"

    @property
    def spec(self) -> Any:
        self.board.holding[str(len(self.board.holding))] = self
        return SimpleNamespace(tenant="red", replica=None)


def test_jobs_that_begin_during_a_look_do_not_break_it() -> None:
    board: Any = SimpleNamespace(holding={})
    board.holding["a"] = Job(board)
    tx: Any = SimpleNamespace(
        ledger=SimpleNamespace(held=lambda *_args, **_fields: []),
        stored=SimpleNamespace(of_tenant=lambda _tenant: []),
    )
    assert still_running(tx, board, "red", 1.0).others == ("digits",)
    assert len(board.holding) > 1
