# make build   everything into .venv; the command is .venv/bin/addrtracker
# make run     build, then the daemon in the foreground
# make test    all checks and tests (those in network namespaces need root or sudo)
# make lint    ruff, mypy, clang-format, compiler warnings
# make fuzz    the libFuzzer harnesses, FUZZ_SECONDS each
# make soak    N random kernel operations in a network namespace
# make bench   the figures of benchmarks/
# make dist    wheel and sdist, each installed once and tried
# make clean   removes what was built, .venv included

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

FUZZ_SECONDS ?= 60
N ?= 20000
PYTEST_ARGS ?=

PYTHON := .venv/bin/python
ENGINE := tracker/_engine.abi3.so
C_FILES := $(wildcard $(foreach d,native bpf tests/fuzz tests/unit benchmarks,$(d)/*.c $(d)/*.h))
ENGINE_INPUTS := CMakeLists.txt tools/build-engine \
	$(wildcard native/*.c native/*.h native/*.cdef native/*.py bpf/*.h)

.PHONY: build run test lint fuzz sanitize soak bench dist clean
.PHONY: build-packages test-packages link test-setup

build: link $(ENGINE)

run: build
	exec .venv/bin/addrtracker run

# What is missing is looked up each time; it takes a fraction of a second.
build-packages: | .build
	@tools/install-packages build

test-packages: | build-packages
	@tools/install-packages test

.build:
	@mkdir -p $@

.venv/bin/python: | build-packages
	tools/venv

.venv/.build: requirements/build.txt .venv/bin/python
	tools/pip-install $<
	@touch $@

.venv/.test: requirements/test.txt .venv/.build | test-packages
	tools/pip-install $<
	@touch $@

link: .venv/.build | build-packages
	@$(PYTHON) tools/link-checkout

$(ENGINE): $(ENGINE_INPUTS) .venv/.build | build-packages
	tools/build-engine

# Programs that only tests need are unpacked here, never installed.
.build/programs/.complete: tools/unpack-programs | test-packages .build
	tools/unpack-programs

test-setup: build .venv/.test .build/programs/.complete

test: test-setup lint dist fuzz sanitize soak
	tools/as-root $(PYTHON) -m pytest $(PYTEST_ARGS)

lint: build .venv/.test
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q --no-header tests/unit/test_import_direction.py
	.venv/bin/clang-format --dry-run -Werror $(C_FILES)
	tools/compile-check

fuzz: build .venv/.test
	tools/fuzz $(FUZZ_SECONDS)

sanitize: test-setup
	tools/sanitize

soak: test-setup
	tools/as-root $(PYTHON) -m tests.soak --operations $(N) $(if $(SEED),--seed $(SEED))

bench: test-setup
	tools/as-root $(PYTHON) -m pytest benchmarks $(PYTEST_ARGS)

dist: build
	tools/dist

clean:
	rm -rf .build build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	rm -f $(ENGINE)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
