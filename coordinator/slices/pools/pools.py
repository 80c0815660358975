"""Giving out values of pools: each has one holder, by an exclusive lease on its key.

The leases are the whole state. A port that somebody listens on is passed over. The system is asked
for that outside of the transaction, and again for each further choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service, listed
from coordinator.kernel.holders import agents
from coordinator.kernel.hooks import Surroundings
from coordinator.kernel.leasing import grant, leases
from coordinator.kernel.leasing.overlapping import leases_near, near
from coordinator.kernel.use_cases import OffLoop, Read, Steps
from coordinator.rules import pools as rule
from coordinator.rules.leases import as_resource
from coordinator.rules.pools import Pool
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, NearWaiter
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Located, Resource
from coordinator.workers import listening

#: Begins the name of a look at ports.
_LOOK = "who listens on "
#: Ports of one look.
PORTS_AT_ONCE = 32


def find(svc: Service, name: str) -> Pool:
    """The pool of this name.

    Raises:
        Refusal: INVALID.
    """
    pools = svc.settings.pools
    if name not in pools:
        there = f"There are {listed(list(pools))}." if pools else "There is none."
        raise Refusal(
            Code.INVALID, f"No pool is called {name[:60]!r}. {there} Nothing was given.",
            next=f"Set [pools.{name[:60]}] in coord.toml, then `coord down`: the next coordinator "
            "reads it. `coord trust` shows pools that nobody has trusted.")
    return pools[name]


def choose(svc: Service, tx: Tx, agent: str, task: str | None, names: Sequence[str]
           ) -> dict[str, Located]:
    """What the agent leases for a value of each of these pools. It is the value that it has for
    this task or for none, or a free one. Where others have them all, it is the whole pool, which
    they block. Where the agent has one for another of its tasks, it is that.

    Raises:
        Refusal: INVALID: there is no such pool; LOCKED: programs listen on all that is free.
        Unready: ports were not looked at.
    """
    return {name: Located(_choose_of(svc, tx, agent, task, name), None, None) for name in names}


def _choose_of(svc: Service, tx: Tx, agent: str, task: str | None, name: str) -> Resource:
    pool, whole = find(svc, name), rule.name_need(name)
    rows = leases_near(tx, whole)
    own = [row for row in rows if row.locked_by == agent and rule.read_value(row.file_path)]
    for row in own:
        if row.task_id in (None, task) and row.expires_at > tx.now:
            return as_resource(row.file_path, row.kind, row.scope)
    value = _find_free(tx, agent, name, pool, {
        row.file_path for row in rows if row.locked_by != agent or row.file_path != whole.name})
    if value is not None:
        return rule.name_value(name, value)
    if len(own) < len(rows):
        return whole  # which the others' leases block, or which is asked for again once they end
    for row in own:
        return as_resource(row.file_path, row.kind, row.scope)
    raise Refusal(
        Code.LOCKED, f"Programs that coord does not know listen on all of the pool {name}. "
        "Nothing was given.", next="`coord ports` lists them.", conflicts=[], retry_after_s=15.0)


def _list_awaited(tx: Tx, agent: str, whole: Resource) -> set[str]:
    """The names of the values that others stand in line for."""
    if not tx.present().waiters:
        return set()
    return {waiter.name for waiter in near(tx, NearWaiter, "waiters_near", whole)
            if waiter.agent != agent and rule.read_value(waiter.name) is not None}


def _find_free(tx: Tx, agent: str, name: str, pool: Pool, held: Collection[str]) -> str | None:
    """The first value without a lease, of ports without a listener; rather one that nobody stands
    in line for."""
    whole = rule.name_need(name)
    if whole.name in held:
        return None
    names = {value: rule.name_value(name, value).name for value in pool.list_values()}
    free = [value for value in names if names[value] not in held]
    awaited = _list_awaited(tx, agent, whole)
    free.sort(key=lambda value: names[value] in awaited)
    return _find_quiet(tx, free) if pool.is_of_ports else next(iter(free), None)


def _find_quiet(tx: Tx, values: Sequence[str]) -> str | None:
    """The first of these ports that nobody listens on.

    Raises:
        Unready: they were not looked at.
    """
    for begin in range(0, len(values), PORTS_AT_ONCE):
        some = [int(value) for value in values[begin : begin + PORTS_AT_ONCE]]
        taken = tx.looked.after(_LOOK + ", ".join(map(str, some)),
                                partial(listening.find_taken, some))
        quiet = next((port for port in some if port not in taken), None)
        if quiet is not None:
            return str(quiet)
    return None


def describe(svc: Service, tx: Tx, names: Iterable[str]) -> Surroundings:
    """The variables of these leases, and which ports were passed over for them."""
    variables: dict[str, str] = {}
    warnings: list[str] = []
    for pool_name, value in filter(None, map(rule.read_value, names)):
        pool = svc.settings.pools.get(pool_name)
        if pool is not None:
            variables[pool.env] = pool.fill_in(value)
            warnings += _warn_of_passed(tx, pool_name, pool, value)
    return Surroundings(variables, warnings)


def _warn_of_passed(tx: Tx, name: str, pool: Pool, value: str) -> list[str]:
    """A sentence on the ports that were passed over for this one."""
    if not pool.is_of_ports or tx.looked.done is None:
        return []
    taken = {str(port) for look, ports in tx.looked.done.items()
             if look.startswith(_LOOK) for port in ports}
    passed = [port for port in takewhile(value.__ne__, pool.list_values()) if port in taken]
    return [f"{pool.env}: {listed(passed)} of the pool {name} "
            f"{'was' if len(passed) == 1 else 'were'} passed over, for somebody listens there "
            "(`coord ports`)."] if passed else []


# ------------------------------------------------------------ operations


def take(svc: Service, tx: Tx, actor: Actor, req: rq.EnvironmentTake) -> rq.Environment | Refusal:
    """See `requests.EnvironmentTake`."""
    agents.may_act(tx, actor, req.agent)
    names = list(dict.fromkeys(req.pools))
    before = {row.file_path for row in _list_own(tx, req.agent, ())}
    new: list[str] = []
    if names:
        task = tasks.find_only_claim(tx, req.agent)
        chosen = choose(svc, tx, req.agent, task, names)
        granted = leases.acquire_located(
            svc, tx, actor, rq.Acquire(
                agent=req.agent, resources=[place.resource.name for place in chosen.values()],
                ttl_s=req.ttl_s, task=task, retry=False, description="coord env"),
            list(chosen.values()), leases.How(waits=False))
        if isinstance(granted, Refusal):
            return granted
        new = [name for name, place in chosen.items() if place.resource.name not in before]
    else:
        agents.acting(tx, actor, req.agent)
    rows = _list_own(tx, req.agent, names)
    surroundings = describe(svc, tx, (row.file_path for row in rows))
    return rq.Environment(
        agent=req.agent, environment=dict(surroundings.variables), new=new,
        warnings=list(surroundings.warnings),
        leases=[grant.lease_reply(row, token=svc.seal(row.fencing_token)) for row in rows])


def release(svc: Service, tx: Tx, actor: Actor, req: rq.EnvironmentRelease) -> rq.Environment:
    """See `requests.EnvironmentRelease`."""
    agents.acting(tx, actor, req.agent)
    rows = _list_own(tx, req.agent, req.pools)
    surroundings = describe(svc, tx, (row.file_path for row in rows))
    for row in rows:
        grant.end(tx, row)
    return rq.Environment(agent=req.agent, environment=dict(surroundings.variables), new=[],
                          leases=[grant.lease_reply(row) for row in rows])


def _list_own(view: View, agent: str, pools: Sequence[str]) -> list[LeaseRow]:
    """The agent's live leases on values: of these pools, or of all."""
    return [row for row in view.each(LeaseRow, "leases_of_holder", agent)
            if (value := rule.read_value(row.file_path)) is not None and row.kind == "key"
            and row.expires_at > view.now and (not pools or value[0] in pools)]


