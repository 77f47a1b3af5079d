"""Notebook servers that are pods of a cluster, with their grants."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from kubernetes_asyncio.client import ApiClient
from kubespawner import KubeSpawner
from traitlets import Callable, Float, Instance, Integer, Unicode, default

from mlp_hub import sandbox
from mlp_hub.executors.kubernetes.installation import NOTEBOOK_PORT, Installation
from mlp_hub.executors.kubernetes.notebooks import Gpus, NoGpus, given_node, gpus_of, no_namespace, selector
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable, ForbiddenError, MissingObjectError
from mlp_hub.kubernetes.kinds import NODES, PODS, SECRETS, Object
from mlp_hub.kubernetes.reflector import Key
from mlp_language.message import NOTHING, Message, from_data, msg, to_data
from mlp_spawner import server
from mlp_spawner.environment import build_for_pod, pip_settings
from mlp_spawner.errors import OptionsError, ServerFailed, ServerRefused, Told, sentence
from mlp_spawner.grant import Grant
from mlp_spawner.homes import place_samples
from mlp_spawner.kubernetes import pod_states
from mlp_spawner.kubernetes.pod_manifest import ServerPod, fit, pod_name, secret
from mlp_spawner.kubernetes.pod_states import CONTAINER, Pod
from mlp_spawner.kubernetes.pod_watch import SYNC_S, PodWatch, Warnings
from mlp_spawner.paths import Paths

LOOK_EVERY_S = 5
"""Tuning: seconds between two looks at whether a server still runs, which cost nothing: how soon its end is seen."""
FORCE_S = 30.0
"""Safety: seconds after its grace until a pod is taken out of the cluster's books although its node says nothing."""
NOW_S = 1
"""Safety: seconds of grace of a server that is ended at once: with none it would leave the books before it has ended."""
PLACE_S = 20.0
"""Tuning: seconds that a start waits for its tenant's namespace: how long a new tenant may take, for how soon a fault is told."""
_POD, _ENDED = "pod", "pod_ended"


