"""Guards of arguments, errors, kernels, the tuner and the vendors' routines."""

from __future__ import annotations

from mutation import mutation

ARGUMENTS = "device/test_arguments.py::"
CANDIDATES = "device/test_candidates.py::"
ERRSTATES = "null/test_errstate.py::"
FAILURES = "device/test_failures.py::"
FAMILIES = "host/test_families.py::"
LANE = "device/test_lane.py::"
MEANINGS = "host/test_numpy_meanings.py::"
THREADS = "host/test_threads.py::"
BARRIERS = "null/kernels/test_kernel_barriers.py::"
RULES = "null/kernels/test_kernel_rules.py"
INTERPRET = "null/kernels/test_kernel_interpret.py::"


ARGUMENT_GUARDS = (
    mutation(
        "at least two dimensions",
        "linalg/_arguments.py",
        "if len(shape) < 2:",
        "if False:",
        ARGUMENTS + "test_fewer_than_two_dimensions",
    ),
    mutation(
        "square matrices",
        "linalg/_arguments.py",
        "if square and shape[-1] != shape[-2]:",
        "if False:",
        ARGUMENTS + "test_matrices_that_are_not_square",
    ),
    mutation(
        "foreign byte orders are converted",
        "linalg/_arguments.py",
        " or not dtype.isnative:",
        ":",
        CANDIDATES + "test_layouts_of_numpy",
    ),
    mutation(
        "types that are not computed",
        "linalg/_arguments.py",
        "if dtype.kind in _TO_FLOAT64:",
        "if True:",
        MEANINGS + "test_half_precision_raises_numpys_text",
    ),
    mutation(
        "the word for a triangle",
        "linalg/_arguments.py",
        'if upper not in ("L", "U"):',
        "if False:",
        ARGUMENTS + "test_a_wrong_uplo",
    ),
    mutation(
        "arrays of nobody's are refused",
        "_dispatch.py",
        'if hasattr(kind, "__dlpack__") or',
        "if False and",
        "host/test_ways_in.py::test_a_type_that_is_only_exchangeable_is_refused",
    ),
    mutation(
        "installing twice is once",
        "_install.py",
        "        if _replaced:\n            return\n",
        "",
        "host/test_ways_in.py::test_installing_twice_is_the_same_as_once",
    ),
)

ERROR_GUARDS = (
    mutation(
        "words of errstate",
        "_runtime/errstate.py",
        "if linalg not in POLICIES:",
        "if False:",
        ERRSTATES + "test_another_word_is_refused_with_those_allowed",
    ),
    mutation(
        "a block of errstate ends",
        "_runtime/errstate.py",
        "_policies.set(_policies.get()[:-1])",
        "pass",
        "host/test_errstate_scopes.py::test_blocks_nest",
    ),
    mutation(
        "failures raise by default",
        "_runtime/errstate.py",
        '    elif policy() == "raise" and bool(info.any()):',
        "    elif False:",
        FAILURES + "test_the_error_names_the_matrices",
    ),
    mutation(
        "nan replaces failed results",
        "_runtime/errstate.py",
        '    if policy() == "nan":\n',
        "    if False:\n",
        CANDIDATES + "test_a_bad_matrix_fails_alone",
    ),
    mutation(
        "NaN goes to failed matrices alone",
        "_backends/numpy.py",
        "output[info > 0] = np.nan",
        "output[info >= 0] = np.nan",
        FAMILIES + "test_a_bad_matrix_fails_alone[vendor-20-nan-cholesky]",
    ),
    mutation(
        "an error keeps its parts in a pickle",
        "exceptions.py",
        "return type(self), (str(self), self.indices, self.info)",
        "return type(self), (str(self),)",
        "host/test_errstate_scopes.py::test_the_error_survives_pickling",
    ),
)

