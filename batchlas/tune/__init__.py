"""The tuner: times the candidates of an op on this machine and writes its tables.

================  ====================================================================
problems          input of an op for a table key, and the check of its result
targets           the devices of this machine, and how arrays get there
grid              which shapes are measured, the coarse ones of every group first
refine            which shapes lie between two neighbours with different winners
timing            one cell: every candidate, pinned, checked, timed in turns
ledger            what has been measured, a line each, so that a run can be resumed
session           the run: what is missing, measured in order until the budget is spent
searchable        families whose knob is a schedule, and which values are legal
schedules         a search over schedules, for the authors of kernels
progress          what the person at the terminal sees
bar, times        the bar itself, and lengths of time in words
tables            from the ledger to ``tuned/<op>.<device>.txt``
command           ``python -m batchlas tune``
================  ====================================================================
"""
