"""`coord.toml` with a mistake: the answer names the key, what it may be, and the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.settings import load
from coordinator.words.refusals import Code, Refusal

WRONG = [
    ('[webhooks.urls]\n"nonsense" = []', "names 'nonsense', which is no address (https://…)", ""),
    ('[webhooks.urls]\n"http://x.org/a b" = []', "names 'http://x.org/a b', with characters that an address cannot have (a space is written %20)", ""),
    ('[webhooks.urls]\n"http://x.org/ü" = []', "with characters that an address cannot have", ""),
    ('[webhooks.urls]\n"ftp://x.org" = []', "'ftp://x.org', which is no address", ""),
    ('[webhooks.urls]\n"https://x.org" = ["review_opend"]', "'review_opend' for https://x.org, which is no kind of event (the nearest: review_opened", ""),
    ('[webhooks]\nurls = ["https://x.org"]', "`webhooks.urls` must be an object with fields, not a list.", ""),
    ('[strategies.by_glob]\n"docs/**" = "optimist"', "`strategies.by_glob` cannot be 'optimist'.", "it may be isolated, optimistic, pessimistic."),
    ('[watch]\nunleased = "x"', "`watch.unleased` cannot be 'x'.", "it may be ignore, record, review."),
    ("[signals.weights]\na = nan", "the weight of 'a' in `signals.weights` is no finite number.", ""),
    ("[hooks]\nwait_s = -0.5", "`hooks.wait_s` must be at least 0.", ""),
    ('[leases]\nttl_s = "30m"', "`leases.ttl_s` must be a number of seconds, not a text.", ""),
    ("[lease]\na = 1", "there is no section `lease`.", "its sections are leases, sweep, "),
    ("[leases]\nttl = 1", "`leases` has no field `ttl`.", "[leases] takes ttl_s, "),
    ("[http]\nport = 70000", "`http.port` must be at most 65,535.", ""),
]


@pytest.mark.parametrize(("text", "said", "then"), WRONG)
def test_a_mistake_is_told_before_anybody_trusts_it(tmp_path: Path, text: str, said: str, then: str) -> None:
    (tmp_path / "coord.toml").write_text(text)
    with pytest.raises(Refusal) as refused:
        load(tmp_path, {})
    assert refused.value.code is Code.INVALID and said in refused.value.message, refused.value.message
    assert f"Correct {tmp_path / 'coord.toml'}" in refused.value.next and then in refused.value.next


def test_bytes_that_are_no_text_are_told_of_without_a_decoder_s_words(tmp_path: Path) -> None:
    (tmp_path / "coord.toml").write_bytes(b"[leases]\n# \xff\n")
    with pytest.raises(Refusal, match=r"it is not UTF-8 \(byte 12\)"):
        load(tmp_path, {})


def test_what_is_right_is_read(tmp_path: Path) -> None:
    (tmp_path / "coord.toml").write_text('[webhooks.urls]\n"http://127.0.0.1:9/x" = []\n"https://x.org" = ["review_opened"]\n[signals.weights]\na = 2\n')
    loaded = load(tmp_path, {"COORD_HTTP_PORT": "7"})
    assert loaded.settings.signals.weights == {"a": 2.0} and [*loaded.untrusted] == ["webhooks.urls"]


def test_what_was_a_setting_once_is_told_and_the_rest_counts(tmp_path: Path) -> None:
    """A `coord.toml` of 0.2 goes on to work: each name that became a constant is named, with its section."""
    (tmp_path / "coord.toml").write_text("[leases]\nttl_s = 77\nwait_max_s = 3\n[look]\nseconds_max = 9\n")
    loaded = load(tmp_path, {})
    assert (loaded.settings.leases.ttl_s, loaded.settings.leases.wait_max_s) == (77, 600)
    assert loaded.constant == ["leases.wait_max_s", "look.seconds_max"]
    assert "leases.wait_max_s cannot be set any more" in loaded.warnings()[0]
    assert load(tmp_path, {"COORD_LAUNCH_GRACE_S": "3"}).constant == ["launch.grace_s", "leases.wait_max_s", "look.seconds_max"]
    (tmp_path / "coord.toml").write_text("[leases]\nwaits_max_s = 3\n")
    with pytest.raises(Refusal, match="`leases` has no field `waits_max_s`"):
        load(tmp_path, {})
