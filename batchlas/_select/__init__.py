"""How an op picks the kernel that runs. Private: ops use it, users never see it.

An op declares an ``OpSpec`` and calls ``run``; ``run`` asks ``decide`` for one choice
and launches it. The files, in the order in which a decision flows through them:

===============  =====================================================================
families         what a choice is, and its one spelling
spec             what an op declares once: candidates, ``can_run``, last resort
launch           what surrounds a launch
decision         what a pin does, and how long a decision is remembered
pins             which pin is in force
walk             the automatic choice: nearest row, first that can run, last resort
borrow           whose table is asked, in which order
store            which table files exist, and which of them counts
table_parser     what a well-formed table file is
table            which row is nearest to a call
trace, coverage  what is said and counted about a decision
vendor           how a call fails that nothing can serve
inventory        the generated page of all ops, families and tables
testing          what tests may swap
===============  =====================================================================
"""

from batchlas._select.coverage import link
from batchlas._select.decision import decide, pick, standing
from batchlas._select.families import Family, all_of, family, parse
from batchlas._select.launch import run
from batchlas._select.pins import ScopedPin, StrictPin
from batchlas._select.spec import Call, OpSpec
from batchlas._select.trace import note
from batchlas._select.vendor import no_vendor
from batchlas._select.walk import Decision

__all__ = [
    "Call",
    "Decision",
    "Family",
    "OpSpec",
    "ScopedPin",
    "StrictPin",
    "all_of",
    "decide",
    "family",
    "link",
    "no_vendor",
    "note",
    "parse",
    "pick",
    "run",
    "standing",
]
