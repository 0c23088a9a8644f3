"""Guards of the short way of small stacks, of memory used again, and of turns."""

from __future__ import annotations

from mutation import mutation

PROCESSES = "host/test_processes.py::"
QUICK = "host/test_quick.py::"
REUSE = "null/test_reuse.py::"
USM = "device/test_usm.py::"
TURNS = "device/test_turns.py::"


MUTATIONS = (
    mutation(
        "the short way takes what is finite",
        "_vendor/lapack_quick.py",
        'if not _is_finite(a.ravel("K")):',
        "if False:",
        QUICK + "test_lapack_sees_no_matrix_that_is_not_finite",
    ),
    mutation(
        "the short way takes what does not fail",
        "_vendor/lapack_quick.py",
        "        if not _is_finite(told):\n            return None\n",
        "",
        QUICK + "test_failures_are_told_as_ever",
    ),
    mutation(
        "the short way heeds pins",
        "_select/decision.py",
        "store.generation(), pins.scoped_pins()",
        "store.generation()",
        QUICK + "test_pins_trace_and_settings_are_heeded",
    ),
    mutation(
        "the short way gives way to a trace",
        "_select/decision.py",
        "if now.select_trace or now.coverage_out is not None:",
        "if False:",
        QUICK + "test_pins_trace_and_settings_are_heeded",
    ),
    mutation(
        "the short way follows the settings",
        "_ops/quick.py",
        "key = (a.dtype, a.shape, option, standing)",
        "key = (a.dtype, a.shape, option)",
        QUICK + "test_pins_trace_and_settings_are_heeded",
    ),
    mutation(
        "a forked child forgets the short way",
        "_ops/quick.py",
        "in_forked_child(self.forget)",
        "pass",
        PROCESSES + "test_a_forked_child_says_once_that_it_has_no_kernels",
    ),
    mutation(
        "kept memory fits what is asked for",
        "_runtime/reuse.py",
        "if count <= self._blocks[at].size <= SLACK * count:",
        "if count <= self._blocks[at].size:",
        REUSE + "test_much_larger_memory_is_not_handed_out",
    ),
    mutation(
        "kept memory is bounded",
        "_runtime/reuse.py",
        "while sum(each.size for each in self._blocks) > MOST_KEPT_BYTES:",
        "while False:",
        REUSE + "test_no_more_than_the_limit_is_kept",
    ),
    mutation(
        "memory is lent once",
        "_runtime/reuse.py",
        "return self._blocks.pop(at)",
        "return self._blocks[at]",
        REUSE + "test_kept_memory_is_handed_out_once",
    ),
    mutation(
        "USM memory stays with its owners",
        "_runtime/usm.py",
        "and _count(block) == block.owners\n",
        "\n",
        USM + "test_memory_stays_with_whoever_owns_it",
    ),
    mutation(
        "USM memory stays on its queue",
        "_runtime/usm.py",
        "and block.place == place\n",
        "\n",
        USM + "test_memory_is_not_handed_to_another_queue_or_kind",
    ),
    mutation(
        "USM memory without a count is not kept",
        "_runtime/usm.py",
        "if _count(block) == block.owners + 1:",
        "if True:",
        USM + "test_memory_that_is_not_watched_is_the_callers_alone",
    ),
    mutation(
        "few blocks of USM memory are watched",
        "_runtime/usm.py",
        "len(self.blocks) > MOST_WATCHED\n            or ",
        "",
        USM + "test_no_more_blocks_than_the_limit_are_kept",
    ),
    mutation(
        "calls on dpnp arrays take turns",
        "_runtime/sycl.py",
        "    with in_turn:\n        try:\n",
        "    if True:\n        try:\n",
        TURNS + "test_one_thread_at_a_time_is_in_the_runtime",
    ),
    mutation(
        "a turn ends with nothing pending",
        "_runtime/sycl.py",
        "            if queue.sycl_device.is_cpu:\n                queue.wait()\n",
        "            pass\n",
        TURNS + "test_nothing_is_pending_when_a_call_ends",
    ),
    mutation(
        "launches on NumPy arrays take turns",
        "_kernels/compile.py",
        "    with in_turn:\n        if local is None:\n",
        "    if True:\n        if local is None:\n",
        TURNS + "test_one_thread_at_a_time_is_in_the_runtime",
    ),
    mutation(
        "waits for scratch take turns",
        "_backends/dpnp.py",
        "        with in_turn:\n            self._queue.wait()\n",
        "        self._queue.wait()\n",
        TURNS + "test_one_thread_at_a_time_is_in_the_runtime",
    ),
    mutation(
        "LAPACK needs no turn",
        "_backends/numpy.py",
        "    return _nothing\n",
        "    from batchlas._runtime.sycl import in_turn\n\n    return in_turn\n",
        TURNS + "test_lapack_is_not_held_up_by_calls_on_dpnp_arrays",
    ),
)
