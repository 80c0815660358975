"""What rows of before schema 26 are for, read once from their texts. Only SQL.

Until then a lease's description, and an agent's, stood for its purpose. A migration reads them for
the last time, in the state and in the log, and a restored snapshot that is older is read alike.
"""

from __future__ import annotations


def _purpose(agent: str, scope: str, text: str, task: str) -> str:
    """The expression for the purpose of a lease, or of a place in line, by its columns."""
    return f"""CASE
    WHEN {agent} GLOB 'coord/C-*' THEN 'commit:' || substr({agent}, 7)
    WHEN {agent} GLOB 'coord/*' THEN 'verdict:' || substr({agent}, 7)
    WHEN {scope} GLOB 'k/edit/*' THEN 'window'
    WHEN {scope} GLOB 'k/git/index/*' AND {text} GLOB 'git *' THEN 'turn'
    WHEN {text} GLOB 'writes C-[0-9]*' THEN 'commit:' || substr({text}, 8)
    WHEN {text} GLOB '* by its hook' THEN 'hook:' || substr({text}, 1, length({text}) - 12)
    WHEN {text} = 'it has lost its writes too often' THEN 'losses'
    WHEN {text} = 'changed by its command' THEN 'adopted'
    WHEN {task} IS NOT NULL THEN 'claim'
    ELSE 'asked' END"""


def _origin(profile: str, parent: str, text: str, token: str) -> str:
    """The expression for how an agent came, by its columns."""
    return f"""CASE
    WHEN {text} GLOB 'launched by run *' THEN 'launch'
    WHEN {token} IS NOT NULL THEN 'program'
    WHEN {profile} = 'manual' AND {text} = 'acted for by a person' THEN 'person'
    WHEN {text} = 'a session of ' || {profile} THEN 'session'
    WHEN {text} GLOB '* of ' || {parent} THEN 'sub_agent'
    ELSE 'program' END"""


#: Of rows of the state whose purposes are those of no column yet.
OF_ROWS = f"""
UPDATE file_locks SET purpose = {_purpose('locked_by', 'scope', 'task_description', 'task_id')};
UPDATE waiters SET purpose = {_purpose('agent', "''", 'description', 'NULL')};
UPDATE agents SET origin = {_origin('profile', 'parent', 'description', 'token_hash')}
WHERE state <> 'gone';
"""
#: Of the events that the state follows from.
OF_EVENTS = f"""
UPDATE events SET data = json_set(data, '$.purpose', {_purpose(
    "(data ->> 'agent')", "(data ->> 'scope')", "(data ->> 'description')", "(data ->> 'task')")})
WHERE kind = 'lease_granted';
UPDATE events SET data = json_set(data, '$.purpose', {_purpose(
    "(data ->> 'agent')", "''", "(data ->> 'description')", 'NULL')})
WHERE kind = 'waiter_queued';
UPDATE events SET data = json_set(data, '$.origin', {_origin(
    "(data ->> 'profile')", "(data ->> 'parent')", "(data ->> 'description')",
    "(data ->> 'token_hash')")})
WHERE kind = 'agent_registered';
UPDATE agents SET origin = coalesce((
    SELECT data ->> 'origin' FROM events WHERE kind = 'agent_registered'
    AND agent = agents.agent ORDER BY seq DESC LIMIT 1), origin);
"""
