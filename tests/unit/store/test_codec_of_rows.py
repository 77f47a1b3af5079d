from __future__ import annotations

import string
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.store import codec

words = st.text(string.printable + "äß€", max_size=12)
counts = st.integers(0, 2**62)
moments = st.floats(0, 4e9, allow_nan=False)
st.register_type_strategy(
    Resources,
    st.builds(
        Resources, counts, counts, counts, counts, st.lists(st.tuples(words, counts), max_size=2).map(tuple)
    ),
)
maybe = st.none() | counts
quotas = st.builds(Quota, maybe, maybe, maybe, maybe, st.dictionaries(words, counts, max_size=2))
st.register_type_strategy(Quota, quotas)
st.register_type_strategy(str, words)
st.register_type_strategy(float, moments)
st.register_type_strategy(int, counts)


@settings(max_examples=20, deadline=None)
@given(st.builds(Job))
def test_any_job_comes_back_from_its_row(job) -> None:
    assert codec.job_of(SimpleNamespace(**codec.job_row(job))) == job


@settings(max_examples=20, deadline=None)
@given(st.builds(ResourceRequest))
def test_any_request_comes_back_from_its_row(request) -> None:
    assert codec.request_of(SimpleNamespace(**codec.request_row(request))) == request


@settings(max_examples=20, deadline=None)
@given(st.builds(Tenant, borrowing_limit=st.none() | quotas))
def test_any_tenant_comes_back_from_its_row(tenant) -> None:
    standing = {"idle_since": tenant.idle_since, "lowered": codec.lowering_text(tenant.lowered)}
    assert codec.tenant_of(SimpleNamespace(**codec.tenant_row(tenant), **standing)) == tenant


@settings(max_examples=20, deadline=None)
@given(st.builds(BookedWindow))
def test_any_booked_window_comes_back_from_its_row(window) -> None:
    assert codec.booking_of(SimpleNamespace(**codec.booking_row(window))) == window
