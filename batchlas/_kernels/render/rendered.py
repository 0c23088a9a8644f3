"""What a renderer returns: the text, how to launch it, and what it must be given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from batchlas._kernels.walk import launch_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from batchlas._kernels.ir import DType, Expr


class Passing(Enum):
    """How a kernel takes its arrays."""

    POINTER = "pointer"  # device memory that the runtime knows
    ADDRESS = "address"  # a 64-bit integer, for memory of the host that a CPU shares


class ArgKind(Enum):
    """What stands at a place of the argument list."""

    POINTER = "pointer"
    ADDRESS = "address"
    SCALAR = "scalar"
    LOCAL = "local"  # work-group memory that the launch hands over


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument; `count` elements of `dtype` if it is work-group memory."""

    name: str
    kind: ArgKind
    dtype: DType
    is_written: bool = False
    count: int = 0


@dataclass(frozen=True, slots=True)
class LocalArray:
    """Work-group memory for `count` cells of `lanes` real elements."""

    name: str
    dtype: DType
    count: int
    lanes: int = 1

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.count * self.lanes * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Rendered:
    """A kernel as text of one target.

    `args` are in launch order and complex arrays among them are pairs of reals.  A
    `group_size` of 0 leaves the work-group size to the runtime.  `local_bytes` is all
    work-group memory, `dynamic_local_bytes` what the launch must ask for beside the
    text (CUDA above 48 KiB).
    """

    renderer: str
    source: str
    entry: str
    args: tuple[Arg, ...]
    group_size: int
    groups: Expr
    local_bytes: int
    dynamic_local_bytes: int
    digest: str

    @property
    def threads_per_group(self) -> int:
        """Threads of a work-group that the kernel was written for."""
        return max(self.group_size, 1)

    def group_count(self, scalars: Mapping[str, int]) -> int:
        """Return the number of work-groups for these scalar arguments."""
        return launch_value(self.groups, scalars)


class RenderError(ValueError):
    """The kernel has something that this target cannot print."""
