"""One small file for each language of the table, and what is in it: (name, kind) in order.

A language's sample has what its query tells apart: members, what is outside, comments attached,
nested definitions (which do not show), a name twice, a statement with branches.
"""

from __future__ import annotations

SAMPLES: dict[str, tuple[str, str, str]] = {}
"""Language -> (a file's name, its text, the regions one a line: `kind name`)."""

SAMPLES["python"] = ("a.py", '''#!/usr/bin/env python
"""What it is."""
import os

# The limit.
LIMIT = 5
ALL = []
ALL += [1]
a, b = 1, 2

if os.name == "nt":
    def f(): ...
else:
    def f(): ...

# About g.
@decorate(
    1,
)
def g(x):
    def inner():
        return 1
    return inner  # end

class C(Base):
    """Doc."""
    x = 1

    # About m.
    @property
    def m(self): return 1

    @m.setter
    def m(self, v): pass

    y = 2

    class D:
        async def n(self): pass

print("between")

async def g(): pass
''', """header <header>
constants LIMIT
constants ALL
constants a
block <if os name nt>
function g
class C
method C.m
method C.m#2
class C.D
method C.D.n
function g#2""")

SAMPLES["javascript"] = ("a.js", '''import x from "y";

// About f.
export function f() { function inner() {} }
export default function () { return 1; }
const add = (a, b) => a + b;
export const K = 1, L = 2;
let { p, q } = x;
class A extends B {
  field = 1;
  #hidden() {}
  static s() {}
  /** About handle. */
  handle = () => { this.x = 1; };
  get "odd.name"() { return 1; }
}
if (x) { function g() {} } else { function g() {} }
module.exports = { f };
''', """header <header>
function f
function default
function add
constants K
constants { p, q }
class A
method A.%23hidden
method A.s
method A.handle
method A.odd%2Ename
block <if x>""")

SAMPLES["typescript"] = ("a.ts", '''import { x } from "./y";

export interface Shape { area(): number; }
export type Id = string | number;
enum Color { Red, Green }
export abstract class A<T> implements Shape {
  constructor(private n: number) { super(); }
  abstract area(): number;
  private run = async () => 1;
}
namespace Geo.Inner {
  export function dist(a: number): number { return a; }
}
export const make = <T,>(v: T): T => v;
export function over(a: string): void;
export function over(a: any) {}
declare module "mod" { }
''', """header <header>
class Shape
constants Id
class Color
class A
method A.constructor
method A.area
method A.run
class Geo.Inner
function Geo.Inner.dist
function make
function over
function over#2
class mod""")

SAMPLES["tsx"] = ("a.tsx", '''import React from "react";
export const App = () => <div>{1}</div>;
function Other(p: { a: number }) { return <b/>; }
''', """header <header>
function App
function Other""")

SAMPLES["go"] = ("a.go", '''package main

import "fmt"

const Limit = 3
const (
\tA = iota
\tB
)
var (
\tx int
)

// Point is a place.
type Point struct{ X, Y int }

func (p *Point) Move(d int) { p.X += d }
func (s Stack[T]) Push(v T) {}

// main runs.
func main() {
\tfmt.Println(func() int { return 1 }())
}
func init() {}
func init() {}
''', """header <header>
constants Limit
constants A
constants x
class Point
method Point.Move
method Stack.Push
function main
function init
function init#2""")

SAMPLES["rust"] = ("a.rs", '''use std::fmt;

/// A point.
#[derive(Debug)]
pub struct Point { x: i32 }

impl Point {
    const ZERO: i32 = 0;
    /// Makes one.
    pub fn new() -> Self { fn inner() {} Point { x: 0 } }
}

impl fmt::Display for Point {
    fn fmt(&self) -> fmt::Result { Ok(()) }
}
impl<T> From<T> for Wrap<T> { fn from(t: T) -> Self { Wrap(t) } }

trait Shape { fn area(&self) -> f64; fn name(&self) -> String { String::new() } }
enum E { A, B }
static N: i32 = 1;
macro_rules! sum { () => {}; }
mod tests {
    #[test]
    fn works() {}
}
''', """header <header>
class Point
class Point.impl
constants Point.impl.ZERO
method Point.impl.new
class Point.impl fmt%3A%3ADisplay
method Point.impl fmt%3A%3ADisplay.fmt
class Wrap.impl From%3CT%3E
method Wrap.impl From%3CT%3E.from
class Shape
method Shape.area
method Shape.name
class E
constants N
function sum
class tests
function tests.works""")

SAMPLES["java"] = ("A.java", '''package a.b;
import java.util.*;

/** About A. */
@Deprecated
public class A<T> extends B {
    private int x = 1;
    public A() { super(); }
    @Override
    public int run(int a) { return new Object() { int go() { return 1; } }.go(); }
    public int run(String a) { return 2; }
    interface In { void act(); }
    enum Color { RED; Color next() { return RED; } }
}
record P(int x) { P { } }
@interface Mark { }
''', """header <header>
class A
method A.A
method A.run
method A.run#2
class A.In
method A.In.act
class A.Color
method A.Color.next
class P
method P.P
class Mark""")

SAMPLES["c"] = ("a.c", '''#include <stdio.h>
#ifdef GUARD
#define LIMIT 5
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* About table. */
static const int table[] = {1, 2};
struct point { int x; };
typedef struct { int y; } pair;
typedef unsigned long word;
enum color { RED, GREEN } paint;
int declared(int);
#if defined(A)
int f(void) { return 1; }
#else
int f(void) { return 2; }
#endif
static char *text(int n)
{
    int local = n;
    return 0;
}
int main(void) { return 0; }
''', """header <header>
constants LIMIT
constants MAX
constants table
class point
class pair
constants word
class color
block <if defined A>
function text
function main""")

