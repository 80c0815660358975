"""What a model pays to read: bounds on the tokens of what agents are told most."""

from __future__ import annotations

from benchmarks import words


def test_a_refusal_and_a_grant_are_short() -> None:
    counted = {one.what: one for one in words.run()}
    bounds = {"a grant": 20, "a grant with a reason": 20, "a release": 20, "a refusal without excerpt": 60, "the same with a reason": 66,
              "the same refusal again": 82, "a refusal by the hook": 145, "a task claimed": 80, "the dashboard, short": 700}
    assert {name: one.tokens for name, one in counted.items() if name in bounds and one.tokens > bounds[name]} == {}
    assert "module_1.py is leased by agent-1" in counted["a refusal without excerpt"].text and "task claim T-1" in counted["a refusal without excerpt"].text
    assert "two passes" in counted["a refusal with excerpt"].text and "two passes" not in counted["the same refusal again"].text
    assert "two passes" in counted["a refusal by the hook"].text, counted["a refusal by the hook"]
    assert counted["the dashboard, short"].tokens * 5 < counted["the dashboard, JSON"].tokens
