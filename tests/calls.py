"""Every public function as a value, for tests that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from libraries import host

from batchlas import linalg

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Call:
    """A function of batchlas.linalg with its options; ``str`` is its test id."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        words = [f"{key}={value}" for key, value in self.options.items()]
        return " ".join([self.name, *words]).replace(" ", "-")

    @property
    def function(self) -> Callable[..., Any]:
        return vars(linalg)[self.name]

    def __call__(self, a):
        """Return the call's results as a tuple, a single one too."""
        result = self.function(a, **self.options)
        return result if isinstance(result, tuple) else (result,)

    def on_host(self, a):
        """Return the results as NumPy arrays."""
        return host(self(a))

    @property
    def status(self) -> Call:
        """Return the same computation with a status in place of an error."""
        return Call(f"{self.name}_ex", self.options)


CHOLESKY = (Call("cholesky"), Call("cholesky", {"upper": True}))
EIGEN = (
    Call("eigh"),
    Call("eigh", {"UPLO": "U"}),
    Call("eigvalsh"),
    Call("eigvalsh", {"UPLO": "U"}),
)
HERMITIAN_SVD = (
    Call("svd", {"hermitian": True}),
    Call("svd", {"hermitian": True, "compute_uv": False}),
)
GENERAL_SVD = (
    Call("svd"),
    Call("svd", {"full_matrices": False}),
    Call("svd", {"compute_uv": False}),
    Call("svdvals"),
)
SQUARE_ONLY = (*CHOLESKY, *EIGEN, *HERMITIAN_SVD)
CALLS = (*SQUARE_ONLY, *GENERAL_SVD)

# Those that have a function with a status beside them.
WITH_STATUS = tuple(call for call in CALLS if call.name not in {"eigvalsh", "svdvals"})
