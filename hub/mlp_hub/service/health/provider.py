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

    async def problems(self) -> Sequence[Problem]:
        """Say that nobody new gets in; who is in works on, so that nothing fails."""
        if not self.away:
            return ()
        message = msg(
            "{title} does not answer: nobody can log in with it until it does; those who are logged in stay, with the groups they had",
            title=self.title,
        )
        return [Problem("login", "ProviderUnavailable", message, fails=False)]
