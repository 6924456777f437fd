"""Applies rules to samples from their printed text alone, in exact arithmetic, as a reader does."""

import re
from fractions import Fraction

_TERM = re.compile(r"([+-]?)\s*(?:([0-9.]+(?:e[+-]?\d+)?) \* )?(.+)")


def value(sample, sum_text, names):
    """The weighted sum in the text ``0.5 * age - height`` for a sample, a mapping of names to numbers."""
    total, rest = Fraction(0), sum_text.strip()
    while rest:
        name = max((n for n in names if _starts_with(rest, n)), key=len)
        head, rest = rest.split(name, 1)
        sign, number, _ = _TERM.fullmatch(head.strip() + " x" if head.strip().endswith("*") else f"{head} x").groups()
        total += (-1 if sign == "-" else 1) * Fraction(number or 1) * Fraction(sample[name])
        rest = rest.strip()
    return total


def _is(sample, literal, names):
    """Whether a statement such as "smoker is no" holds for a sample."""
    name = max((n for n in names if literal.startswith(f"{n} is ")), key=len)
    said = literal.removeprefix(f"{name} is ")
    if said.startswith("not "):
        return str(sample[name]) != said.removeprefix("not ")
    return str(sample[name]).removesuffix(".0") == said


def _starts_with(text, name):
    return re.match(r"[+-]?\s*(?:[0-9.]+(?:e[+-]?\d+)? \* )?" + re.escape(name) + r"(?=$| [+-] )", text) is not None


def meets(sample, condition, names):
    """Whether a sample meets a printed condition."""
    if (many := re.fullmatch(r"at least (\d+) of: (.*)", condition)) is not None:
        return sum(_is(sample, literal, names) for literal in many[2].split(", ")) >= int(many[1])
    for word, holds in ((" AND ", all), (" OR ", any)):
        if word in condition:
            return holds(_is(sample, literal, names) for literal in condition.split(word))
    if not re.search(" [<>]= ", condition):
        return _is(sample, condition, names)
    left, relation, limit = re.fullmatch(r"(.*) (<=|>=) (\S+)", condition).groups()
    found = value(sample, left, names)
    return found <= Fraction(limit) if relation == "<=" else found >= Fraction(limit)


def label(sample, text, names):
    """The label of a sample by the rules in ``text``."""
    return _label(sample, _unwrapped(text.splitlines()), names)


def _unwrapped(lines):
    """The lines of rules, with conditions on one line and without counts and notes."""
    kept = []
    for line in lines:
        bars, body = re.fullmatch(r"((?:\|   )*)(.*)", line).groups()
        if body.startswith(("if ", "else", "=> ")):
            kept.append((len(bars) // 4, body.strip()))
        elif body.startswith("   ") and not body.strip().startswith("(") and kept and kept[-1][1].startswith("if "):
            kept[-1] = (kept[-1][0], f"{kept[-1][1]} {body.strip()}")
    return kept


def _label(sample, lines, names, level=0):
    depth, first = lines[0]
    assert depth == level
    if first.startswith("=> "):
        return re.fullmatch(r"=> (.*?)(?:   \(.*)?", first)[1]
    other = next(k for k, (at, body) in enumerate(lines) if at == level and body == "else")
    below = lines[1:other] if meets(sample, first.removeprefix("if "), names) else lines[other + 1 :]
    return _label(sample, below, names, level + 1)