def listing(svc: Service, req: rq.PoolValues) -> Steps:
    """See `requests.PoolValues`."""
    pools = svc.settings.pools if req.pool is None else {req.pool: find(svc, req.pool)}
    items = yield Read(lambda view, actor: _list_values(view, pools)[: req.limit])
    if isinstance(items, Refusal):
        return items
    ports = {int(item.value): item for item in items if item.is_port}
    for port, listener in (yield OffLoop(partial(listening.list_listeners, list(ports)))).items():
        item = ports[port]
        item.listened, item.pid, item.program = True, listener.pid or None, listener.program
    return rq.PoolValueList(items=items, variables={name: pool.env for name, pool in pools.items()})


def _list_values(view: View, pools: Mapping[str, Pool]) -> list[rq.PoolValue]:
    items = []
    for name, pool in pools.items():
        rows = {row.file_path: row for row in leases_near(view, rule.name_need(name))
                if row.expires_at > view.now}
        whole = rows.get(rule.name_need(name).name)
        for value in pool.list_values():
            item = rq.PoolValue(pool=name, value=value, text=pool.fill_in(value),
                                is_port=pool.is_of_ports)
            row = rows.get(rule.name_value(name, value).name, whole)
            if row is not None:
                item.locked_by, item.locked_at = row.locked_by, row.locked_at
                item.expires_at, item.task = row.expires_at, row.task_id
                item.description = row.task_description or ""
            items.append(item)
    return items
