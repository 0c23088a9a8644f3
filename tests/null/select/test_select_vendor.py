"""How a call fails that nothing can serve."""

from dataclasses import replace

import pytest
from select_cases import POTRF, SM_90, Vendor, call, op_spec

from batchlas._runtime.settings import scoped_env
from batchlas._select import no_vendor, run
from batchlas._select.testing import set_builtin_tables
from batchlas.exceptions import NoRouteError

NO_VENDOR = replace(SM_90, has_vendor=False)


def test_the_error_names_op_backend_dtype_and_library():
    with pytest.raises(NoRouteError) as error:
        no_vendor(POTRF, call(), NO_VENDOR)
    assert str(error.value) == (
        "potrf: no kernel for float64 on the cupy backend (sm_90), and the vendor "
        "library (lapack) is not available: "
        "Call(dtype='float64', uplo='L', n=8, batch=1024)"
    )


def test_a_library_that_is_there_but_cannot_serve():
    nobody = op_spec(can_run=lambda _choice, _call, _device: False)
    set_builtin_tables({})
    with pytest.raises(NoRouteError, match=r"\(lapack\) cannot serve it either"):
        run(nobody, call(), SM_90, lambda choice: choice)


def test_an_op_that_stands_on_a_library_alone_fails_without_it():
    vendor_only = op_spec(candidates=lambda _dtype, _kind: (Vendor(),))
    set_builtin_tables({})
    assert run(vendor_only, call(), SM_90, lambda choice: choice) == Vendor()
    with (
        scoped_env(BATCHLAS_NO_VENDOR="1"),
        pytest.raises(NoRouteError, match="BATCHLAS_NO_VENDOR hides"),
    ):
        run(vendor_only, call(), SM_90, lambda choice: choice)
