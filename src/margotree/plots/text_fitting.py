"""Text that fits: measured before it is drawn, shortened where there is no room."""

from __future__ import annotations

from functools import lru_cache

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_POINTS_PER_INCH = 72.0

#: Renderers round letters to whole pixels, so that text comes out a little wider than the font's measures say.
_WIDTH_SAFETY = 1.07


def one_line(text: object) -> str:
    """Names may hold anything; in a picture they are one line."""
    return " ".join(str(text).split())


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width in inches, by the font's own measures, so that it holds for every backend."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) * _WIDTH_SAFETY / _POINTS_PER_INCH


def shortened(text: str, size: float, max_width: float, bold: bool = False) -> str:
    """The text, or as much of its beginning and end as fits into ``max_width`` inches with an ellipsis between.

    Both ends are kept because names of one family often differ only in the last word.
    """
    if text_width(text, size, bold) <= max_width:
        return text
    kept = len(text) - 1
    while kept > 1:
        tail = kept // 3
        short = text[: kept - tail].rstrip() + _ELLIPSIS + (text[-tail:].lstrip() if tail else "")
        if text_width(short, size, bold) <= max_width:
            return short
        kept -= 1
    return _ELLIPSIS


def wrapped_lines(text: str, size: float, max_width: float) -> list[str]:
    """Lines of whole words that fit into ``max_width`` inches."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > max_width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(line, size, max_width) for line in lines]
