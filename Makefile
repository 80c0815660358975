# coord: every target sets up what it needs. `make` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
BENCH  := $(BIN)/python -m benchmarks

.PHONY: help setup demo day test test-slow check verify lint types layers house docs docs-check client client-check plugins plugins-check dist release test-chaos test-foreign mutants agents test-agents test-frameworks test-clients battery cost regions-corpus bench bench-against bench-growth screenshot clean merge-corpus merge-history
help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 16

setup: $(STAMP)  ## make .venv with coord and the development tools
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "coord needs Python 3.11 or newer ($(PYTHON) is older); try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || sh scripts/venv.sh $(PYTHON) $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

demo: setup      ## agents carry one release of a real package to the next, one is killed, no edit is lost
	@$(BENCH) demo

test: setup      ## the default test suite (under 5 minutes on 2 cores)
	@$(BIN)/python -m pytest -n 4 --dist worksteal

test-slow: setup ## the slower tests: many processes, and sessions as another user (about 6 minutes on 2 slow cores)
	@$(BIN)/python -m pytest -n 4 --dist worksteal -m slow
	@COORD_TEST_EFFORT=$${COORD_TEST_EFFORT:-2} $(BIN)/python -m pytest -n 4 --dist worksteal tests/invariants tests/service/test_region_reverts.py tests/client/test_bodies_at_random.py tests/daemon/test_extremes.py

check: lint types layers house docs-check client-check plugins-check  ## linter, types, layers, the measures of the house, generated documents and plugins

lint: setup
	@$(BIN)/ruff check .
types: setup
	@$(BIN)/mypy
layers: setup    ## imports go down only
	@$(BIN)/lint-imports --no-cache
house: setup     ## measure the house: sizes, complexity, circles, words; worse than scripts/house_limits.json fails
	@$(BIN)/python -P scripts/house.py
docs: setup      ## write the generated documents again
	@$(BIN)/python -m generators --write
	@$(BIN)/python -P scripts/blocking_client.py --write
docs-check: setup
	@$(BIN)/python -m generators
client: setup    ## make the blocking Python client again, from the asynchronous one
	@$(BIN)/python -P scripts/blocking_client.py --write
client-check: setup
	@$(BIN)/python -P scripts/blocking_client.py
plugins: setup   ## write the plugins for agent CLIs (plugins/) again, from the profiles
	@$(BIN)/python -P scripts/plugins.py --write
plugins-check: setup
	@$(BIN)/python -P scripts/plugins.py

dist: setup      ## build sdist and wheel, check them, try the wheel in a fresh environment (REPOSITORY_URL=https://...: links lead there)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dist
	@COORD_REPOSITORY_URL="$(REPOSITORY_URL)" $(BIN)/python scripts/dist.py $(DIST)
release: setup   ## the same for a release: at its tag, nothing uncommitted, with an address (CONTRIBUTING.md)
	@$(MAKE) --no-print-directory dist DIST=--release

verify: check test  ## what CI runs first

test-chaos: setup  ## the daemon killed again and again under 16 clients; verdicts on a disk that fails
	@TMPDIR=$${TMPDIR:-/tmp} $(BIN)/python -m pytest -m chaos -p no:xdist tests/chaos
	@TMPDIR=$${TMPDIR:-/tmp} COORD_TEST_EFFORT=4 $(BIN)/python -m pytest -n 4 tests/service/test_verdicts.py

DAY    ?= 1
day: setup       ## four agents at work for a scripted day in three kinds of repository, some killed (DAY=7: another day; needs npm)
	@$(BIN)/python -m tests.day --seed $(DAY)

test-foreign: setup  ## the tests with somebody else's home, git settings, signals and locale, on a busy machine
	@PYTHON=$(BIN)/python scripts/foreign.sh $(TESTS)

SEED   ?= 1
SAMPLE ?= 120
mutants: setup   ## change one thing in the rules at a time, and see whether a test notices (SEED=2, SAMPLE=500, SLICE=3/200, BOUND=90)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group mutants
	@COORD_TEST_EFFORT=$${COORD_TEST_EFFORT:-0.7} $(BIN)/python scripts/mutants.py --seed $(SEED) $(if $(SLICE),--slice $(SLICE),--sample $(SAMPLE)) $(if $(BOUND),--bound $(BOUND))

agents:          ## install the real coding agents that test-agents runs, at pinned versions
	@PYTHON=$(PYTHON) scripts/agents.sh $(AGENTS)

test-agents: setup agents  ## real coding agents against a scripted model, offline
	@$(BIN)/python -m pytest -m agents -n 2 --dist worksteal $(OPTIONS) tests/agents

test-frameworks: setup  ## LangGraph, the OpenAI Agents SDK and the Claude Agent SDK, offline, against a scripted model
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group frameworks
	@$(BIN)/python -m pytest -m frameworks -n 2 --dist worksteal tests/frameworks

test-clients: setup  ## clients that openapi-python-client and openapi-typescript make, compiled and run (needs PyPI and npm)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group clients
	@$(BIN)/python -m pytest -m clients -p no:xdist tests/clients

