"""Text of a limited width: measured before it is drawn, shortened or wrapped if it is too long."""

from __future__ import annotations

from functools import lru_cache

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_POINTS_PER_INCH = 72.0

#: Renderers round letters to whole pixels, so that text is slightly wider than the font metrics say.
_WIDTH_SAFETY = 1.07


def one_line(text: object) -> str:
    """Return a name with line breaks and repeated blanks replaced by single blanks."""
    return " ".join(str(text).split())


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width in inches by the font metrics, which are the same for every backend."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    points = float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])
    return points * _WIDTH_SAFETY / _POINTS_PER_INCH


def shortened(text: str, size: float, max_width: float, bold: bool = False) -> str:
    """Return the text, or its beginning and end with an ellipsis between them, within ``max_width`` inches.

    Both ends are kept because similar names often differ only in the last word.
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


def wrapped_lines(
    text: str, size: float, max_width: float, bold: bool = False, *, most: int | None = None
) -> list[str]:
    """Return lines of whole words of at most ``max_width`` inches; at most ``most``, of which the last is shortened."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and len(lines) != most and text_width(longer, size, bold) > max_width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(line, size, max_width, bold) for line in lines]
