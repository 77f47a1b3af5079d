"""Stands for the service where only what users import is tested: REST and the job's stream, all in memory.

`StandIn` runs in a thread of its own, on a loopback port or a UNIX socket. A submitted job waits, runs and ends as
`script` says, a step per request or by the clock of the watcher; a test may also set `.jobs` itself.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any, Self

import msgspec
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets, bind_unix_socket
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler

from mlp.client.rest import Client
from mlp_api.jobs.jobs import JobCreate
from mlp_api.jobs.metrics import MetricBatch

API = "/services/mlp/api/v1"
TOKEN = "token-of-ann"
NOW = "2026-11-21T10:00:00.000Z"
OFFER = {
    "fits_now": True, "expected_start": None, "placement": {"n1": 2}, "cpu": 2.0, "gpu": 0, "ram": 2048,
    "reasons": [], "would_start_now": [], "gives_way": [], "grace": 0.0,
}  # fmt: skip
TENANT = {
    "name": "red",
    "cpu": 4.0,
    "gpu": 0,
    "ram": 4096,
    "cpu_inuse": 2.2,
    "gpu_inuse": 0,
    "ram_inuse": 3072,
}


def job_record(name: str = "digits", **changes: Any) -> dict[str, Any]:
    """A job as on the wire."""
    record = {
        "name": name, "run": 1, "user": "ann", "tenant": "red", "runtime": "mpi", "entry": None, "code": "x", "args": [],
        "env": {}, "workers": 2, "ps": 0, "cpu": 1.0, "gpu": 0, "gpu_kind": None, "ram": 1024, "priority": "normal",
        "time_limit": None, "retries": 0, "checkpoint_every": None, "topology": None, "tensorboard": "on", "data": [], "params": {}, "sweep": None, "trial": None, "uid": f"u-{name}",
        "state": "creating", "phase": "queued", "reason": None, "message": "", "progress": 0, "restarts": 0,
        "position": 1, "expected_start": None, "ranks": [], "failure": None, "submitted_at": NOW, "queued_at": NOW,
        "admitted_at": None, "started_at": None, "finished_at": None, "waiting_since": NOW, "waited_s": 0.0,
        "ran_s": 0.0, "progress_from": 0, "progress_since": None, "put_first": False, "version": 1,
    }  # fmt: skip
    return record | changes


def ranks(state: str) -> list[dict[str, Any]]:
    """Two ranks."""
    one = {
        "role": "worker",
        "node": "n1",
        "state": state,
        "exit_code": None,
        "signal": None,
        "cpu": 0.9,
        "ram": 100,
    }
    return [{"rank": r, **one} for r in (0, 1)]


RUNNING = {
    "phase": "running", "state": "running", "started_at": NOW, "progress_since": NOW, "waiting_since": None, "position": None,
}  # fmt: skip
ENDED = {
    "started_at": NOW,
    "finished_at": "2026-11-21T10:00:20.000Z",
    "waiting_since": None,
    "ran_s": 20.0,
    "position": None,
}
ENDS = {"finished", "failed", "cancelled"}
FINISHED = {"phase": "finished", "state": "finished", "progress": 100, **ENDED}
FAILED = {
    "phase": "failed", "state": "error", **ENDED,
    "failure": {"cause": "program-error", "rank": 1, "exit_code": 3, "signal": None, "message": "",
                "tail": "Traceback\nValueError: no such digit"},
}  # fmt: skip


class StandIn:
    """The stand-in; `url` is the API's base."""

    def __init__(self, port: int = 0, socket: Path | None = None) -> None:
        self.port, self.socket = port, socket
        self.jobs: dict[str, dict[str, Any]] = {}
        self.points: dict[str, list[dict[str, Any]]] = {}
        self.lines: dict[str, list[dict[str, Any]]] = {}
        self.decisions: dict[str, list[dict[str, Any]]] = {}
        self.attempts: dict[str, list[dict[str, Any]]] = {}
        self.keys: dict[str, str] = {}
        self.seen: list[tuple[str, str]] = []
        self.requests: list[dict[str, Any]] = []
        self.last: dict[str, int] = {}
        self.batches: list[int] = []
        self.script: list[dict[str, Any]] = [RUNNING, {**RUNNING, "progress": 50}, FINISHED]
        self.step_every = 0.15
        self.fail_next: list[tuple[int, dict[str, Any]]] = []
        self.accept_streams = True
        self.knows_previews = True  # False: as a hub that is older than they are
        self.drop_after: int | None = None
        self.close_code: int | None = None
        self.streams_are_at = ""
        self.language = ""  # which the user chose
        self.url = ""
        self.tasks: set[asyncio.Future[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._open())
        self._loop.run_forever()

    async def _open(self) -> None:
        one = rf"{API}/users/([^/]+)/jobs/([^/:]+)"
        routes = [
            (rf"{API}/auth", Auth), (rf"{API}/users/([^/]+)/preferences", Preferences), (rf"{API}/users/([^/]+)/jobs", Jobs), (rf"{API}/users/([^/]+)/jobs:preview", Previewed), (one, OneJob), (rf"{one}:stream", Stream),
            (rf"{one}:([a-z]+)", Verb), (rf"{one}/(why|events|attempts|decisions|logs|note)", About), (rf"{API}/users/([^/]+)/quota", Quota),
            (rf"{API}/users/([^/]+)/job_metrics/([^/]+)", Metrics), (rf"{API}/(offer|tenants|runtimes)", Lists), (rf"{API}/users/([^/]+)/sweeps/([^/:]+)(?::[a-z]+)?", NoSweep),
        ]  # fmt: skip
        app = Application([(p, h, {"world": self}) for p, h in routes], log_function=lambda _: None)
        self._server = HTTPServer(app)
        if self.socket is not None:
            self._server.add_socket(bind_unix_socket(str(self.socket)))
            self.url = f"http+unix://{str(self.socket).replace('/', '%2F')}{API}"
        else:
            sockets = bind_sockets(self.port, "127.0.0.1")
            self._server.add_sockets(sockets)
            self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}{API}"
        self._ready.set()

    async def _close(self) -> None:
        self._server.stop()
        for task in list(self.tasks):
            task.cancel()
        await self._server.close_all_connections()

    def env(self) -> dict[str, str]:
        """The environment of a notebook of ann's."""
        return {"MLP_API_URL": self.url, "MLP_TOKEN": TOKEN}

    def key(self, reference: str) -> str:
        """Where the run that is meant lies: the latest below its name, an earlier one below NAME@RUN."""
        name, _, run = reference.partition("@")
        return name if run and name in self.jobs and str(self.jobs[name]["run"]) == run else reference

    def next_run(self, name: str) -> int:
        """Put the latest run of a name aside; return the number of the next one."""
        if name not in self.jobs:
            return 1
        before = self.jobs.pop(name)
        self.jobs[f"{name}@{before['run']}"] = before
        return int(before["run"]) + 1

    def advance(self, name: str) -> dict[str, Any]:
        """Bring a scripted job to where it should be by now."""
        job = self.jobs[name]
        if "_born" in job:
            step = int((time.monotonic() - job["_born"]) / self.step_every) - 1
            if step >= 0 and job["phase"] not in {"finished", "failed", "cancelled", "suspended"}:
                now = self.script[min(step, len(self.script) - 1)]
                state = "finished" if now is FINISHED else "running"
                job.update(now, ranks=ranks(state), version=step + 2)
                done = min(step + 1, 3)
                self.points[name] = [
                    point(i, epoch=i, loss=1 / i, accuracy=1 - 0.1 / i) for i in range(1, done + 1)
                ]
                self.lines[name] = [line(f"epoch {i}", i) for i in range(1, done + 1)]
        return {k: v for k, v in job.items() if k[0] != "_"}


