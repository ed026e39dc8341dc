# make build   everything into .venv; the command is .venv/bin/addrtracker
# make run     build, then the daemon in the foreground
# make test    all checks and tests (those in network namespaces need root or sudo)
# make lint    ruff, mypy, clang-format, compiler warnings
# make fuzz    the libFuzzer harnesses, FUZZ_SECONDS each
# make test-kernels   what only stock kernels can do, in guests (KERNELS="6.1 6.12")
# make soak    N random kernel operations in a network namespace
# make bench   the figures of benchmarks/ and how costs grow
# make budget  instructions and allocations of the hot paths, held to benchmarks/budget/*.json
# make performance    writes docs/performance.md from what the last runs printed
# make dist    wheel and sdist, each installed once and tried
# make clean   removes what was built, .venv included

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

FUZZ_SECONDS ?= 60
N ?= 20000
KERNELS ?= 6.1
PYTEST_ARGS ?=

PYTHON := .venv/bin/python
ENGINE := tracker/_engine.abi3.so
C_FILES := $(wildcard $(foreach d,native native/loader bpf tests/fuzz tests/unit benchmarks \
	benchmarks/budget,$(d)/*.c $(d)/*.h))
ENGINE_INPUTS := tools/build-engine .build/toolchain \
	$(wildcard $(foreach d,. native native/loader bpf,$(d)/CMakeLists.txt) \
	$(foreach d,native native/loader,$(foreach e,c h cdef py,$(d)/*.$(e))) bpf/*.c bpf/*.h)

.PHONY: build run test lint fuzz sanitize soak bench budget performance dist clean test-kernels
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

.venv/.bench: requirements/bench.txt .venv/.test
	tools/pip-install $<
	@touch $@

link: .venv/.build | build-packages
	@$(PYTHON) tools/link-checkout

# Written only when it differs: a clang or a libbpf that came since is used.
.build/toolchain: build-packages | .build
	@tools/note-toolchain $@

# With it come tracker/_bpf.abi3.so and tracker/bpf.
$(ENGINE): $(ENGINE_INPUTS) .venv/.build | build-packages
	tools/build-engine

# Programs that only tests need are unpacked here, never installed.
.build/programs/.complete: tools/unpack-programs | test-packages .build
	tools/unpack-programs

# Headers for BCC, where those of the running kernel are missing.
.build/headers/.complete: tools/unpack-headers | test-packages .build
	tools/unpack-headers

test-setup: build .venv/.test .build/programs/.complete .build/headers/.complete

test: test-setup lint budget dist fuzz sanitize soak test-kernels
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
	tools/as-root $(PYTHON) -m tests.soak --operations $$(($(N) / 4)) --source bpf \
		$(if $(SEED),--seed $(SEED))

test-kernels: test-setup
	@for kernel in $(KERNELS); do tools/guest/test $$kernel; done

# Programs of benchmarks/: the C engine and its parser alone, compiled as the extension is.
$(addprefix .build/,engine_bench parse_bench): .build/%: benchmarks/%.c benchmarks/engine_host.h \
		$(wildcard native/*.c native/*.h) bpf/records.h | .build
	gcc -std=gnu11 -O2 -Inative -Ibpf -o $@ $< $(filter native/%.c,$^) -lpthread

bench: test-setup .venv/.bench
	tools/as-root $(PYTHON) -m pytest benchmarks $(PYTEST_ARGS)

# What takes more on purpose is kept with UPDATE=1.
budget: test-setup
	tools/as-root $(PYTHON) -m benchmarks.budget $(if $(UPDATE),--update)

performance: test-setup
	$(PYTHON) -m benchmarks.document

dist: build
	tools/dist

clean:
	rm -rf .build build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	rm -rf $(ENGINE) tracker/_bpf.abi3.so tracker/bpf
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
