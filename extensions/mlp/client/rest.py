"""The REST client: one method per thing that is done, plain dictionaries as on the wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlp.client.connection import ServiceConnection, delivery_key, object_of, quote
from mlp.errors import NoHub, NotThere
from mlp.rendering.terminal import as_shown, joined

Json = dict[str, Any]
LOG_PAGE = 10_000


class Client(ServiceConnection):
    """Requests to the service as one user; several threads can use a client: each has its own connection."""

    def job_path(self, name: str, user: str | None = None) -> str:
        """Return the path of a job."""
        return f"/users/{quote(user or self.user)}/jobs/{quote(name)}"

    def submit(self, create: Json) -> Json:
        """Submit; a repeated delivery of this one call makes one job."""
        return object_of(self.request("POST", f"/users/{quote(self.user)}/jobs", create, delivery_key()))

    def preview(self, create: Json) -> Json:
        """Return what a job would be and get, without submitting it."""
        return object_of(self.request("POST", f"/users/{quote(self.user)}/jobs:preview", create))

    def job(self, name: str, user: str | None = None) -> Json:
        """Return a job as on the wire."""
        return object_of(self.request("GET", self.job_path(name, user)))

    def jobs(self, *, tenant: str | None = None) -> list[Json]:
        """Return all of the user's jobs, over all pages."""
        return list(self.pages(f"/users/{quote(self.user)}/jobs", tenant=tenant))

    def act(
        self, verb: str, name: str, user: str | None = None, *, size: Mapping[str, Any] | None = None
    ) -> Json:
        """Send a verb of a job, such as `cancel`; `size` is the body: the changes of `resubmit` or `update`."""
        path = f"{self.job_path(name, user)}:{verb}"
        return object_of(
            self.request("PUT", path, dict(size or {}), delivery_key() if verb == "resubmit" else None)
        )

    def note(self, name: str, text: str) -> Json:
        """Attach a note to a job of this user, or remove it with an empty text; return the job."""
        return object_of(self.request("PUT", f"{self.job_path(name)}/note", {"note": text}))

    def runs(
        self, search: str = "", sort: str = "-submitted", *, tenant: str | None = None, most: int = 10_000
    ) -> Json:
        """Return the runs for which a search holds, over all pages, with `total` and the names of their parameters and metrics."""
        path = self._runs(tenant)
        found: Json = {}
        cursor: str | None = None
        while True:
            page = self.get(path, search=search, sort=sort, limit=min(most, 1000), cursor=cursor)
            if found:
                page["runs"] = found["runs"] + page["runs"]
                page |= {key: found[key] for key in ("params", "metrics")}
            found, cursor = page, page.get("next")
            if not cursor or len(found["runs"]) >= most:
                return found

    def runs_csv(self, search: str = "", sort: str = "-submitted", *, tenant: str | None = None) -> bytes:
        """Return them as CSV."""
        return self.request("GET", f"{self._runs(tenant)}:csv", search=search, sort=sort).body

    def _runs(self, tenant: str | None = None) -> str:
        return f"/users/{quote(self.user)}/runs" if tenant is None else f"/tenants/{quote(tenant)}/runs"

    def run(self, name: str, user: str | None = None) -> Json:
        """Return all that is kept of a run."""
        return object_of(self.request("GET", f"/users/{quote(user or self.user)}/runs/{quote(name)}"))

    def write_run(self, name: str, change: Mapping[str, Any]) -> Json:
        """Write a run's `note` or `tags`."""
        return object_of(self.request("PUT", f"{self._runs()}/{quote(name)}", dict(change)))

    def act_on_runs(self, act: str, runs: Sequence[str], tags: Sequence[str] = ()) -> list[Json]:
        """Cancel, delete, tag or untag many; return what became of each."""
        body = {"act": act, "runs": list(runs), **({"tags": list(tags)} if tags else {})}
        return list(self.request("PUT", f"{self._runs()}:act", body).json())

    def curves(
        self,
        name: str,
        user: str | None = None,
        *,
        by: str = "step",
        points: int = 500,
        metric: str | None = None,
    ) -> Json:
        """Return a run's curves, thinned out."""
        path = f"/users/{quote(user or self.user)}/runs/{quote(name)}/curves"
        return dict(self.get(path, by=by, points=points, metric=metric))

    def delete(self, name: str, user: str | None = None) -> Json:
        """Delete a job that has ended."""
        return object_of(self.request("DELETE", self.job_path(name, user)))

    def why(self, name: str, user: str | None = None) -> Json:
        """Return the reason for the job's state."""
        return object_of(self.request("GET", f"{self.job_path(name, user)}/why"))

    def decisions(self, name: str, user: str | None = None) -> list[Json]:
        """Return why the scheduler started, stopped or resized the job, the oldest first; kept for two weeks."""
        return list(self.get(f"{self.job_path(name, user)}/decisions"))

    def events(self, name: str, user: str | None = None) -> list[Json]:
        """Return the job's timeline."""
        found = self.get(f"{self.job_path(name, user)}/events")
        return list(found.get("items", [])) if isinstance(found, dict) else list(found)

    def attempts(self, name: str, user: str | None = None) -> list[Json]:
        """Return the job's newest attempts, with when each came to which stage."""
        found = self.get(f"{self.job_path(name, user)}/attempts")
        return list(found.get("items", [])) if isinstance(found, dict) else list(found)

    def log(
        self, name: str, user: str | None = None, *, rank: int = 0, tail: int | None = None
    ) -> list[Json]:
        """Return a rank's log lines (`time`, `stream`, `text`), or the last `tail` of them.

        Where lines are missing, a line of the stream `mlp` has their number.
        """
        return self._log_lines(f"{self.job_path(name, user)}/logs", tail, rank=rank)

    def _log_lines(self, path: str, tail: int | None, **of: int) -> list[Json]:
        if tail is not None and tail <= LOG_PAGE:
            return _shown(self.get(path, **of, tail=tail)["lines"])
        found: deque[Json] = deque(maxlen=tail)
        begun: dict[str, Json] = {}  # lines whose end is on a later page, by stream
        since = 0
        while True:
            page = self.get(path, **of, since=since, limit=LOG_PAGE)
            for line in page["lines"]:
                if (whole := begun.pop(line["stream"], None)) is None:
                    whole = line
                    found.append(line)
                else:
                    whole |= {**line, "text": joined(whole["text"], line["text"])}
                if line.get("partial"):
                    begun[line["stream"]] = whole
            if not page["lines"] or page["offset"] == since:
                return _shown(found)
            since = page["offset"]

    def points(self, name: str, user: str | None = None, *, since: int = 0) -> list[Json]:
        """Return what a job reported above the number `since`, in order."""
        found: list[Json] = []
        while page := self.get(f"{self.job_path(name, user)}/metrics", since=since, limit=LOG_PAGE):
            found += page
            since = page[-1]["seq"]
        return found

    def files(self, name: str, path: str = "", user: str | None = None) -> list[Json]:
        """Return the entries of a directory of a job."""
        return list(self.pages(f"{self.job_path(name, user)}/files", path=path, limit=1000))

    def sweep_path(self, name: str = "", user: str | None = None) -> str:
        """Return where a sweep of a user's is in the API, yours where none is said; without a name all of them."""
        return f"/users/{quote(user or self.user)}/sweeps{'/' if name else ''}{quote(name)}"

    def start_sweep(self, create: Json) -> Json:
        """Start a sweep; a repeated delivery of this one call makes one."""
        return object_of(self.request("POST", self.sweep_path(), create, delivery_key()))

    def preview_sweep(self, create: Json) -> Json:
        """Return what a sweep would be and take."""
        return object_of(self.request("POST", f"{self.sweep_path()}:preview", create))

    def sweeps(self, /, **query: Any) -> list[Json]:
        """Return your sweeps, the newest first, without their trials."""
        return list(self.pages(self.sweep_path(), **query))

    def sweep(self, name: str, user: str | None = None) -> Json:
        """Return a sweep with its trials: its latest run, or NAME@RUN."""
        return object_of(self.request("GET", self.sweep_path(name, user)))

    def sweep_curves(self, name: str, user: str | None = None, most: int = 100) -> list[Json]:
        """Return what the trials of a sweep reported of its metric."""
        found = self.get(f"{self.sweep_path(name, user)}/curves", most=most)
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def act_sweep(self, verb: str, name: str, user: str | None = None, more: Json | None = None) -> Json:
        """Cancel a sweep, or extend it."""
        return object_of(self.request("PUT", f"{self.sweep_path(name, user)}:{verb}", more))

    def delete_sweep(self, name: str) -> Json:
        """Delete a sweep with the jobs of its trials."""
        return object_of(self.request("DELETE", self.sweep_path(name)))

    def app_path(self, name: str = "") -> str:
        """Return the path of an app of the user's, or of all."""
        return f"/users/{quote(self.user)}/apps" + (f"/{quote(name)}" if name else "")

    def apps(self, /, **query: Any) -> list[Json]:
        """Return all of the user's apps, the newest first."""
        return list(self.pages(self.app_path(), **query))

    def app(self, name: str) -> Json:
        """Return an app, with its replicas."""
        return object_of(self.request("GET", self.app_path(name)))

    def apps_of_others(self) -> list[Json]:
        """Return the apps of others that the user may open, the newest first."""
        return list(self.pages(f"{self.app_path()}:shared"))

    def app_of_another(self, user: str, name: str) -> Json:
        """Return an app of somebody else's that the user may open."""
        return object_of(self.request("GET", f"/users/{quote(user)}/apps/{quote(name)}:shared"))

    def deploy(self, create: Json) -> Json:
        """Deploy an app: `name` and `model_name` at least; a repeated delivery of this one call makes one."""
        return object_of(self.request("POST", self.app_path(), create, delivery_key()))

    def scale_app(
        self, name: str, replicas: int | str, idle: int | None = None, concurrency: int | None = None
    ) -> Json:
        """Set the number of replicas of an app.

        With MIN:MAX it is one for each `concurrency` requests in progress.
        """
        more = {"idle": idle, "concurrency": concurrency}
        wanted = {"replicas": replicas, **{key: value for key, value in more.items() if value is not None}}
        return object_of(self.request("PUT", f"{self.app_path(name)}:scale", wanted))

    def app_log(self, name: str, replica: int = 0, tail: int | None = None) -> list[Json]:
        """Return the log lines (`time`, `stream`, `text`) of a replica that is there now, or the last `tail` of them."""
        return self._log_lines(f"{self.app_path(name)}/logs", tail, replica=replica)

    def app_keys(self, name: str) -> list[Json]:
        """Return the keys of an app, which cannot be read again."""
        found = self.request("GET", f"{self.app_path(name)}/keys").json()
        return found if isinstance(found, list) else []

    def make_app_key(self, name: str, key: str) -> Json:
        """Make a key of an app; `key` of the answer is what programs send, and nobody gives it again."""
        return object_of(self.request("POST", f"{self.app_path(name)}/keys", {"name": key}))

    def revoke_app_key(self, name: str, key: str) -> None:
        """Have a key of an app be taken no more."""
        self.request("DELETE", f"{self.app_path(name)}/keys/{quote(key)}")

    def set_app_access(self, name: str, access: str) -> Json:
        """Set the users who may open an app, in addition to its owner and its keys: `private`, `tenant` or `hub`."""
        return object_of(self.request("PUT", f"{self.app_path(name)}/access", {"access": access}))

    def app_usage(self, name: str) -> Json:
        """Return what was asked of an app, and how quickly it answered."""
        return object_of(self.request("GET", f"{self.app_path(name)}/usage"))

    def remove_app(self, name: str) -> Json:
        """Delete an app."""
        return object_of(self.request("DELETE", self.app_path(name)))

    def model_path(self, name: str = "") -> str:
        """Return the path of a model of the user's, or of all."""
        return f"/users/{quote(self.user)}/models" + (f"/{quote(name)}" if name else "")

    def models(self, /, **query: Any) -> list[Json]:
        """Return all versions of the user's models, the newest first."""
        return list(self.pages(self.model_path(), **query))

    def model(self, name: str) -> Json:
        """Return a version of a model."""
        return object_of(self.request("GET", self.model_path(name)))

    def register(self, name: str, src: str, more: Mapping[str, Any] | None = None) -> Json:
        """Register a version of a model; a repeated delivery of this one call makes one version."""
        return object_of(
            self.patiently().request(
                "POST", self.model_path(), {"name": name, "src": src, **(more or {})}, delivery_key()
            )
        )

    def models_of_job(self, name: str, user: str | None = None) -> list[Json]:
        """Return the models among a job's files, as names and headers tell them; `src` is what registers one."""
        found = self.request("GET", f"{self.job_path(name, user)}/models").json()
        return found if isinstance(found, list) else []

    def stage(self, name: str, stage: str) -> Json:
        """Say how far a version is used."""
        return object_of(self.request("PUT", f"{self.model_path(name)}:stage", {"stage": stage}))

    def remove_model(self, name: str) -> Json:
        """Delete a version of a model."""
        return object_of(self.request("DELETE", self.model_path(name)))

    def environments(self, tenant: str) -> list[Json]:
        """Return a tenant's environments, the oldest first."""
        return list(self.get(_environments(tenant)))

    def environment(self, tenant: str, name: str) -> Json:
        """Return an environment with its requirements, its lock and the last lines of its making."""
        return object_of(self.request("GET", _environments(tenant, name)))

    def create_environment(
        self, tenant: str, name: str, requirements: str | None = None, *, image: str | None = None
    ) -> Json:
        """Have an environment made of requirements, or of an image; a repeated delivery of this one call makes one."""
        of = {"requirements": requirements, "image": image}
        wanted = {"name": name, **{what: said for what, said in of.items() if said is not None}}
        return object_of(self.patiently().request("POST", _environments(tenant), wanted, delivery_key()))

    def delete_environment(self, tenant: str, name: str) -> Json:
        """Delete an environment; one that a job uses which has not ended is refused."""
        return object_of(self.request("DELETE", _environments(tenant, name)))

    def dataset_path(self, name: str = "") -> str:
        """Return the path of a dataset of the user's, or of all."""
        return f"/users/{quote(self.user)}/datasets" + (f"/{quote(name)}" if name else "")

    def datasets(self) -> list[Json]:
        """Return all of the user's datasets by name."""
        return list(self.pages(self.dataset_path()))

    def dataset(self, name: str) -> Json:
        """Return a dataset."""
        return object_of(self.request("GET", self.dataset_path(name)))

    def make_dataset(self, create: Json) -> Json:
        """Make a dataset, with room kept for it; a repeated delivery of this one call makes one."""
        return object_of(self.request("POST", self.dataset_path(), create, delivery_key()))

    def beat(self, name: str, state: str, progress: int) -> None:
        """Say how far the upload of a dataset is."""
        self.request("PUT", f"{self.dataset_path(name)}:heartbeat", {"state": state, "progress": progress})

    def sync_dataset(self, name: str) -> Json:
        """Have what changed at a dataset's source copied."""
        return object_of(self.request("PUT", f"{self.dataset_path(name)}:sync"))

    def secrets(self, tenant: str | None = None) -> list[Json]:
        """Return the names of the user's secrets, or of a tenant's; nobody is told what is in one."""
        return list(self.request("GET", self._secret_path(tenant)).json())

    def set_secret(self, name: str, keys: Mapping[str, str], tenant: str | None = None) -> None:
        """Set a secret of the user's, or of a tenant's."""
        self.request("PUT", self._secret_path(tenant, name), {"keys": dict(keys)})

    def remove_secret(self, name: str, tenant: str | None = None) -> None:
        """Remove a secret of the user's, or of a tenant's."""
        self.request("DELETE", self._secret_path(tenant, name))

    def notifications(self) -> Json:
        """Return the channels and kinds of the user's notices."""
        return object_of(self.request("GET", f"/users/{quote(self.user)}/notifications"))

    def set_notifications(self, wanted: Json) -> Json:
        """Choose all of that; a channel without an address keeps its own."""
        return object_of(self.request("PUT", f"/users/{quote(self.user)}/notifications", wanted))

    def test_notification(self, channel: str) -> Json:
        """Send something by a channel, and return how that went."""
        path = f"/users/{quote(self.user)}/notifications:test"
        return object_of(self.request("POST", path, {"channel": channel}))

    def _secret_path(self, tenant: str | None, name: str = "") -> str:
        whose = f"/tenants/{quote(tenant)}" if tenant else f"/users/{quote(self.user)}"
        return f"{whose}/secrets" + (f"/{quote(name)}" if name else "")

    def remove_dataset(self, name: str) -> Json:
        """Delete a dataset with its files; an upload that nobody ended is ended by that."""
        if self.dataset(name)["state"] == "creating":
            self.beat(name, "error", 0)
        return object_of(self.request("DELETE", self.dataset_path(name)))

    def quota(self) -> Any:
        """Return the user's tenants with their use."""
        return self.get(f"/users/{quote(self.user)}/quota")

    def usage(self, by: str, *, month: str | None = None, tenant: str | None = None) -> Json:
        """Return use and cost, the user's own or of a tenant's members, over all pages."""
        path = self._accounting(tenant)
        found: Json = {}
        cursor: str | None = None
        while True:
            page: Json = dict(self.get(path, by=by, month=month, limit=1000, cursor=cursor))
            page["lines"] = [*found.get("lines", ()), *page["lines"]]
            found, cursor = page, page["next"]
            if cursor is None:
                return found

    def usage_file(
        self, form: str, *, by: str | None = None, month: str | None = None, tenant: str | None = None
    ) -> bytes:
        """Return them as `csv`, or the `report` of a tenant's month."""
        return self.request("GET", f"{self._accounting(tenant)}:{form}", by=by, month=month).body

    def budgets(self, tenant: str | None = None) -> list[Json]:
        """Return the budgets of the user's teams, or of one team; a hub that is too old to know has none."""
        try:
            if tenant is None:
                return list(self.get(f"/users/{quote(self.user)}/budgets"))
            return [dict(self.get(f"/tenants/{quote(tenant)}/budget"))]
        except (NotThere, NoHub):
            return []

    def cost(self, name: str) -> Json:
        """Return what a run has cost until now; nothing of a hub that is too old to know."""
        try:
            return dict(self.get(f"{self.job_path(name)}/cost"))
        except (NotThere, NoHub):
            return {}

    def _accounting(self, tenant: str | None) -> str:
        whose = f"/users/{quote(self.user)}" if tenant is None else f"/tenants/{quote(tenant)}"
        return f"{whose}/accounting"

    def offer(self, shape: Json) -> Json:
        """Return what a job of this shape would get."""
        return object_of(self.request("GET", "/offer", **shape))

    def preferences(self) -> Json:
        """Return what the user chose: `language`, empty where they leave it to browser and terminal."""
        return object_of(self.request("GET", f"/users/{quote(self.user)}/preferences"))

    def prefer(self, /, **chosen: str) -> None:
        """Choose."""
        self.request("PATCH", f"/users/{quote(self.user)}/preferences", chosen)

    def end_own_token(self) -> None:
        """End the token that this client works with."""
        self.request("DELETE", f"/users/{quote(self.user)}/token")

    def tokens(self) -> list[Json]:
        """Return the user's tokens, without what they are."""
        return list(self.pages(f"/users/{quote(self.user)}/tokens"))

    def make_token(self, create: Json) -> Json:
        """Make a token with at most the rights of this client; its value is in this answer only."""
        return object_of(self.request("POST", f"/users/{quote(self.user)}/tokens", create))

    def end_token(self, token_id: str) -> None:
        """End a token by its id."""
        self.request("DELETE", f"/users/{quote(self.user)}/tokens/{quote(token_id)}")

    def teams(self) -> Json:
        """Return the teams that the user may ask for a place."""
        return object_of(self.request("GET", f"/users/{quote(self.user)}/teams"))

    def ask_team(self, asked: Json) -> Json:
        """Ask for a place in a team."""
        return object_of(self.request("POST", f"/users/{quote(self.user)}/teams", asked, delivery_key()))

    def unask_team(self, tenant: str) -> Json:
        """Ask for it no more."""
        return object_of(self.request("DELETE", f"/users/{quote(self.user)}/teams/{quote(tenant)}"))

    def joins(self, tenant: str) -> list[Json]:
        """Return who asks for a place in a team."""
        return list(self.get(f"/tenants/{quote(tenant)}/joins"))

    def answer_join(self, tenant: str, user: str, verb: str) -> Json:
        """Accept or decline a person who asks to join."""
        return object_of(self.request("PUT", f"/tenants/{quote(tenant)}/joins/{quote(user)}:{verb}", {}))

    def caps(self, tenant: str) -> list[Json]:
        """Return how much a member of a team may hold at once."""
        return list(self.get(f"/tenants/{quote(tenant)}/caps"))

    def set_cap(self, tenant: str, cap: Json) -> list[Json]:
        """Set the cap of a member, or of everybody; return all of the team's."""
        return list(self.request("PUT", f"/tenants/{quote(tenant)}/caps", cap).json())

    def quota_requests(self, tenant: str) -> list[Json]:
        """Return what a team asked for, the newest first."""
        return list(self.get(f"/tenants/{quote(tenant)}/quota_requests"))

    def ask_quota(self, tenant: str, asked: Json) -> Json:
        """Ask for more quota of a team."""
        path = f"/tenants/{quote(tenant)}/quota_requests"
        return object_of(self.request("POST", path, asked, delivery_key()))

    def withdraw_quota(self, tenant: str, request: str) -> Json:
        """Take such a request back."""
        return object_of(self.request("DELETE", f"/tenants/{quote(tenant)}/quota_requests/{quote(request)}"))

    def services(self, tenant: str) -> list[Json]:
        """Return a tenant's accounts for programs, with their tokens."""
        return list(self.get(f"/tenants/{quote(tenant)}/services"))

    def make_service(self, tenant: str, create: Json) -> Json:
        """Make such an account; its token is in this answer only."""
        return object_of(self.request("POST", f"/tenants/{quote(tenant)}/services", create))

    def rotate_service(self, tenant: str, service: str, how: Json) -> Json:
        """Make another token of one."""
        return object_of(
            self.request("PUT", f"/tenants/{quote(tenant)}/services/{quote(service)}:rotate", how)
        )

    def end_service(self, tenant: str, service: str) -> None:
        """End one with its tokens."""
        self.request("DELETE", f"/tenants/{quote(tenant)}/services/{quote(service)}")

    def tenants(self) -> list[Json]:
        """Return the tenants that this user sees."""
        return list(self.pages("/tenants"))

    def runtimes(self) -> list[Any]:
        """Return the runtimes on offer."""
        return list(self.pages("/runtimes"))


def _shown(lines: Iterable[Json]) -> list[Json]:
    return [{**line, "text": as_shown(line["text"])} for line in lines]


def _environments(tenant: str, name: str = "") -> str:
    return f"/tenants/{quote(tenant)}/environments" + (f"/{quote(name)}" if name else "")
