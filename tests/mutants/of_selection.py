"""Guards of the settings, the parsers, the tables and the walk."""

from __future__ import annotations

from mutation import Mutation

SETTINGS = "null/test_settings.py::"
SELECT = "null/select/test_select_"


def _settings(guards, old, new, *tests):
    return Mutation(
        guards, "_runtime/settings.py", old, new, tuple(SETTINGS + t for t in tests)
    )


def _select(guards, file, old, new, *tests):
    return Mutation(
        guards, f"_select/{file}.py", old, new, tuple(SELECT + t for t in tests)
    )


SETTINGS_GUARDS = (
    _settings(
        "the gate of unsafe settings",
        'if _bool(ALLOW_UNSAFE, os.environ.get(ALLOW_UNSAFE, "0")):',
        "if True:",
        "test_an_unsafe_setting_needs_the_gate",
    ),
    _settings(
        "the safe direction needs no gate",
        "if name not in _UNSAFE or value != _UNSAFE[name]:",
        "if name not in _UNSAFE:",
        "test_the_safe_direction_needs_no_gate",
    ),
    _settings(
        "switches have few words",
        "if word in _TRUE or word in _FALSE:",
        "if True:",
        "test_a_bad_text_raises_an_error_that_names_the_variable",
    ),
    _settings(
        "a number of threads is positive",
        "    if value < 1:\n",
        "    if value < 0:\n",
        "test_a_bad_text_raises_an_error_that_names_the_variable",
        "test_a_number_of_threads_is_a_positive_integer",
    ),
    _settings(
        "renderers are known",
        "        if word in words:\n",
        "        if True:\n",
        "test_a_bad_text_raises_an_error_that_names_the_variable",
    ),
    _settings(
        "the folder of the coverage exists",
        "if not os.path.isdir(folder):",
        "if False:",
        "test_a_bad_text_raises_an_error_that_names_the_variable",
    ),
    _settings(
        "unknown variables are warned of",
        "if name.startswith(PREFIX) and name not in VARIABLES:",
        "if False:",
        "test_an_unknown_variable_is_warned_of_with_the_nearest_name",
    ),
    _settings(
        "configure closes with the first use",
        "        if _state.used:\n            message",
        "        if False:\n            message",
        "test_configure",
    ),
    _settings(
        "configure knows its fields",
        '    if unknown:\n        message = f"configure() got',
        '    if False:\n        message = f"configure() got',
        "test_configure",
    ),
    _settings(
        "snapshots are numbered",
        "generation = 1 + (_state.snapshot.generation if _state.snapshot else 0)",
        "generation = 1",
        "test_a_snapshot_is_frozen_and_numbered",
    ),
    _settings(
        "a scope puts the environment back",
        "    finally:\n        _export(old)\n",
        "    finally:\n",
        "test_scoped_env_nests_and_reverts",
        "test_scoped_env_reverts_after_an_error",
    ),
)

SPELLING_GUARDS = (
    _select(
        "families are known",
        "families",
        "if name not in known:",
        "if False:",
        "families.py::test_rejected",
    ),
    _select(
        "values are as many as fields",
        "families",
        "if len(parts) != len(knobs):",
        "if False:",
        "families.py::test_rejected",
    ),
    _select(
        "fields are known",
        "families",
        "if knob not in knobs:",
        "if False:",
        "families.py::test_rejected",
    ),
    _select(
        "a field is given once",
        "families",
        "if knob in values:",
        "if False:",
        "families.py::test_rejected",
    ),
    _select(
        "values are integers",
        "families",
        "if not _INTEGER.fullmatch(number):",
        "if not _INTEGER.match(number):",
        "families.py::test_rejected",
    ),
)

TABLE_GUARDS = (
    _select(
        "rows follow the keys",
        "table_parser",
        'if not self.keys:\n            self.fail("row',
        'if False:\n            self.fail("row',
        "table_parser.py::test_rows",
        "table_parser.py::test_whole_files",
        "table_parser.py::test_any_text_is_parsed_or_a_table_error",
    ),
    _select(
        "a shape stands once",
        "table_parser",
        "if first != self.line:",
        "if False:",
        "table_parser.py::test_rows",
    ),
    _select(
        "times are positive",
        "table_parser",
        "or float(ms) <= 0:",
        "or False:",
        "table_parser.py::test_rows",
    ),
    _select(
        "sizes are positive",
        "table_parser",
        "or int(value) == 0:",
        "or False:",
        "table_parser.py::test_rows",
    ),
    _select(
        "a choice is ranked once",
        "table_parser",
        "        if twice:\n",
        "        if False:\n",
        "table_parser.py::test_rows",
    ),
    _select(
        "all of a row is timed or nothing",
        "table_parser",
        "if any(untimed) and not all(untimed):",
        "if False:",
        "table_parser.py::test_rows",
    ),
    _select(
        "untimed rows are transcripts",
        "table_parser",
        'if any(untimed) and not source.startswith("transcribed:"):',
        "if False:",
        "table_parser.py::test_rows",
    ),
    _select(
        "the header agrees with the file's name",
        "table_parser",
        "if value != expected.get(name, value):",
        "if False:",
        "table_parser.py::test_whole_files",
    ),
    _select(
        "keys are those of the op",
        "store",
        "if key.name not in spec.keys:",
        "if False:",
        "store.py::test_a_key_that_the_op_does_not_have",
    ),
    _select(
        "an override is a folder",
        "store",
        "if not os.path.isdir(folder):",
        "if False:",
        "store.py::test_an_override_that_is_no_folder_is_ignored_with_one_warning",
    ),
    _select(
        "rounded logarithms tie",
        "table",
        "_NEAR_TIE = 1e-9",
        "_NEAR_TIE = 0.0",
        "table.py::test_rounded_logarithms_still_tie",
    ),
    _select(
        "exact keys are dropped from the right",
        "table",
        "for length in range(len(exact), 0, -1):",
        "for length in (len(exact),):",
        "table.py::test_exact_keys_are_dropped_from_the_right_one_at_a_time",
    ),
    _select(
        "a call has a table's keys",
        "table",
        "if key.name not in values:",
        "if False:",
        "table.py::test_a_missing_key_names_the_table",
    ),
)

