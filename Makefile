# make build   everything into .venv; the command is .venv/bin/addrtracker
# make run     build, then the daemon in the foreground
# make test    all checks and tests (those in network namespaces need root or sudo)
# make lint    ruff, mypy, clang-format, compiler warnings
# make fuzz    the libFuzzer harnesses, FUZZ_SECONDS each
# make test-kernels   what only stock kernels can do, in guests (KERNELS="6.1 6.12")
# make soak    N random kernel operations in a network namespace
# make bench   the figures of benchmarks/ and how costs grow
# make bench-peers    the same work done by what a user would pick instead, side by side
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
PEERS_ARGS ?=

PYTHON := .venv/bin/python
ENGINE := tracker/_engine.abi3.so
C_FILES := $(wildcard $(foreach d,native native/loader bpf tests/fuzz tests/unit benchmarks \
	benchmarks/budget benchmarks/peers,$(d)/*.c $(d)/*.h))
BENCHMARKS := $(addprefix .build/,engine_bench parse_bench load floor)
PEERS := $(addprefix .build/,peer-relist peer-poll peer-libnl)
ENGINE_INPUTS := tools/build-engine .build/toolchain \
	$(wildcard $(foreach d,. native native/loader bpf,$(d)/CMakeLists.txt) \
	$(foreach d,native native/loader,$(foreach e,c h cdef py,$(d)/*.$(e))) bpf/*.c bpf/*.h)

.PHONY: build run test lint fuzz sanitize soak bench bench-peers budget performance dist clean test-kernels
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

# Programs that tests need, libnl, and programs to compare with are unpacked here, never installed.
.build/programs/.complete .build/libnl/.complete .build/peers/.complete: .build/%/.complete: \
		tools/unpack-programs | test-packages .build
	tools/unpack-programs $*

# Headers for BCC, where those of the running kernel are missing.
.build/headers/.complete: tools/unpack-headers | test-packages .build
	tools/unpack-headers

test-setup: build .venv/.test .build/programs/.complete .build/headers/.complete

test: test-setup $(BENCHMARKS) $(PEERS) lint budget dist fuzz sanitize soak test-kernels
	tools/as-root $(PYTHON) -m pytest $(PYTEST_ARGS)

lint: build .venv/.test .build/libnl/.complete
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

# Programs of benchmarks/, those that hold the engine compiled as the extension is.
NATIVE := $(wildcard native/*.c)
READER := $(addprefix benchmarks/,sights.c lists.c requests.c)
.build/engine_bench .build/parse_bench: .build/%: benchmarks/%.c $(NATIVE)
.build/load: $(addprefix benchmarks/,load.c loads.c changes.c requests.c)
.build/floor: benchmarks/floor.c $(READER) $(NATIVE)
.build/peer-relist .build/peer-poll .build/peer-libnl: .build/peer-%: benchmarks/peers/%.c $(READER)
.build/peer-libnl: | .build/libnl/.complete
# Of libnl's archive all is taken: its caches are found by constructors.
.build/peer-libnl: PEER = -isystem .build/libnl/root/usr/include/libnl3 -Wl,--whole-archive \
	$(shell find .build/libnl/root -name libnl-route-3.a) -Wl,--no-whole-archive \
	$(shell find .build/libnl/root -name libnl-3.a) -lm
$(BENCHMARKS) $(PEERS): $(wildcard benchmarks/*.h native/*.h) bpf/records.h | .build
	gcc -std=gnu11 -O2 -Ibenchmarks -Inative -Ibpf -o $@ $(filter %.c,$^) $(PEER) -lpthread

bench: test-setup .venv/.bench $(BENCHMARKS)
	tools/as-root $(PYTHON) -m pytest benchmarks $(PYTEST_ARGS)

# What cannot be had is named among the results.
# Whom it cannot get it names in its report.
bench-peers: test-setup .venv/.bench $(BENCHMARKS) .build/peer-relist .build/peer-poll
	@for each in .build/peer-libnl .build/peers/.complete; do \
		$(MAKE) --no-print-directory $$each || true; \
	done
	tools/as-root $(PYTHON) -m benchmarks.peers $(PEERS_ARGS)

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