SAMPLES["cpp"] = ("a.hpp", '''#ifndef A_H
#define A_H
#include <vector>
namespace a::b {
// About Box.
template <typename T>
class Box : public Base<T> {
public:
    Box() : x(1) {}
    ~Box() {}
    T get() const { return x; }
    T& ref() { return x; }
    bool operator==(const Box& o) const { return true; }
private:
    T x;
};
template <typename T> void Box<T>::put(T v) { x = v; }
using Word = unsigned;
inline int twice(int v) { auto f = [](int q) { return q; }; return f(v) * 2; }
struct S { int q; void m() {} };
}
void a::Other::run() {}
extern "C" { int plain(void) { return 1; } }
int limit = 5;
#endif
''', """header <header>
constants A_H
class a.b
class a.b.Box
method a.b.Box.Box
method a.b.Box.~Box
method a.b.Box.get
method a.b.Box.ref
method a.b.Box.operator==
method a.b.Box.put
constants a.b.Word
function a.b.twice
class a.b.S
method a.b.S.m
method a.Other.run
function plain
constants limit""")

SAMPLES["c-sharp"] = ("A.cs", '''using System;

namespace A.B
{
    /// <summary>About C.</summary>
    [Serializable]
    public class C : D
    {
        private int x;
        public int Size { get; set; }
        public C() { }
        ~C() { }
        public int Run(int a) { int Local() => 1; return Local(); }
        public int Run(string a) => 2;
        public static C operator +(C a, C b) => a;
    }
    interface I { void Act(); }
    record R(int X);
    enum E { One }
    struct S { }
    delegate void Done();
}
''', """header <header>
class A.B
class A.B.C
method A.B.C.Size
method A.B.C.C
method A.B.C.~ C
method A.B.C.Run
method A.B.C.Run#2
method A.B.C.operator +
class A.B.I
method A.B.I.Act
class A.B.R
class A.B.E
class A.B.S
constants A.B.Done""")

SAMPLES["ruby"] = ("a.rb", '''require "x"

LIMIT = 5

# About M.
module M
  class A::B < C
    attr_reader :x

    # About run.
    def run(a)
      a.each { |q| q }
    end

    def self.make; end
    def empty?; true; end
    def ==(other); end
    class << self
      def built; end
    end
  end
end

if x
  def f; end
else
  def f; end
end

def top
  1
end
''', """header <header>
constants LIMIT
class M
class M.A.B
method M.A.B.run
method M.A.B.self make
method M.A.B.empty?
method M.A.B.==
class M.A.B.class
method M.A.B.class.built
block <if x>
function top""")

SAMPLES["php"] = ("a.php", '''<?php
namespace App;
use Foo\\Bar;

const LIMIT = 5;
$start = 1;

/** About f. */
function f($a) { function inner() {} return $a; }

#[Attr]
final class A extends B {
    private $x = 1;
    public function run() { return 1; }
    public static function make(): self { return new self(); }
}
interface I { public function act(); }
trait T { function t() {} }
enum E { case One; }
if ($start) { function g() {} } else { function g() {} }
?>
<p>Text</p>
''', """header <header>
constants LIMIT
constants $start
function f
class A
method A.run
method A.make
class I
method I.act
class T
method T.t
class E
block <if start>""")

SAMPLES["bash"] = ("a.sh", '''#!/bin/sh
set -e
LIMIT=5
export OTHER=6

# About run.
run() {
  inner() { :; }
  echo "$1"
}
function go {
  :
}
if [ -n "$1" ]; then
  f() { :; }
else
  f() { :; }
fi
run "$@"
''', """header <header>
constants LIMIT
constants OTHER
function run
function go
block <if n 1>""")

SAMPLES["json"] = ("a.json", '''{
  "name": "x",
  "scripts": {
    "build.all": "tsc",
    "a/b": {"deep": 1}
  },
  "": null,
  "list": [{"in": 1}],
  "one": {"a": 1, "b": 2}
}
''', """header <header>
key name
key scripts
key scripts.build%2Eall
key scripts.a%2Fb
key %
key list
key one
key one.a
key one.b""")

SAMPLES["yaml"] = ("a.yaml", '''# The file.

version: 3

# About services.
services:
  web:
    image: x
    ports: [1, 2]

  # About db.
  db: {image: y, tag: z}
"quoted.key": 1
list:
  - a: 1
''', """header <header>
key version
key services
key services.web
key services.db
key quoted%2Ekey
key list""")

SAMPLES["toml"] = ("a.toml", '''# The file.

title = "x"
a.b = 1

# About tool.
[tool]
x = 1
[tool."odd.name".z]
# About y.
y = [
  1,
]

[[bin]]
name = "a"
[[bin]]
name = "b"
''', """header <header>
key title
key a.b
key tool
key tool.x
key tool.odd%2Ename.z
key tool.odd%2Ename.z.y
key bin
key bin.name
key bin#2
key bin#2.name""")

SAMPLES["markdown"] = ("a.md", '''---
title: x
---
Before.

# Guide: v1.2

Text.

## Install `it`

```sh
# not a title
```

### Deep

## Use

Setext
------

# Guide: v1.2

End.
''', """header <header>
section Guide%3A v1%2E2
section Guide%3A v1%2E2.Install `it`
section Guide%3A v1%2E2.Install `it`.Deep
section Guide%3A v1%2E2.Use
section Guide%3A v1%2E2#2""")
