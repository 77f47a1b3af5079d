"""The filter of system calls: made once, and where it cannot be made that is said."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from mlp_hub.sandbox import seccomp
from mlp_hub.sandbox.capabilities import probe


def test_it_is_whole_instructions_and_the_same_each_time() -> None:
    first = seccomp.program()
    assert first
    assert len(first) % 8 == 0
    assert seccomp.program() is first
    seccomp.program.cache_clear()
    assert seccomp.program() == first


def test_without_the_library_sandboxes_are_made_all_the_same_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **keywords: Any) -> Any:
        if name == "pyseccomp":
            raise RuntimeError("Unable to find libseccomp")
        return real(name, *more, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    seccomp.program.cache_clear()
    found = probe()
    if found.mode not in ("root-userns", "root", "userns"):
        pytest.skip("no sandbox can be made on this machine")
    assert found.seccomp is None
    (said,) = [m for m in found.missing if m.what == "system call filter"]
    assert "Unable to find libseccomp" in said.effect
    assert "libseccomp2" in said.remedy
