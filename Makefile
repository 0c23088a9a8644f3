# Every target builds the environment that it needs, once.
#
#   make demo         the main job on a real photograph
#   make test         all tests, in both environments (no GPU needed)
#   make test-slow    the slow tier too
#   make lint         formatter, linter and type checker
#   make docs-check   regenerate what is generated
#   make clean        remove the environments and what was built

PYTHON ?= python3
VENV := .venv
DPEX := .venv-dpex
PIP_FLAGS := --quiet --disable-pip-version-check
PYTEST := -m pytest -q

.PHONY: demo test test-main test-dpex test-slow lint format inventory clean

demo: $(VENV)/.ready
	$(VENV)/bin/python examples/demo.py

test: test-main test-dpex

test-main: $(VENV)/.ready
	$(VENV)/bin/python $(PYTEST) -m "not slow" tests

# numba-dpex works with one old set of releases only, whose wheels carry broken run paths.
# It takes seconds to compile a kernel, so what is not about it runs by OpenCL there.
DPEX_PYTEST := LD_LIBRARY_PATH=$(CURDIR)/$(DPEX)/lib $(DPEX)/bin/python $(PYTEST) -m "not slow"
DPEX_TESTS := tests/device/test_lane_dpex.py tests/device/test_syev_dpex.py \
	tests/device/test_svd_dpex.py tests/device/kernels

test-dpex: $(DPEX)/.ready
	$(DPEX_PYTEST) $(DPEX_TESTS)
	BATCHLAS_SYCL_RENDERER=opencl $(DPEX_PYTEST) tests/device $(DPEX_TESTS:%=--ignore=%)

test-slow: $(VENV)/.ready
	$(VENV)/bin/python $(PYTEST) tests

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
	$(DPEX)/bin/python -m pip install $(PIP_FLAGS) -e . hypothesis pytest pytest-timeout
	touch $@

clean:
	rm -rf $(VENV) $(DPEX) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
