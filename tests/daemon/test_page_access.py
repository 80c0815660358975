"""The safe way to the browser page: a code that is good once, a token of that page alone, and files without a way out."""

from __future__ import annotations

import hmac
import http.client
import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from coordinator.client.client import Client
from coordinator.daemon import page_door
from coordinator.daemon.page_access import CODE_VALID_S, CODES_MAX, PageAccess
from coordinator.daemon.page_door import POLICY, PageFiles
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import until


class Door:
    """The HTTP door of a repository's coordinator."""

    def __init__(self, address: str) -> None:
        self.port = int(address.rpartition(":")[2])

    def ask(self, method: str, path: str, token: str = "", body: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        link.request(method, path, headers=sent, body=None if body is None else json.dumps(body))
        answer = link.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        link.close()
        return found

    def enter(self, code: str, **headers: str) -> tuple[int, Any]:
        status, _, body = self.ask("POST", "/v1/page/enter", body={"code": code}, **headers)
        return status, json.loads(body)


def opened(repo: Repo) -> tuple[Door, rq.PageOpened]:
    with Client(repo.root) as client:
        page = client.call(rq.PageOpen())
    return Door(page.address), page


def test_a_page_gets_a_token_of_its_own_for_its_code_and_acts_for_the_person(repo: Repo) -> None:
    repo.coord("up")
    assert not repo.state.http.exists(), "the door is shut until somebody asks"
    door, page = opened(repo)
    assert repo.state.http.read_text().strip() == page.address
    assert door.ask("GET", "/v1/reviews")[0] == 401
    status, entered = door.enter(page.code)
    assert status == 200 and entered["port"] == door.port and entered["person"]
    assert door.ask("GET", "/v1/reviews", entered["token"])[0] == 200
    assert door.ask("POST", "/v1/messages/seen", entered["token"], {"up_to": 1})[0] == 200, "it is the operator"
    other = door.enter(opened(repo)[1].code)[1]["token"]
    assert other not in (entered["token"], repo.state.bearer.read_text().strip())
    assert stat.S_IMODE(repo.state.page_key.stat().st_mode) == 0o600


def test_a_code_that_comes_twice_is_refused_and_ends_all_pages(repo: Repo) -> None:
    door, page = opened(repo)
    token = door.enter(page.code)[1]["token"]
    assert door.ask("GET", "/v1/reviews", token)[0] == 200
    status, refusal = door.enter(page.code)
    assert (status, refusal["error"]["code"]) == (401, "UNAUTHORIZED") and "`coord web`" in refusal["error"]["next"]
    assert door.ask("GET", "/v1/reviews", token)[0] == 401, "whoever used it first may have been a thief"
    token = door.enter(opened(repo)[1].code)[1]["token"]
    assert door.ask("GET", "/v1/reviews", token)[0] == 200, "a fresh page is open"


def test_a_page_that_only_reads_changes_nothing(repo: Repo) -> None:
    with Client(repo.root) as client:
        page = client.call(rq.PageOpen(reads_only=True))
    door = Door(page.address)
    entered = door.enter(page.code)[1]
    token = entered["token"]
    assert entered["reads_only"] and door.ask("GET", "/v1/coordinators", token)[0] == 200, "it sees what a person sees"
    status, _, body = door.ask("POST", "/v1/messages/seen", token, {"up_to": 1})
    assert (status, json.loads(body)["error"]["code"]) == (401, "UNAUTHORIZED") and b"only reads" in body
    assert door.ask("POST", "/v1/page/open", token, {})[0] == 401, "nor opens a page that may"
    _, name, seal = token.split(".")
    for forged in (f"page.{name.removeprefix('~')}.{seal}", f"page.~~{name}.{seal}", f"page.{name}.{seal[::-1]}"):
        assert door.ask("GET", "/v1/reviews", forged)[0] == 401
    os.kill(repo.pid(), signal.SIGKILL)
    repo.coord("status")
    assert door.ask("GET", "/v1/reviews", token)[0] == 401, "what it may do was known to that process alone"


def test_a_page_of_an_agent_sees_what_the_agent_may_and_ends_with_it(repo: Repo) -> None:
    with repo.client() as client:
        agents_token = client.call(rq.Register(agent="ann")).token
        door, _ = opened(repo)
    status, _, body = door.ask("POST", "/v1/page/open", agents_token, {})
    assert status == 200
    entered = door.enter(json.loads(body)["code"])[1]
    token = entered["token"]
    assert entered["reads_only"] and door.ask("GET", "/v1/status", token)[0] == 200
    assert door.ask("POST", "/v1/locks", token, {"agent": "ann", "resources": ["a.py"]})[0] == 401
    assert door.ask("GET", "/v1/coordinators", token)[0] == 401, "that is for people"
    assert agents_token not in token
    with repo.client() as client:
        client.call(rq.Leave(agent="ann"))
    assert door.ask("GET", "/v1/status", token)[0] == 401


def test_an_agent_ends_and_presses_out_no_page_of_a_person(repo: Repo) -> None:
    with repo.client() as client:
        agents_token = client.call(rq.Register(agent="ann")).token
    door, page = opened(repo)

    def ask() -> str:
        return str(json.loads(door.ask("POST", "/v1/page/open", agents_token, {})[2])["code"])

    codes = [ask() for _ in range(CODES_MAX + 3)]
    assert door.enter(codes[0])[0] == 401, "its own oldest is worth nothing any more"
    person = door.enter(page.code)[1]["token"]
    reader = door.enter(codes[-1])[1]["token"]
    assert door.enter(codes[-1])[0] == 401 == door.ask("GET", "/v1/status", reader)[0], "its own pages end"
    assert door.ask("GET", "/v1/status", person)[0] == 200


def test_an_agent_opens_no_door_that_is_shut(repo: Repo) -> None:
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client, pytest.raises(Refusal) as refused:
        client.call(rq.PageOpen())
    assert refused.value.code is Code.UNAUTHORIZED and not repo.state.http.exists()


def test_a_stream_ends_with_its_token(repo: Repo) -> None:
    """Of a page, and of an agent that has left: before the next event is sent."""
    with repo.client() as client:
        agent = client.call(rq.Register(agent="ann")).token
        door, page = opened(repo)
        token = door.enter(page.code)[1]["token"]
        streams = []
        for bearer in (token, agent, repo.state.bearer.read_text().strip()):
            link = http.client.HTTPConnection("127.0.0.1", door.port, timeout=10)
            link.request("GET", "/v1/events/stream", headers={"Authorization": f"Bearer {bearer}"})
            streams.append(link.getresponse())
            assert streams[-1].readline() == b": coord events\n"
        client.call(rq.Leave(agent="ann"))
        assert door.enter(page.code)[0] == 401, "a code that comes twice ends all pages"
        client.call(rq.TaskAdd(title="a secret"))
    assert [b"a secret" in stream.read() for stream in streams[:2]] == [False, False]
    line = b""
    while b"a secret" not in line:
        line = streams[2].readline()
        assert line, "the operator's goes on"
    for stream in streams:
        stream.close()


def test_what_is_no_code_is_refused_and_ends_nothing(repo: Repo) -> None:
    door, page = opened(repo)
    token = door.enter(page.code)[1]["token"]
    for body, expected in (({"code": "guessed"}, 401), ({"code": ""}, 401), ({"code": "ü"}, 400), ({"code": 1}, 400), ({}, 400),
                           ({"code": "x", "more": 1}, 400), ([], 400), ({"code": "x" * 5000}, 413)):
        assert door.ask("POST", "/v1/page/enter", body=body)[0] == expected, body
    assert door.ask("GET", "/v1/page/enter")[0] == 401
    assert door.ask("GET", "/v1/reviews", token)[0] == 200
    forged = [token[:-1] + ("0" if token[-1] != "0" else "1"), "page..", "page.x.y", "page.", token + "0", token.replace("page.", "page.x")]
    assert [door.ask("GET", "/v1/reviews", one)[0] for one in forged] == [401] * len(forged)


def test_a_page_of_another_origin_or_name_gets_nothing(repo: Repo) -> None:
    door, page = opened(repo)
    assert door.enter(page.code, Origin="http://evil.example")[0] == 403
    assert door.enter(page.code, Host="evil.example")[0] == 401
    assert door.ask("GET", "/", Host="evil.example")[0] == 401
    assert door.enter(page.code, Origin=f"http://127.0.0.1:{door.port + 1}")[0] == 403
    assert door.enter(page.code, Origin=page.address)[0] == 200, "what was refused has not used the code up"


def test_a_page_goes_on_when_its_coordinator_was_killed_and_ends_with_one_that_ends(repo: Repo) -> None:
    door, page = opened(repo)
    token = door.enter(page.code)[1]["token"]
    os.kill(repo.pid(), signal.SIGKILL)
    assert repo.coord("locks").returncode == 0
    assert door.ask("GET", "/v1/reviews", token)[0] == 200
    repo.coord("down")
    until(lambda: not repo.state.page_key.exists())
    assert repo.coord("up", "--http", str(door.port)).returncode == 0
    assert door.ask("GET", "/v1/reviews", token)[0] == 401
    repo.down()
    repo.state.page_key.write_bytes(b"k" * 32)  # one that was left behind where no door was
    repo.state.page_key.chmod(0o600)
    repo.coord("up")
    assert not repo.state.page_key.exists()


def test_a_coordinator_proves_that_it_is_the_pages_own_before_it_is_sent_the_token(repo: Repo) -> None:
    door, page = opened(repo)
    assert door.ask("POST", "/v1/page/prove", body={"page": "x", "challenge": "c" * 16})[0] == 401, "no page is open"
    _, name, seal = door.enter(page.code)[1]["token"].split(".")

    def proof(name: str, challenge: str) -> object:
        return json.loads(door.ask("POST", "/v1/page/prove", body={"page": name, "challenge": challenge})[2])

    for challenge in ("c" * 16, "d" * 64):
        right = hmac.digest(seal.encode(), f"coordinator {door.port} {challenge}".encode(), "sha256").hex()
        assert proof(name, challenge) == {"proof": right} != proof("another", challenge)
    for body in ({"page": name, "challenge": "short"}, {"page": "a b", "challenge": "c" * 16}, {"page": name, "challenge": "c d" * 16}, {}):
        assert door.ask("POST", "/v1/page/prove", body=body)[0] == 400
    os.kill(repo.pid(), signal.SIGKILL)
    repo.coord("locks")
    right = hmac.digest(seal.encode(), f"coordinator {door.port} {'e' * 16}".encode(), "sha256").hex()
    assert proof(name, "e" * 16) == {"proof": right}


def test_neither_code_nor_token_is_kept_anywhere(repo: Repo) -> None:
    door, page = opened(repo)
    token = door.enter(page.code)[1]["token"]
    door.ask("GET", "/v1/reviews", token)
    repo.down()
    kept = [file for file in repo.state.path.rglob("*") if file.is_file()
            and any(secret.encode() in file.read_bytes() for secret in (page.code, token))]
    assert kept == []


# ------------------------------------------------------------ without a coordinator


def test_a_code_is_worth_nothing_after_its_time_and_few_wait_at_once(tmp_path: Path) -> None:
    now = [0.0]
    access = PageAccess(tmp_path / "key", lambda: now[0])
    late = access.make_code()
    now[0] = CODE_VALID_S
    with pytest.raises(Refusal) as no:
        access.exchange(late)
    assert no.value.code is Code.UNAUTHORIZED and "60 seconds" in no.value.message
    codes = [access.make_code() for _ in range(CODES_MAX + 1)]
    with pytest.raises(Refusal):
        access.exchange(codes[0])
    assert all(access.find_rights(access.exchange(code)) is not None for code in codes[1:])


def test_what_another_coordinator_has_put_there_is_left(tmp_path: Path) -> None:
    access = PageAccess(tmp_path / "key", lambda: 0.0)
    access.exchange(access.make_code())
    (tmp_path / "key").write_bytes(b"another's")
    access.end()
    assert (tmp_path / "key").read_bytes() == b"another's"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "assets" / "a-1.js").write_text("export {}")
    (folder / "assets" / "a-1.css").write_text("a{}")
    (folder / "assets" / "notes.sqlite3").write_text("no")
    (tmp_path / "secret.js").write_text("secret")
    (folder / "assets" / "link.js").symlink_to(tmp_path / "secret.js")
    return folder


