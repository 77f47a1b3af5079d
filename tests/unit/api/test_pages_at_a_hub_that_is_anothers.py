"""Actions that ask for a recent password: at a hub that asks nobody again, pages cannot do them and programs can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.auth.recent import check_token
from mlp_hub.domain.errors import Reason, Refused


def test_a_session_is_refused_with_the_way_out_and_a_token_is_not() -> None:
    person = Principal(CallerKind.USER, "ann")
    check_token(person)
    with pytest.raises(Refused, match="do it with a token") as caught:
        check_token(replace(person, session="s"))
    assert caught.value.reason is Reason.LOGIN_TOO_OLD
