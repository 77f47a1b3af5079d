"""Every refusal is 403; a script tells them apart by their class, or by `reason`."""

from __future__ import annotations

import pickle

import pytest

from mlp import errors


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Invalid", errors.InvalidRequest),
        ("WrongState", errors.WrongState),
        ("NotFound", errors.NotThere),
        ("Conflict", errors.Conflict),
        ("Forbidden", errors.NotAllowed),
        ("QuotaExceeded", errors.Refused),
    ],
)
def test_a_refusal_is_of_the_class_that_its_reason_names(reason: str, kind: type[errors.Refused]) -> None:
    refused = errors.Refused(reason, "no")
    assert type(refused) is kind
    assert (refused.reason, refused.msg, str(refused)) == (reason, "no", "no")
    assert refused.label == f"Refused ({reason})"


def test_a_refusal_travels_between_processes() -> None:
    refused = pickle.loads(pickle.dumps(errors.Refused("WrongState", "no")))  # noqa: S301 - our own
    assert (type(refused), refused.reason, refused.msg) == (errors.WrongState, "WrongState", "no")
