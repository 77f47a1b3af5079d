"""Who leaves is shut out, their jobs and files go the way that was chosen, whatever is killed on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mlp_api.stored.datasets import DatasetCreate, DatasetHeartbeat
from mlp_api.stored.models import ModelCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.departure import Departure, DeparturePhase, FilesChoice, JobsChoice
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store.tx import Tx
from mlp_language.message import msg
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

FINISH, STOP = JobsChoice.FINISH, JobsChoice.STOP
KEEP, REMOVE = FilesChoice.KEEP, FilesChoice.REMOVE
LONG = {"DURATION": 600}


async def left(rig: Rig, user: str = "ann") -> Departure:
    """Return somebody's departure once it is over."""

    async def look() -> Departure | None:
        found = await rig.platform.offboarding.departure_of(user)
        return found if found is not None and found.phase is DeparturePhase.LEFT else None

    found: Departure = await until(look, what=f"{user} to have left")
    return found


async def phases(rig: Rig, user: str = "ann") -> dict[str, str]:
    return {job.name: job.phase for job in (await rig.platform.jobs.list(SYSTEM, user))[0]}


async def some_work(rig: Rig) -> None:
    """Give ann a job that ended, one that runs and one that waits, a home with a file, and bob a job that runs."""
    await rig.submit("done", sim={"DURATION": 0})
    await rig.until("done", "finished")
    await rig.submit("runs", cpu=2.0, sim=LONG)
    await rig.until("runs", "running")
    await rig.submit("bobs", "bob", sim=LONG)
    await rig.until("bobs", "running", user="bob")
    await rig.submit("waits", cpu=4.0)
    for user in ("ann", "bob"):
        home = Path(rig.directories.home(user))
        home.mkdir(parents=True, exist_ok=True)
        (home / "notes.txt").write_text("mine")


def told(rig: Rig) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what was written down of people leaving."""

    def work(tx: Tx) -> list[tuple[str, str, dict[str, Any]]]:
        entries, _ = tx.audit.page()
        return [
            (e.actor, e.action, dict(e.detail))
            for e in reversed(entries)
            if e.action in ("user.deactivate", "user.left")
        ]

    return rig.db.read_now(work)


async def unharmed(rig: Rig) -> None:
    """Check that nothing of bob's was touched."""
    assert await phases(rig, "bob") == {"bobs": "running"}
    assert (Path(rig.directories.home("bob")) / "notes.txt").read_text() == "mine"


