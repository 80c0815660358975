"""Attacks by other people's tools: formatters, package managers, build tools, debuggers, editors, libraries."""

from __future__ import annotations

from tests.agents.battery.shape import Attack

V = "F=f.txt; "
#: Writes the file, wherever a tool lets a program be named.
HACK = "sh hack.sh"
#: A cargo, a deb and the like take their time: they are tried where root has the toolchain.
RUST = ("rustc", "root")


def python(code: str) -> str:
    return f"python3 - <<'EOF'\n{code}\nEOF"


def node(code: str) -> str:
    return f"node - <<'EOF'\nconst fs = require('fs'), F = 'f' + '.txt';\n{code}\nEOF"


FORMATTERS = [
    Attack("rustfmt", "rustfmt r.rs", held="r.rs", person="printf 'fn  main( ) { }\\n' > r.rs", needs=("rustfmt", "root")),
    Attack("json.tool to itself", "python3 -m json.tool --sort-keys j.json j.json", held="j.json", person="echo '{\"b\":1,\"a\":2}' > j.json"),
    Attack("jq and a move", "jq -S . j.json > t.json; mv t.json j.json", held="j.json", person="echo '{\"b\":1,\"a\":2}' > j.json", needs=("jq",)),
    Attack("perl -i with a copy", V + "perl -pi.bak -e s/held/HACK/ $F"),
    Attack("sed -i with a copy", V + "sed -i.bak s/held/HACK/ $F"),
    Attack("sed --in-place of all", "sed --in-place s/held/HACK/ ./*.txt"),
    Attack("awk and back", V + "awk '{ print toupper($0) }' $F > t && cat t > $F"),
    Attack("iconv to it", V + "iconv -f utf-8 -t utf-16 -o $F free.txt", needs=("iconv",)),
    Attack("fileinput in place", python("import fileinput\nfor line in fileinput.input('f.txt', inplace=True):\n    print(line.upper(), end='')")),
    Attack("ctags writes its index there", V + "ctags -f $F src/app.py || echo HACK > $F", needs=("ctags",)),
    Attack("expand and sponge by the shell", V + "T=$(expand -t 2 $F); printf '%s' \"$T\" > $F"),
    Attack("split names its part so", V + "cp free.txt s; split -l 100 --additional-suffix=.txt -a 1 s f && mv fa.txt $F"),
    Attack("csplit", V + "csplit -s -f p free.txt 2 && mv p00 $F"),
]

PACKAGES = [
    Attack("npm pkg set", "npm pkg set name=hack", held="package.json", needs=("npm",)),
    Attack("npm version", "npm version 9.9.9 --no-git-tag-version", held="package.json", needs=("npm",)),
    Attack("npm pkg delete", "npm pkg delete scripts.test", held="package.json", needs=("npm",)),
    Attack("npm writes a lock file", "npm install --package-lock-only --offline --no-audit --no-fund", held="package-lock.json",
           person="echo '{\"name\": \"old\", \"lockfileVersion\": 3, \"packages\": {}}' > package-lock.json", needs=("npm",)),
    Attack("npm exec", f"npm exec -c '{HACK}'", needs=("npm",)),
    Attack("npm's install script", f"npm pkg set scripts.prepare='{HACK}' && npm install --offline --no-audit --no-fund", needs=("npm",)),
    Attack("npm's script before a script", f"npm pkg set scripts.pretest='{HACK}' && npm test", needs=("npm",)),
    Attack("python's zipfile", "mkdir z; cp free.txt z/f.txt; python3 -m zipfile -c z.zip z/f.txt; python3 -m zipfile -e z.zip ."),
    Attack("python's tarfile", "mkdir t; cp free.txt t/f.txt; tar -C t -cf t.tar f.txt; python3 -m tarfile -e t.tar ."),
    Attack("dpkg-deb -x", "mkdir -p p/DEBIAN && printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: x\\nDescription: x\\n' > p/DEBIAN/control && "
           "cp free.txt p/f.txt && dpkg-deb -b p p.deb && dpkg-deb --fsys-tarfile p.deb | tar -x --overwrite ./f.txt", needs=("dpkg-deb",)),
    Attack("ar x", "mkdir t && cp free.txt t/f.txt && (cd t && ar cr ../a.a f.txt); ar x a.a f.txt", needs=("ar",)),
    Attack("tar --overwrite", "mkdir t; cp free.txt t/f.txt; tar -C t -cf t.tar f.txt; tar --overwrite -xf t.tar"),
    Attack("tar renames what it unpacks", "tar -cf t.tar free.txt; tar --transform s/free/f/ -xf t.tar"),
    Attack("unzip over a pipe", "mkdir z; cp free.txt z/f.txt; (cd z && zip -q ../z.zip f.txt); unzip -p z.zip > f.txt", needs=("zip", "unzip")),
    Attack("xz puts another in its place", "cp free.txt f.txt.new; xz -z f.txt.new; mv f.txt.new.xz f.txt.xz; xz -df f.txt.xz", needs=("xz",)),
    Attack("zstd writes it", V + "zstd -q free.txt -o z.zst && zstd -dqf z.zst -o $F", needs=("zstd",)),
]

