# Every target builds the environment that it needs, once.
#
#   make demo         the main job on a real photograph
#   make test         all tests, in both environments (no GPU needed)
#   make test-slow    the slow tier too: fuzzing at length, every candidate on every call
#   make fuzz         fuzzing alone, 10,000 examples a function
#   make mutants      break each guard once, in a copy, and see the tests notice;
#                     ONLY="words" for those whose name or file holds one of them
#   make soak         changing calls in threads, MINUTES=10, every result and the memory
#                     checked
#   make lint         formatter, linter and type checker
#   make docs-check   regenerate what is generated
#   make clean        remove the environments and what was built

PYTHON ?= python3
VENV := .venv
DPEX := .venv-dpex
PIP_FLAGS := --quiet --disable-pip-version-check
PYTEST := -m pytest -q -n auto

.PHONY: demo test test-main test-dpex test-slow fuzz mutants soak lint format inventory clean

demo: $(VENV)/.ready
	$(VENV)/bin/python examples/demo.py

test: test-main test-dpex

test-main: $(VENV)/.ready
	$(VENV)/bin/python $(PYTEST) -m "not slow" tests

# numba-dpex works with one old set of releases only, whose wheels carry broken run paths.
# It takes seconds to compile a kernel, so what is not about it runs by OpenCL there, but
# for the tests of every kernel by OpenCL, which the other environment has run.
DPEX_PYTEST := LD_LIBRARY_PATH=$(CURDIR)/$(DPEX)/lib $(DPEX)/bin/python $(PYTEST) -m "not slow"
DPEX_TESTS := tests/device/test_lane_dpex.py tests/device/test_syev_dpex.py \
	tests/device/test_svd_dpex.py tests/device/kernels
OPENCL_TESTS := tests/device/test_candidates.py tests/device/test_candidate_workspaces.py \
	tests/device/test_syev_native.py tests/device/test_svd_native.py \
	tests/device/test_cuda_sources.py tests/device/test_memory_edges.py

test-dpex: $(DPEX)/.ready
	$(DPEX_PYTEST) $(DPEX_TESTS)
	BATCHLAS_SYCL_RENDERER=opencl $(DPEX_PYTEST) tests/device $(DPEX_TESTS:%=--ignore=%) \
		$(OPENCL_TESTS:%=--ignore=%)

test-slow: $(VENV)/.ready
	$(VENV)/bin/python $(PYTEST) tests

FUZZ_TESTS := tests/host/test_fuzz_linalg.py tests/host/test_fuzz_texts.py

fuzz: $(VENV)/.ready
	$(VENV)/bin/python $(PYTEST) -m slow $(FUZZ_TESTS)

mutants: $(VENV)/.ready
	$(VENV)/bin/python tests/mutants $(ONLY)

MINUTES ?= 10

soak: $(VENV)/.ready
	nice $(VENV)/bin/python tests/soak.py --minutes $(MINUTES)

lint: $(VENV)/.ready
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

format: $(VENV)/.ready
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

inventory: $(VENV)/.ready
	$(VENV)/bin/python -m batchlas._select.inventory

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) -e '.[sycl,dask,test,demo,lint]'
	touch $@

$(DPEX)/.ready: requirements/numba-dpex.txt pyproject.toml
	$(PYTHON) -m venv $(DPEX)
	$(DPEX)/bin/python -m pip install $(PIP_FLAGS) -r requirements/numba-dpex.txt
	$(DPEX)/bin/python -m pip install $(PIP_FLAGS) -e . hypothesis pytest pytest-timeout pytest-xdist
	touch $@

clean:
	rm -rf $(VENV) $(DPEX) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
