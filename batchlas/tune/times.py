"""Lengths of time as people write and read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a length of time for people, such as ``2m05s``."""
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{whole % 60:02}s" if minutes else f"{whole}s"


def seconds(text: str) -> float:
    """Return the seconds of a text such as ``90``, ``90s``, ``10m`` or ``1.5h``.

    Raises
    ------
    ValueError
        For any other text.
    """
    units = {"s": 1, "m": 60, "h": 3600}
    number = text[:-1] if text[-1:] in units else text
    value = float(number) * units.get(text[-1:], 1)
    if not 0 <= value < float("inf"):
        message = f"{text!r} is no length of time"
        raise ValueError(message)
    return value
