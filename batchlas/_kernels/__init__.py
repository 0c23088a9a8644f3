"""Kernel compiler: loop nests written once, scheduled and printed for a target.

A kernel is a frozen value of `batchlas._kernels.ir`.  Authors write it with
`build`, `interpret` runs it on NumPy arrays, `schedule` splits its axes into groups,
threads and lanes, and the renderers print it.  Nothing here needs more than NumPy.
"""
