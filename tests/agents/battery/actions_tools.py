"""Ordinary work with other people's tools, in files of one's own: what a developer's agent does all day."""

from __future__ import annotations

from tests.agents.battery.shape import Action

NESTED = "git init -q build/in && cd build/in && git config user.name A && git config user.email a@localhost && echo 1 > a && git add -A && git commit -qm one"

BUILDS = [
    Action("gcc, objects and a library", ("mkdir -p own/c && printf 'int f(void){return 42;}' > own/c/f.c && gcc -c own/c/f.c -o own/c/f.o && ar cr own/c/f.a own/c/f.o && ls own/c",), needs=("gcc", "ar")),
    Action("gcc fails on an error", ("echo 'int f( {' > own/x.c; gcc -c own/x.c -o own/x.o 2>/dev/null; echo $?; rm own/x.c",), needs=("gcc",)),
    Action("cmake and ninja", ("mkdir own/cm && printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x C)\\nadd_executable(x x.c)\\n' > own/cm/CMakeLists.txt && echo 'int main(){return 0;}' > own/cm/x.c && "
                               "cmake -S own/cm -B build/cm -G Ninja > /dev/null && ninja -C build/cm > /dev/null && build/cm/x; echo $?; rm -rf build/cm",), needs=("cmake", "ninja", "gcc")),
    Action("make says what it would do", ("make -n all",)),
    Action("make, touched and again", ("make -s all; make -q all; echo $?; touch free.txt; make -q all; echo $?",)),
    Action("javac and java", ("mkdir own/j && echo 'class M { public static void main(String[] a) { System.out.println(7 * 6); } }' > own/j/M.java && javac -d own/j own/j/M.java && java -cp own/j M",), needs=("javac",)),
    Action("node's tests", ("mkdir own/t && echo \"require('node:test')('one', () => {})\" > own/t/a.test.js && node --test --test-reporter=tap own/t 2>&1 | grep -c '^# pass 1'",), needs=("node",)),
    Action("node's modules", ("mkdir own/m && echo 'export const a = 42;' > own/m/a.mjs && echo \"import {a} from './a.mjs'; console.log(a)\" > own/m/b.mjs && node own/m/b.mjs",), needs=("node",)),
    Action("npm in a folder of its own", ("mkdir own/n && cd own/n && npm init -y > /dev/null && npm pkg set version=2.0.0 scripts.hi='echo hi' && npm run -s hi && npm pkg get version; cd ../..",), needs=("npm",)),
    Action("npm pack", ("npm pack --dry-run --json 2>/dev/null | head -c 2; npm ls --json 2>/dev/null | head -1",), needs=("npm",)),
    Action("python's venv", ("python3 -m venv --without-pip own/venv && own/venv/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; rm -rf own/venv",)),
    Action("python's modules and caches", ("mkdir own/pk && echo 'A = 6' > own/pk/mod.py && python3 -c \"import sys; sys.path.insert(0, 'own/pk'); import mod; print(mod.A)\" && ls own/pk && python3 -m compileall -q own/pk; echo $?",)),
    Action("python's zipapp", ("mkdir own/za && echo 'print(6 * 7)' > own/za/__main__.py && python3 -m zipapp own/za -o own/za.pyz && python3 own/za.pyz",)),
    Action("doctest and unittest", ("printf '\"\"\"\\n>>> 1 + 1\\n2\\n\"\"\"\\n' > own/doc.py && python3 -m doctest own/doc.py; echo $?; python3 -m unittest discover -s own 2>&1 | tail -1",)),
    Action("dpkg-deb", ("mkdir -p own/p/DEBIAN own/p/usr && printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: x\\nDescription: x\\n' > own/p/DEBIAN/control && dpkg-deb --root-owner-group -b own/p own/x.deb > /dev/null && dpkg-deb -f own/x.deb Package; rm own/x.deb",), needs=("dpkg-deb",)),
    Action("tags of the tree", ("ctags -R -f own/tags src; grep -c main own/tags",), needs=("ctags",)),
]