def point(seq: int, rank: int = 0, **values: float) -> dict[str, Any]:
    """A metric point as in the stream."""
    return {"seq": seq, "time": 1000.0 + seq, "rank": rank, "step": values.get("step"), "values": values}


def line(text: str, number: int = 0, stream: str = "stdout") -> dict[str, Any]:
    """A log line."""
    return {"time": f"2026-11-21T10:00:{number:02d}.000000000Z", "stream": stream, "text": text}


class Base(RequestHandler):
    def initialize(self, world: StandIn) -> None:
        self.world = world

    def prepare(self) -> None:
        if self.world.language:
            self.set_header("Content-Language", self.world.language)
        self.world.seen.append((self.request.method or "", self.request.path.removeprefix(API)))
        if self.world.fail_next:
            status, headers = self.world.fail_next.pop(0)
            if status == 0:
                self.request.connection.stream.close()
                self._finished = True
                return
            self.set_status(status)
            for k, v in headers.items():
                self.set_header(k, v)
            self.finish({"msg": "away for a moment"})
        elif self.request.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.set_status(401)
            self.finish({"msg": "no"})

    def refuse(self, reason: str, msg: str) -> None:
        self.set_status(403)
        self.finish({"msg": msg, "reason": reason})

    def reply(self, body: Any, status: int = 200) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    def found(self, name: str) -> dict[str, Any] | None:
        name = self.world.key(name)
        if name not in self.world.jobs:
            self.refuse("NotFound", f"job {name} does not exist")
            return None
        return self.world.advance(name)