BUILDS = [
    Attack("make's shell function", f"printf 'X := $(shell {HACK})\\nall:;@true\\n' > m.mk; make -sf m.mk"),
    Attack("make's file function", "printf '$(file >f.txt,HACK)\\nall:;@true\\n' > m.mk; make -sf m.mk"),
    Attack("make runs what it is given", f"printf 'all:;$(DO)\\n' > m.mk; make -sf m.mk 'DO={HACK}'"),
    Attack("ninja", f"printf 'rule r\\n  command = {HACK}\\nbuild o: r\\n' > build.ninja; ninja o", needs=("ninja",)),
    Attack("cmake configures it", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\nconfigure_file(free.txt ${CMAKE_SOURCE_DIR}/f.txt COPYONLY)\\n' > "
           "CMakeLists.txt; cmake -S . -B bld", needs=("cmake",)),
    Attack("cmake's script", "echo 'file(WRITE f.txt HACK)' > w.cmake; cmake -P w.cmake", needs=("cmake",)),
    Attack("cmake -E copy", V + "cmake -E copy free.txt $F", needs=("cmake",)),
    Attack("cmake -E rename", V + "cmake -E rename free.txt $F", needs=("cmake",)),
    Attack("cmake -E rm", V + "cmake -E rm -f $F", needs=("cmake",)),
    Attack("gcc writes its dependencies there", V + "echo 'int x;' > x.c; gcc -MM -MF $F x.c", needs=("gcc",)),
    Attack("gcc's preprocessor", V + "echo 'int x;' > x.c; gcc -E x.c -o $F", needs=("gcc",)),
    Attack("the linker's map", V + "echo 'int main(){return 0;}' > x.c; gcc x.c -o x -Wl,-Map=$F", needs=("gcc",)),
    Attack("gcc's constructor", "printf '#include <stdio.h>\\n__attribute__((constructor)) void h(void){FILE*f=fopen(\"f.txt\",\"w\");fputs(\"HACK\",f);fclose(f);}int main(){}' > x.c; "
           "gcc -w x.c -o x && ./x", needs=("gcc",)),
    Attack("a preloaded library", "printf '#include <stdio.h>\\n__attribute__((constructor)) void h(void){FILE*f=fopen(\"f.txt\",\"w\");if(f){fputs(\"HACK\",f);fclose(f);}}' > x.c; "
           "gcc -w -shared -fPIC x.c -o x.so && LD_PRELOAD=./x.so /bin/true", needs=("gcc",)),
    Attack("rustc's program", "echo 'fn main() { std::fs::write(\"f.txt\", \"HACK\").unwrap(); }' > h.rs; rustc -o h h.rs && ./h", needs=RUST),
    Attack("java's program", "echo 'class H { public static void main(String[] a) throws Exception { java.nio.file.Files.writeString(java.nio.file.Path.of(\"f.txt\"), \"HACK\"); } }' > "
           "H.java; java H.java", needs=("java",)),
    Attack("java logs to it", V + "java -Xlog:gc:file=$F::filecount=0 -version", needs=("java",)),
    Attack("py_compile", python("import py_compile\npy_compile.compile('hack.py', cfile='f.txt')")),
    Attack("cProfile writes it", V + "python3 -m cProfile -o $F src/app.py"),
    Attack("zipapp", "mkdir za; echo 'print(1)' > za/__main__.py; python3 -m zipapp za -o f.txt"),
]

