from __future__ import annotations

from mlp_hub.hub_integration.accounts.lockout import Lockout


def test_a_name_is_locked_after_the_allowed_failures_and_free_again_later():
    lock = Lockout(allowed=3, wait_s=60)
    for t in range(3):
        assert lock.locked_for("ann", t) == 0
        lock.failed("ann", t)
    assert lock.locked_for("ann", 2) == 60
    assert lock.locked_for("ann", 61.5) == 0.5
    assert lock.locked_for("ann", 62) == 0
    assert lock.locked_for("bob", 2) == 0


def test_a_success_forgets_the_failures():
    lock = Lockout(allowed=2, wait_s=60)
    lock.failed("ann", 0)
    lock.succeeded("ann")
    lock.failed("ann", 1)
    assert lock.locked_for("ann", 1) == 0


def test_failures_far_apart_do_not_add_up():
    lock = Lockout(allowed=2, wait_s=60)
    lock.failed("ann", 0)
    lock.failed("ann", 61)
    assert lock.locked_for("ann", 61) == 0


def test_memory_is_bounded_and_the_oldest_failures_are_forgotten():
    lock = Lockout(allowed=1, wait_s=60, capacity=2)
    for t, name in enumerate(["ann", "bob", "cai"]):
        lock.failed(name, t)
    assert lock.locked_for("ann", 3) == 0
    assert lock.locked_for("bob", 3) > 0
    assert lock.locked_for("cai", 3) > 0
