"""How long is waited before what failed is tried again."""

from __future__ import annotations

from mlp_hub.service.support.backoff import wait_after


def test_each_failure_in_a_row_doubles_the_wait_up_to_the_most() -> None:
    assert [wait_after(n, 0.5, 3.0) for n in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert wait_after(10**9, 0.5, 30.0) == 30.0
