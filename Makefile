# What a contributor needs: `make setup` once, `make check` before every commit.
# CI runs that, and what takes too long to wait for: `make test-long` (all other tests: clusters,
# browsers, the commands of whole pages), `make test-faults` and `make test-without-kernel`.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
# One thread a process: threads of two processes on two cores wait for each other. With bytecode,
# also where the environment is against it: hundreds of processes would compile every module anew.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS)
BIN := $(VENV)/bin
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
endif

# Rooms whose results the kernel changes where there is one.
USE_THE_KERNEL := tests/encoders tests/laws tests/objectives tests/pretraining \
	tests/tasks/embeddings tests/embedding tests/meanings/test_groups.py tests/meanings/test_louvain.py

.PHONY: setup check fix lint types layers spelling test test-long test-faults test-without-kernel reliability mutants screenshots docs lock wheels clean

# Without compiling what most runs never import: that is half of the time that installing takes.
setup:  ## a virtual environment with everything, from a fresh clone
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[all]" \
		--group check --group docs --group build
	-$(BIN)/python -m polyseme.encoders.kernels.build  # makes LSTMs and groups faster; needs a C compiler

check: lint types layers spelling test

lint:
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

types:
	$(BIN)/mypy

layers:
	$(BIN)/lint-imports

spelling:
	$(BIN)/codespell

test:  ## on JOBS processes; let the machine do nothing else meanwhile, as some tests are timed
	$(PYTEST) -m "not slow and not long" --ignore tests/reliability

test-long:  ## the tests that `make test` leaves out as they take long; tests/groups.py lists them
	$(PYTEST) -m "long and not slow" --ignore tests/reliability

test-faults:  ## kills, full disks, damaged and hostile files; their full counts: make reliability
	$(PYTEST) -m "not slow" tests/reliability

test-without-kernel:  ## the tests of models, as where the compiled kernel was never built
	$(PYTEST) -m "not slow and not long" --without-kernel $(USE_THE_KERNEL)

fix:  ## repair what a machine can
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .
	$(BIN)/codespell --write-changes

reliability:  ## the full counts of every failure test; takes long
	$(BIN)/python -m pytest -m slow --timeout 3600

mutants:  ## sixty faults drawn anew each week: do tests notice them? about twenty minutes
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutants.py --jobs $(JOBS)

lock:  ## requirements.lock: what users need, extras too, for every system, each with its hashes
	$(BIN)/python -m pip install --quiet "uv>=0.9"
	$(BIN)/uv pip compile pyproject.toml --quiet --upgrade --all-extras --universal --python-version 3.11 \
		--constraint constraints.txt \
		--generate-hashes --no-emit-index-url --no-annotate \
		--custom-compile-command "make lock" --output-file requirements.lock

wheels:  ## into dist/: with the kernel for this machine, pure, the sources, and packages of data
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	POLYSEME_PURE=1 $(BIN)/python -m build --no-isolation --wheel --outdir dist
	for package in $(dir $(wildcard packages/*/pyproject.toml)); do \
		$(BIN)/python -m build --no-isolation --wheel --outdir dist $$package || exit 1; done

screenshots:  ## docs/images/explorer-*.png, by Chromium; needs the demo texts and models
	$(BIN)/python docs/make_screenshots.py

docs:  ## the site, in site/
	$(BIN)/python docs/make_site.py

clean:
	rm -rf $(VENV) site dist .mypy_cache .ruff_cache .pytest_cache
