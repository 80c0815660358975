"""Files of tasks as people write them: nothing in one is lost, or becomes something else, without a word."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from coordinator.slices.backlog import task_fields, text_formats
from coordinator.slices.backlog.task_fields import Item
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World


def read(text: str, form: Any = "markdown") -> list[Item]:
    got = text_formats.read(text, form)
    assert got.warnings == []
    return got.items


def refused(text: str, form: Any = "markdown") -> str:
    with pytest.raises(Refusal) as caught:
        text_formats.read(text, form)
    assert caught.value.code is Code.INVALID
    return f"{caught.value.message} {caught.value.next}"


@pytest.mark.parametrize(("written", "names"), [
    ("a.py", ["a.py"]),
    ("my file.py, b.py", ["my file.py", "b.py"]),
    ("'my file.py', \"b, c.py\"", ["my file.py", "b, c.py"]),
    ("`a, b.py`", ["a, b.py"]),
    ("app/(auth)/page.tsx, app/(a,b)/x", ["app/(auth)/page.tsx", "app/(a,b)/x"]),
    ("'a(b.py', `c)d`", ["a(b.py", "c)d"]),
    ("it's.py, o'neil's.md", ["it's.py", "o'neil's.md"]),
    ("``a`b.py``, `` `c` ``", ["a`b.py", "`c`"]),
    ("key:account:12345, shared:a b.py", ["key:account:12345", "shared:a b.py"]),
    ("src/pay.py::Cart.total", ["src/pay.py::Cart.total"]),
])
def test_names_of_all_kinds(written: str, names: list[str]) -> None:
    for line in (f"- [ ] Do it (resources: {written})", f"1. [ ] Do it (priority: 2) (resources: {written}) (id: x) \r"):
        (one,) = read(line)
        assert (one.title, one.resources) == ("Do it", names)


@pytest.mark.parametrize(("line", "named"), [
    ("- [ ] Do it (owner: ann)", "(owner: …)"),
    ("- [ ] Do it (resources: a.py) (due: friday)", "(due: …)"),
    ("- [ ] Do it (priorty: 3)", "did you mean `priority`"),
    ("- [ ] Do it (resources: a.py", "(resources: …)"),
    ("- [ ] Do it (resources: a.py) at once", "(resources: …)"),
    ("- [ ] Do it(resources: a.py)", "(resources: …)"),
    ("- [ ] Do it (resources: 'a.py)", "quotation marks"),
    ("- [ ] Do it (resources: a.py\")", "quotation marks"),
    ("- [ ] Do it (priority: 1) (priority: 2)", "twice"),
    ("- [ ] Do it (priority: high)", "must be a number"),
    ("- [] Do it", "looks like a task"),
    ("-[ ] Do it", "looks like a task"),
    ("- [ ]", "looks like a task"),
    (" - [ ] Do it", "looks like a task"),
    ("- group\n  - [ ] Do it", "indented"),
    ("- [ ] one\n\n# more\n\n  - [x] two", "indented"),
    ("```\n- [ ] one", "not closed"),
])
def test_what_is_not_understood_is_named(line: str, named: str) -> None:
    said = refused(line)
    assert named in said and "Nothing was added" in said and said.startswith("Line "), said


@pytest.mark.parametrize("title", [
    "Fix login (see RFC 7231)", "Read (http://example.org/a)", "At noon (12:30)", "Use std (std::vector)", "Rename `f(id: int)`", "A [link](x) (a note)",
])
def test_what_says_nothing_about_the_task_stays_its_title(title: str) -> None:
    assert read(f"- [ ] {title}")[0].title == title
    assert read(f"- [ ] {title} (priority: 2)")[0] == Item(title=title, priority=2)


def test_a_title_may_have_what_looks_like_a_fact() -> None:
    assert read("- [ ] Support \\(owner: NAME) in files (id: o)") == [Item(title="Support (owner: NAME) in files", id="o")]


def test_text_beside_the_list_is_nobodys() -> None:
    text = "# Tasks\n\nWhat we do.\n<!--\n- [ ] not this\n-->\n```\n- [ ] nor this\n```\n* [ ] this\n\n  its prompt\n    - [ ] a step\n\n  goes on\nand this is not\n  its prompt\n- [link](x)\n"
    assert read(text) == [Item(title="this", prompt="its prompt\n  - [ ] a step\n\ngoes on")]


def test_older_names_are_read_and_told(world: World) -> None:
    for form, text, where in (("yaml", "\n- {title: a, files: [x.py], attempts: 2}", "task 1 (line 2)"), ("jsonl", '{"title": "a", "files": "x.py", "attempts": 2}', "line 1"),
                              ("markdown", "- [ ] a (files: x.py) (attempts: 2)", "Line 1")):
        got = world.ask(rq.TaskImport(text=text, format=form))  # type: ignore[arg-type]
        assert (got.items[0].resources, got.items[0].attempts_max) == (["x.py"], 2), form
        assert got.warnings == [f"{where}: `{old}` is called `{now}` now. It was read as that; the version after this one will refuse the older name."
                                for old, now in task_fields.OLDER.items()]
    assert "`resources` is there twice" in refused("- {title: a, files: x, resources: y}", "yaml")
    many = text_formats.read("- {title: a, files: x}\n" * 30, "yaml").warnings
    assert len(many) == 21 and many[-1] == "And 10 more of these."


@pytest.mark.parametrize(("text", "said"), [
    ("- title: Fix: the parser\n", ["line 1", "quotation marks"]),
    ("- title: a\n\tresources: x\n", ["line 2", "tab"]),
    ("- title: x\n  resources: *.py\n", ["line 2", "quotation marks"]),
    ("- title: @home\n", ["line 1", "quotation marks"]),
    ("- title: x\n  resources: [a.py, b.py\n", ["`]`"]),
    ("- title: x\n resources: a.py\n", ["line 2", "same column"]),
    ("- title: x\n  priority: high\n", ["task 1 (line 1)", "`priority` has to be a whole number", "'high'"]),
    ("- title: x\n  resources:\n", ["`resources` has to be", "nothing"]),
    ("- title: x\n  resources: [shared: a.py]\n", ["quotation marks", '"shared:a.py"']),
    ("- title: x\n  resources: [7]\n", ["`resources`", "7"]),
    ("- title: 2026\n", ["`title` has to be text", "2026", "quotation marks"]),
    ("- prompt: x\n", ["no `title`"]),
    ("- 17\n", ["title", "17"]), ("title: [a\n", ["`]`"]),
    ("", ["coord task template"]),
    ("title: a\n", ["`- title: a`", "coord task template"]),
    ("just words\n", ["list of tasks", "coord task template"]),
    ("- title: x\n  done: perhaps\n", ["`done` has to be true or false", "'perhaps'"]),
])
def test_what_is_wrong_is_told_in_words_of_the_file(text: str, said: list[str]) -> None:
    told = refused(text, "yaml")
    assert all(one in told for one in said), told
    assert not any(word in told for word in ("`int`", "`str`", "`array`", "`object`", "$.", "<block")), told


def test_a_list_in_a_file_of_json_lines_is_told() -> None:
    told = refused('[{"title": "x"}]', "jsonl")
    assert "line 1" in told and "one object a line" in told, told


@pytest.mark.parametrize("name", ["resources", "after"])
def test_several_names_in_one_text_are_no_name(name: str) -> None:
    """`resources: a.py, b.py` would lease one file of that odd name, and neither of the two."""
    told = refused(f"- title: x\n  {name}: a.py, b.py\n", "yaml")
    assert f"{name}: [a.py, b.py]" in told, told
    assert f"`{name}: [a.py, b.py]`" in refused(json.dumps({"title": "x", name: "a.py,b.py"}), "jsonl")
    (one,) = read(f'- title: x\n  {name}: ["a, b.py"]\n', "yaml")
    assert getattr(one, name) == ["a, b.py"]


def test_a_space_after_shared_is_no_part_of_the_name(world: World) -> None:
    got = world.ask(rq.TaskImport(text='- title: x\n  resources: ["shared: docs/a.md"]\n', format="yaml"))
    assert got.items[0].resources == ["shared:docs/a.md"]


def test_nothing_is_there_twice_and_an_unknown_name_is_told() -> None:
    assert "`title` is there twice" in refused("- title: a\n  title: b\n", "yaml")
    assert "`title` is there twice" in refused('{"title": "a", "title": "b"}', "jsonl")
    said = refused("- title: fine\n- title: x\n  prio: 3\n", "yaml")
    assert "task 2 (line 2): there is no field 'prio'; did you mean `priority`?" in said


def test_what_is_done_is_left_out_and_that_is_told(world: World) -> None:
    got = world.ask(rq.TaskImport(text="- [x] one (id: a)\n- [ ] two (after: a)\n", format="markdown"))
    assert [(task.title, task.state) for task in got.items] == [("two", "ready")]
    assert got.warnings == ["One task is marked done, and was not added."]


def test_what_was_added_from_an_earlier_text_is_not_added_again(world: World) -> None:
    first = world.ask(rq.TaskImport(text="- title: one\n  id: a\n- title: two\n- title: three\n- title: three\n", format="yaml"))
    names = [task.task for task in first.items]
    for task in ("T-1", "T-2"):
        world.ask(rq.TaskClaim(agent="ann", task=task))
        world.ask(rq.TaskDone(agent="ann", task=task))
    # Given a line more, one with another title, one with another prompt, of what is open and of what is done
    text = """
