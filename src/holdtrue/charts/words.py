"""Numbers and names as readers see them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """A number as people write it, to three digits."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "–")
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}".replace("-", "−")
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    text = f"{value:.3g}"
    return text.replace("e+0", "e").replace("e-0", "e−").replace("e+", "e").replace("-", "−")


def printable(text: str) -> str:
    """Text on one line, without the control characters that steer a terminal or spoil a page."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def shortened(text: str, limit: int) -> str:
    """The text, cut to a number of characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