KERNEL_GUARDS = (
    mutation(
        "the limit of lane",
        "_ops/potrf.py",
        "return fits_in_private_memory(call.n, call.dtype, choice.width)",
        "return True",
        LANE + "test_largest_order_and_one_beyond",
    ),
    mutation(
        "the driver of lane checks its limit",
        "_kernels/limits.py",
        "    if not fits_in_private_memory(n, dtype, width):\n",
        "    if False:\n",
        CANDIDATES + "test_what_can_run_refuses_does_not_run[potrf]",
    ),
    mutation(
        "less than a vector is filled up",
        "_kernels/vectors.py",
        "if len(views[0]) < width:",
        "if False:",
        CANDIDATES + "test_nothing_but_the_results_is_written",
    ),
    mutation(
        "the last vector ends with the batch",
        "_kernels/vectors.py",
        "slice(batch - width, batch)]",
        "slice(batch - width, batch - 1)]",
        LANE + "test_place_in_the_batch_changes_no_bit",
    ),
    mutation(
        "a failed minor is counted",
        "_kernels/lane.py",
        "        count_minors(arrays[1], arrays[2])\n",
        "        pass\n",
        LANE + "test_one_bad_matrix",
    ),
    mutation(
        "a stack is packed before a kernel reads it",
        "_backends/numpy.py",
        "if a.flags.c_contiguous and a.flags.aligned:",
        "if True:",
        LANE + "test_layouts",
        CANDIDATES + "test_poison_between_rows_and_matrices_survives",
    ),
    mutation(
        "group memory is there",
        "_kernels/compile.py",
        "        if need > have:\n",
        "        if False:\n",
        "device/kernels/test_kernels_opencl.py::"
        "test_too_much_group_memory_is_found_before_the_launch",
        "device/kernels/test_kernels_opencl.py::"
        "test_a_group_larger_than_the_device_allows",
    ),
    mutation(
        "barriers part writes from other accesses",
        "_kernels/barriers.py",
        "if not owned:",
        "if False:",
        BARRIERS + "test_every_barrier_of_it_is_asked_for",
    ),
    mutation(
        "no barrier where threads part",
        "_kernels/barriers.py",
        "            if divergent:\n",
        "            if False:\n",
        BARRIERS + "test_a_barrier_in_divergent_flow",
    ),
    mutation(
        "one thread stores for all",
        "_kernels/barriers.py",
        "if not dep & _ids(self.local):",
        "if False:",
        BARRIERS + "test_every_thread_writing_one_cell",
    ),
    mutation(
        "the end of a loop meets its beginning",
        "_kernels/barriers.py",
        "range(2 if _is_serial(stmt) else 1)",
        "range(1)",
        BARRIERS + "test_the_end_of_a_serial_loop_meets_its_beginning",
    ),
    mutation(
        "independent steps do not read each other",
        "_kernels/cells.py",
        '            self._raise(axis, "reads", cells, index)',
        "            pass",
        INTERPRET + "test_34_a_wrongly_weak_column_loop_is_found",
    ),
    mutation(
        "independent steps do not overwrite each other",
        "_kernels/cells.py",
        '                self._raise(axis, "overwrites", cells, index)',
        "                pass",
        INTERPRET + "test_34_overwriting_another_step_is_found",
    ),
    mutation(
        "reads stay inside an array",
        "_kernels/cells.py",
        "            if not 0 <= i < size:\n",
        "            if False:\n",
        INTERPRET + "test_reading_outside_is_an_error_and_a_gate_prevents_it",
    ),
    mutation(
        "nothing is read before it is written",
        "_kernels/cells.py",
        "        if index not in self.values:\n            msg",
        "        if False:\n            msg",
        INTERPRET + "test_unwritten_registers_are_not_read",
    ),
    mutation(
        "an array is one buffer",
        "_kernels/interpret.py",
        "if written and np.shares_memory(arrays[a], arrays[b]):",
        "if False:",
        INTERPRET + "test_one_array_is_one_buffer",
    ),
    mutation(
        "no threads share what one side writes",
        "_kernels/rules.py",
        "if hit & shared.memory:",
        "if False:",
        "null/kernels/test_kernel_split.py",
    ),
    mutation(
        "no register holds another step's value",
        "_kernels/rules.py",
        "        hit = (outer.data if inside else outer.reads) & written\n",
        "        hit = frozenset()\n",
        RULES,
    ),
    mutation(
        "a rotation's phase is finite",
        "_kernels/rotations.py",
        "(absolute(size) >= _NORMAL[self.real])",
        "(absolute(size) >= 0)",
        "device/test_svd_native.py::test_a_subnormal_row_or_column",
    ),
)

