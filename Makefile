# The commands of the project. `make help` lists them.

PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# What the tests drive but do not import has environments of its own: the published Durable Workflow client, what
# makes clients out of our description, and agents of both generations of the published A2A SDK.
APART := $(patsubst %,.venv-%/installed.txt,contract generated agents agents03)
BENCH_INSTALLED := $(VENV)/.bench-installed
# How many times more examples the property tests draw in the full run.
EFFORT ?= 10
# The browser of the full run gets its answers late, drawn from this number: tests/ui/slowness.py.
LATE ?= $(shell date +%s)
# A third of the time tests wait, for deadlines and for other processes: one worker more than there are processors.
WORKERS ?= $(shell expr $$($(PY) -c 'import os; print(len(os.sched_getaffinity(0)))') + 1)
# Rooms of the shell with their floors in percent, a little below what is measured in the tests' own process; the
# pure rooms have theirs in pyproject.toml.
FLOORS := store:92 operations:94 api:95

# Where bytecode is not kept, each of the hundreds of processes that the tests start compiles the whole house again,
# and each worker every test.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install ui app run test test-full check bench lock audit sbom clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) $(APART) app ## set up .venv and build the browser interface; nothing to do while what they are made from is unchanged

# The stamp is written last, so an install that broke off is done again. What builds packages is checked and installed
# first: an isolated build would fetch it without a hash.
$(INSTALLED): pyproject.toml release/build.txt release/development.txt
	@$(PY) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	$(PY) -m venv $(VENV)
	$(PIP) --no-deps --require-hashes --requirement release/build.txt
	$(PIP) --no-deps --no-build-isolation --require-hashes --requirement release/development.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# Without a registry there is nothing to make: the script says so, and the tests are skipped with that reason.
.venv-%/installed.txt: constraints-%.txt tests/environments.py $(INSTALLED)
	@$(BIN)/python tests/environments.py $*

ui: $(INSTALLED) ## build the browser interface into src/horarium/static, with Node from a wheel where the machine has none
	@$(BIN)/python ui/scripts/app_build.py

# The same, but without a registry the script says what is missing, and the service and its tests do without.
app: $(INSTALLED)
	@$(BIN)/python ui/scripts/app_build.py || test $$? -eq 3

run: install ## start the service with schedules that show what it can do; Ctrl-C stops it
	@$(BIN)/horarium up --demo

check: install ## static checks only: style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

define above-floors
for floor in $(FLOORS); do room=$${floor%:*}; \
	total=$$($(BIN)/coverage report --format total --include "src/horarium/$$room/*" --fail-under "$${floor#*:}") \
	|| failed=1; echo "coverage of $$room: $$total"; done; exit $${failed:-0}
endef

test: check ## everything that must hold before a commit
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not long' --cov
	@$(above-floors)

test-full: check ## the same with the long suites, and with many more examples drawn anew and a browser that is slow
	HORARIUM_TEST_EFFORT=$(EFFORT) HORARIUM_SLOW_BROWSER=$(LATE) $(BIN)/pytest -n $(WORKERS) --dist worksteal --cov
	@$(above-floors)

# One after the other, since they would measure each other. A file without a main is a helper of the others.
bench: $(BENCH_INSTALLED) ## measure; each benchmark prints its figures side by side with the peers' or its targets
	@set -e; for benchmark in $$(grep -l '__main__' benchmarks/*.py); do \
		echo "== $$benchmark"; $(BIN)/python "$$benchmark"; done

$(BENCH_INSTALLED): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

# ── what is shipped ──────────────────────────────────────────────────────────────────────────────────────────────

SUPPLY := .venv-supply/python/bin
HASH := $(SUPPLY)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
COMPILE := $(HASH) --constraint constraints.txt

lock: .venv-supply/installed.txt ## write the hashes of every package that is installed, at the versions of the constraints
	$(COMPILE) pyproject.toml --extra celery --output-file release/runtime.txt
	$(COMPILE) pyproject.toml --extra dev --output-file release/development.txt
	@printf 'hatchling\neditables\nsetuptools\nnodejs-wheel-binaries\n' | $(COMPILE) - --output-file release/build.txt
	@set -e; for pins in constraints-*.txt; do $(HASH) --no-deps $$pins --output-file $$pins; done

audit: .venv-supply/installed.txt ## ask for known advisories against what is shipped; says so where nobody can be asked
	@$(SUPPLY)/python release/audit.py || test $$? -eq 3

sbom: .venv-supply/installed.txt ## write dist/sbom.json: what the image is made of, in CycloneDX
	@mkdir -p dist
	$(SUPPLY)/python -W ignore -m cyclonedx_py requirements release/runtime.txt --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json

clean: ## remove what can be made again
	rm -rf $(VENV) .venv-contract .venv-generated .venv-agents .venv-agents03 .venv-supply .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov dist ui/node_modules ui/.lock ui/src/api/schema.d.ts src/horarium/static
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
