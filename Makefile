# The virtual environment is created on first use and updated when the pins change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet

.DEFAULT_GOAL := help
.PHONY: help run install test test-all engines check bench profile cost torture recipes screenshots build lock clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.run ## start the service on http://127.0.0.1:8080 with its store in data/
	@exec $(BIN)/inbox quickstart

install: $(VENV)/.dev ## create .venv with the development requirements

# Options for pytest, such as `make test PYTEST='-k keys'`.
PYTEST ?=
# Tests wait a third of their time for processes and timeouts, so there are more workers than cores.
WORKERS = $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 2) * 3 // 2)')
RUN_TESTS = $(BIN)/pytest -n $(WORKERS) --dist worksteal

# A missing engine is no error: pytest skips the tests that need it, and its summary names it.
test: $(VENV)/.dev ## run the quick suite, in minutes: every promise, on SQLite and DynamoDB Local
	@$(BIN)/python -m tests.engines dynamodb_local || true
	$(RUN_TESTS) -m 'not slow' $(PYTEST)

test-all: engines ## run all other tests: browser, Zapier's code, emulated AWS, fuzzing, recipes, proxies, crashes
	$(RUN_TESTS) -m slow $(PYTEST)

engines: $(VENV)/.dev ## install the programs that tests use: DynamoDB Local, a browser, Zapier's code, an AWS emulator
	@$(BIN)/python -m tests.engines dynamodb_local zapier programs browser cloud || true

TEMPLATES := $(wildcard deploy/cloudformation/*.yaml)
# Budgets and App Runner are not available in every region.
NOT_EVERYWHERE := %/bill.yaml %/service-apprunner.yaml
check: $(VENV)/.dev ## check lint, format, types, import rules, templates, Dockerfile, and vulnerabilities of pinned packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --scripts-are-modules deploy/smoke deploy/stack
	$(BIN)/lint-imports
	$(BIN)/cfn-lint $(TEMPLATES)
	$(BIN)/cfn-lint --regions af-south-1 eu-central-1 -- $(filter-out $(NOT_EVERYWHERE), $(TEMPLATES))
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive inbox authorizer deploy deploy/smoke deploy/stack wsgi.py
	$(BIN)/hadolint Dockerfile
	$(BIN)/pip-audit --require-hashes --disable-pip --progress-spinner off --format json \
		-r requirements.txt -r requirements-dev.txt -r bench/requirements.txt 2>&1 | $(BIN)/python deploy/dependency_audit.py

# The reference is gunicorn's threaded worker with its C parser. The parser has no wheel for Linux, so pip needs a C compiler.
bench: engines ## measure ratios against references in the same run, and compare them with goals
	@$(PIP) --require-hashes -r bench/requirements.txt
	$(BIN)/python -m bench

profile: $(VENV)/.dev ## profile POST /events and polls; py-spy needs root
	$(BIN)/python -m bench.profile

cost: $(VENV)/.dev ## count the DynamoDB units of an event, and write docs/explanation/cost.md
	$(BIN)/python -m bench.cost

# Not in parallel: each test uses the whole machine.
torture: engines ## run the crash, fault and concurrency tests at full length, and a soak test
	$(BIN)/pytest --torture --require-engines --ignore tests/torture/test_soak.py tests/torture tests/contract/test_state_machine.py
	$(BIN)/pytest --torture tests/torture/test_soak.py

recipes: engines ## run the recipes in docs/how-to/recipes, also in a real Node-RED, which is installed first
	@$(BIN)/python -m tests.engines node_red
	$(BIN)/pytest --node-red --require-engines tests/recipes

screenshots: $(VENV)/.dev ## take the console's screenshots in docs/images again
	@$(BIN)/python -m tests.engines browser
	$(BIN)/python -m tests.browser.screenshots

build: ## build dist/authorizer.zip, for a Lambda behind API Gateway
	@$(PYTHON) deploy/authorizer_zip.py dist/authorizer.zip

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header
lock: $(VENV)/.dev ## compile the pinned requirements files from pyproject.toml
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --extra dev -c requirements.txt -o requirements-dev.txt
	echo gunicorn_h1c | $(COMPILE) - -o bench/requirements.txt
	echo awscli | $(COMPILE) - -o tests/engines/pins/awscli.txt
	echo checkov | $(COMPILE) - -o tests/engines/pins/checkov.txt
	printf 'boto3\nministack>=1.5.33\n' | $(COMPILE) - -o tests/engines/pins/ministack.txt

clean: ## remove everything generated, except data/
	rm -rf $(VENV) build dist zapier/node_modules *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Polling Inbox needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating $(VENV) …" >&2
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.run: requirements.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing the pinned requirements …" >&2
	@$(PIP) --require-hashes -r requirements.txt
	@$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	@echo "Installing the development requirements …" >&2
	@$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@
