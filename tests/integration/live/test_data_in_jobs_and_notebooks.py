"""Datasets where programs read them, on a real hub: jobs' read-only, the owner's notebooks to write to, and nothing beside them."""

from __future__ import annotations

import os

import pytest

from support.hubs.kernel_client import Kernel
from support.hubs.live_hub import LiveHub
from support.hubs.notebooks import start_notebook, stop_notebook

SMALL = {"cpu": 0.2, "ram": 256}
READS = """
import os, mlp, sys
path = mlp.data_path(sys.argv[1])
print("path", path, os.environ["MLP_DATA"])
print("read", (path / "cats").read_text())
for place in sys.argv[2:]:
    print("also", place, open(f"{place}/cats").read())
print("all", sorted(os.listdir("/data")))
for what in ("open(path / 'new', 'w')", "(path / 'cats').unlink()", "os.rename(path / 'cats', path / 'dogs')", "path.chmod(0o777)"):
    try:
        eval(what)
        print("wrote by", what)
    except OSError as error:
        print("refused", error.errno)
"""
LINKS = """
import os
for name in ("passwd", "state"):
    try:
        print(name, open(f"/data/links/{name}").read())
    except OSError as error:
        print(name, "no", error.errno)
"""
ENDLESS = "import time\nprint('up', flush=True)\ntime.sleep(600)"


def upload(hub: LiveHub, user: str, name: str, tenant: str = "default", **files: bytes) -> None:
    hub.ok("POST", f"/users/{user}/datasets", user, {"name": name, "size": 10_000, "tenant": tenant})
    for file, content in files.items():
        answer = hub.http.put(
            f"/data/{user}/{name}/{file}",
            content=content,
            headers={"Authorization": f"Bearer {hub.token(user)}"},
        )
        assert answer.status_code == 201, answer.text
    ready = {"state": "ready", "progress": 100}
    hub.ok("PUT", f"/users/{user}/datasets/{name}:heartbeat", user, ready)


def refused(hub: LiveHub, user: str, *data: str, **more: object) -> tuple[str, str]:
    body = {"name": "refused", "code": "print()", "data": list(data), **SMALL, **more}
    answer = hub.call("POST", f"/users/{user}/jobs", user, body)
    assert answer.status_code == 403, answer.text
    return answer.json()["reason"], answer.json()["msg"]


@pytest.fixture(scope="module")
def lab(hub: LiveHub) -> LiveHub:
    """Two tenants: `lab`, whose members read each other's datasets, and `den`, whose members read their own."""
    for name, datasets, members in (("lab", "members", ("ann", "bob")), ("den", "own", ("ann", "bob"))):
        hub.ok(
            "POST",
            "/tenants",
            body={"name": name, "cpu": 2, "ram": 4096, "rom": 1 << 20, "datasets": datasets},
        )
        for user in members:
            hub.ok("PUT", f"/tenants/{name}/members/{user}", body={"role": "member"})
    upload(hub, "ann", "pets", "lab", cats=b"miaow")
    return hub


def test_a_job_reads_its_users_dataset_and_can_write_nothing_of_it(lab: LiveHub) -> None:
    lab.submit(
        "ann", "reads", READS, tenant="lab", data=["pets:train/pets"], args=["pets", "/data/pets"], **SMALL
    )
    lab.wait_phase("ann", "reads", "finished")
    log = lab.log("ann", "reads")
    assert "path /data/train/pets /data\n" in log
    assert "read miaow\nalso /data/pets miaow\n" in log
    assert "all ['pets', 'train']" in log
    assert log.count("refused") == 4, log