FORMATTERS = [
    Action("jq on its own", ("echo '{\"b\":1,\"a\":2}' > own/j.json && jq -S . own/j.json > own/k.json && mv own/k.json own/j.json && cat own/j.json",), needs=("jq",)),
    Action("json.tool on its own", ("echo '{\"b\":1}' > own/j.json; python3 -m json.tool own/j.json own/j.json; cat own/j.json",)),
    Action("sed over its own tree", ("find own -name '*.ts' -exec sed -i s/b/bb/ {} +; cat own/index.ts",)),
    Action("perl with a copy", ("perl -pi.bak -e s/b/c/ own/index.ts; cat own/index.ts own/index.ts.bak; mv own/index.ts.bak own/index.ts",)),
    Action("sort and uniq in place", ("printf 'b\\na\\nb\\n' > own/l && sort -u -o own/l own/l && cat own/l",)),
    Action("iconv", ("printf 'caf\\303\\251' > own/u && iconv -f utf-8 -t latin1 own/u | wc -c",), needs=("iconv",)),
    Action("a formatter of named files", ("python3 - own/index.ts free.txt <<'EOF'\nimport pathlib, sys\nfor name in sys.argv[1:]:\n    p = pathlib.Path(name)\n    p.write_text(p.read_text().rstrip() + '\\n')\nEOF\ncat own/index.ts",)),
    Action("a formatter that only checks", ("python3 - <<'EOF'\nimport pathlib\nprint(sum(p.read_text() != p.read_text().rstrip() + '\\n' for p in pathlib.Path('.').rglob('*.ts')))\nEOF",)),
    Action("diff and patch of its own", ("cp own/index.ts own/was.ts; echo '// x' >> own/index.ts; diff -u own/was.ts own/index.ts | sed 1,2d > own/d; (echo '--- own/was.ts'; echo '+++ own/was.ts'; cat own/d) | patch -s own/was.ts; cmp own/was.ts own/index.ts; echo $?",), needs=("patch",)),
    Action("three-way merge by diff3", ("printf '1\\n2\\n3\\n' > own/o; printf '1\\n2\\nx\\n' > own/a; printf 'y\\n2\\n3\\n' > own/b; diff3 -m own/a own/o own/b",)),
    Action("csplit and paste", ("seq 6 > own/s; csplit -s -f own/p own/s 4; paste -d, own/p00 own/p01",)),
]

DEBUGGERS = [
    Action("gdb of its own program", ("echo 'int g = 42; int main(){return 0;}' > own/g.c && gcc -g own/g.c -o own/g && gdb -q -batch -ex 'print g' own/g 2>/dev/null",), needs=("gdb", "gcc")),
    Action("gdb runs its own program", ("echo 'int main(){return 7;}' > own/g.c && gcc -g own/g.c -o own/g && gdb -q -batch -ex 'set startup-with-shell off' -ex run own/g 2>/dev/null | grep -o 'exited with code 07'",), needs=("gdb", "gcc")),
    Action("strace counts", ("strace -c -o own/st true; grep -c execve own/st; rm own/st",), needs=("strace",)),
    Action("pdb", ("printf 'p 6 * 7\\nc\\nq\\n' | python3 -m pdb src/app.py 2>&1 | grep -c 42",)),
    Action("cProfile", ("python3 -m cProfile -o own/prof src/app.py > /dev/null && test -s own/prof; echo $?",)),
    Action("trace", ("python3 -m trace --listfuncs src/app.py 2>/dev/null | grep -c main",)),
    Action("faulthandler", ("python3 -X faulthandler -c 'import os; os.abort()' 2>&1 | grep -c 'Fatal Python error'; true",)),
    Action("core of limits", ("ulimit -c 0; sh -c 'kill -ABRT $$'; echo $?",)),
    Action("time and exit codes", ("TIMEFORMAT=; time true; echo $?",)),
    Action("lsof by hand", ("exec 5< free.txt; readlink /proc/$$/fd/5 | grep -o 'free.txt'; exec 5<&-",)),
]