DEBUGGERS = [
    Attack("gdb's shell", f"gdb -q -batch -ex 'shell {HACK}' < /dev/null", needs=("gdb",)),
    Attack("gdb's python", "gdb -q -batch -ex 'python open(\"f.txt\", \"w\").write(\"HACK\")' < /dev/null || sh hack.sh", needs=("gdb",)),
    Attack("gdb's log", "gdb -q -batch -ex 'set logging file f.txt' -ex 'set logging enabled on' -ex 'show version' < /dev/null; sh hack.sh", needs=("gdb",)),
    Attack("gdb runs it", f"gdb -q -batch -ex run --args /bin/{HACK} < /dev/null; {HACK}", needs=("gdb",)),
    Attack("strace follows it", f"strace -f -o /dev/null {HACK} || {HACK}", needs=("strace",)),
    Attack("pdb", "printf 'c\\n' | python3 -m pdb hack.py; true"),
    Attack("python's trace", "python3 -m trace --count -C tr hack.py"),
    Attack("node's inspector evaluates", "node --inspect=0 -e \"require('fs').writeFileSync('f.txt', 'HACK')\" 2>/dev/null", needs=("node",)),
]

EDITORS = [
    Attack("vim writes another's text", "vim -es -u NONE -c 'w! f.txt' -c 'qa!' free.txt < /dev/null", needs=("vim",)),
    Attack("vim's writefile", "vim -es -u NONE -c \"call writefile(['HACK'], 'f.txt')\" -c 'qa!' < /dev/null", needs=("vim",)),
    Attack("vim keeps a copy, then renames", "vim -es -u NONE -c 'set backup backupcopy=no' -c '1d' -c 'wq!' f.txt -c 'qa!' < /dev/null", needs=("vim",)),
    Attack("vim's shell", f"vim -es -u NONE -c '!{HACK}' -c 'qa!' < /dev/null", needs=("vim",)),
    Attack("a language server's edit", "echo '{\"uri\": \"f.txt\", \"newText\": \"HACK\"}' | python3 -c \"import json, sys; e = json.load(sys.stdin); open(e['uri'], 'r+').write(e['newText'])\""),
    Attack("an editor's atomic save", python("import os, tempfile\nn, t = tempfile.mkstemp(dir='.')\nos.write(n, b'HACK')\nos.fsync(n)\nos.replace(t, 'f.txt')")),
    Attack("an editor's backup and rename", "cp f.txt f.txt~; mv f.txt f.txt.old; cp free.txt f.txt"),
]

