"""Notebook servers of people who were taken out of a tenant: they end, whoever took them out and whatever fails meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.service.quota.former_members_servers import AGAIN_S, FormerMembersServers
from support.rigs.api_rig import ApiRig
from support.waiting import wait_for


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ApiRig]:
    with ApiRig(tmp_path) as rig:
        rig.tenant("red", "rita", members=("ann", "bob"))
        for user, server in (("ann", ""), ("ann", "gpu box"), ("bob", "")):
            hold(rig, user, server, "red")
        yield rig


def hold(rig: ApiRig, user: str, server: str, tenant: str) -> None:
    """Let a server run as the spawner would have it: with its place in the ledger."""
    key = {"id": f"{user}/{server}", "applier": "sp"}
    asked = {**key, "request_type": "request", "tenant": tenant, "cpu": 0.2, "ram": 100, "user": user}
    asked["holder"] = f"{user}'s notebook" + (f" {server}" if server else "")
    for verb, body in (("try", asked), ("confirm", key)):
        answer = rig.ask("PUT", f"/resource_request:{verb}", body, token=rig.spawner)
        assert answer.status == 200, answer.body
    rig.hub.servers.add((user, server))


def stopped(rig: ApiRig) -> list[tuple[str, str, str]]:
    found = rig.ask("GET", "/audit?action=server.stop", token=rig.root_user).json
    return sorted((e["actor"], e["object"], e["detail"]["message"]) for e in found)


def in_use(rig: ApiRig) -> dict[str, float]:
    return {one["name"]: one["cpu_inuse"] for one in rig.ask("GET", "/tenants", token=rig.root_user).json}


def test_a_server_counts_for_the_team_it_was_started_in_until_it_ends(tmp_path: Path) -> None:
    with ApiRig(tmp_path) as rig:
        rig.tenant("red", "rita", members=("bob",))
        hold(rig, "ann", "", "default")
        assert in_use(rig) == {"default": 0.2, "red": 0.0}
        moved = rig.ask("PUT", "/tenants/red/members/ann", {"role": "member"}, token=rig.root_user)
        assert "Running work, also a notebook server, continues and counts for default" in str(moved.json)
        # never in none, and never in both: by the ledger, the team's page, the overview and the node
        assert in_use(rig) == {"default": 0.2, "red": 0.0}
        rows = rig.run(rig.platform.db.read(lambda tx: tx.ledger.held(time.time())))
        assert [(row.user, row.tenant, row.amount.cpu) for row in rows] == [("ann", "default", 200)]
        for name, holders in (("default", ["ann's notebook"]), ("red", [])):
            usage = rig.ask("GET", f"/tenants/{name}/usage", token=rig.root_user).json
            assert [one["holder"] for one in usage["holdings"]] == holders
        assert rig.ask("GET", "/overview", token=rig.root_user).json["servers"] == 1
        # the hub repeats a try of a start: the place stays, and a second one for the new team is refused
        hold(rig, "ann", "", "default")
        key = {
            "id": "ann/",
            "applier": "sp",
            "request_type": "request",
            "cpu": 0.2,
            "ram": 100,
            "user": "ann",
        }
        again = rig.ask("PUT", "/resource_request:try", {**key, "tenant": "red"}, token=rig.spawner)
        assert again.json["reason"] == "Conflict"
        rig.run(rig.platform.former_members_servers.end_all())
        assert rig.hub.servers == {("ann", "")}
        assert in_use(rig) == {"default": 0.2, "red": 0.0}


@pytest.mark.parametrize("how", ["by hand", "by a group"])
def test_servers_of_a_removed_member_end_at_once_and_no_others(own: ApiRig, how: str) -> None:
    tenants = own.platform.tenants
    if how == "by a group":
        own.run(own.platform.db.write(lambda tx: tx.members.remove("red", "ann")))
        own.run(tenants.sync_groups("ann", ["red"]))
    own.run(tenants.set_member("default", "ann"))
    hold(own, "ann", "mine", "default")
    if how == "by hand":
        assert own.ask("DELETE", "/tenants/red/members/ann", token=own.rita).status == 200
    else:
        own.run(tenants.sync_groups("ann", []))
    wait_for(lambda: own.hub.servers == {("ann", "mine"), ("bob", "")})
    assert "DELETE /hub/api/users/ann/servers/gpu%20box" in own.hub.requests
    wait_for(lambda: len(stopped(own)) == 2)  # noted once it is done
    assert stopped(own) == [
        ("system", "ann's notebook", "ann is no longer a member of red"),
        ("system", "ann's notebook gpu box", "ann is no longer a member of red"),
    ]


def test_a_server_stop_that_the_hub_does_not_perform_is_retried_until_it_is_done(own: ApiRig) -> None:
    own.hub.down = True
    own.run(own.platform.tenants.remove_member("red", "bob"))
    asked = "DELETE /hub/api/users/bob/server"
    wait_for(lambda: asked in own.hub.requests)
    own.run(own.platform.former_members_servers.end_all())
    assert ("bob", "") in own.hub.servers
    assert stopped(own) == []  # nothing was done yet
    own.hub.down = False
    own.run(own.platform.former_members_servers.end_all())
    assert own.hub.servers == {("ann", ""), ("ann", "gpu box")}
    # it holds until its spawner says otherwise; it is neither asked for nor noted all the time
    times = own.hub.requests.count(asked)
    own.run(own.platform.former_members_servers.end_all())
    assert own.hub.requests.count(asked) == times
    (entry,) = own.ask("GET", "/audit?action=server.stop", token=own.root_user).json
    assert entry["detail"] == {"message": "bob is no longer a member of red"}


def test_a_server_that_the_hub_has_no_more_is_asked_for_now_and_then_and_noted_once(tmp_path: Path) -> None:
    now, asked = [0.0], list[str]()
    with ApiRig(tmp_path) as rig:
        rig.tenant("red", "rita", members=("bob",))
        hold(rig, "bob", "", "red")
        former_members_servers = FormerMembersServers(rig.platform.db, lambda: time.time() + now[0])

        async def end(user: str, server: str) -> None:
            asked.append(f"{user}/{server}")

        former_members_servers.end = end
        rig.run(rig.platform.db.write(lambda tx: tx.members.remove("red", "bob")))
        for wait in (0.0, 30.0, AGAIN_S, 30.0):
            now[0] += wait
            rig.run(former_members_servers.end_all())
        assert asked == ["bob/", "bob/"]
        (entry,) = rig.ask("GET", "/audit?action=server.stop", token=rig.root_user).json
        assert "times" not in entry["detail"]


def test_one_that_cannot_be_ended_does_not_keep_the_others(own: ApiRig, caplog) -> None:
    former_members_servers = own.platform.former_members_servers
    real = former_members_servers.end
    assert real is not None

    async def end(user: str, server: str) -> None:
        if user == "ann":
            raise ValueError("no such name")
        await real(user, server)

    former_members_servers.end = end
    for user in ("ann", "bob"):
        own.run(own.platform.db.write(lambda tx, user=user: tx.members.remove("red", user)))
    own.run(former_members_servers.end_all())
    assert own.hub.servers == {("ann", ""), ("ann", "gpu box")}
    assert stopped(own) == [("system", "bob's notebook", "bob is no longer a member of red")]
    assert "ending the server ann/gpu box failed" in caplog.text


def test_servers_to_end_follow_the_ledger_for_members_removed_by_an_older_hub_or_back_in_time(
    own: ApiRig,
) -> None:
    own.run(own.platform.db.write(lambda tx: tx.members.remove("red", "ann")))
    own.run(own.platform.tenants.set_member("red", "ann"))
    own.run(own.platform.former_members_servers.end_all())
    assert len(own.hub.servers) == 3
    own.run(own.platform.db.write(lambda tx: tx.members.remove("red", "bob")))
    own.run(own.platform.former_members_servers.end_all())
    assert own.hub.servers == {("ann", ""), ("ann", "gpu box")}
