"""Work that takes its time on a SYCL queue, for tests of who waits for it."""

from __future__ import annotations

import ctypes

_SOURCE = """
__kernel void spin(__global double *out, long count) {
    double x = out[0];
    for (long i = 0; i < count; ++i) x = x * 0.999999 + 1.0;
    out[0] = x;
}
"""
_STEPS = 3 * 10**8  # a second or less


class Busy:
    """Work on a queue, before dpnp's next work on it where dpnp keeps an order.

    Its memory lives as long as the object, whose end waits for the work.
    """

    def __init__(self, queue):
        import dpctl.utils
        from dpctl.memory import MemoryUSMDevice
        from dpctl.program import create_program_from_source

        spin = create_program_from_source(queue, _SOURCE).get_sycl_kernel("spin")
        self._memory = MemoryUSMDevice(64, queue=queue)
        arguments = [self._memory, ctypes.c_int64(_STEPS)]
        self._event = queue.submit_async(spin, arguments, [1])
        orders = getattr(dpctl.utils, "SequentialOrderManager", None)
        if orders is not None:  # else dpnp's functions wait for their work themselves
            orders[queue].add_event_pair(self._event, self._event)

    @property
    def is_pending(self):
        return self._event.execution_status.name != "complete"
