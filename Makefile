# Two commands matter: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 5000
DEMO   ?=
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.medtest-installed
# Tests run over all cores; one worker a file, since tests of a file share what they made.
PYTEST ?= $(BIN)/python -m pytest -q -n auto --dist loadfile

.PHONY: help demo test slow lint ui bench install clean
help:
	@echo "make demo   set up, run suite polyp_seg on two bundled networks, print the EFR table and where the report lies"
	@echo "make test   set up and run the fast tests"
	@echo "make slow   run the slow tests          make lint   ruff and mypy"
	@echo "make ui     open the MLflow UI          make bench  print every speed and memory figure"

# One resolution for torch, torchvision and all others; the lock holds hashes and no address of a package index.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else "medtest needs Python 3.11-3.13, found %d.%d; try: make PYTHON=python3.11 $(MAKECMDGOALS)" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $(STAMP)

install: $(STAMP)

# Exit code 1 of run.py says that a gate is not held: a finding, not a failure of the demo.
demo: $(STAMP)
	$(BIN)/python run.py suite=polyp_seg $(DEMO); code=$$?; [ $$code -le 1 ]

test: $(STAMP)
	$(PYTEST)

slow: $(STAMP)
	$(PYTEST) -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ui: $(STAMP)
	$(BIN)/medtest ui --port $(PORT)

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
