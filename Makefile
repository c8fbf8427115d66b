# Every target works on a machine that has Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Most of a test's time is spent waiting, so three at once keep two cores busy.
JOBS ?= 3
# Of each kind of effect at each point.
TRIALS ?= 100
READY := $(VENV)/.ready

.PHONY: demo test check lint types rooms wheel storm crash crash-steps bench inbox-load screenshots histories lock clean
.DEFAULT_GOAL := test

# The lock is whole: names, versions and hashes, and pip has nothing to add to it. Where the files come from is its configuration.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Gatewright needs Python 3.11 or newer; set PYTHON=python3.12, say.") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip check --disable-pip-version-check
	touch $(READY)

demo: $(READY) ## run the dataset release on the bundled sample, from an embedded Temporal server to a Parquet file
	$(BIN)/gatewright demo

test: $(READY) ## every test, ten minutes on two cores; ARGS="tests/protocol" runs a part, JOBS=0 one after the other
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: lint types rooms wheel ## what a machine can see without running a pipeline

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

rooms: $(READY) ## imports point downwards only
	$(BIN)/lint-imports

wheel: $(READY) ## the wheel is the folder gatewright/ and nothing else
	$(BIN)/python -m pytest -q -p no:randomly tests/test_wheel.py --build-wheel

storm: $(READY) ## 2,000 hostile messages against paused runs; figures in docs/storm.md
	$(BIN)/python -m tests.storm --messages 2000

crash: $(READY) ## kill and stop effects at every point, 100 times each, on both databases: hours; TRIALS=5 is quicker; figures in docs/effects-crash.md
	$(BIN)/python -m tests.effects_crash --trials $(TRIALS) --report data/effects-crash.md $(ARGS)

crash-steps: $(READY) ## kill -9 of the worker in every step and at every gate
	$(BIN)/python -m pytest tests/crash --full-crash

bench: $(READY) ## answers timed beside bare Temporal, temporalio-google-adk and ADK; ARGS=--quick for under two minutes
	$(BIN)/python -m bench.answers $(ARGS)

inbox-load: $(READY) ## the inbox with 50 open pages and 20 answers a second, for a minute; figures in docs/inbox-load.md
	$(BIN)/python -m bench.inbox $(ARGS)

screenshots: $(READY) ## the inbox, and ADK's own UI at our gates, for the documentation (needs Chromium)
	mkdir -p docs/images
	GATEWRIGHT_SCREENSHOTS=docs/images $(BIN)/python -m pytest -p no:randomly tests/server/test_ui.py tests/server/inbox/test_browser.py

histories: $(READY) ## record the histories under tests/histories anew (a protocol change)
	$(BIN)/python -m tests.histories.record

lock: ## compile both locks, for development and for the image, from pyproject.toml (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--extra dev pyproject.toml -o requirements.lock
	echo 'hatchling>=1.27' | uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --no-annotate --extra postgres --extra cli --extra server --extra app --constraint requirements.lock \
		pyproject.toml - -o requirements-run.lock

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
