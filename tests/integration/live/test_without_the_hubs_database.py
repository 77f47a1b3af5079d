"""JupyterHub's database goes away and comes back: nobody's token is called invalid, and all goes on by itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.hubs.hub_stack import Browser
from support.hubs.live_hub import BIN, PASSWORD, live_hub
from support.stores.postgres import postgres_server
from support.waiting import PATIENCE_S, wait_for


def test_the_answer_is_503_while_the_hubs_database_is_away_and_everything_works_once_it_is_back(
    tmp_path: Path,
) -> None:
    with postgres_server() as server:
        server.run("CREATE DATABASE {}", "jupyterhub")
        with live_hub(tmp_path / "home", MLP_HUB_DATABASE_URL=server.url("jupyterhub")) as hub:
            hub.add_user("ann")
            hub.token("admin")
            hub.submit("ann", "before", "pass", cpu=0.1, ram=256)
            hub.wait_phase("ann", "before", "finished")
            command = [str(BIN / "mlp"), "jobs"]
            client = {
                **os.environ,
                "MLP_API_URL": f"{hub.url}/services/mlp/api/v1",
                "MLP_TOKEN": hub.token("ann"),
                "MLP_USER": "ann",
            }
            assert subprocess.run(command, env=client, capture_output=True, check=False).returncode == 0
            ann = Browser(hub)
            assert ann.login("ann").status_code == 200
            server.stop()
            # what the service remembers of a token holds for some seconds; from then on there is no other answer
            away = wait_for(lambda: (a := hub.call("GET", "/users/ann/jobs", "ann")).status_code != 200 and a)
            for answer in (
                away,
                hub.call("GET", "/users/ann/jobs", "ann"),
                hub.call("POST", "/users/ann/jobs", "ann", {"name": "lost", "code": "pass"}),
                hub.call("GET", "/users", "admin"),
            ):
                assert answer.status_code == 503, answer.text
                assert int(answer.headers["Retry-After"]) > 0
                assert "valid token" not in answer.text
            page = ann.get("/hub/home")
            assert page.status_code == 503  # and not the login page: she is in
            assert "database does not answer" in page.text
            done = subprocess.run(
                command, env=client, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            assert done.returncode == 4, (done.stdout, done.stderr)
            added = hub.run("user", "add", "bob", "--password-stdin", check=False, stdin=PASSWORD + "\n")
            assert added.returncode == 4, (added.stdout, added.stderr)
            assert "does not answer" in added.stderr
            assert "credentials" not in added.stderr
            assert hub.http.get("/hub/api/user", headers={"Authorization": "token x"}).status_code == 503
            hub_pid = hub.pid("hub")
            server.launch()
            wait_for(lambda: hub.call("GET", "/users/ann/jobs", "ann").status_code == 200)
            hub.submit("ann", "after", "pass", cpu=0.1, ram=256)
            hub.wait_phase("ann", "after", "finished")
            assert str(ann.get("/hub/home").url).endswith("/hub/home")
            hub.add_user("bob")
            assert hub.ok("GET", "/users/bob", "bob")["state"] == "Actived"
            assert hub.pid("hub") == hub_pid
            # and with nothing asked while it is away, the first request after it finds no broken connection
            server.stop()
            server.launch()
            assert hub.http.get("/hub/api/user", headers={"Authorization": "token x"}).status_code == 403
            assert hub.run("token", "--user", "bob").stdout
