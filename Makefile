# The commands of the project. `make help` lists them.

PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# Programs that tests run but do not import have separate environments: the published Durable Workflow client, a
# generator of API clients, and agents with both generations of the published A2A SDK.
APART := $(patsubst %,.venv-%/installed.txt,contract generated agents agents03)
BENCH_INSTALLED := $(VENV)/.bench-installed
# Factor of examples that property tests draw in the full run.
EFFORT ?= 10
# Seed of the delays of responses to the browser in the full run: tests/ui/slowness.py.
LATE ?= $(shell date +%s)
# Tests wait for a third of their time, so there is one worker more than processors.
WORKERS ?= $(shell expr $$($(PY) -c 'import os; print(len(os.sched_getaffinity(0)))') + 1)
# Minimum coverage of packages of the shell, in percent, without commands, which tests run in other processes. The pure
# packages have theirs in pyproject.toml.
FLOORS := platform/database:92 platform/http:95 features:92

# Without stored bytecode, each of the hundreds of processes that tests start compiles the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install ui app run test test-full floors check bench bench-compare lock audit sbom clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) $(APART) app ## set up .venv and build the browser interface, if their sources have changed

# The stamp is written last, so an interrupted install is repeated. Build tools are installed first, with hashes: an
# isolated build would fetch them without one.
$(INSTALLED): pyproject.toml release/build.txt release/development.txt
	@$(PY) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	$(PY) -m venv $(VENV)
	$(PIP) --no-deps --require-hashes --requirement release/build.txt
	$(PIP) --no-deps --no-build-isolation --require-hashes --requirement release/development.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# Without a registry the script prints a message, and the tests are skipped with that reason.
.venv-%/installed.txt: constraints-%.txt tests/environments.py $(INSTALLED)
	@$(BIN)/python tests/environments.py $*

ui: $(INSTALLED) ## build the browser interface into src/horarium/static, with Node from a wheel where the machine has none
	@$(BIN)/python ui/scripts/app_build.py

# The same, but a missing registry is not an error: the service and its tests work without the interface.
app: $(INSTALLED)
	@$(BIN)/python ui/scripts/app_build.py || test $$? -eq 3

run: install ## start the service with demo schedules; Ctrl-C stops it
	@$(BIN)/horarium up --demo

check: install ## static checks only: style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A traced line takes two to three times as long, so only the full run measures coverage; CI runs it every night.
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal

test: check ## run all checks and tests that a commit must pass
	$(PYTEST) -m 'not long'

test-full: check ## add the long suites, more random examples, a slow browser and the minimums of coverage
	HORARIUM_TEST_EFFORT=$(EFFORT) HORARIUM_SLOW_BROWSER=$(LATE) $(PYTEST) --cov
	@$(MAKE) --no-print-directory floors

# What `--cov` has measured; the pure packages are compared with their minimum by pytest itself.
floors:
	@for floor in $(FLOORS); do package=$${floor%:*}; \
		total=$$($(BIN)/coverage report --format total --include "src/horarium/$$package/*" --omit "*/*commands.py" --fail-under "$${floor#*:}") \
		|| failed=1; echo "coverage of $$package: $$total"; done; exit $${failed:-0}

# One after the other, because they would disturb each other. A file without a main is a helper module.
bench: $(BENCH_INSTALLED) ## run the benchmarks; each prints its figures next to those of other programs
	@set -e; for benchmark in $$(grep -l '__main__' benchmarks/*.py | grep -v /compare.py); do \
		echo "== $$benchmark"; $(BIN)/python "$$benchmark"; done

bench-compare: $(INSTALLED) ## compare benchmarks with BASE=<commit>; ONLY="herd api" selects, ROUNDS=3 SIZE=1 DIALECT=sqlite
	@$(BIN)/python benchmarks/compare.py "$(BASE)" $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SIZE),--size $(SIZE)) $(if $(DIALECT),--dialect $(DIALECT))

$(BENCH_INSTALLED): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

# ── release ──────────────────────────────────────────────────────────────────────────────────────────────────────

SUPPLY := .venv-supply/python/bin
HASH := $(SUPPLY)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
COMPILE := $(HASH) --constraint constraints.txt

lock: .venv-supply/installed.txt ## write the hashes of all packages, at the versions of the constraints
	$(COMPILE) pyproject.toml --extra celery --output-file release/runtime.txt
	$(COMPILE) pyproject.toml --extra dev --output-file release/development.txt
	@printf 'hatchling\neditables\nsetuptools\nnodejs-wheel-binaries\n' | $(COMPILE) - --output-file release/build.txt
	@set -e; for pins in constraints-*.txt; do $(HASH) --no-deps $$pins --output-file $$pins; done

audit: .venv-supply/installed.txt ## check the shipped packages for known advisories
	@$(SUPPLY)/python release/audit.py || test $$? -eq 3

sbom: .venv-supply/installed.txt ## write dist/sbom.json, the packages of the image in CycloneDX
	@mkdir -p dist
	$(SUPPLY)/python -W ignore -m cyclonedx_py requirements release/runtime.txt --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json

clean: ## remove everything that a build creates
	rm -rf $(VENV) .venv-contract .venv-generated .venv-agents .venv-agents03 .venv-supply .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov dist ui/node_modules ui/.lock ui/src/api/schema.d.ts src/horarium/static
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