SERVERS = [
    Action("a dev server, asked and stopped", ("python3 -m http.server 18431 --bind 127.0.0.1 > own/log 2>&1 & P=$!; for n in $(seq 50); do curl -s -o own/got http://127.0.0.1:18431/free.txt && break; sleep 0.1; done; kill $P; wait $P 2>/dev/null; cat own/got; rm own/log",), needs=("curl",)),
    Action("a port that is taken", ("python3 - <<'EOF'\nimport socket\na = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\nb = socket.socket()\ntry:\n    b.bind(a.getsockname())\nexcept OSError as bad:\n    print(bad.errno)\nEOF",)),
    Action("a language server over pipes", ("python3 - <<'EOF'\nimport json, subprocess, sys\ncode = 'import sys\\nn = int(sys.stdin.readline().split(\":\")[1]); sys.stdin.readline(); print(len(sys.stdin.read(n)))'\nbody = json.dumps({'method': 'initialize'})\nprint(subprocess.run([sys.executable, '-c', code], input=f'Content-Length: {len(body)}\\n\\n{body}', capture_output=True, text=True).stdout)\nEOF",)),
    Action("a watcher that rebuilds", ("(for n in 1 2 3 4 5 6 7 8 9 10; do [ own/in -nt own/out ] && cp own/in own/out && break; sleep 0.1; done) & sleep 0.2; echo new > own/in; wait; cat own/out",)),
    Action("a database server in a file", ("python3 - <<'EOF'\nimport sqlite3\nd = sqlite3.connect('own/app.db', isolation_level=None)\nd.execute('pragma journal_mode=wal')\nd.execute('create table t(a)')\nd.execute('insert into t values (42)')\nprint(sqlite3.connect('own/app.db').execute('select a from t').fetchone())\nEOF\nrm -f own/app.db*",)),
    Action("docker that has no daemon", ("docker -H unix:///nowhere.sock ps > /dev/null 2>&1; echo $?",), needs=("docker",)),
    Action("a container's layer by hand", ("mkdir -p own/layer/etc && echo x > own/layer/etc/conf && tar -C own/layer -cf own/layer.tar . && tar -tf own/layer.tar | sort; rm own/layer.tar",)),
    Action("flock among its own", ("(flock 9; echo one; sleep 0.2; echo two) 9> own/l & sleep 0.1; flock own/l echo three; wait",), needs=("flock",)),
    Action("tmux, asked and answered", ("tmux -L a$$ -f /dev/null new-session -d 'sleep 5' && tmux -L a$$ list-sessions -F '#{session_windows}'; tmux -L a$$ kill-server",), needs=("tmux",)),
    Action("cron-like loop in the background", ("(for n in 1 2 3; do echo $n >> own/ticks; sleep 0.1; done) & wait $!; cat own/ticks",)),
    Action("secrets of its own", ("umask 077; echo s > own/secret; stat -c %a own/secret; openssl dgst -sha256 own/secret | cut -d' ' -f2",), needs=("openssl",)),
    Action("ssh-keygen of its own", ("ssh-keygen -q -t ed25519 -N '' -C x -f own/key && ssh-keygen -y -f own/key | cut -d' ' -f1; rm own/key own/key.pub",), needs=("ssh-keygen",)),
    Action("gpg in a home of its own", ("D=$(mktemp -d) && gpg --homedir $D --batch -q -o own/stored --store free.txt && test -s own/stored; echo $?; rm -rf own/stored $D",), needs=("gpg",)),
]

