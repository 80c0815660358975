"""Who commits, pushes or types a command: an agent, or a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Committer(NamedTuple):
    """The committer: an agent (by its token, its name or its session), or a person."""

    agent: str | None = None
    token: str | None = None
    profile: str = ""
    session: str = ""

    @property
    def person(self) -> bool:
        """Nobody but a person is known."""
        return not (self.agent or self.token or self.session)

    @classmethod
    def of(cls, environment: Mapping[str, str], root: Path) -> Committer:
        """The committer, by the environment of a coordinated agent's commands."""
        token, agent = environment.get("COORD_AGENT_TOKEN"), environment.get("COORD_AGENT")
        if token or agent:
            return cls(agent=agent or None, token=token or None)
        from coordinator.profiles import profiles  # slow: only if needed

        for profile in profiles(root, broken=False):  # another's mistake stops no commit
            if profile.session_env and environment.get(profile.session_env):
                return cls(profile=profile.name, session=environment[profile.session_env])
        return cls()
