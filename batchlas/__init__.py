"""Linear algebra on stacks of small matrices, for NumPy, dpnp and CuPy arrays.

``batchlas.linalg`` has numpy.linalg's functions under their own names. Each call picks
the fastest kernel that the array's device has for its dtype, order and batch.
"""

if __name__ != "batchlas":  # its state and its types would exist twice
    message = f"batchlas cannot be imported as {__name__}; import batchlas"
    raise ImportError(message)

from batchlas._runtime.intel import repair_discovery

# Before anything can ask for devices: the OpenCL loader reads the variable once.
repair_discovery()

from batchlas import linalg  # noqa: E402
from batchlas._array import asarray  # noqa: E402
from batchlas._explain import explain  # noqa: E402
from batchlas._install import install, installed, uninstall  # noqa: E402
from batchlas._runtime.errstate import errstate  # noqa: E402
from batchlas._runtime.settings import (  # noqa: E402
    configure,
    reload_settings,
    scoped_env,
)
from batchlas.bench import benchmark  # noqa: E402
from batchlas.exceptions import (  # noqa: E402
    BatchlasWarning,
    LinAlgError,
    NoRouteError,
)

__version__ = "0.1.0"

__all__ = [
    "BatchlasWarning",
    "LinAlgError",
    "NoRouteError",
    "asarray",
    "benchmark",
    "configure",
    "errstate",
    "explain",
    "install",
    "installed",
    "linalg",
    "reload_settings",
    "scoped_env",
    "uninstall",
]
