"""Class colours that are distinct for any colour vision (after Okabe and Ito), and a marker for each."""

from __future__ import annotations

_CLASSES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#8C8C8C")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def class_colour(k: int) -> str:
    """Return the colour of the k-th class; lighter ones from the ninth on."""
    round_, place = divmod(k, len(_CLASSES))
    return tint(_CLASSES[place], 0.75**round_)


def class_marker(k: int) -> str:
    """Return the matplotlib marker of the k-th class."""
    return _MARKERS[k % len(_MARKERS)]


def tint(colour: str, strength: float) -> str:
    """Mix a colour with white; ``strength`` 1 is the colour, 0 is white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (part - 255) * strength):02x}" for part in parts)
