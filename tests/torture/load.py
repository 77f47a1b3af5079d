"""The steady load: each user keeps some jobs under way and steers them; what was acknowledged is written down."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from torture import recipes
from torture.findings import Violation
from torture.recipes import Recipe
from torture.site import AIMED, USERS, Site

UNDER_WAY = 4  # of each user
LOOK_S = 0.4
PATIENCE_S = 100.0  # the longest that anything may go unanswered, a round's worth of faults included
FINAL = ("finished", "failed", "cancelled")


@dataclass
class Tracked:
    """A job that was acknowledged, and what its user asked of it since. `name` means this run of it and no other."""

    recipe: Recipe
    uid: str
    name: str
    directory: str
    acked_at: float
    asked: list[str] = field(default_factory=list)
    due: list[tuple[float, str]] = field(default_factory=list)
    phase: str = ""


def name_of(job: dict[str, Any]) -> str:
    """Return by which name exactly this job is asked for, of those that have run under it."""
    return f"{job['name']}@{job['run']}" if "run" in job else str(job["name"])


class Load:
    """All users of a round. `submitting` ends with `drain`; acts go on until none is left."""

    def __init__(self, site: Site, seed: str, number: int) -> None:
        self.site = site
        self.seed = seed
        self.number = number
        self.jobs: list[Tracked] = []
        self._aimed = 0
        self._draining = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._user, args=(user,), name=user, daemon=True) for user in USERS
        ]
        for thread in self._threads:
            thread.start()

    def submit_aimed(self, patience: float) -> bool:
        """Submit a job that will start at once; False where that was not answered in time (it is repeated later)."""
        recipe = recipes.aimed(AIMED, self.number, self._aimed)
        self._aimed += 1
        if self._submit(recipe, patience):
            return True
        thread = threading.Thread(target=self._submit, args=(recipe, PATIENCE_S), daemon=True)
        thread.start()
        self._threads.append(thread)
        return False

    def drain(self) -> None:
        """Submit nothing more, and let the users do what they still meant to."""
        self._draining.set()
        for thread in self._threads:
            thread.join()

    def undone(self) -> list[Tracked]:
        """Return the jobs that have not ended, as they were last seen."""
        for user in (*USERS, AIMED):
            self._look(user)
        return [job for job in self.jobs if job.phase not in FINAL]

    # -------------------------------------------------------------------- a user

    def _user(self, user: str) -> None:
        index = 0
        while True:
            mine = [job for job in self.jobs if job.recipe.user == user]
            draining = self._draining.is_set()
            acted = False
            for job in mine:
                acted |= self._act(job, at_once=draining)
            if (draining and not any(job.due for job in mine)) or self.site.closing.is_set():
                return
            self._look(user)
            if not draining and sum(job.phase not in FINAL for job in mine) < UNDER_WAY:
                self._submit(recipes.draw(self.seed, self.number, user, index), PATIENCE_S)
                index += 1
            elif not acted:
                self._draining.wait(LOOK_S) if not draining else time.sleep(0.05)

    def _submit(self, recipe: Recipe, patience: float) -> bool:
        path = f"/users/{recipe.user}/jobs"
        headers = {"Idempotency-Key": f"{self.seed}-{recipe.name}"}
        answer = self.site.ask("POST", path, recipe.user, patience, recipe.body, headers=headers)
        if answer is None:
            if patience >= PATIENCE_S and not self.site.closing.is_set():
                self._violate("not-answered", f"POST of {recipe.name}: no answer in {patience:g} s", recipe)
            return False
        if answer.status_code != 201:
            text = f"POST of {recipe.name}: {answer.status_code} {answer.text[:300]}"
            self._violate("submit-refused", text, recipe)
            return False
        self._track(recipe, answer.json())
        return True

    def _track(self, recipe: Recipe, job: dict[str, Any]) -> None:
        now = time.monotonic()
        later = job.get("run", 1) > 1
        directory = f"{recipe.name}@{job['run']}" if later else recipe.name
        tracked = Tracked(recipe, job["uid"], name_of(job), directory, time.time(), phase=job["phase"])
        if recipe.act:
            tracked.due.append((now + recipe.after, recipe.act))
        if recipe.act == "suspend":
            tracked.due.append((now + recipe.after + recipe.back, "resume"))
        with self._lock:
            self.jobs.append(tracked)

    def _act(self, job: Tracked, *, at_once: bool) -> bool:
        """Do what is due of what the user means to do."""
        if not job.due or (job.due[0][0] > time.monotonic() and not at_once):
            return False
        act = job.due[0][1]
        if act == "resubmit" and job.phase not in FINAL:
            return False  # a name is run again when its last run has ended
        job.due.pop(0)
        recipe = job.recipe
        path = f"/users/{recipe.user}/jobs/{job.name}:{act}"
        headers = {"Idempotency-Key": f"{self.seed}-{recipe.name}-{act}"}
        if act != "resubmit":
            job.asked.append(act)  # before it is asked: it may happen without an answer
        answer = self.site.ask("PUT", path, recipe.user, PATIENCE_S, headers=headers)
        if answer is None and not self.site.closing.is_set():
            self._violate("not-answered", f"{act} of {recipe.name}: no answer in {PATIENCE_S:g} s", recipe)
        elif answer is None:
            return False
        elif answer.status_code == 404:
            self._violate("job-lost", f"{act}: {answer.text[:300]}", recipe)
        elif answer.is_success and act == "resubmit":
            again = answer.json()
            self._track(replace(recipe, name=again["name"], act=""), again)
        elif not answer.is_success and answer.json().get("reason") != "WrongState":
            self._violate("act-refused", f"{act}: {answer.status_code} {answer.text[:300]}", recipe)
        return True

    def _look(self, user: str) -> None:
        answer = self.site.ask("GET", f"/users/{user}/jobs?limit=500", user, 2.0)
        if answer is None or not answer.is_success:
            return
        found = {job["uid"]: job["phase"] for job in answer.json()}
        for job in self.jobs:
            if job.recipe.user == user and job.uid in found:
                job.phase = found[job.uid]

    def _violate(self, kind: str, text: str, recipe: Recipe) -> None:
        evidence = {"recipe": recipe, "hits": self.site.toll.hits[-200:], "outages": self.site.toll.outages}
        one = Violation(kind, text, f"{recipe.user}/{recipe.name}")
        self.site.findings.add(one, evidence, self.site.settings.log_dir)
