"""What may not leave a site: known names and secrets, and what looks like a secret, in every form in which logs have them."""

from __future__ import annotations

import pytest

from mlp_hub.cli.debug_dump.redaction import GONE, Redactor

NAMES = {
    "ann": "user-1",
    "ann-lee": "user-2",
    "digits": "job-1",
    "digits-1": "job-2",
    "gene_lab": "team-1",
    "a.b": "job-3",
}
SECRET = "correct horse battery"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(NAMES, [SECRET, "short", "Zebra9"])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("job digits of ann waits", "job job-1 of user-1 waits"),
        ("ann-lee/digits-1@3 started", "user-2/job-2@3 started"),
        ("digits-1.log and digits-2.log", "job-2.log and job-1-2.log"),
        ("mlp-ann-lee-0 in mlp-gene_lab", "mlp-user-2-0 in mlp-team-1"),
        ("uid='ann',", "uid='user-1',"),
        ("annual planning", "annual planning"),
        ("a.b.c", "job-3.c"),
        ("/srv/hub/homes/ann/thesis/draft.ipynb gone", "/srv/hub/homes/<path> gone"),
        ("PUT /services/mlp/data/ann/pets/My%20cat.jpg 201", "PUT /services/mlp/data/<path> 201"),
        ("from 10.1.2.3 and 10.1.2.3, 192.0.2.7, 127.0.0.1, ::1", "from <address 1> and <address 1>, <address 2>, 127.0.0.1, ::1"),
        ("at 12:30:05 version 1.2.3", "at 12:30:05 version 1.2.3"),
        ("mail to dr.ann@uni.example.org", "mail to <address>"),
        ("GET /services/mlp/api/v1/tenants/teal/alerts was refused", "GET /services/mlp/api/v1/tenants/<name>/alerts was refused"),
        ("PUT /api/v1/users/zoe:approve, GET /hub/api/users/ann/tokens/a7", "PUT /api/v1/users/<name>:approve, GET /hub/api/users/user-1/tokens/<name>"),
        ("302 GET /hub/spawn/zoe -> /hub/spawn-pending/zoe", "302 GET /hub/spawn/<name> -> /hub/spawn-pending/<name>"),
        ("Failed login for 'hunter2 or so' [754f5b8181df208e]", "Failed login for <name> [754f5b8181df208e]"),
    ],
)  # fmt: skip
def test_names_are_replaced_and_nothing_else(redactor: Redactor, text: str, left: str) -> None:
    assert redactor.text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        f"password is {SECRET}!",
        "key Zebra9 in use",
        "Authorization: Bearer q7w8e9r0",
        "authorization: token q7w8e9r0",
        "'Cookie': 'session=q7w8e9r0; x=q7w8e9r0'",
        "postgresql://mlp:q7w8e9r0@db.example.org/mlp",
        "?token=q7w8e9r0&x=1",
        'AWS_SECRET_ACCESS_KEY="q7w8e9r0"',
        '{"client_secret": "q7w8e9r0"}',
        "eyJhbGciOiJI.q7w8e9r0.q7w8e9r0",
        "-----BEGIN PRIVATE KEY-----\nq7w8e9r0\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nq7w8e9r0 and the log ends",
        "hash " + b"q7w8e9r0".hex() * 3,
    ],
)
def test_secrets_are_left_out(redactor: Redactor, text: str) -> None:
    found = redactor.text(text)
    assert GONE in found
    for secret in (SECRET, "Zebra9", "q7w8e9r0", b"q7w8e9r0".hex()):
        assert secret not in found


def test_values_keep_their_form(redactor: Redactor) -> None:
    value = {"ann": [1, True, None, 2.5], "of": {"token": "x", "tokens": 3, "job": "digits"}}
    assert redactor.value(value) == {
        "user-1": [1, True, None, 2.5],
        "of": {"token": GONE, "tokens": 3, "job": "job-1"},
    }


def test_a_uid_of_a_job_stays_since_it_joins_log_and_queue(redactor: Redactor) -> None:
    uid = "01jdqf3x7m9k2v5n8p4r6s0t1w"
    assert redactor.text(f"attempt {uid}.0 ended") == f"attempt {uid}.0 ended"
