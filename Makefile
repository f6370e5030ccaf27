# Two commands matter: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 5000
DEMO   ?=
SERVER ?= server
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.medtest-installed
TESTS  := $(VENV)/.medtest-tests-installed
# uv, or pip where uv cannot be had. Both check the same hashes of the same locks.
INSTALLER ?= uv
# Tests run over all cores, with half as many workers more (tests/conftest.py), since tests also wait; one worker a file,
# since tests of a file share what they made, and files in the order of tests/conftest.py. A worker's libraries calculate
# on one core.
PYTEST ?= $(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder
# What tests run under, and installs do not: TESTENV="env HOME=… TMPDIR=…".
TESTENV ?=
SLOW   ?= slow
# COVERAGE=1, as in .ci/run, counts lines and branches too and prints a table of rooms.
COVERAGE ?=
COUNTS := .coverage_counts

# Tests start many processes, each of which would compile what it imports: uv installs no compiled code.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test slow s3 lint docs ui server bench install clean
help:
	@echo "make demo   set up, run suite polyp_seg on two bundled networks, print the EFR table and where the report lies"
	@echo "make test   set up and run the fast tests (COVERAGE=1 prints the coverage of each room)"
	@echo "make slow   run all slow tests          make lint   ruff, codespell, import-linter and mypy"
	@echo "make s3     set up an environment with s3fs and a server of moto's, and run the tests of data behind URLs there"
	@echo "make docs   build the documentation into site/, where index.html opens from disk"
	@echo "make ui     open the MLflow UI          make bench  print every speed and memory figure"
	@echo "make server serve MLflow to a team: on PostgreSQL, with passwords, in folder server/ (SERVER=)"

# One lock for users and one for tests, which holds the same versions and more. Neither holds an address of a package
# index: uv and pip ask the one they are set up for. What uv cannot install (an index that pip alone knows), pip tries.
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV      := $(BIN)/uv pip install --quiet --python $(BIN)/python
INSTALL  = $(if $(filter uv,$(INSTALLER)),$(UV) $(1) || { echo "uv could not install; pip tries" >&2; $(PIP) $(1); },$(PIP) $(1))

$(STAMP): requirements.lock requirements-uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else "medtest needs Python 3.11-3.13, found %d.%d; try: make PYTHON=python3.11 $(MAKECMDGOALS)" % v)'
	$(PYTHON) -m venv $(VENV)
	$(if $(filter uv,$(INSTALLER)),$(PIP) --require-hashes -r requirements-uv.lock || true)
	$(call INSTALL,--require-hashes -r requirements.lock)
	$(call INSTALL,--no-deps -e .)
	@touch $(STAMP)

$(TESTS): $(STAMP) requirements-dev.lock
	$(call INSTALL,--require-hashes -r requirements-dev.lock)
	@touch $(TESTS)

install: $(STAMP)

# Exit code 1 of run.py says that a gate failed: a finding, not a failure of the demo.
demo: $(STAMP)
	$(BIN)/python run.py suite=polyp_seg $(DEMO); code=$$?; [ $$code -le 1 ]

test slow: export OMP_NUM_THREADS ?= 1

test: $(TESTS)
	$(if $(COVERAGE),rm -rf $(COUNTS))
	$(TESTENV) $(if $(COVERAGE),COUNT_LINES="$(CURDIR)/$(COUNTS)") $(PYTEST)
	$(if $(COVERAGE),$(BIN)/python scripts/coverage_by_room.py $(COUNTS))

slow: $(TESTS)
	$(TESTENV) $(PYTEST) -m "$(SLOW)"

# s3fs takes an older python-dateutil than the tests' lock has, so that an environment of its own reads from S3.
S3 := $(VENV)-s3
s3: requirements-s3.lock pyproject.toml $(STAMP)
	$(PYTHON) -m venv $(S3)
	$(subst $(BIN)/python,$(S3)/bin/python,$(call INSTALL,--require-hashes -r requirements-s3.lock))
	$(subst $(BIN)/python,$(S3)/bin/python,$(call INSTALL,--no-deps -e .))
	$(TESTENV) $(S3)/bin/python -m pytest -q -m "" tests/suite/test_data_url.py tests/suite/test_data_url_runs.py

lint: $(TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

docs: $(TESTS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

ui: $(STAMP)
	$(BIN)/medtest ui --port $(PORT)

# MLflow for a team, with passwords, on PostgreSQL: its programs come from the system (apt-get install postgresql).
server: $(STAMP)
	$(call INSTALL,-e '.[server]')
	$(BIN)/medtest server --folder $(SERVER) --port $(PORT)

bench: $(TESTS)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(S3) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