def test_another_member_reads_it_too_and_nobody_of_another_tenant(lab: LiveHub) -> None:
    lab.submit("bob", "theirs", READS, tenant="lab", data=["ann/pets"], args=["ann/pets"], **SMALL)
    lab.wait_phase("bob", "theirs", "finished")
    log = lab.log("bob", "theirs")
    assert "path /data/pets /data\nread miaow\n" in log
    assert log.count("refused") == 4, log
    theirs = refused(lab, "bob", "ann/pets", tenant="den")
    missing = refused(lab, "bob", "ann/none", tenant="den")
    assert (theirs[0], theirs[1].replace("pets", "none")) == missing
    upload(lab, "ann", "mine", "den", cats=b"closed")
    assert refused(lab, "bob", "ann/mine", tenant="den")[0] == "NotFound"
    assert refused(lab, "ann", "mine", tenant="lab") == (
        "Invalid",
        "dataset mine belongs to team den, but the job to lab; submit it to den, or upload the files again as another dataset of lab",
    )


def test_a_dataset_that_a_job_reads_is_not_deleted(lab: LiveHub) -> None:
    upload(lab, "ann", "held", "lab", cats=b"held")
    lab.submit("bob", "holds", ENDLESS, tenant="lab", data=["ann/held"], **SMALL)
    lab.wait_phase("bob", "holds", "running")
    answer = lab.call("DELETE", "/users/ann/datasets/held", "ann")
    assert (answer.status_code, answer.json()["reason"]) == (403, "Conflict")
    assert "read by job holds of bob, which is running" in answer.json()["msg"]
    lab.ok("PUT", "/users/bob/jobs/holds:cancel", "bob")
    lab.wait_phase("bob", "holds", "cancelled")
    lab.ok("DELETE", "/users/ann/datasets/held", "ann")


def test_the_owners_notebook_writes_to_datasets_also_to_those_made_later(lab: LiveHub) -> None:
    kernel = start_notebook(lab, "ann")
    try:
        assert kernel.run("open('/mlp/datasets/ann/pets/cats').read()") == "'miaow'"
        lab.ok("POST", "/users/ann/datasets", "ann", {"name": "empty", "size": 1, "tenant": "lab"})
        assert kernel.run("import os; os.listdir('/mlp/datasets/ann/empty')") == "[]"
        upload(lab, "ann", "later", "lab", cats=b"purr")
        assert (
            kernel.run("import os, mlp; open(os.path.expanduser('~/datasets/later/cats')).read()") == "'purr'"
        )
        if os.geteuid() == 0:
            assert kernel.run("open(mlp.data_path('later') / 'dogs', 'w').write('woof')") == "4"
            got = lab.http.get(
                "/data/ann/later/dogs", headers={"Authorization": f"Bearer {lab.token('ann')}"}
            )
            assert got.content == b"woof"
            # a dataset itself stays where the platform put it
            assert error_of(kernel, "os.rename('/mlp/datasets/ann/later', '/mlp/datasets/ann/x')") == "13"
        assert error_of(kernel, "os.mkdir(os.path.expanduser('~/models/new'))") == "30"
        assert error_of(kernel, "os.listdir('/mlp/datasets/bob')") == "2"
        state = lab.home / "secrets" / "admin-password"
        kernel.run(
            "os.mkdir('/mlp/datasets/ann/later/sub'); os.symlink('/etc/passwd', '/mlp/datasets/ann/later/passwd')"
        )
        kernel.run(f"os.symlink({str(state)!r}, '/mlp/datasets/ann/later/state')")
    finally:
        stop_notebook(lab, "ann")
    for link in ("passwd", "state"):
        bearer = {"Authorization": f"Bearer {lab.token('ann')}"}
        assert lab.http.get(f"/data/ann/later/{link}", headers=bearer).status_code == 404
    lab.submit("bob", "links", LINKS, tenant="lab", data=["ann/later:links"], **SMALL)
    lab.wait_phase("bob", "links", "finished")
    log = lab.log("bob", "links")
    assert "bob:x:" in log  # that of its own sandbox
    assert "state no 2" in log


def error_of(kernel: Kernel, what: str) -> str:
    """Return the number of the error that an expression raises in a notebook."""
    kernel.run(
        f"import os\ntry:\n    {what}\n    found = None\nexcept OSError as error:\n    found = error.errno"
    )
    return kernel.run("found")
