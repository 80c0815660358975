# Made by scripts/blocking_client.py from coordinator/client/asynchronous/deciding.py; do not edit.
"""Methods of `Client`: reviews, the guard, regions and proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from coordinator.client.asking import Asking, here, listed
from coordinator.words import requests as rq


class Deciding(Asking):
    """Asking about reviews, the guard, regions and proposals."""

    def review_list(
        self, *,
        state: Literal["open", "kept", "reverted", "reassigned", "decided", "all"] = "open",
        agent: str | None = None, task: str | None = None, after: int = 0, skip: int = 0,
        limit: int = 200,
    ) -> rq.ReviewList:
        """Flagged work; without `state`, what is open. `decided`: whatever is not open, the last
        verdict first.

        Args:
            state: Only reviews in this state.
            agent: Only work that it left.
            task: Only work on this task.
            after: Only what comes after this: the `next` of the page before.
            skip: Leave out so many of them at the beginning.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.Reviews(
            state=state, agent=agent, task=task, after=after, skip=skip, limit=limit,
        ))

    def review_show(self, review: str, *, content: bool = False) -> rq.Review:
        """One review with its diffs and timeline; `content` adds the bytes (base64).

        Args:
            review: The review's id, like `R-3`.
            content: Give the bytes, too (base64).
        """
        return self.call(rq.ReviewShow(review=review, content=content))

    def review_hunks(
        self, review: str, file: str, *, skip: int = 0, limit: int = 20,
    ) -> rq.HunkList:
        """The hunks of one file of a review, by parts: also of a file that is too large for `show`.

        Args:
            review: The review's id, like `R-3`.
            file: Its path, as the review has it.
            skip: Leave out so many of them at the beginning.
            limit: How many at most; 1 or more. A page's own bound holds, too.
        """
        return self.call(rq.ReviewHunks(
            review=review, file=file, skip=skip, limit=limit, cwd=here(),
        ))

    def review_decide(
        self, review: str, verdict: rq.Verdict, *, note: str = "", by: str = "",
        files: Sequence[str] = (), hunks: Sequence[int] = (), seen: str = "",
        edited: str | None = None,
    ) -> rq.Review:
        """A human's verdict. `revert` restores the bytes at grant where nobody changed them since.

        With `files` it is about these alone. They become a review of their own, which is the answer
        (with `part_of`), and the rest stays open. With `hunks` (numbers from 1, as the difference
        of that one file shows them) it is about these alone. If that is everything, the result is
        as without. `keep` with `edited` writes that text to the one file before it is kept; `undo`
        takes it out.

        Args:
            review: The review's id, like `R-3`.
            verdict: What is decided.
            note: A remark for people, in a line.
            by: The person who does or did it.
            files: Only these of it, by path; empty: all.
            hunks: Only these changes of the one file, numbers from 1; empty: all.
            seen: `BEFORE..AFTER`, the hashes of the contents that the verdict is based on.
            edited: The one file's text, as it is to be kept; null: as it was left.
        """
        return self.call(rq.ReviewDecide(
            review=review, verdict=verdict, note=note, by=by, files=listed(files),
            hunks=listed(hunks), seen=seen, edited=edited, cwd=here(),
        ))

    def review_undo(self, review: str, *, by: str = "") -> rq.Review:
        """Take a verdict back; files that a revert wrote get their bytes again.

        Args:
            review: The review's id, like `R-3`.
            by: The person who does or did it.
        """
        return self.call(rq.ReviewUndo(review=review, by=by))

    def git_turn(
        self, pid: int, top: str, command: str, *, replaces: Sequence[str] = (),
        parent: str | None = None,
    ) -> rq.GitTurnTaken:
        """A git command is about to change a whole working tree. It may, if nobody else is at work
        in the tree. Until its process ends nobody else is granted anything there.

        Refused (LOCKED) while others are at work. The script before git in agents' sessions asks
        this.

        Args:
            pid: The process that becomes git, on this machine.
            top: The top of its working tree, absolute or from the root.
            command: As it was called, for others to read.
            replaces: The parents of commits that it takes out of the branch. Refused where one of
                these commits is another agent's.
            parent: Of a commit: the commit that it is made on top of. It takes no turn then.
        """
        return self.call(rq.GitTurn(
            pid=pid, top=top, command=command, replaces=listed(replaces), parent=parent,
        ))

    def guard_check(
        self, paths: Sequence[str], *, agent: str | None = None, profile: str = "",
        session: str = "",
    ) -> rq.GuardHeldList:
        """Which of these files others than the committer are about to change (hold exclusively).

        `paths` are absolute or from the root, and of files, whatever signs they contain; what is
        not in the repository is left out. The committer is the token's agent, else `agent`, else
        the session of `profile`, else a person, to whom every agent is another. Changes nothing.

        Args:
            paths: Absolute paths of files.
            agent: The committer, where no token tells.
            profile: The kind of agent: the name of a profile, like `claude-code`.
            session: The id that the agent's program gave to its session.
        """
        return self.call(rq.GuardCheck(
            paths=listed(paths), agent=agent, profile=profile, session=session,
        ))

    def guard_override(self, paths: Sequence[str], by: str, action: str) -> rq.GuardHeldList:
        """A person overrides the guard. This is recorded with what others hold of it, and they are
        told.

        Args:
            paths: Absolute paths of files.
            by: The person who does or did it.
            action: What the person was about to do, in words.
        """
        return self.call(rq.GuardOverride(paths=listed(paths), by=by, action=action))

    def commit_regions(
        self, regions: Sequence[rq.RegionText], *, agent: str | None = None,
    ) -> rq.RegionsCommitted:
        """Write the new text of regions that the agent has leased, of all of them or of none.
        Refused where one was changed meanwhile, where the file could not be read any more, and
        where the text changes more than its region. Regions are named as they are leased: relative
        paths begin at `cwd`, and are written in that working tree; without one, where they are
        leased.

        Args:
            regions: Regions, by name or with their texts.
            agent: Whom it is asked for; default: this client's own agent.
        """
        return self.call(rq.CommitRegion(
            agent=agent or self.name(), regions=listed(regions), cwd=here(),
        ))

    def propose(
        self, changes: Sequence[rq.ProposedChange], *, agent: str | None = None, note: str = "",
        retry: bool = False,
    ) -> rq.ProposalApplied:
        """Change files, regions or keys without a lease. All of it is written if each is still what
        you read and nobody else holds it; otherwise VERSION_CHANGED, with the difference. An agent
        that loses again and again is queued for a lease, so that it wins in the end.

        Args:
            changes: What is changed, one by one.
            agent: Whom it is asked for; default: this client's own agent.
            note: A remark for people, in a line.
            retry: Where others hold it: keep it, and try again when that may be over.
        """
        return self.call(rq.Propose(
            agent=agent or self.name(), changes=listed(changes), note=note, retry=retry,
            cwd=here(),
        ))

    def lost_writes(self, *, agent: str | None = None) -> rq.LostWriteList:
        """Work that was thrown away because somebody else had written first: by agent and resource,
        the most first.

        Args:
            agent: Only of this agent.
        """
        return self.call(rq.LostWrites(agent=agent))