WALK_GUARDS = (
    _select(
        "processors do not borrow from GPUs",
        "borrow",
        "or device.is_gpu or",
        "or True or",
        "walk.py::test_a_processor_is_silent_and_never_borrows_from_a_gpu",
        "borrow.py::test_borrow_order",
    ),
    _select(
        "older architectures lend first",
        "borrow",
        "arch > device.arch,",
        "arch < device.arch,",
        "borrow.py::test_borrow_order",
    ),
    _select(
        "only candidates are chosen",
        "walk",
        "if choice not in candidates:",
        "if False:",
        "walk.py::test_what_cannot_run_or_is_no_candidate_is_skipped",
    ),
    _select(
        "only what can run is chosen",
        "walk",
        "elif choice not in runnable:",
        "elif False:",
        "walk.py::test_what_cannot_run_or_is_no_candidate_is_skipped",
    ),
    _select(
        "the last resort ends in an error",
        "walk",
        "    if choice is None:\n        return None\n",
        "",
        "walk.py::test_nothing_can_run",
    ),
    _select(
        "last resort by generality",
        "walk",
        "names.index(each.name) if each.name in names else len(names),",
        "len(names),",
        "walk.py::test_last_resort",
    ),
    _select(
        "a loan is warned of",
        "walk",
        "if origin is Origin.BORROWED:",
        "if False:",
        "walk.py::test_a_borrowing_device_warns_once_per_op_and_device",
    ),
    _select(
        "falling through is no loan",
        "walk",
        "return Origin.FALLTHROUGH if has_own else Origin.BORROWED",
        "return Origin.BORROWED",
        "walk.py::test_falling_through_an_own_table_is_no_loan",
    ),
    Mutation(
        "a warning is given once",
        "_runtime/notices.py",
        "if cause in _notices.given:",
        "if False:",
        ("null/test_notices.py::test_a_cause_warns_once_until_it_is_forgotten",),
    ),
)

PIN_GUARDS = (
    _select(
        "pins name candidates",
        "decision",
        "if choice not in candidates:",
        "if False:",
        "pins.py::test_a_bad_variable_is_named_with_its_text_and_what_is_valid",
        "pins.py::test_a_family_of_another_backend_is_no_candidate",
    ),
    _select(
        "pins name what can run",
        "decision",
        "if not spec.can_run(choice, call, device):",
        "if False:",
        "pins.py::test_a_bad_variable_is_named_with_its_text_and_what_is_valid",
    ),
    _select(
        "strict pins raise",
        "decision",
        "if pin.strict:",
        "if False:",
        "pins.py::test_a_strict_class_word_raises_instead",
    ),
    _select(
        "no_vendor hides the library",
        "decision",
        "if now.no_vendor and device.has_vendor:",
        "if False:",
        "decision.py::test_no_vendor_hides_the_library",
    ),
    _select(
        "a scoped pin wins",
        "decision",
        "pins.scoped_pin(spec.op) or pins.exported_pin(spec.op, now)",
        "pins.exported_pin(spec.op, now) or pins.scoped_pin(spec.op)",
        "pins.py::test_a_scoped_pin_wins_over_the_variable",
    ),
    _select(
        "a pin is part of what is remembered",
        "decision",
        "device, pin, now.generation,",
        "device, now.generation,",
        "decision.py::test_a_pin_is_part_of_the_question",
    ),
    _select(
        "what is remembered is bounded",
        "decision",
        "if len(_memo) >= MEMO_LIMIT:",
        "if False:",
        "decision.py::test_the_memory_is_bounded",
    ),
    _select(
        "the first decision closes configure",
        "decision",
        "        mark_used()  #",
        "        #",
        "decision.py::test_the_first_question_closes_configure",
    ),
    _select(
        "a missing library is a miss, not reached",
        "coverage",
        "    except NoRouteError:\n        raise\n",
        "",
        "coverage.py::test_a_launch_without_its_library_is_a_miss_and_not_reached",
    ),
    _select(
        "a trace ends with its launch",
        "trace",
        "_depth.reset(token)",
        "pass",
        "trace.py::test_a_launch_that_raises_ends_its_indentation",
        "trace.py::test_one_line_per_decision_indented_under_its_parent",
    ),
    _select(
        "an op is declared once",
        "coverage",
        "    if twice:\n",
        "    if False:\n",
        "coverage.py::test_an_op_is_linked_once",
    ),
)

MUTATIONS = (
    *SETTINGS_GUARDS,
    *SPELLING_GUARDS,
    *TABLE_GUARDS,
    *WALK_GUARDS,
    *PIN_GUARDS,
)