GIT = [
    Action("a repository of its own below", (NESTED + " && git log --oneline | wc -l; cd ../..",)),
    Action("stash, switch and reset there", (NESTED + " && echo 2 > a && git stash -q && git switch -qc other && git reset -q --hard && git stash pop -q && cat a; cd ../..",)),
    Action("clean and add of all there", (NESTED + " && echo x > junk && git clean -fdq && echo y > b && git add -A && git commit -qam two && git status --short | wc -l; cd ../..",)),
    Action("merge and rebase there", (NESTED + " && git switch -qc side && echo 2 > b && git add -A && git commit -qm two && git switch -q - && git merge -q --no-edit side && git rebase -q side && ls; cd ../..",)),
    Action("a clone, worked in", ("git clone -q . build/cl && git -C build/cl checkout -q -b z && echo 1 > build/cl/z && git -C build/cl add -A && git -C build/cl -c user.name=A -c user.email=a@localhost commit -qm z && git -C build/cl branch --show-current; rm -rf build/cl",)),
    Action("patch of its own, and back", ("echo m >> free.txt; git diff -- free.txt > own/pt; git apply -R own/pt; git diff --quiet -- free.txt; echo $?; git apply own/pt; tail -1 free.txt",)),
    Action("patch of its own from a pipe", ("echo m >> free.txt; git diff -- free.txt | git apply -R; git diff --quiet -- free.txt; echo $?",)),
    Action("patch, only looked at", ("echo m >> free.txt; git diff -- free.txt > own/pt; git apply --check -R own/pt; git apply --stat own/pt; git apply --numstat -R own/p",)),
    Action("its own stash, and back", ("echo m >> free.txt; git stash push -q -- free.txt; tail -1 free.txt; git stash pop -q; tail -1 free.txt",)),
    Action("its own stash, dropped", ("echo m >> free.txt; git stash push -q -- free.txt; git stash drop -q; git stash list | wc -l",)),
    Action("a stash that a tool makes", ("echo m >> free.txt; git stash store -m tool $(git stash create); git stash list | wc -l; git stash drop -q; tail -1 free.txt",)),
    Action("amend of its own", ("echo m >> free.txt; git add free.txt; git commit -qm mine -- free.txt; git commit -q --amend -m better; git log --format=%s -1",)),
    Action("soft reset of its own commit", ("echo m >> free.txt; git commit -qm mine -- free.txt; git commit -q --allow-empty -m empty; git log --oneline | wc -l",)),
    Action("add -N and add -u of its own", ("echo 1 > own/new; git add -N own/new; git add -u own; git status --short own; git restore --staged own/new; rm own/new",)),
    Action("commit from a message file", ("echo 'From a file' > own/msg; echo m >> free.txt; git commit -qF own/msg -- free.txt; git log --format=%s -1; rm own/msg",)),
    Action("commit with a pathspec file", ("echo m >> free.txt; echo free.txt > own/list; git commit -qm listed --pathspec-from-file=own/list; git log --format=%s -1; rm own/list",)),
    Action("a commit that has nothing", ("git commit -qm nothing -- free.txt; echo $?",)),
    Action("a hook of its own, of a commit", ("mkdir own/hk; printf '#!/bin/sh\\ngit diff --cached --name-only\\n' > own/hk/pre-commit; chmod +x own/hk/pre-commit; echo m >> free.txt; git -c core.hooksPath=own/hk commit -qm hooked -- free.txt; rm -rf own/hk",)),
    Action("a hook that refuses", ("mkdir own/hk; printf '#!/bin/sh\\nexit 1\\n' > own/hk/pre-commit; chmod +x own/hk/pre-commit; echo m >> free.txt; git -c core.hooksPath=own/hk commit -qm no -- free.txt; echo $?; rm -rf own/hk",)),
    Action("worktrees, made, moved, removed", ("git worktree add -q build/w1 -b w1 && git worktree move build/w1 build/w2 && git worktree list | wc -l && git worktree remove build/w2 && git branch -qD w1; git worktree prune; git worktree list | wc -l",)),
    Action("a worktree, committed in", ("git worktree add -q build/w -b w && echo 1 > build/w/free.txt && git -C build/w commit -qam there && git log --format=%s -1 w; git worktree remove --force build/w; git branch -qD w",)),
    Action("notes, describe and shortlog", ("git notes add -m note HEAD; git notes show HEAD; git describe --always --all | head -c 5; git shortlog -s HEAD | wc -l",)),
    Action("bundle, verified", ("git bundle create -q own/b HEAD && git bundle verify -q own/b; echo $?; rm own/b",)),
    Action("log by content", ("git log -S committed --oneline | wc -l; git log -L1,1:free.txt --oneline -s | wc -l",)),
    Action("many small gits", ("for n in 1 2 3 4 5 6 7 8; do git status --short free.txt; git rev-parse -q --verify HEAD > /dev/null || echo no; done",)),
]

TOOLS = [*BUILDS, *FORMATTERS, *DEBUGGERS, *SERVERS, *GIT]