async def test_running_jobs_of_a_departing_user_continue_and_waiting_ones_are_suspended(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        shut: list[str] = []

        async def shut_out(user: str) -> None:
            shut.append(user)

        rig.platform.offboarding.shut_out = shut_out
        owning = await rig.platform.offboarding.owned_counts("ann")
        assert (owning.running, owning.waiting, owning.suspended, owning.ended) == (1, 1, 0, 1)
        await rig.platform.offboarding.begin("ann", FINISH, KEEP, actor="root")
        assert shut == ["ann"]
        assert (await left(rig)).suspended == 1
        assert await phases(rig) == {"done": "finished", "runs": "running", "waits": "suspended"}
        assert told(rig) == [
            ("root", "user.deactivate", {}),
            ("root", "user.left", {"suspended_jobs": 1}),
        ]
        assert (Path(rig.directories.home("ann")) / "notes.txt").exists()
        await unharmed(rig)


async def test_all_jobs_stop_where_that_is_chosen(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        await rig.platform.offboarding.begin("ann", STOP, KEEP, actor="ann")
        assert (await left(rig)).stopped == 2
        await rig.until("runs", "cancelled")
        assert await phases(rig) == {"done": "finished", "runs": "cancelled", "waits": "cancelled"}
        assert told(rig)[0] == ("ann", "user.deactivate", {"jobs": "stop"})
        await unharmed(rig)


async def test_files_go_only_once_nothing_runs_any_more(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        home = Path(rig.directories.home("ann"))
        offboarding = rig.platform.offboarding
        await offboarding.begin("ann", FINISH, REMOVE, actor="ann")
        await rig.until("waits", "cancelled")
        found = await offboarding.departure_of("ann")
        assert found is not None
        assert found.phase is DeparturePhase.ENDING, "the job that runs is to finish first"
        assert home.exists()
        rig.end(await rig.platform.jobs.get(SYSTEM, "ann", "runs"))  # type: ignore[arg-type]
        assert (await left(rig)).removed == 3
        assert await phases(rig) == {}
        assert not home.exists()
        assert not rig.workspace("ann", "done").exists()
        assert rig.held().cpu == 1000, "bob's job alone holds quota"
        await unharmed(rig)


class CutError(Exception):
    """The process ended here."""


class CutBoard:
    """A board whose `cut`-th write is not made, or is made and not answered; nothing works after that."""

    def __init__(self, board: Any, cut: int, *, made: bool) -> None:
        self._board, self._cut, self._made = board, cut, made
        self.writes = 0
        self.db = self

    async def read(self, fn: Any) -> Any:
        return await self._board.db.read(fn)

    async def write(self, fn: Any) -> Any:
        return await self._counted(lambda: self._board.db.write(fn))

    async def commit(self, fn: Any) -> Any:
        return await self._counted(lambda: self._board.commit(fn))

    async def _counted(self, write: Callable[[], Awaitable[Any]]) -> Any:
        self.writes += 1
        if self.writes > self._cut or (self.writes == self._cut and not self._made):
            raise CutError
        found = await write()
        if self.writes == self._cut:
            raise CutError
        return found


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cut", range(1, 6))
async def test_a_departure_killed_at_any_write_leaves_nothing_half_done(
    tmp_path: Path, cut: int, *, made: bool
) -> None:
    """With all that is to stop and to go there are at least five writes: begin, close, jobs, records, over."""

    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        offboarding = rig.platform.offboarding
        board = CutBoard(offboarding._board, cut, made=made)
        offboarding._board = board  # type: ignore[assignment]
        answered = True
        try:
            await offboarding.begin("ann", STOP, REMOVE, actor="root")
        except CutError:
            answered = False

        async def is_cut() -> bool:
            return board.writes >= cut

        await until(is_cut, what=f"write {cut}")
        rig.crash()
        await rig.start()
        if not answered:  # who got no answer asks again
            await rig.platform.offboarding.begin("ann", STOP, REMOVE, actor="root")
        await left(rig)
        assert await phases(rig) == {}
        assert not Path(rig.directories.home("ann")).exists()
        assert rig.held().cpu == 1000
        ends = [entry for entry in told(rig) if entry[1] == "user.left"]
        assert len(ends) <= (1 if answered else 2), "who asks again after all was done is told so again"
        assert ends[0][2]["removed_jobs"] == 3
        assert ends[0][2]["files"] == "remove"
        await unharmed(rig)


async def test_a_departure_does_not_begin_when_the_user_may_not_be_shut_out(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)

        async def refuses(user: str) -> None:
            raise Refused(Reason.CONFLICT, msg("{name} is the only administrator left", name=user))

        rig.platform.offboarding.shut_out = refuses
        with pytest.raises(Refused, match="only administrator"):
            await rig.platform.offboarding.begin("ann", STOP, REMOVE, actor="ann")
        assert await rig.platform.offboarding.departure_of("ann") is None
        assert (await phases(rig))["runs"] == "running"
        assert told(rig) == []


async def test_a_user_who_returns_before_the_files_are_removed_keeps_them(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        offboarding = rig.platform.offboarding
        await offboarding.begin("ann", FINISH, REMOVE, actor="root")
        await rig.until("waits", "cancelled")
        await offboarding.come_back("ann")
        rig.end(await rig.platform.jobs.get(SYSTEM, "ann", "runs"))  # type: ignore[arg-type]
        await rig.until("runs", "finished")
        await offboarding._work("ann")  # what was planned finds nothing to do
        assert await offboarding.departure_of("ann") is None
        assert set(await phases(rig)) == {"done", "runs", "waits"}
        assert (Path(rig.directories.home("ann")) / "notes.txt").exists()


async def test_a_user_who_returns_during_the_removal_of_files_has_to_wait(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        offboarding = rig.platform.offboarding

        class Stays:
            async def remove(self, user: str) -> bool:
                return False

        offboarding.owned_data.append(Stays())
        await offboarding.begin("ann", STOP, REMOVE, actor="root")

        async def removing() -> bool:
            found = await offboarding.departure_of("ann")
            return found is not None and found.phase is DeparturePhase.REMOVING

        await until(removing, what="files to go")
        for refused in (offboarding.come_back("ann"), offboarding.begin("ann", STOP, KEEP, actor="root")):
            with pytest.raises(Refused, match="are being removed"):
                await refused
        again = await offboarding.begin("ann", STOP, REMOVE, actor="root")
        assert again.phase is DeparturePhase.REMOVING
        offboarding.owned_data.clear()
        await left(rig)
        await offboarding.come_back("ann")
        assert await offboarding.departure_of("ann") is None


async def test_leaving_twice_or_with_nothing_is_the_same_as_once(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for _ in range(2):
            await rig.platform.offboarding.begin("zoe", STOP, REMOVE, actor="root")
            found = await left(rig, "zoe")
            assert (found.stopped, found.suspended, found.removed) == (0, 0, 0)


async def test_stored_objects_are_removed_with_their_user_including_uploads_in_progress(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await some_work(rig)
        home = Path(rig.directories.home("ann"))
        (home / "model.bin").write_bytes(b"weights")
        platform = rig.platform
        for name in ("pets", "half"):
            await platform.datasets.create("ann", DatasetCreate(name=name, size=1000))
        await platform.datasets.heartbeat(
            SYSTEM, "ann", "pets", DatasetHeartbeat(state="ready", progress=100)
        )
        await platform.models.register(
            SYSTEM, "ann", ModelCreate(name="net", src="home/model.bin", any_files=True)
        )
        await platform.offboarding.begin("ann", STOP, REMOVE, actor="root")
        await left(rig)
        assert (await platform.datasets.list(SYSTEM, "ann"))[0] == []
        assert (await platform.models.list(SYSTEM, "ann"))[0] == []
        used = rig.db.read_now(lambda tx: tx.ledger.in_use(DEFAULT_TENANT, rig.clock()))
        assert used.rom == 0, "nothing is charged any more"
