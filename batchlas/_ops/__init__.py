"""One file per op: the one place where it is decided what runs.

Each file holds, in this order: the key of a call, the families, ``can_run``, the
``OpSpec`` and the op itself, which takes checked arguments and launches the choice.
"""

from batchlas import _select as select
from batchlas._ops import gesvd, potrf, syev

SPECS = (potrf.SPEC, syev.SPEC, gesvd.SPEC)
"""Every op that is chosen by a candidate list."""

select.link(SPECS)  # coverage reports what this build contains
