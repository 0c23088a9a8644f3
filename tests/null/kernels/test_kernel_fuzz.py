"""37: any walk of options is refused step by step, or leaves the results alone."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_zoo import call, chol, gram, jac, nested_sums, solve, svd, syrk

from batchlas._kernels.digest import digest
from batchlas._kernels.options import (
    Ok,
    PadTo,
    Refused,
    Split,
    Swap,
    Target,
    TensorCore,
)
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import OPENCL

EXAMPLES = {
    "gram": gram(4, 2, 4),
    "chol": chol(4, 4),
    "masked": chol(2, 4, masked=True),
    "syrk": syrk(2, 4, 4),
    "solve": solve(4, 4, 2),
    "jac": jac(2, 3),
    "svd": svd(2, 4, 3),
    "call": call(4, 4),
    "nested": nested_sums(4, 2, 4),
}
WANT = {name: example.run() for name, example in EXAMPLES.items()}
AXES = st.integers(0, 8)
OPTIONS = st.one_of(
    st.builds(
        Split,
        AXES,
        st.sampled_from([0, 2, 2, 2, 3, 4]),
        st.sampled_from(Target),
        st.booleans(),
    ),
    st.builds(PadTo, AXES, st.integers(2, 6)),
    st.builds(Swap, AXES, AXES),
    st.builds(TensorCore, AXES),
)
ORDERS = st.sampled_from(["forward", "reverse", 1, 2, 3])


@pytest.mark.parametrize("name", EXAMPLES)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(opts=st.lists(OPTIONS, min_size=1, max_size=6), order=ORDERS)
def test_37_walks_of_options(name, opts, order):
    example = EXAMPLES[name]
    k = Scheduler(example.kernel, OPENCL)
    k.convert_loop_to_global()
    done = []
    for opt in opts:
        ast, shape, mark = k.ast(), k.full_shape(), digest(k.ast())
        answer = k.apply_opt(opt)
        if isinstance(answer, Refused):
            assert answer.reason
            assert k.ast() is ast
            assert digest(k.ast()) == mark
            assert k.full_shape() == shape
        else:
            assert isinstance(answer, Ok)
            done.append(opt)
        assert k.applied_opts() == done
    got = example.run(k.get_optimized_ast(), order=order)
    for key, value in WANT[name].items():
        np.testing.assert_allclose(got[key], value, rtol=1e-9, atol=1e-9)


def test_37_most_walks_do_something():
    """The walks above would prove nothing if every option were refused."""
    applied = dict.fromkeys(EXAMPLES, 0)
    for name, example in EXAMPLES.items():
        for at in range(9):
            for target in Target:
                k = Scheduler(example.kernel, OPENCL)
                k.convert_loop_to_global()
                applied[name] += isinstance(k.apply_opt(Split(at, 2, target)), Ok)
    assert min(applied.values()) >= 2
    assert sum(applied.values()) >= 50


def test_37_replay_gives_the_same_kernel():
    example = EXAMPLES["gram"]
    k = Scheduler(example.kernel, OPENCL)
    k.convert_loop_to_global()
    for opt in (Split(0, 2, Target.LOCAL), PadTo(1, 3), Split(4, 0, Target.UPCAST)):
        k.apply_opt(opt)
    asked = example.kernel.with_info(opts_to_apply=tuple(k.applied_opts()))
    from batchlas._kernels.driver import apply_opts

    assert digest(apply_opts(asked, OPENCL)) == digest(k.ast())
