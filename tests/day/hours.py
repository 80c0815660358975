"""The course of a day: one agent alone first, then four at once, hour by hour, one of them killed in each."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

from tests.day.agent import Doom, Journal, KilledError
from tests.day.jobs import JOBS, Worker
from tests.day.repositories import NICKS, Repository
from tests.waiting import until

#: The last job of each hour.
LANDING = "work_in_tree"
#: Jobs of one agent in an hour before that.
JOBS_AN_HOUR = 3
#: Tasks that agents of `coord launch` do in an hour, in worktrees of their own.
LAUNCHED = 2
#: When an agent is killed: in which kinds of job, after which call, or how long after it has begun (seconds).
DOOMS = (("commit_by_path", "edit", None), ("commit_formatted", "commit", 0.3), ("commit_all", "commit", 0.15), ("commit_staged_part", "add", None),
         ("share_file", "edit", None), ("write_by_shell", "echo", None), ("amend", "amend", 0.2), ("stash", "stash", 0.2),
         ("apply", "apply", None), ("share_regions", "edit", None), ("commit_by_path", "commit", 0.1), ("run_manager", "edit", None))


class Day:
    """A day in one repository."""

    def __init__(self, repository: Repository, seed: int, *, tell: bool) -> None:
        self.repository, self.journal = repository, Journal(tell=tell)
        self.random = random.Random(f"{repository.kind} {seed}")
        self.alone: set[tuple[str, str]] = set()
        self._started = 0
        self._person = threading.Lock()
        self._stand = repository.stand
        self._kinds = [kind for kind in JOBS if kind != LANDING and (kind != "change_parts" or repository.kind == "monorepo")]
        self._dooms = self.random.sample(DOOMS, len(DOOMS))

    def spend(self, hours: int) -> None:
        """The whole day."""
        self._stand.tries("up")
        self._work_alone(joined=self.random.random() < 0.5)
        agents = {nick: self._start(nick, joined=n > 1) for n, nick in enumerate(NICKS)}
        for hour in range(hours):
            self._spend_hour(hour, agents)
        for agent in agents.values():
            agent.ends()

    def _start(self, nick: str, *, joined: bool) -> Worker:
        self._started += 1
        agent = Worker(self._stand, self.journal, nick, self._started, joined=joined)
        agent.repository = self.repository
        self.journal.names[agent.name] = nick
        return agent

    def _work_alone(self, *, joined: bool) -> None:
        """Each kind of job by one agent alone: what fails here may fail later."""
        agent = self._start(NICKS[2 * joined], joined=joined)
        before = len(self.journal.attempts)
        for kind in [*self._kinds, LANDING]:
            agent.do(kind)
        agent.ends()
        for attempt in self.journal.attempts[before:]:
            if attempt.locked:
                self.journal.faults.append(f"alone, {attempt.kind}/{attempt.label} was refused: {attempt.command}: {attempt.text[-400:]}")
            self.alone.add((attempt.kind, attempt.label))

    def _spend_hour(self, hour: int, agents: dict[str, Worker]) -> None:
        kind, label, delay = self._dooms[hour % len(self._dooms)]
        victim = NICKS[self.random.randrange(len(NICKS))]
        threads = [threading.Thread(target=self._land_launched, args=(hour,))]
        for nick, agent in agents.items():
            jobs = self.random.sample(self._kinds, JOBS_AN_HOUR)
            if nick == victim:
                jobs = [*jobs[:-1], kind]
                agent.doomed_job = kind, Doom(label, delay)
            threads.append(threading.Thread(target=self._work, args=(agents, nick, [*jobs, LANDING])))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, agents: dict[str, Worker], nick: str, jobs: list[str]) -> None:
        while jobs:
            agent = agents[nick]
            try:
                agent.do(jobs[0])
                jobs = jobs[1:]
            except KilledError:
                try:
                    self._bury(agent)
                    agents[nick] = self._start(nick, joined=agent.joined)
                except Exception as bad:
                    self.journal.faults.append(f"{nick}: after it was killed in {agent.kind}: {bad!r}")
                    return
            except Exception as bad:
                self.journal.faults.append(f"{nick}: {jobs[0]}: {bad!r}")
                jobs = jobs[1:]

    # ------------------------------------------------------------ a killed agent

    def _bury(self, agent: Worker) -> None:
        """What it left is committed, or flagged; a person judges it."""
        self.journal.kills += 1
        agent.process.wait(10)
        until(lambda: not [lock for lock in self._stand.asks("locks")["items"] if lock["locked_by"] == agent.name], 20)
        lines = {line: path for line, path in self.journal.written.items() if line.startswith(f"{agent.id}_")}
        open_lines = {line: path for line, path in lines.items() if not self._is_committed(line, path)}
        reviews = [review for review in self._stand.asks("review", "list")["items"] if review["agent"] == agent.name]
        flagged = {file["path"] for review in reviews for file in review["files"]}
        for line, path in open_lines.items():
            if str(path.relative_to(self._stand.root)) not in flagged:
                self.journal.faults.append(f"{agent.nick}: killed in {agent.kind}; its line {line} in {path.name} is neither committed nor flagged")
        verdict = self.random.choice(["keep", "revert"])
        # A revert brings back what was there at the lease, also where its holder has committed since.
        committed = {str(commit.place / name) for commit in self.journal.commits.values() if commit.nick == agent.nick for name in commit.files}
        for review in reviews:
            is_safe = not any(str(self._stand.root / file["path"]) in committed for file in review["files"])
            self._stand.coord("review", verdict if is_safe else "keep", review["review"])
        self._settle(agent, set(lines.values()))

    def _is_committed(self, line: str, path: Path) -> bool:
        return line in self._git("show", f"HEAD:{path.relative_to(self._stand.root)}", may_fail=True)

    def _settle(self, agent: Worker, paths: set[Path]) -> None:
        """A person commits what a verdict has kept, and unstages what it has not."""
        for path in sorted(paths):
            name = str(path.relative_to(self._stand.root))
            text = path.read_text() if path.exists() else ""
            for line, where in self.journal.written.items():
                if where == path and line.startswith(f"{agent.id}_") and line not in text:
                    self.journal.withdrawn.add(line)
            self._git("reset", "-q", "--", name, may_fail=True)
            if self._git("status", "--short", "--", name):
                self._git("add", "--", name)
                until(lambda name=name: self._commits(agent, name), 30)  # type: ignore[misc]

    def _commits(self, agent: Worker, name: str) -> bool:
        """`coord commit`, as a person types it beside agents; whether it was made. A hook may want it twice."""
        with self._person:
            done = self._stand.tries("commit", "-qm", f"what {agent.nick} left", "--", name)
        return done.returncode == 0 or not self._git("status", "--short", "--", name)

    def _git(self, *words: str, may_fail: bool = False) -> str:
        """As a person types it, and again where another git has the index."""
        def attempt() -> str | None:
            try:
                return self.repository.git(*words) + "\n"
            except RuntimeError as bad:
                if "index.lock" in str(bad) or "cannot lock ref" in str(bad):
                    return None
                if may_fail:
                    return "\n"
                raise

        with self._person:
            text: str = until(attempt, 30)
        return text.strip()

    # ------------------------------------------------------------ launched agents

    def _land_launched(self, hour: int) -> None:
        """`coord launch` in worktrees, beside all others."""
        folder = self._stand.home
        tasks = folder / f"tasks-{hour}.jsonl"
        names = [f"landed/launched{hour}{n}.txt" for n in range(LAUNCHED)]
        tasks.write_text("".join(json.dumps({"title": f"launched {name}", "resources": [name]}) + "\n" for name in names))
        script = folder / "launched.sh"
        script.write_text("name=$(grep -o 'landed/launched[0-9]*[.]txt' \"$1\" | head -1)\n"
                          'echo "launched_$(echo "$name" | tr -dc 0-9)_1" > "$name"\n')
        done = self._stand.tries("launch", str(tasks), "--agents", str(LAUNCHED), "--isolation", "worktree", "--agent", "shell",
                                 "--command", f"sh {script} {{prompt_file}}", "--json")
        try:
            report = json.loads(done.stdout)
        except ValueError:
            self.journal.faults.append(f"launch: {done.stdout[-300:]}{done.stderr[-500:]}")
            return
        self.journal.landings += len(report["landed"])
        for kept in report["not_landed"]:
            self.journal.faults.append(f"launch: did not land: {kept}")
        for n, name in enumerate(names):
            self.journal.written[f"launched_{hour}{n}_1"] = self._stand.root / name