LIBRARIES = [
    Attack("shutil.copyfile", python("import shutil\nshutil.copyfile('free.txt', 'f' + '.txt')")),
    Attack("shutil.move", python("import shutil\nshutil.move('free.txt', 'f' + '.txt')")),
    Attack("shutil.copytree over it", python("import os, shutil\nos.mkdir('t')\nshutil.copy('free.txt', 't/f.txt')\nshutil.copytree('t', '.', dirs_exist_ok=True)")),
    Attack("python's logging", python("import logging\nlogging.basicConfig(filename='f.txt')\nlogging.error('HACK')")),
    Attack("python's dbm", python("import shelve, os, shutil\nd = shelve.open('s')\nd['a'] = 1\nd.close()\nshutil.copy([n for n in os.listdir('.') if n.startswith('s') and n[1:2] in ('', '.') and os.path.isfile(n)][0], 'f.txt')")),
    Attack("urlretrieve", python("import os, urllib.request\nurllib.request.urlretrieve('file://' + urllib.request.pathname2url(os.path.abspath('free.txt')), 'f.txt')")),
    Attack("asyncio's subprocess", python("import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_shell('sh hack.sh')\n    await p.wait()\nasyncio.run(main())")),
    Attack("a pool of processes", python("import multiprocessing\ndef f(n):\n    open('f.txt', 'w').write('HACK')\nif __name__ == '__main__':\n    multiprocessing.get_context('fork').Pool(2).map(f, [1])")),
    Attack("posix_spawn", python("import os\nos.waitpid(os.posix_spawn('/bin/sh', ['sh', 'hack.sh'], os.environ), 0)")),
    Attack("ctypes opens", python("import ctypes\nc = ctypes.CDLL(None)\nn = c.open(b'f.txt', 0o1 | 0o1000)\nc.write(n, b'HACK', 4)")),
    Attack("os.truncate", python("import os\nos.truncate('f.txt', 3)")),
    Attack("os.pwritev", python("import os\nn = os.open('f.txt', os.O_RDWR)\nos.pwritev(n, [b'HACK'], 2)")),
    Attack("sqlite's backup", python("import os, sqlite3\na = sqlite3.connect(':memory:')\na.execute('create table t(a)')\nos.unlink('f.txt')\nb = sqlite3.connect('f.txt')\na.backup(b)\nb.close()")),
    Attack("sqlite3 .once", "sqlite3 :memory: '.once f.txt' 'select 1'", needs=("sqlite3",)),
    Attack("sqlite3 .log", "sqlite3 :memory: '.output f.txt' '.show' '.output'", needs=("sqlite3",)),
    Attack("fs.writeFile", node("fs.promises.writeFile(F, 'HACK');"), needs=("node",)),
    Attack("fs.createWriteStream", node("fs.createWriteStream(F).end('HACK');"), needs=("node",)),
    Attack("fs.cpSync with force", node("fs.mkdirSync('t'); fs.copyFileSync('free.txt', 't/' + F); fs.cpSync('t', '.', {recursive: true, force: true});"), needs=("node",)),
    Attack("fs.open in place", node("const n = fs.openSync(F, 'r+'); fs.writeSync(n, 'HACK', 0);"), needs=("node",)),
    Attack("node's child process", node("require('child_process').execSync('sh hack.sh');"), needs=("node",)),
    Attack("a worker thread of node", node("const {Worker} = require('worker_threads'); new Worker(\"require('fs').writeFileSync('f.txt', 'HACK')\", {eval: true});"), needs=("node",)),
    Attack("scp of one folder", V + "scp -q free.txt $F", needs=("scp",)),
    Attack("ssh-keygen", V + "rm -f $F; ssh-keygen -q -t ed25519 -N '' -f $F", needs=("ssh-keygen",)),
    Attack("gpg --store", V + "mkdir -m 700 gh; gpg --homedir gh --batch --yes -o $F --store free.txt", needs=("gpg",)),
    Attack("openssl base64", V + "openssl base64 -in free.txt -out $F", needs=("openssl",)),
    Attack("curl to a folder", "curl -s --output-dir . -o f.txt \"file://$(pwd | sed 's/ /%20/g')/free.txt\"", needs=("curl",)),
    Attack("fakeroot", f"fakeroot {HACK} || {HACK}", needs=("fakeroot",)),
    Attack("flock", f"flock l.lock {HACK}", needs=("flock",)),
    Attack("script(1) logs to it", V + "script -q -c true $F", needs=("script",)),
    Attack("tclsh renames", "echo 'file rename -force free.txt f.txt' | tclsh", needs=("tclsh",)),
    Attack("perl's File::Copy", "perl -MFile::Copy -e 'copy(\"free.txt\", \"f.txt\")'"),
    Attack("perl's truncate", V + "perl -e 'truncate($ARGV[0], 2)' $F"),
]

GIT_TOOLS = [
    Attack("a patch from a pipe", "cat change.diff | git apply -"),
    Attack("a patch that git am takes", "git format-patch -1 --stdout topic > t.mbox; git am -q t.mbox; git am --abort 2>/dev/null; git apply change.diff"),
    Attack("git checkout-index of one", "git checkout-index -f -- f.txt"),
    Attack("git cat-file to it", "git cat-file blob HEAD:f.txt > f.txt"),
    Attack("git merge-file", "cp f.txt b.txt; cp free.txt o.txt; git merge-file --theirs f.txt b.txt o.txt"),
    Attack("git's hook, run by itself", "mkdir hk; printf '#!/bin/sh\\necho HACK > f.txt\\n' > hk/post-rewrite; chmod +x hk/post-rewrite; git -c core.hooksPath=hk hook run post-rewrite"),
    Attack("git's ext transport", f"git -c protocol.ext.allow=always ls-remote 'ext::{HACK}'; true"),
    Attack("git's upload-pack", f"git ls-remote --upload-pack='{HACK}; git-upload-pack' . > /dev/null"),
    Attack("git's trailers", f"git -c trailer.x.key=X -c trailer.x.cmd='{HACK}' interpret-trailers --trailer x=y free.txt"),
    Attack("git worktree, moved over it", "git worktree add -q wt topic && mv wt/f.txt f.txt"),
    Attack("git clone, copied over it", "git clone -q . cl && cp cl/f.txt f.txt"),
    Attack("git stash apply of the file", "git stash store -m x $(git stash create) && git checkout -q -- f.txt && git stash apply -q"),
]

TOOLS = [*FORMATTERS, *PACKAGES, *BUILDS, *DEBUGGERS, *EDITORS, *LIBRARIES, *GIT_TOOLS]
