"""Work that takes its time on a SYCL queue, for tests of who waits for it."""

from __future__ import annotations

import ctypes

_SOURCE = """
__kernel void spin(__global double *out, __global volatile int *end, long count) {
    double x = out[0];
    for (long i = 0; i < count && !end[0]; ++i) x = x * 0.999999 + 1.0;
    out[0] = x;
}
"""
_STEPS = 3 * 10**8  # a second or less
_MOST_STEPS = 10**11  # minutes: longer than any test may take


class Busy:
    """Work on a CPU queue, before dpnp's next work on it where dpnp keeps an order.

    It ends by itself within a second or, with `held`, when `finish` is called. Its
    memory lives as long as the object, whose end waits for the work.
    """

    def __init__(self, queue, *, held=False):
        import dpctl.utils
        from dpctl.memory import MemoryUSMDevice
        from dpctl.program import create_program_from_source

        spin = create_program_from_source(queue, _SOURCE).get_sycl_kernel("spin")
        self._memory = MemoryUSMDevice(64, queue=queue)
        self._end = MemoryUSMDevice(64, queue=queue)
        self._end.memset(0)
        steps = ctypes.c_int64(_MOST_STEPS if held else _STEPS)
        self._event = queue.submit_async(spin, [self._memory, self._end, steps], [1])
        orders = getattr(dpctl.utils, "SequentialOrderManager", None)
        if orders is not None:  # else dpnp's functions wait for their work themselves
            orders[queue].add_event_pair(self._event, self._event)

    @property
    def is_pending(self):
        return self._event.execution_status.name != "complete"

    def finish(self):
        """Let the work end; by the host's own hand, since the queue has no time."""
        address, _ = self._end.__sycl_usm_array_interface__["data"]
        ctypes.c_int.from_address(address).value = 1
        self._event.wait()
