"""The tuner: times the candidates of an op on this machine and writes its tables.

================  ====================================================================
problems          input of an op for a table key, and the check of its result
timing            one cell: every candidate, pinned, checked, timed in turns
grid              which shapes are measured
ledger            what has been measured, a line each, so that a run can be resumed
tables            from the ledger to ``tuned/<op>.<device>.txt``
command           ``python -m batchlas tune``
================  ====================================================================
"""