class Preferences(Base):
    def get(self, user: str) -> None:
        self.reply({"language": self.world.language})

    def patch(self, user: str) -> None:
        self.world.language = json.loads(self.request.body)["language"]
        self.get(user)


class Auth(Base):
    def get(self) -> None:
        self.reply("ann")


class Jobs(Base):
    def post(self, user: str) -> None:
        world = self.world
        key = self.request.headers["Idempotency-Key"]
        body = msgspec.json.decode(self.request.body, type=JobCreate)
        world.requests.append(json.loads(self.request.body))
        if key in world.keys:
            self.reply(world.advance(world.keys[key]), 201)
        elif body.name in world.jobs and world.jobs[body.name]["phase"] not in ENDS:
            self.refuse("Conflict", f"{body.name} run {world.jobs[body.name]['run']} has not ended")
        else:
            asked = msgspec.to_builtins(body)
            del asked["replace"]
            asked["run"] = world.next_run(body.name)
            asked["runtime"] = body.runtime or "plain"
            world.jobs[body.name] = job_record(**asked) | {"user": user, "tenant": body.tenant or "red"}
            world.jobs[body.name]["_born"] = time.monotonic()
            world.keys[key] = body.name
            self.reply(world.advance(body.name), 201)

    def get(self, user: str) -> None:
        names = sorted(self.world.jobs)
        start = int(self.get_query_argument("cursor", "0"))
        if start + 2 < len(names):
            self.set_header("X-Next-Cursor", str(start + 2))
        self.reply([self.world.advance(n) for n in names[start : start + 2]])


class Previewed(Base):
    def post(self, user: str) -> None:
        world = self.world
        if not world.knows_previews:
            self.refuse("NotFound", f"there is no POST {self.request.path} here")
            return
        body = msgspec.json.decode(self.request.body, type=JobCreate)
        world.requests.append(json.loads(self.request.body))
        before = world.jobs.get(body.name)
        if body.workdir is not None:
            self.refuse("Invalid", f"your home directory has no directory {body.workdir}")
        elif before is not None and before["phase"] not in ENDS:
            self.refuse("Conflict", f"{body.name} run {before['run']} has not ended")
        else:
            least, _, most = str(body.workers).partition(":")
            self.reply(
                {
                    "name": body.name,
                    "run": 1 if before is None else before["run"] + 1,
                    "runtime": body.runtime or "plain",
                    "ranks_min": int(least),
                    "ranks_max": int(most or least),
                    "offer": OFFER,
                }
            )


class OneJob(Base):
    def get(self, user: str, name: str) -> None:
        if job := self.found(name):
            self.reply(job)

    def delete(self, user: str, name: str) -> None:
        if job := self.found(name):
            if job["phase"] not in ENDS:
                self.refuse("WrongState", f"job {name} is {job['phase']}")
                return
            del self.world.jobs[self.world.key(name)]
            self.reply(job)


class NoSweep(Base):
    """Nobody has a sweep here."""

    def get(self, user: str, name: str) -> None:
        self.refuse("NotFound", f"sweep {name} does not exist")

    put = delete = get


class Verb(Base):
    def put(self, user: str, name: str, verb: str) -> None:
        if job := self.found(name):
            name = self.world.key(name)
            if verb == "resubmit":
                name = job["name"]
                self.world.keys[self.request.headers["Idempotency-Key"]] = name
                again = {**job, "run": self.world.next_run(name)}
                self.world.jobs[name] = again
            changes = {
                "cancel": "cancelled",
                "suspend": "suspended",
                "resume": "queued",
                "resubmit": "queued",
                "update": job["phase"],
            }
            self.world.jobs[name].update(
                **json.loads(self.request.body or "{}"),
                phase=changes[verb],
                state="error" if verb == "cancel" else "creating",
            )
            self.reply(self.world.advance(name))