VENDOR_GUARDS = (
    mutation(
        "a library that is not there cannot run",
        "_ops/families.py",
        "return device.has_vendor and isinstance",
        "return isinstance",
        CANDIDATES + "test_without_a_library_the_families_that_need_none_run",
    ),
    mutation(
        "LAPACK is given finite matrices",
        "_vendor/screen.py",
        "if settings().skip_finite_check or is_surely_finite(a):",
        "if True:",
        FAMILIES + "test_a_bad_matrix_fails_alone[vendor-20-nan-cholesky]",
        FAMILIES + "test_a_bad_matrix_fails_alone[vendor-20-nan-eigh]",
    ),
    mutation(
        "infinity is seen in a small stack",
        "_vendor/screen.py",
        "return math.isfinite(abs(np.vdot(flat, flat)))",
        "return True",
        FAMILIES + "test_a_bad_matrix_fails_alone[vendor-20-inf-eigh]",
    ),
    mutation(
        "what is above the triangle fails nothing",
        "_vendor/screen.py",
        "bad &= np.tri(a.shape[-1], dtype=bool)",
        "pass",
        FAILURES + "test_what_is_not_read_fails_nothing",
    ),
    mutation(
        "the diagonal belongs to the upper triangle",
        "_vendor/screen.py",
        "bad &= ~np.tri(a.shape[-1], k=-1, dtype=bool)",
        "bad &= ~np.tri(a.shape[-1], dtype=bool)",
        FAILURES + "test_a_matrix_that_is_not_finite_fails_alone",
    ),
    mutation(
        "a failed matrix is replaced in a copy",
        "_vendor/screen.py",
        "    clean = np.array(a)\n",
        "    clean = np.asarray(a)\n",
        FAILURES + "test_a_failed_call_leaves_its_input_alone",
    ),
    mutation(
        "the first bad minor stays the first",
        "_vendor/screen.py",
        "info[(info == 0) & ~good] = j + 1",
        "info[~good] = j + 1",
        FAILURES + "test_the_leading_minor_that_is_not_definite",
    ),
    mutation(
        "screened matrices have a status",
        "_vendor/lapack.py",
        "        bad = bad | failed\n",
        "",
        CANDIDATES + "test_a_bad_matrix_fails_alone",
    ),
    mutation(
        "screened matrices have a status of Cholesky",
        "_vendor/lapack.py",
        "        bad |= failed\n",
        "",
        CANDIDATES + "test_a_bad_matrix_fails_alone",
    ),
    mutation(
        "LAPACK's status is listened to",
        "_vendor/lapack.py",
        "failures.append(error)",
        "pass",
        FAMILIES + "test_lapacks_status_is_listened_to",
    ),
    mutation(
        "slices cover the batch",
        "_vendor/slices.py",
        "edges = [batch * i // count for i in range(count + 1)]",
        "edges = [batch // count * i for i in range(count + 1)]",
        FAMILIES + "test_slices_of_every_size_cover_the_batch",
    ),
    mutation(
        "our limit of threads",
        "_vendor/slices.py",
        "return min(limits if ours is None else [*limits, ours])",
        "return min(limits)",
        THREADS + "test_num_threads_is_honoured",
    ),
    mutation(
        "BLAS keeps to one thread meanwhile",
        "_runtime/blas.py",
        "library.set_num_threads(1)",
        "pass",
        THREADS + "test_slices_run_in_several_threads_with_one_blas_thread_each",
    ),
    mutation(
        "BLAS gets its threads back",
        "_runtime/blas.py",
        "            self._holders -= 1\n            if self._holders == 0:\n",
        "            self._holders -= 1\n            if False:\n",
        THREADS + "test_limits_come_back_after_an_error",
    ),
    mutation(
        "the first caller saves BLAS's limit",
        "_runtime/blas.py",
        "            if self._holders == 0:\n                self._saved",
        "            if True:\n                self._saved",
        THREADS + "test_limits_come_back_after_a_call_within_a_call",
    ),
)

TUNER_GUARDS = (
    mutation(
        "what would take minutes is not timed",
        "tune/timing.py",
        "if ms > max(_SLOW_MS, limit_ms):",
        "if False:",
        "host/test_tune_timing.py::"
        "test_what_would_take_minutes_by_a_smaller_shape_is_not_run",
    ),
)

MUTATIONS = (
    *ARGUMENT_GUARDS,
    *ERROR_GUARDS,
    *KERNEL_GUARDS,
    *VENDOR_GUARDS,
    *TUNER_GUARDS,
)
