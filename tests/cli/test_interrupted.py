"""Ctrl-C at any moment: no traceback, and never without a word once something may have been done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.cli import daemon, main


def test_while_the_program_is_read_in_it_just_ends(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n")
    done = subprocess.run([sys.executable, "-P", "-m", "coordinator.cli.main", "up"], capture_output=True, text=True, cwd=tmp_path,
                          timeout=30, check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)},
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # however these tests were started
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_in_the_middle_of_a_command_it_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pressed() -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(daemon, "locate_root", pressed)
    assert main.main(["up"]) == 130 and capsys.readouterr().err == "coord: interrupted\n"