- {title: " one", id: a}
- {title: two, prompt: quite another thing}
- {title: three, prompt: more}
- {title: three}
- {title: four, after: [a]}
"""
    again = world.ask(rq.TaskImport(text=text, format="yaml", known=[*names, "T-99"]))
    assert [(task.task, task.title) for task in again.known] == [("T-1", "one"), ("T-3", "three"), ("T-4", "three")]
    assert [(task.title, task.after, task.state) for task in again.items] == [("two", [], "ready"), ("four", ["T-1"], "ready")]
    assert again.warnings == ["T-3 stays as it was added, and the text says otherwise now: `coord task edit T-3`."]
    # and then with less
    names = [task.task for task in (*again.known, *again.items)]
    less = world.ask(rq.TaskImport(text="- four\n- one\n", format="yaml", known=names))
    assert [task.title for task in less.known] == ["four", "one"] and less.items == []
    assert [one.split(" (")[0] for one in less.warnings] == ["T-3", "T-4", "T-5"]
    assert all("is not in the text any more" in one and "coord task cancel" in one for one in less.warnings)
    # Without `known` all of it is new, as before
    assert len(world.ask(rq.TaskImport(text="- four\n- one\n", format="yaml")).items) == 2


def test_many_remarks_are_counted(world: World) -> None:
    text = "".join(f"- task {n}\n" for n in range(9))
    names = [task.task for task in world.ask(rq.TaskImport(text=text, format="yaml")).items]
    less = world.ask(rq.TaskImport(text="- task 0\n", format="yaml", known=names))
    assert len(less.warnings) == 6 and less.warnings[-1] == "And 3 more like these."


# ------------------------------------------------------------------------------------ the schema

_CHECK = jsonschema.Draft202012Validator(task_fields.schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(task_fields.schema())
    fields = task_fields.schema()["$defs"]["task"]["anyOf"][1]["properties"]
    assert set(fields) == {*task_fields.NAMES, *task_fields.OLDER} and all(one["description"] for one in fields.values())


_value = st.one_of(st.text("abé ,", max_size=3), st.integers(-3, 3), st.none(), st.booleans(), st.lists(st.one_of(st.text("ab", max_size=2), st.integers(0, 2)), max_size=2))
_entry = st.one_of(_value, st.dictionaries(st.sampled_from([*task_fields.NAMES, *task_fields.OLDER, "titel"]), _value, max_size=4),
                   st.fixed_dictionaries({"title": st.just("t")}, optional=dict.fromkeys([*task_fields.NAMES[2:], *task_fields.OLDER, "id"], _value)))


@given(st.lists(_entry, min_size=1, max_size=2), st.booleans())
def test_an_editor_accepts_what_coord_reads_and_nothing_else(entries: list[Any], named: bool) -> None:
    data = {"tasks": entries} if named else entries
    try:
        some = text_formats.read(json.dumps(data), "yaml").items
        taken = all(one.title.strip() and all(name.strip() for name in (*one.resources, *one.after))
                    and (one.attempts_max is None or one.attempts_max > 0) for one in some)
    except Refusal:
        taken = False
    assert taken == _CHECK.is_valid(yaml.safe_load(json.dumps(data)))