def test_files_come_with_their_types_and_under_the_policy(built: Path) -> None:
    files = PageFiles(built)
    for path, kind, cache in (("/", "text/html; charset=utf-8", "no-cache"),
                              ("/assets/a-1.js", "text/javascript; charset=utf-8", "max-age=31536000, immutable"),
                              ("/assets/a-1.css", "text/css; charset=utf-8", "max-age=31536000, immutable")):
        answer = files.answer(path, "GET")
        assert (answer.headers["content-type"], answer.headers["cache-control"]) == (kind, cache)
        assert answer.headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert files.answer("/", "HEAD").body == b"" and files.answer("/", "HEAD").headers["content-length"] == "15"


@pytest.mark.parametrize("path", ["/assets/../index.html", "/assets/../../secret.js", "/assets/%2e%2e/secret.js", "/assets//etc/passwd",
                                  "/assets/link.js", "/assets/notes.sqlite3", "/assets/", "/assets/a-1.js/", "/assets/\0", "/assets/..\\secret.js"])
def test_nothing_but_what_was_built_is_served(built: Path, path: str) -> None:
    with pytest.raises(Refusal) as no:
        PageFiles(built).answer(path, "GET")
    assert no.value.code is Code.INVALID and "`make web`" in str(no.value.next)


def test_without_a_page_it_is_said_what_to_type(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coordinator.cli import daemon

    monkeypatch.setattr(daemon, "page_folder", lambda: tmp_path)
    with pytest.raises(Refusal) as no:
        daemon.web()
    assert "`make web`" in str(no.value.next) and not repo.state.path.exists(), "nothing was opened"
    with pytest.raises(Refusal):
        PageFiles(tmp_path).answer("/", "GET")
    assert not PageFiles.covers("/v1/locks") and page_door.page_folder().name == "web"


def test_coord_web_tells_the_address_as_json(repo: Repo) -> None:
    repo.coord("up")
    told = json.loads(repo.coord("web", "--json").stdout)
    assert told["url"] == f"{told['address']}/#{told['code']}" and told["valid_s"] == CODE_VALID_S
    assert Door(told["address"]).enter(told["code"])[0] == 200
