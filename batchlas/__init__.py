"""Linear algebra on stacks of small matrices."""

__version__ = "0.1.0"
