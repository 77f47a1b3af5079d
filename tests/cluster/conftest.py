"""A real cluster (`tests/support/cluster/real_cluster.py`), and a namespace of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from support.cluster.kube import Kube, Namespace
from support.cluster.real_cluster import kube, upper

__all__ = ["kube", "upper"]  # fixtures


@pytest.fixture
def namespace(kube: Kube) -> Iterator[Namespace]:
    """A namespace that takes only what tenants' may hold."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kube("create", "namespace", name)
    kube("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield Namespace(kube, name)
    kube("delete", "namespace", name, "--wait=false")
