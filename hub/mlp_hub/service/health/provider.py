"""Whether the provider whose accounts people log in with answers, as the hub says, which asks it."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.service.health.problems import Problem
from mlp_language.message import msg


class ProviderWatch:
    """Last report of the hub; `title` is the name of the provider for people, empty if there is none."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.away = False
        self.refuses = ""
        """The provider's words where it answers and does not accept this hub."""

    async def problems(self) -> Sequence[Problem]:
        """Return the problem that nobody new can log in; users who are logged in continue, so nothing fails."""
        if self.refuses:
            message = msg(
                "{title} does not accept this hub, so nobody can log in with it: {why} Correct the settings MLP_LOGIN_*; `mlp-hub doctor` shows which.",
                title=self.title,
                why=self.refuses,
            )
            return [Problem("login", "ProviderUnavailable", message, fails=False)]
        if not self.away:
            return ()
        message = msg(
            "{title} does not answer: nobody can log in with it until it does; users who are logged in stay logged in, with their earlier groups",
            title=self.title,
        )
        return [Problem("login", "ProviderUnavailable", message, fails=False)]
