"""Encodings as plain JSON values, with a version, inside the terms of a saved tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margotree.table.encoding import Category, Column, Encoding, Number
from margotree.table.table import TableError

VERSION = 1


def to_record(encoding: Encoding) -> dict[str, Any]:
    """JSON values from which :func:`from_record` makes the same encoding."""
    return {
        "version": VERSION,
        "columns": [_column_record(column) for column in encoding.columns],
        "target": encoding.target,
        "weight": encoding.weight,
        "positive": encoding.positive,
        "whole": encoding.whole,
        "missing": encoding.missing,
        "spelling": list(encoding.spelling),
        "decimal": encoding.decimal,
        "source": encoding.source,
    }


def from_record(record: Mapping[str, Any]) -> Encoding:
    """Read what :func:`to_record` wrote; entries a later version may add within version 1 are passed over."""
    if record.get("version") != VERSION:
        raise TableError(
            f"the tree file describes its columns in version {record.get('version')!r}, this margotree reads version "
            f"{VERSION}; update margotree"
        )
    try:
        return Encoding(
            columns=tuple(_column(entry) for entry in record["columns"]),
            target=str(record["target"]),
            weight=record.get("weight"),
            positive=record.get("positive"),
            whole=bool(record.get("whole", False)),
            missing=str(record.get("missing", "error")),
            spelling=tuple(str(label) for label in record.get("spelling", ())),
            decimal=str(record.get("decimal", ".")),
            source=str(record.get("source", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(f"the tree file's description of its columns makes no sense: {error!r}") from None


def _column_record(column: Column) -> dict[str, Any]:
    both = {"name": column.name, "fill": column.fill, "flag": column.flag, "typical": column.typical}
    if isinstance(column, Number):
        return {"kind": "number", **both, "unit": column.unit}
    return {"kind": "category", **both, "values": list(column.values)}


def _column(entry: Mapping[str, Any]) -> Column:
    name, fill, flag = str(entry["name"]), entry.get("fill"), bool(entry.get("flag", False))
    typical = entry.get("typical")
    if entry["kind"] == "number":
        fill, typical = (None if number is None else float(number) for number in (fill, typical))
        return Number(name=name, fill=fill, unit=entry.get("unit"), flag=flag, typical=typical)
    if entry["kind"] == "category":
        values = tuple(str(value) for value in entry["values"])
        if fill is not None and fill not in values:
            raise ValueError(f"{fill!r} stands in for missing cells of {name!r}, but is none of its words")
        return Category(name=name, values=values, fill=fill, flag=flag, typical=typical)
    raise ValueError(f"a column of kind {entry['kind']!r}")
