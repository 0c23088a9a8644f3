"""Guards of scratch memory, of who may use it, and of the host's BLAS."""

from __future__ import annotations

from mutation import Mutation

WORKSPACE = "null/test_workspace.py::test_"
HEALTH = "host/test_health.py::test_"
OUT = "device/test_out.py::test_"


def _mutation(guards, file, old, new, *tests):
    return Mutation(guards, f"_runtime/{file}.py", old, new, tests)


MUTATIONS = (
    _mutation(
        "an arena belongs to one thread",
        "workspace",
        "        if threading.get_ident() != self._owner:\n            message",
        "        if False:\n            message",
        WORKSPACE + "another_thread_may_not_borrow_or_trim",
    ),
    _mutation(
        "an arena changes hands without leases",
        "workspace",
        '        if self.live:\n            message = f"the arena cannot change',
        '        if False:\n            message = f"the arena cannot change',
        WORKSPACE + "hand_over_waits_for_the_leases",
    ),
    _mutation(
        "what is lent is not trimmed",
        "workspace",
        "        if self._loans:\n            message",
        "        if False:\n            message",
        WORKSPACE + "trim_refuses_while_a_lease_is_out_and_says_which",
    ),
    _mutation(
        "memory is freed after the work on it",
        "workspace",
        "        _settle(self.memory)\n        self._blocks.clear()",
        "        self._blocks.clear()",
        WORKSPACE + "trim_drains_before_it_frees",
    ),
    _mutation(
        "what comes back out of order waits",
        "workspace",
        "        if not self.memory.is_in_order:\n            _settle(self.memory)\n",
        "",
        WORKSPACE + "out_of_order_queues_are_drained_by_what_reclaims",
    ),
    _mutation(
        "a loan fits its block",
        "workspace",
        "if start + nbytes <= self._blocks[index][1]:",
        "if start <= self._blocks[index][1]:",
        WORKSPACE + "a_live_lease_keeps_its_address_when_a_block_is_opened",
    ),
    _mutation(
        "much scratch is not kept",
        "workspace",
        "if not self._loans and self.held_bytes > MOST_KEPT_BYTES:",
        "if False:",
        WORKSPACE + "much_memory_is_not_kept",
    ),
    _mutation(
        "few queues keep scratch",
        "workspace",
        "        _drop_idle(arenas)\n",
        "        pass\n",
        WORKSPACE + "few_queues_are_kept",
    ),
    _mutation(
        "a layout takes all that it measured",
        "lease",
        "        if self.nbytes != self._limit:\n",
        "        if False:\n",
        WORKSPACE + "a_layout_that_changes_between_measuring_and_use_is_refused",
    ),
    _mutation(
        "arrays end with their lease",
        "lease",
        "        if self._loan is None or self._arrays is None:\n",
        "        if False:\n",
        WORKSPACE + "release_is_idempotent_and_arrays_end_with_it",
    ),
    _mutation(
        "receivers lie apart",
        "receive",
        "if extents[name].may_overlap(extents[other]):",
        "if False:",
        OUT + "memory_for_two_results_is_refused",
    ),
    _mutation(
        "a receiver does not share the stack's memory",
        "receive",
        '(memory.may_overlap(stack), "overlaps the stack, which is never written"),',
        "",
        OUT + "the_stack_s_own_memory_is_refused",
    ),
    _mutation(
        "a wrong BLAS is found",
        "health",
        "if not error <= 4 * n * n * np.finfo(np.float64).eps:",
        "if False and not error:",
        HEALTH + "a_wrong_product_is_found_at_every_size",
    ),
    _mutation(
        "a wrong BLAS can be an error",
        "health",
        '    if mode == "error":\n',
        "    if False:\n",
        HEALTH + "error_refuses_every_call",
    ),
)