cost: setup agents  ## what coord adds to an edit, a command and the conversation of a real agent (AGENTS=claude)
	@$(BIN)/python -m tests.agents.cost $(firstword $(AGENTS) claude)

battery: setup agents  ## attack what others hold, and do ordinary work, by real coding agents; keep what comes out
	@COORD_TEST_BATTERY_WRITE=1 $(BIN)/python -m pytest -m agents -n 2 --dist worksteal tests/agents/test_battery.py
	@$(BIN)/python -m generators --write

regions-corpus: setup  ## divide every file of this interpreter into regions; Python's held against its own parser
	@$(BIN)/python -m tests.regions.full_corpus $(SLICE)

bench-growth: setup  ## how dispatch and the conflict check grow
	@$(BENCH) dispatch --tasks 100,1000,10000 --held 0,100 && $(BENCH) overlap --leases 1000,10000,100000

bench: setup     ## locks, hook, session, dispatch and overlap, as ratios in one run
	@$(BENCH) locks && $(BENCH) hook && $(BENCH) session && $(BENCH) dispatch && $(BENCH) overlap

REV ?= b1912ff
bench-against: setup  ## every benchmark that both have, here and at REV, in turn in one run (OPTIONS="--rounds 5 --only locks")
	@$(BIN)/python -P scripts/bench_against.py $(REV) $(OPTIONS)

screenshot: setup  ## draw the picture of `coord status` in the documents
	@$(BENCH) screenshot

.PHONY: recording pictures site
pictures: setup web ## take the pictures of the browser page in the README anew (Chromium: CHROMIUM=path)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group web
	@$(BIN)/python -P scripts/page_pictures.py

recording: setup ## record two agents that want one file: the animated picture in the README
	@$(BENCH) recording

site: setup      ## build the documents as a site (.site/), without a warning, and check its links
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@$(BIN)/python scripts/site.py

clean:           ## remove what was made
	rm -rf $(VENV) .site mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

merge-corpus: setup  ## merge two releases of real packages, dealt to two sides, and judge what comes out (OPTIONS=-v)
	@$(BENCH) merge-corpus $(OPTIONS)

NPM ?= npm
.PHONY: web web-dev web-types web-check web-frames test-web
web: web/node_modules/.ready  ## build the browser page into coordinator/web (needs npm)
	@cd web && $(NPM) run --silent build
web/node_modules/.ready: web/package.json web/package-lock.json
	@command -v $(NPM) >/dev/null || { echo "the page is built by npm: install Node 20 or newer"; exit 1; }
	@cd web && $(NPM) ci --silent --no-fund --no-audit
	@touch $@

web-dev: setup web/node_modules/.ready  ## serve the page with reload, against this repository's coordinator (REPO=path: another's)
	@$(BIN)/python -P scripts/page_dev.py $(REPO)

web-types: setup web/node_modules/.ready  ## write the page's types again, from the coordinator's description
	@$(BIN)/python -P scripts/page_types.py

web-check: setup web/node_modules/.ready  ## the page's types are fresh and hold
	@$(BIN)/python -P scripts/page_types.py --check
	@cd web && $(NPM) run --silent check

web-frames: setup web  ## what a Chromium reports of the page while 200 events a second stream in: dropped frames, long tasks
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group web
	@$(BIN)/python -m pytest -q -s -m web -p no:xdist tests/web/test_crowded.py

test-web: setup web  ## the page in a real Chromium, over a real coordinator (CHROMIUM=path; Debian: apt-get install chromium fonts-dejavu-core)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group web
	@$(BIN)/python -m pytest -m web -p no:xdist $(OPTIONS) tests/web --ignore=tests/web/test_pictures.py

.PHONY: test-pictures
test-pictures: setup web  ## hold each screen of the page against its kept picture (COORD_TEST_WRITE=1: keep them anew)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group web
	@$(BIN)/python -m pytest -m web -p no:xdist $(OPTIONS) tests/web/test_pictures.py

.PHONY: merge-branches
merge-branches: setup  ## merge the older and the newer line of real packages (OPTIONS="-v --only django")
	@$(BENCH) merge-branches $(OPTIONS)

.PHONY: meaning-oracle
meaning-oracle: setup  ## hundreds of changed interfaces in real packages: who breaks, by coord and by mypy (ORACLE="--seed 2 --show")
	@$(BENCH) meaning-oracle $(ORACLE)

.PHONY: meaning-oracle-typescript
meaning-oracle-typescript: setup  ## the same for TypeScript, by its own compiler (ORACLE="--changes 100 --show"; needs npm)
	@$(BENCH) meaning-oracle-typescript $(ORACLE)

merge-history: setup  ## merge again what was merged in a git repository (REPO=path)
	@$(BENCH) merge-history -v $(REPO)

.PHONY: signals-simulation
signals-simulation: setup  ## what hints do to a crowd of agents, in virtual time over the real service (SIGNALS="--seeds 3")
	@$(BENCH) signals $(SIGNALS)
