"""Whether the provider whose accounts people log in with answers, as the hub says, which asks it."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.service.health.problems import Problem
from mlp_language.message import msg


class ProviderWatch:
    """What the hub said last. `title` is what people call the provider; empty where there is none."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.away = False
        self.refuses = ""
        """The provider's words where it answers and does not accept this hub."""

    async def problems(self) -> Sequence[Problem]:
        """Say that nobody new gets in; who is in works on, so that nothing fails."""
        if self.refuses:
            message = msg(
                "{title} does not accept this hub, so nobody can log in with it: {why} Correct the settings MLP_LOGIN_*; `mlp-hub doctor` says which.",
                title=self.title,
                why=self.refuses,
            )
            return [Problem("login", "ProviderUnavailable", message, fails=False)]
        if not self.away:
            return ()
        message = msg(
            "{title} does not answer: nobody can log in with it until it does; those who are logged in stay, with the groups they had",
            title=self.title,
        )
        return [Problem("login", "ProviderUnavailable", message, fails=False)]
