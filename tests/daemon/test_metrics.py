"""What supervisors ask of the daemon: metrics, a probe without a token, JSON lines in the log."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator import Refusal
from coordinator.words.refusals import Code
from tests.conftest import Repo


def ask(repo: Repo, path: str, token: str | None = None, method: str = "GET", **head: str) -> tuple[int, str, str]:
    """(status, type, body)"""
    to = urlsplit(repo.state.http.read_text().strip())
    link = http.client.HTTPConnection(to.hostname or "", to.port, timeout=20)
    if token is not None:
        head["Authorization"] = f"Bearer {token}"
    link.request(method, path, headers=head)
    answer = link.getresponse()
    body = answer.read().decode()
    link.close()
    return answer.status, str(answer.headers["content-type"]), body


def scrape(repo: Repo) -> dict[tuple[str, ...], float]:
    """(name, label values …) -> value; as Prometheus' own parser reads it."""
    status, kind, body = ask(repo, "/metrics", repo.state.bearer.read_text().strip())
    assert status == 200 and kind == "text/plain; version=0.0.4; charset=utf-8"
    out: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(body):
        assert family.documentation and family.type != "unknown"
        for sample in family.samples:
            out[sample.name, *sample.labels.values()] = sample.value
    return out


def test_metrics_tell_what_is_so_and_what_was(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    with repo.client("ann") as ann, repo.client("bob") as bob:
        ann.acquire("a.py")
        ann.acquire("b.py", mode="shared")
        for _ in range(2):
            with pytest.raises(Refusal):
                bob.acquire("a.py")
        ann.task_add("one")
        ann.task_add("two", resources=["a.py"])
        ann.claim("T-1")
        ann.request_list()
        bob.request_file("b.py", "mine next")
        told = scrape(repo)
    assert told["coord_agents", "active"] == 2 and told["coord_agents", "stale"] == 0
    assert told["coord_leases_held", "exclusive"] == 1 and told["coord_leases_held", "shared"] == 1
    assert told["coord_waiters",] == 2 and told["coord_unlock_requests_pending",] == 1
    assert told["coord_tasks", "ready"] == 1 and told["coord_tasks", "claimed"] == 1 and told["coord_tasks", "dead"] == 0
    assert told["coord_reviews_open",] == 0 and told["coord_grants_total",] == 2
    assert told["coord_refusals_total", "LOCKED"] == 2 and told["coord_refusals_total", "INVALID"] == 0
    assert {name[1] for name in told if name[0] == "coord_refusals_total"} == {code.value for code in Code}
    assert told["coord_events_total", "acquisition_refused"] == 2
    assert told["coord_commit_duration_seconds_count",] == told["coord_commit_duration_seconds_bucket", "+Inf"] > 8
    assert told["coord_commit_duration_seconds_sum",] > 0 and told["coord_log_events",] > 8
    assert told["coord_build_info", repo.client().health().version] == 1
    later = scrape(repo)
    assert all(later[name] >= value for name, value in told.items() if name[0].endswith(("_total", "_count", "_bucket")))


def test_what_the_http_door_itself_refuses_is_counted_too(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    token = repo.state.bearer.read_text().strip()
    for path, given in (("/v1/locks", None), ("/v1/locks", "wrong"), ("/v1/locks?limit=0", token), ("/v1/nothing", token),
                        ("/v1/events/stream?after=x", token)):
        assert ask(repo, path, given)[0] >= 400
    ask(repo, "/v1/locks", token, method="POST")  # the router's: once
    told = scrape(repo)
    assert told["coord_refusals_total", "UNAUTHORIZED"] == 2 and told["coord_refusals_total", "INVALID"] == 4


def test_metrics_need_a_token_and_the_probe_none(repo: Repo) -> None:
    repo.coord("up", "--http", "0")
    status, _, body = ask(repo, "/metrics")
    assert status == 401 and json.loads(body)["error"]["code"] == "UNAUTHORIZED"
    assert ask(repo, "/health") == (200, "application/json", '{"status":"ok"}')
    assert ask(repo, "/health", method="HEAD")[0] == 200
    for path, method in (("/health/", "GET"), ("/v1/health", "GET"), ("/health", "POST"), ("/Health", "GET"),
                         ("/health%2F..%2Fmetrics", "GET"), ("//health", "GET"), ("/health?x=/metrics", "POST")):
        assert ask(repo, path, method=method)[0] == 401, path
    for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        status, _, body = ask(repo, "/health", **head)
        assert status == (403 if "Origin" in head else 401) and "status" not in body, "a web page learns nothing"
    agent = repo.client("ann")
    agent.register()
    assert ask(repo, "/metrics", agent.token)[0] == 200


@pytest.mark.parametrize("by", ["setting", "flag"])
def test_the_log_as_json_lines(make_repo: object, by: str) -> None:
    repo: Repo = make_repo(config='[daemon]\nlog_format = "json"\n' if by == "setting" else "")  # type: ignore[operator]
    assert repo.coord("up", *(["--log-format", "json"] if by == "flag" else [])).returncode == 0
    repo.down()
    lines = [json.loads(line) for line in repo.state.log.read_text().splitlines()]
    assert {"at", "level", "logger", "message"} == set(lines[0])
    assert [one for one in lines if one["message"].startswith("serving") and one["level"] == "info" and one["at"].endswith("Z")]
    assert lines[-1]["message"] == "stopped"


def test_a_log_has_one_form_from_its_first_line_to_its_last(repo: Repo) -> None:
    for form in ("text", "json", "json", "text"):
        repo.coord("up", "--log-format", form)
        repo.down()
        for line in repo.state.log.read_text().splitlines():
            assert line.startswith("{") == (form == "json")
    assert len(repo.state.log.read_text().splitlines()) >= 2
    older = repo.state.log.with_name("daemon.log.1").read_text().splitlines()
    assert sum(json.loads(line)["message"] == "stopped" for line in older) == 2


def test_the_log_as_text_stays_the_default(repo: Repo) -> None:
    repo.coord("up")
    assert repo.state.log.read_text().splitlines()[0].split()[2] == "INFO"
    assert repo.coord("up", "--log-format", "xml").returncode == 2
