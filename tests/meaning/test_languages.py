"""Who breaks by a change in languages beside Python: each has its repository, with a caller of each kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.meaning.file_facts import facts_of
from coordinator.regions.languages import group, has_meaning, languages, syntax_of
from tests.effort import examples
from tests.meaning.made import judged

TYPESCRIPT = {
    "src/pay.ts": """
        export function charge(account: string, amount = 1): number { return amount; }
        export const refund = async (account: string, ...more: number[]) => { return charge(account); };
        export default class Shop {
            private last: Order | null = null;
            #kept = new Order(2);
            constructor(name: string) { this.last = new Order(1); }
            $sum(): number { return this.#kept.total(1); }
            static open(name: string): Shop { return new Shop(name); }
            close(at: number): void { this.note("x"); }
            note(text: string): void {}
        }
        export class Order { constructor(n: number) {} total(net: number): number { return net; } }
        export interface Payer { pay(to: string): void; }
        """,
    "src/index.ts": "export { charge as bill } from './pay';\nexport * from './pay';\n",
    "src/use.ts": """
        import Shop, { charge, refund as back, Order, Payer } from './pay.js';
        import * as all from './pay';
        import { bill } from '.';

        export function a() { return charge("x", 2); }
        export function b() { return all.charge("x"); }
        export function c(order: Order) { return order.total(1); }
        const d = async () => { await back("x", 1, 2); };
        export class Corner extends Shop implements Payer {
            constructor() { super("corner"); }
            pay(to: string): void { this.note(to); }
            note(text: string): void { super.note(text); }
        }
        function e() { const shop = Shop.open("x"); shop.close(1); bill("x"); }
        function f(charge: (n: number) => void) { charge(1); }
        function g(what: any) { what.total(1); }
        """,
}
JAVASCRIPT = {
    "lib/pay.js": """
        function charge(account, amount) { return amount; }
        class Shop { constructor(name) { this.name = name; } close(at) { return at; } }
        module.exports = { charge, Shop, send: charge };
        """,
    "lib/use.js": """
        const pay = require('./pay');
        const { charge, Shop: Store } = require('./pay');
        function a() { return charge(1, 2); }
        function b() { return pay.charge(1, 2, 3); }
        function c() { const shop = new Store("x"); return shop.close(1); }
        function d() { return pay.send(1, 2); }
        exports.e = function (x) { return charge(x); };
        """,
}
GO = {
    "pay/pay.go": """
        package pay
        type Order struct { Base; n int; next *Order }
        func (o *Order) Total(net, tax int) int { return o.next.Total(net, tax) }
        func New(n int) *Order { return &Order{n: n} }
        func Charge(account string, amount int) error { return nil }
        type Payer interface { Pay(to string) error }
        """,
    "pay/more.go": """
        package pay
        type Base struct{}
        func (b Base) Id(x int) int { return x }
        func more() error { return Charge("x", 1) }
        """,
    "cmd/main.go": """
        package main
        import (
            "fmt"
            p "example.com/shop/pay"
        )
        func main() { o := p.New(1); o.Total(1, 2); fmt.Println(o.Id(3)) }
        func each(order *p.Order, xs ...string) { order.Total(1, 2); p.Charge("x", 1) }
        func other(Charge func(int)) { Charge(1) }
        """,
}
JAVA = {
    "src/a/pay/Pay.java": """
        package a.pay;
        public class Pay {
            private final String name;
            public Pay(String name) { this.name = name; }
            public int charge(int amount) { return twice(amount); }
            public int charge(int amount, int tax) { return amount + tax; }
            static int twice(int n) { return n * 2; }
            public static Pay open(String name) { return new Pay(name); }
        }
        """,
    "src/a/pay/Desk.java": """
        package a.pay;
        interface Till { void ring(int times); }
        class Desk extends Pay implements Till {
            Desk() { super("desk"); }
            public void ring(int times) { charge(times); }
            int all() { return Pay.twice(1); }
        }
        """,
    "src/b/Use.java": """
        package b;
        import a.pay.Pay;
        import static a.pay.Pay.twice;
        class Use {
            private Pay pay = new Pay("x");
            int one() { return pay.charge(1); }
            int two() { Pay other = Pay.open("y"); return other.charge(1, 2); }
            int three() { return twice(3); }
        }
        """,
}
CASES = [
    (TYPESCRIPT, "src/pay.ts", "charge(account: string, amount = 1)", "charge(account: string, amount: number)",
     {"src/pay.ts::refund", "src/use.ts::b", "src/use.ts::e"}),
    (TYPESCRIPT, "src/pay.ts", "charge(account: string, amount = 1)", "charge(account: string)", {"src/use.ts::a"}),
    (TYPESCRIPT, "src/pay.ts", "charge(account: string, amount = 1)", "charge(account: string, amount = 1, more?: number)", set()),
    (TYPESCRIPT, "src/pay.ts", "function charge(", "function bill2(", {"src/use.ts::a", "src/use.ts::b", "src/use.ts::e", "src/use.ts::<header>", "src/pay.ts::refund", "src/index.ts::<header>"}),
    (TYPESCRIPT, "src/pay.ts", "...more: number[]", "", {"src/use.ts::d"}),
    (TYPESCRIPT, "src/pay.ts", "constructor(name: string)", "constructor(name: string, at: number)",
     {"src/pay.ts::Shop.open", "src/use.ts::Corner.constructor"}),
    (TYPESCRIPT, "src/pay.ts", "close(at: number)", "close()", {"src/use.ts::e"}),
    (TYPESCRIPT, "src/pay.ts", "note(text: string): void {}", "note(text: string, at: number): void {}",
     {"src/pay.ts::Shop.close", "src/use.ts::Corner.note"}),
    (TYPESCRIPT, "src/pay.ts", "total(net: number)", "total(net: number, tax: number)", {"src/use.ts::c", "src/pay.ts::Shop.$sum"}),
    (TYPESCRIPT, "src/pay.ts", "$sum()", "$sum(at: number)", set()),
    (TYPESCRIPT, "src/pay.ts", "pay(to: string)", "pay(to: string, how: string)", set()),  # who takes its place may take fewer
    (TYPESCRIPT, "src/pay.ts", "pay(to: string)", "pay()", {"src/use.ts::Corner.pay"}),
    (TYPESCRIPT, "src/pay.ts", "charge(account: string, amount = 1)", "charge(account: (a: string, b: number) => void, amount = 1)", set()),
    (JAVASCRIPT, "lib/pay.js", "charge(account, amount)", "charge(account, amount, currency)", {"lib/use.js::a", "lib/use.js::d"}),
    (JAVASCRIPT, "lib/pay.js", "charge(account, amount)", "charge(account)", set()),  # what is given beside goes nowhere
    (JAVASCRIPT, "lib/pay.js", "charge(account, amount)", "charge(amount, account)", {"lib/use.js::a", "lib/use.js::b", "lib/use.js::d"}),
    (JAVASCRIPT, "lib/pay.js", "close(at)", "close(at, how)", {"lib/use.js::c"}),
    (JAVASCRIPT, "lib/pay.js", "constructor(name)", "constructor(name, at)", {"lib/use.js::c"}),
    (GO, "pay/pay.go", "Total(net, tax int)", "Total(net, tax, fee int)", {"pay/pay.go::Order.Total", "cmd/main.go::main", "cmd/main.go::each"}),
    (GO, "pay/pay.go", "Charge(account string, amount int)", "Charge(account string)", {"pay/more.go::more", "cmd/main.go::each"}),
    (GO, "pay/pay.go", "func Charge(", "func Bill(", {"pay/more.go::more", "cmd/main.go::each"}),
    (GO, "pay/pay.go", "func New(n int)", "func New(n ...int)", set()),
    (GO, "pay/more.go", "Id(x int)", "Id(x, y int)", {"cmd/main.go::main"}),
    (JAVA, "src/a/pay/Pay.java", "charge(int amount)", "charge(String to, int a, int b)", {"src/b/Use.java::Use.one", "src/a/pay/Desk.java::Desk.ring"}),
    (JAVA, "src/a/pay/Pay.java", "charge(int amount, int tax)", "charge(int amount, int tax, int fee)", {"src/b/Use.java::Use.two"}),
    (JAVA, "src/a/pay/Pay.java", "twice(int n)", "twice(int n, int m)",
     {"src/a/pay/Pay.java::Pay.charge", "src/a/pay/Desk.java::Desk.all", "src/b/Use.java::Use.three"}),
    (JAVA, "src/a/pay/Pay.java", "public Pay(String name)", "public Pay(String name, int at)",
     {"src/a/pay/Pay.java::Pay.open", "src/a/pay/Desk.java::Desk.Desk", "src/b/Use.java::Use"}),
    (JAVA, "src/a/pay/Desk.java", "void ring(int times);", "void ring(int times, int loud);", {"src/a/pay/Desk.java::Desk.ring"}),
]


@pytest.mark.parametrize(("files", "path", "before", "after", "breaks"), CASES, ids=lambda one: str(one)[:30] if isinstance(one, str) else "")
def test_who_breaks(files: dict[str, str], path: str, before: str, after: str, breaks: set[str]) -> None:
    found = judged(files, path, before, after)
    assert {one.resource for one in found.breaks} == breaks, [one.why for one in found.breaks]
    assert not found.unseen and not found.note
    assert found.outcome == ("REQUIRE_ADDITIONAL_LOCKS" if breaks else "ALLOW")


@pytest.mark.parametrize(("files", "path"), [(files, path) for files in (TYPESCRIPT, JAVASCRIPT, GO, JAVA) for path in files])
def test_what_only_adds_breaks_nobody(files: dict[str, str], path: str) -> None:
    first = files[path].strip("\n").splitlines()[0].strip()
    assert judged(files, path, first, first + "\n// more").outcome == "ALLOW"


def test_the_sentence_tells_what_the_callee_needs() -> None:
    found = judged(TYPESCRIPT, "src/pay.ts", "total(net: number)", "total(net: number, tax: number)")
    assert found.breaks[0].why == "Shop.$sum() in pay.ts calls this.#kept.total() with one argument; it needs 'tax' now"
    assert [one.why for one in found.breaks[1:]] == ["c() in use.ts calls order.total() with one argument; it needs 'tax' now"]


def test_arguments_that_are_known_at_run_time_only_are_not_seen_through() -> None:
    files = {**JAVASCRIPT, "lib/many.js": "const { charge } = require('./pay');\nfunction m(xs) { return charge(...xs); }\n"}
    found = judged(files, "lib/pay.js", "charge(account, amount)", "charge(account, amount, currency)")
    assert found.outcome == "ESCALATION_REQUIRED" and "m() in many.js" in found.unseen[0].why


def test_languages_do_not_see_each_other() -> None:
    files = {**JAVASCRIPT, "lib/pay.py": "def charge(a): pass\n", "lib/use.py": "from pay import charge\ncharge(1)\n", "pay.java": "class Pay {}\n"}
    assert {one.path for one in judged(files, "lib/pay.py", "charge(a)", "charge(a, b)").breaks} == {"lib/use.py"}
    assert has_meaning("a.py") and has_meaning("x/a.mts") and not has_meaning("a.pyi") and not has_meaning("a.md") and not has_meaning("Makefile")
    assert syntax_of("a.py") is None and group("a.ts") == group("b.jsx") != group("c.go")


@settings(max_examples=examples(40))
@given(row=st.sampled_from(sorted(name for name, row in languages().items() if row.meaning)), seed=st.integers(0, 10_000), cut=st.integers(0, 1500), junk=st.binary(max_size=12))
def test_whatever_the_bytes_are_there_is_an_answer(row: str, seed: int, cut: int, junk: bytes) -> None:
    texts = {"javascript": JAVASCRIPT, "typescript": TYPESCRIPT, "tsx": TYPESCRIPT, "go": GO, "java": JAVA}[row]
    data = "".join(texts.values()).encode()
    at = cut % len(data)
    broken = data[:at] + junk + data[at + seed % 40:]
    ending = {"javascript": "js", "typescript": "ts", "tsx": "tsx", "go": "go", "java": "java"}[row]
    facts = facts_of(f"a.{ending}", broken)
    assert "" in facts.scopes and all(scope.above is None or scope.above in facts.scopes for scope in facts.scopes.values())
    assert all(site.scope in facts.scopes for site in facts.sites)


def test_a_bundle_is_not_read() -> None:
    assert "larger than 400,000 bytes" in facts_of("a.js", b"f(1);\n" * 100_000).note
