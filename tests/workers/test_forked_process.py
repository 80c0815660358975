"""A worker that is a fork of its asker: answers as one of its own make does, and shares nothing with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.conftest import alive, pid_in
from tests.waiting import until

#: A worker that says what it is asked to: who it is, what it has open, what it was started with.
WORKER = '''
import os, sys, time
from coordinator.workers import serving

def answer(body):
    if body == b"die": os.kill(os.getpid(), 11)
    if body == b"sleep": time.sleep(60)
    if body == b"raise": raise ValueError("x")
    if body == b"say": print("not an answer")
    return repr((os.getpid(), sys.argv[1:], sorted(map(int, os.listdir("/proc/self/fd")))[:-1])).encode()

def main():
    serving.serve(answer)

if __name__ == "__main__":
    main()
'''
ASKER = '''
import ast, os, sys
sys.path.insert(0, sys.argv[1])
from coordinator.workers.worker_process import WorkerEndedError, WorkerProcess
worker = WorkerProcess((sys.executable, "-P", "-m", "some_worker", "one", "two"), forks=True)
held = os.open("/dev/null", os.O_RDONLY)
os.set_inheritable(held, True)
def ask(body, seconds=20):
    try: return ast.literal_eval(worker.ask(body, seconds).decode())
    except (WorkerEndedError, TimeoutError) as bad: return type(bad).__name__
print("said once")
'''


def asked(tmp_path: Path, code: str) -> list[str]:
    (tmp_path / "some_worker.py").write_text(WORKER)
    done = subprocess.run([sys.executable, "-c", ASKER + code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first == "said once" and "said once" not in rest, "what its parent had not written yet it writes again"
    return rest


def test_it_is_another_process_with_its_words_and_nothing_of_its_parents(tmp_path: Path) -> None:
    told = asked(tmp_path, 'pid, words, open_ = ask(b""); print(pid != os.getpid(), pid == worker.pid, words, open_); print(ask(b"")[0] == pid)')
    assert told == ["True True ['one', 'two'] [0, 1, 2]", "True"]


@pytest.mark.parametrize(("body", "said"), [("die", "WorkerEndedError"), ("raise", "WorkerEndedError"), ("sleep", "TimeoutError")])
def test_its_end_is_its_own_and_the_next_question_has_another(tmp_path: Path, body: str, said: str) -> None:
    told = asked(tmp_path, f'first = ask(b"")[0]; print(ask(b"{body}", 1)); print(ask(b"")[0] != first)')
    assert told == [said, "True"]


def test_closed_it_is_gone_and_no_zombie(tmp_path: Path) -> None:
    told = asked(tmp_path, 'pid = ask(b"")[0]; worker.close(); print(os.path.exists(f"/proc/{pid}"), ask(b""))')
    assert told == ["False WorkerEndedError"]


def test_with_another_thread_it_is_started_anew(tmp_path: Path) -> None:
    """A fork would keep for ever what that thread holds."""
    told = asked(tmp_path, 'import threading; end = threading.Event(); threading.Thread(target=end.wait).start()\n'
                 'os.environ["PYTHONPATH"] = sys.argv[1]; ask(b""); print(type(worker._process).__name__); end.set()')
    assert told == ["Popen"]


def test_it_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "some_worker.py").write_text(WORKER)
    code = ASKER + 'pid = ask(b"")[0]; open(sys.argv[1] + "/pid", "w").write(f"{pid}\\n"); import time; time.sleep(60)'
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.DEVNULL) as parent:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        os.kill(parent.pid, signal.SIGKILL)
    until(lambda: not alive(pid_in(tmp_path / "pid")))