class PodServers(KubeSpawner):  # type: ignore[misc]  # kubespawner is untyped
    """Spawner of each server as a pod in its tenant's namespace; the proxy reaches it by the pod's address.

    An operator's settings of `KubeSpawner` for the pod hold, except those that keep tenants apart. We
    replace the watch, start and end of pods: one watch for all of them, which wakes all waiting calls.
    """

    installation = Instance(Installation, help="What the hub has in the cluster.", config=True)
    connect = Callable(help="Async function that returns the client of the cluster's API.", config=True)
    api_url = Unicode(help="URL of the platform's API as pods reach it.", config=True)
    data_url = Unicode(
        help="URL of files of datasets as pods reach them; empty: beside the API.", config=True
    )
    state_dir = Unicode(help="Directory in which the hub notes which samples a user got.", config=True)
    first_uid = Integer(300_000, help="User number N gets this uid plus N.", config=True)
    stop_grace_s = Float(5.0, help="Seconds between asking a server to end and ending it.", config=True)
    node_patience_s = Float(
        30.0,
        help="Seconds that a pod waits for a node with room; more where nodes are made on demand.",
        config=True,
    )
    grant = Grant()
    _pod: tuple[str, str, str] | None = None  # namespace, name, start
    _url = ""
    _starting = False
    _ended: Message = NOTHING
    _ram = 0
    _news: Message = NOTHING

    @default("default_url")
    def _default_url_lab(self) -> str:
        return "/lab"

    @default("poll_interval")
    def _poll_interval_default(self) -> int:
        return LOOK_EVERY_S

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return ["jupyterhub-singleuser"]  # ours takes its place, with the arguments that follow

    @property
    def how_it_ended(self) -> Message:
        """Message to the user about the end of the last server, in sentences."""
        return sentence(self._ended) if self._ended else NOTHING

    async def _watch(self) -> PodWatch:
        return await PodWatch.shared(self.connect, selector(self.installation))

    # ------------------------------------------------------------------------- start

    async def start(self) -> str:
        """Have a pod made, wait until the server in it answers, and return its URL."""
        self._starting = True
        self._news = msg("Asking the cluster for a pod")
        try:
            try:
                async with asyncio.timeout(SYNC_S):
                    watch = await self._watch()
                    await watch.ready(SYNC_S)
                self._url = await self._run(watch)
            except TimeoutError as error:
                raise _no_cluster("no answer") from error
            except ClusterUnreachable as error:
                raise _no_cluster(error.message) from error
            except ClusterError as error:
                self.log.warning("No pod for %s: %s", self._log_name, error)
                raise _refused(error) from error
            except OptionsError as error:
                raise ServerRefused(sentence(error.message), "options", 400) from error
            except OSError as error:
                self.log.exception("No server for %s", self._log_name)
                raise ServerFailed(msg("The server could not be started: {why}.", why=str(error))) from error
            self._ended = NOTHING
            return self._url
        finally:
            self._starting = False

    async def _run(self, watch: PodWatch) -> str:
        installation, grant = self.installation, self.grant
        start, namespace = uuid.uuid4().hex, installation.namespace_of(grant.tenant)
        self.namespace, self.pod_name = namespace, pod_name(self.user.name, self.name)
        self._pod, self._url, self._ram = (namespace, self.pod_name, start), "", grant.ram
        self._remember()
        if (lacks := no_namespace(installation, grant.tenant)) is not None:
            raise ServerRefused(sentence(lacks), "namespace", 409)
        pod = await self._describe(start)
        made = await self._create(watch, await self._fit(pod))
        await watch.client.create(secret(made, pod), SECRETS)
        with watch.awaiting((namespace, self.pod_name)) as changed:
            async with Warnings(watch.client, (namespace, self.pod_name)) as warnings:
                up = await self._until_up(watch, changed, warnings)
        return f"http://{up.address}:{NOTEBOOK_PORT}"

    async def _describe(self, start: str) -> ServerPod:
        uid = self.first_uid + self.grant.number if os.geteuid() == 0 else os.getuid()
        home = await asyncio.to_thread(self._prepare, uid if os.geteuid() == 0 else None)
        env = build_for_pod(self.get_env(), self.user.name, self.api_url, self.data_url)
        return ServerPod(
            user=self.user.name,
            server=self.name,
            start=start,
            uid=uid,
            home=home,
            env=env | pip_settings(os.environ) | dict(self.environment),
            args=[f"--HubAuth.cache_max_age={server.SESSIONS_BELIEVED_S}", *self.get_args()],
        )

    async def _fit(self, pod: ServerPod) -> Object:
        configured = ApiClient.sanitize_for_serialization(self.api.api_client, await self.get_pod_manifest())
        return fit(configured, self.installation, pod, self.grant, await self._gpus())

    async def _gpus(self) -> Gpus | None:
        """Find how the cluster has the GPUs that were granted; it is asked about its nodes only where there are some."""
        if not self.grant.gpu:
            return None
        watch = await self._watch()
        given = self.installation.namespaces
        nodes = [given_node(self.installation)] if given else (await watch.client.list(NODES)).items
        try:
            return gpus_of(nodes, self.grant.gpu, self.grant.gpu_kind, self.installation)
        except NoGpus as error:
            raise OptionsError(error.message) from error

    def _prepare(self, uid: int | None) -> Path:
        placed = Paths(Path(self.state_dir), Path(self.state_dir), self.user.name, self.name).placed_file
        home = sandbox.ensure_home(self.installation.directories.homes, self.user.name, uid)
        new = place_samples(home, server.samples(), placed, uid, self._reader.language)
        if new:
            self.log.info("Placed %s in the home of %s", ", ".join(new), self.user.name)
        for kind in sandbox.SHELVES:  # kubelet would make what is missing, as its own
            sandbox.open_shelf(self.installation.directories.root, kind, self.user.name, uid).close()
        sandbox.place_links(home, self.user.name, uid)
        return home

    async def _create(self, watch: PodWatch, wanted: Object) -> Object:
        """Have the pod, and no other of its name: one that a hub that died left behind is ended first."""
        assert self._key is not None  # noqa: S101 - the caller has set it
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            try:
                if made := await watch.client.create(wanted, PODS):
                    return made
            except MissingObjectError:  # the tenant is so new that the service is still making its namespace
                if loop.time() - begun > PLACE_S:
                    raise
                self._news = msg("Waiting for the team's namespace in the cluster")
                await asyncio.sleep(0.5)
            else:
                await self._end(watch, self._key, NOW_S)

    async def _until_up(self, watch: PodWatch, changed: asyncio.Event, warnings: Warnings) -> Pod:
        """Return the pod once its server answers; raise ServerFailed once it is known that it never will."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        patience_s = 0.9 * self.start_timeout
        asking: asyncio.Task[None] | None = None
        seen: Pod | None = None
        try:
            while True:
                changed.clear()
                pod = self._mine(watch)
                if pod is None and seen is not None:
                    raise ServerFailed(sentence(pod_states.how_it_ended(None, None)))
                if pod is not None:
                    seen = pod
                    await self._check(watch, pod, loop.time() - begun)
                self._news = pod_states.waits_for(pod)
                if pod is not None and pod.running and pod.address and asking is None:
                    url = f"http://{pod.address}:{NOTEBOOK_PORT}{self.server.base_url}api"
                    asking = asyncio.ensure_future(server.answers_at(url))
                if asking is not None and asking.done() and pod is not None:
                    asking.result()
                    return pod
                if loop.time() - begun > patience_s:
                    warned = warnings.last(seen.uid) if seen else ""
                    raise ServerFailed(sentence(pod_states.not_in_time(pod, patience_s, warned)))
                await _first_of(changed, asking, 1.0)
        finally:
            if asking is not None:
                asking.cancel()

    async def _check(self, watch: PodWatch, pod: Pod, waited_s: float) -> None:
        """Raise ServerFailed where the pod can never come up."""
        environment = self.grant.environment
        if why := pod_states.hopeless(pod, environment):
            raise ServerFailed(sentence(why))
        if pod.unplaced and not pod.unbound and waited_s > self.node_patience_s:
            raise ServerFailed(sentence(pod_states.no_node(pod)))
        if pod.over:
            tail = await self._tail(watch)
            if environment:
                why = pod_states.why_no_environment(pod, environment, self.grant.ram, tail)
            else:
                why = pod_states.why_no_start(pod, self.grant.ram, tail)
            raise ServerFailed(sentence(why))

    async def _tail(self, watch: PodWatch) -> str:
        """Return the last lines of the server's output."""
        assert self._key is not None  # noqa: S101 - the caller has set it
        with contextlib.suppress(ClusterError, ClusterUnreachable):
            path = f"{PODS.path(*self._key)}/log"
            found = await watch.client.read(path, {"container": CONTAINER, "tailLines": "5"})
            return found.decode(errors="replace")
        return ""

    def _mine(self, watch: PodWatch) -> Pod | None:
        """Return the pod of this start, as far as the cluster has reported it."""
        assert self._pod is not None  # noqa: S101 - the caller has set it
        pod = watch.pods.get(self._pod[:2])
        return pod if pod is not None and pod.start == self._pod[2] else None

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the page of a pending start what is waited for."""
        before = NOTHING
        share = 10.0
        while self._starting:
            if self._news != before:
                before = self._news
                share += (90 - share) / 3
                yield {"progress": round(share), "message": Told.from_message(before)}
            await asyncio.sleep(0.2)

    # --------------------------------------------------------------------- poll, stop

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit status; then nothing of it is left."""
        if self._pod is None:
            return 0
        watch = await self._watch()
        await watch.ready()
        if self._starting:
            return None
        pod = self._mine(watch)
        if pod is not None and not pod.over:
            return None
        last = pod or watch.gone.get(self._pod[:2])
        if self._url and not self._ended:
            self._ended = pod_states.how_it_ended(last, self._ram)
            self.log.warning("Server of %s ended: %s", self._log_name, self._ended)
        if pod is not None:
            await self._end(watch, self._pod[:2], NOW_S)
        return pod_states.exit_status(last)

    async def stop(self, now: bool = False) -> None:
        """End the server: asked first, unless `now`."""
        if self._pod is None:
            return  # none was ever started
        watch = await self._watch()
        await watch.ready(SYNC_S)
        await self._end(watch, self._pod[:2], NOW_S if now else max(NOW_S, round(self.stop_grace_s)))

    async def _end(self, watch: PodWatch, key: Key, grace_s: int) -> None:
        """End the pod of a name and return when it is gone; may be repeated."""
        namespace, name = key
        with watch.awaiting(key) as changed:
            there = await watch.client.delete(PODS, name, namespace, grace_s=grace_s)
            try:
                async with asyncio.timeout(grace_s + FORCE_S if there else FORCE_S):
                    await _gone(watch, key, changed)
            except TimeoutError:
                self.log.warning("The node of %s does not say that it has ended; it is given up", name)
                await watch.client.delete(PODS, name, namespace, grace_s=0)
                async with asyncio.timeout(FORCE_S):
                    await _gone(watch, key, changed)
        watch.gone.pop(key, None)

    # -------------------------------------------------------------------- persistence

    @property
    def _key(self) -> Key | None:
        return None if self._pod is None else self._pod[:2]

    def _remember(self) -> None:
        """Note where the pod will be before it is there, so that no hub that dies loses it."""
        self.orm_spawner.state = self.get_state()
        self.db.commit()

    def get_state(self) -> dict[str, Any]:
        """Return what a restarted hub must know: which pod it is, its URL once it was up, and how the last one ended."""
        state: dict[str, Any] = super().get_state()
        if self._pod is not None:
            state[_POD] = {"key": list(self._pod), "url": self._url, "ram": self._ram}
        if self._ended:
            state[_ENDED] = to_data(self._ended)
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over from the hub that ran before."""
        super().load_state(state)
        if found := state.get(_POD):
            namespace, name, start = found["key"]
            self._pod, self._url, self._ram = (namespace, name, start), found["url"], found["ram"]
        if ended := state.get(_ENDED):
            self._ended = from_data(ended)

    def clear_state(self) -> None:
        """Forget the server, but not how it ended."""
        super().clear_state()
        self._pod, self._url = None, ""


async def _gone(watch: PodWatch, key: Key, changed: asyncio.Event) -> None:
    while key in watch.pods:
        changed.clear()
        if key in watch.pods:
            await changed.wait()


async def _first_of(changed: asyncio.Event, asking: asyncio.Task[None] | None, timeout_s: float) -> None:
    """Return at a change, at an answer, or when the time is over."""
    waiting = asyncio.ensure_future(changed.wait())
    try:
        await asyncio.wait(
            [waiting, asking] if asking else [waiting],
            timeout=timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
    finally:
        waiting.cancel()


def _no_cluster(why: str | Message) -> ServerRefused:
    text = msg("The cluster that notebook servers run in does not answer: {why}. Try again later.", why=why)
    return ServerRefused(text, "cluster-unreachable", 503)


def _refused(error: ClusterError) -> ServerRefused | ServerFailed:
    """Say why the cluster did not take the pod: by its policies, or because the hub may not or cannot."""
    policy = isinstance(error, ForbiddenError) and "cannot " not in error.said
    if policy or error.status == 422:
        text = msg(
            "The cluster refused the notebook server: {why}. An administrator of the hub can check the rules of the cluster.",
            why=error.said.rstrip(". "),
        )
        return ServerRefused(text, "cluster-refused")
    return ServerFailed(
        msg("The hub could not start a server in the cluster: {why}.", why=str(error.message))
    )
