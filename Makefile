# Each target makes what it needs: a virtual environment of its own, with the versions of tools/constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
# The versions that all contributors have.
INSTALL := $(BIN)/pip install -q -c tools/constraints.txt

# Only from the files that have some: to collect all takes half a minute.
TIMED = $(BIN)/python -m pytest -q -m timed $$(grep -rl mark.timed tests --include=test_*.py)

.PHONY: demo test test-cold test-all check docs extras clean

# The whole way for every layer of ResNet-50, on the CPU and for gfx942.
demo: .venv/.demo
	$(BIN)/conv-compiler demo

# Everything that needs no GPU and no patience. Kernels of the last run are executed again, and compiled
# again where sources changed; `make test-cold` compiles all.
test: .venv/.test
	$(BIN)/lit -q tests/lit examples
	$(BIN)/python -m pytest -q -n auto -m "not slow and not device and not timed"
	$(TIMED)

test-cold: .venv/.test
	rm -rf .pytest_cache/d
	$(MAKE) test

# And what takes long or a GPU.
test-all: .venv/.test
	$(BIN)/lit -q tests/lit examples
	$(BIN)/python -m pytest -q -n auto -m "not timed" --hypothesis-profile=explore
	$(TIMED)

check: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages and the API reference as a site, build/site/index.html; a warning is an error.
docs: .venv/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html -d build/doctrees docs build/site

.venv/bin/pip:
	$(PYTHON) -m venv .venv

# What compiles the virtual GPU. In an environment of pip's own each build would start anew.
.venv/.build: .venv/bin/pip pyproject.toml tools/constraints.txt
	$(BIN)/python -c 'import tomllib; \
	  print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "cmake", "ninja")' \
	  | xargs $(INSTALL)
	touch $@

.venv/.demo: .venv/.build
	$(INSTALL) --no-build-isolation -e .
	touch $@

.venv/.test: .venv/.build
	$(INSTALL) --no-build-isolation -e '.[test]'
	touch $@ .venv/.demo

# The packages of an extra alone: installing the extra would compile the package once more.
PACKAGES = $(BIN)/python -c 'import sys, tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  extras = project["optional-dependencies"]; \
  print(*(name for extra in sys.argv[1:] for name in extras[extra]))'

.venv/.docs: .venv/.demo
	$(PACKAGES) docs | xargs $(INSTALL)
	touch $@

# PyTorch, JAX, matplotlib, Dask and Triton, whose tests are skipped where they are not installed.
extras: .venv/.extras

.venv/.extras: .venv/.test
	$(PACKAGES) torch jax plot cluster triton | xargs $(INSTALL)
	touch $@

# What builds and checks the files of a release.
.venv/.dist: .venv/.test
	$(PACKAGES) dist | xargs $(INSTALL)
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
