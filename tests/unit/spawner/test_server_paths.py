from __future__ import annotations

from pathlib import Path

import pytest

from mlp_spawner.errors import OptionsError
from mlp_spawner.paths import Paths


def paths(user: str, server: str = "") -> Paths:
    return Paths(Path("/s"), Path("/run/private"), user, server)


def test_a_server_has_its_places():
    p = paths("ann")
    assert str(p.run_dir) == "/s/ann/-"
    assert str(p.ended_file) == "/s/ann/-.ended.json"
    assert str(paths("ann", "big").run_dir) == "/s/ann/big"


def test_sockets_are_short_differ_and_stay():
    found = {paths(user, server).socket for user in ("ann", "bob") for server in ("", "big", "ann")}
    assert len(found) == 6
    assert all(len(s.name) <= len("proxy-api.sock") for s in found)
    assert paths("ann").socket == paths("ann").socket


@pytest.mark.parametrize("user", ["", "..", ".hidden", "a/b", "a\0", "a\n", "-x", "ä"])
def test_a_name_that_is_not_a_directory_name_is_refused(user):
    with pytest.raises(OptionsError):
        paths(user)