class About(Base):
    def put(self, user: str, name: str, what: str) -> None:
        if what == "note" and (job := self.found(name)):
            job |= json.loads(self.request.body)
            self.world.jobs[self.world.key(name)] = job
            self.reply(job)

    def get(self, user: str, name: str, what: str) -> None:
        job = self.found(name)
        if job is None:
            return
        name = self.world.key(name)
        if what == "why":
            numbers = {"asked": 2.0, "free": 1.8}
            self.reply({
                "job": job["name"], "run": job["run"], "phase": job["phase"], "position": 1, "queue_length": 3, "expected_start": None,
                "expected_because": "", "how_sure": "unknown", "sure_because": "", "would_start_now": ["--workers 1"],
                "cut_short": "", "stopped": None,
                "reasons": [{"reason": "WaitingForQuota", "message": "red may use 4 cpu; 2.2 are in use", "numbers": numbers}],
            })  # fmt: skip
        elif what == "decisions":
            self.reply(self.world.decisions.get(name, []))
        elif what == "attempts":
            only = {"attempt": 1, "stages": [], "ended": None, "ended_at": None}
            self.reply(self.world.attempts.get(name, [only]))
        elif what == "events":
            self.reply(
                [{"seq": 1, "time": NOW, "kind": "submitted", "message": "was submitted", "reason": None}]
            )
        else:
            rank, since = (
                int(self.get_query_argument("rank", "0")),
                int(self.get_query_argument("since", "0")),
            )
            tail = int(self.get_query_argument("tail", "0"))
            lines = self.world.lines.get(name, []) if rank == 0 else []
            lines = lines[-tail:] if tail else lines[since:][:2]
            out = [{"rank": rank, **x} for x in lines]
            self.reply({"rank": rank, "lines": out, "offset": since + len(lines), "dropped": 0})


class Quota(Base):
    def get(self, user: str) -> None:
        held = {
            "holder": "digits",
            "user": "ann",
            "applier": "jm",
            "cpu": 2.0,
            "gpu": 0,
            "ram": 2048,
            "rom": 0,
            "since": NOW,
        }
        self.reply([{"tenant": TENANT, "holdings": [held], "history": []}])


class Lists(Base):
    def get(self, what: str) -> None:
        if what == "offer":
            self.world.requests.append({k: self.get_query_argument(k) for k in self.request.query_arguments})
        self.reply({"offer": OFFER, "tenants": [TENANT], "runtimes": [{"name": "mpi"}, {"name": "tf"}]}[what])


class Metrics(Base):
    def post(self, user: str, name: str) -> None:
        batch = msgspec.json.decode(self.request.body, type=MetricBatch)
        last = self.world.last.get(batch.source, 0)
        for p in batch.points:
            if p.n == last + 1:
                last = p.n
                stored = self.world.points.setdefault(name, [])
                stored.append({"source": batch.source, "n": p.n, "v": p.v})
        self.world.last[batch.source] = last
        self.world.batches.append(len(batch.points))
        self.reply({"last": last})


class Stream(WebSocketHandler):
    def initialize(self, world: StandIn) -> None:
        self.world = world

    async def prepare(self) -> None:
        self.world.seen.append((self.request.method or "", self.request.path.removeprefix(API)))
        if self.world.streams_are_at:
            self.redirect(self.world.streams_are_at)
        elif not self.world.accept_streams:
            self.set_status(404)
            await self.finish()

    def open(self, user: str, name: str) -> None:
        task = asyncio.ensure_future(
            self._send(self.world.key(name), int(self.get_query_argument("since", "0")))
        )
        self.world.tasks.add(task)
        task.add_done_callback(self.world.tasks.discard)

    async def _send(self, name: str, since: int) -> None:
        world, version, told, sent = self.world, None, 0, 0
        first = True
        while True:
            job = world.advance(name)
            frames: list[dict[str, Any]] = []
            if job["version"] != version:
                version = job["version"]
                frames.append({"type": "job", "job": job})
            new = [p for p in world.points.get(name, []) if p["seq"] > since]
            if new:
                since = new[-1]["seq"]
                frames.append({"type": "metrics", "points": new})
            lines = world.lines.get(name, [])
            if len(lines) > told:
                frames.append({"type": "log", "rank": 0, "lines": lines[told:], "offset": len(lines)})
                told = len(lines)
            if first:
                frames.append({"type": "synced"})
                first = False
            if job["phase"] in {"finished", "failed", "cancelled"}:
                frames.append({"type": "end"})
            for frame in frames:
                try:
                    await self.write_message(json.dumps(frame))
                except Exception:  # noqa: BLE001 - the watcher has gone
                    return
                sent += 1
                if world.drop_after is not None and sent >= world.drop_after:
                    world.drop_after = None
                    self.stream_close()
                    return
            if frames and frames[-1]["type"] == "end":
                self.close(1000)
                return
            await asyncio.sleep(0.02)

    def stream_close(self) -> None:
        if self.world.close_code is not None:
            self.close(self.world.close_code, "no more")
        else:
            self.ws_connection.stream.close()


def client(world: StandIn, **options: Any) -> Client:
    """Return a client of a stand-in that does not wait between its tries."""
    return Client(world.url, TOKEN, sleep=lambda _: None, **options)
