"""Convert encodings to and from JSON values, as they are stored in saved trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from margotree.table.dates import FORMS, day_number
from margotree.table.encoding import Category, Column, Date, Encoding, Number, Ordered
from margotree.table.missing_cells import MissingReport
from margotree.table.read_options import ReadOptions
from margotree.table.table import TableError

VERSION = 1

#: The allowed values of ``Encoding.missing``.
_MISSING = ("error", "drop", "median", "indicator")


def to_record(encoding: Encoding) -> dict[str, Any]:
    """The JSON values of an encoding; :func:`from_record` is the inverse."""
    return {
        "version": VERSION,
        "columns": [_column_record(column) for column in encoding.columns],
        "target": encoding.target,
        "weight": encoding.weight,
        "positive": encoding.positive,
        **({} if encoding.above is None else {"above": encoding.above}),
        **({"numeric": True} if encoding.numeric else {}),
        "whole": encoding.whole,
        "missing": encoding.missing,
        "spelling": list(encoding.spelling),
        "decimal": encoding.decimal,
        "source": encoding.source,
        "reading": encoding.reading.to_record(),
    }


def from_record(record: Any) -> Encoding:
    """The encoding of JSON values that :func:`to_record` returned; unknown entries are ignored."""
    version = record.get("version") if isinstance(record, Mapping) else None
    if version != VERSION:
        raise TableError(
            f"the tree file describes its columns in version {version!r}, but this margotree reads version {VERSION}; "
            "update margotree"
        )
    try:
        return _encoding(record)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TableError(f"the tree file's description of its columns is not valid: {_reason(error)}") from None


def check_record(record: Any) -> None:
    """Raise TableError unless ``record`` is a valid description of a training file: encoding and counts of rows."""
    from_record(record)
    try:
        for name in ("sha256", "sha256_of_set"):
            _entry_of_type(record, name, str, optional=True)
        if _entry_of_type(record, "rows", int, optional=True) is not None and record["rows"] < 0:
            raise ValueError(f"'rows' cannot be {record['rows']!r}")
        missing_report(record)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TableError(f"the tree file's description of its training rows is not valid: {_reason(error)}") from None


def missing_report(record: Mapping[str, Any]) -> MissingReport | None:
    """The counts of missing cells in training; None in files of earlier versions."""
    found = record.get("missing_report")
    return None if found is None else MissingReport.from_record(found)


def _encoding(record: Mapping[str, Any]) -> Encoding:
    missing = _entry_of_type(record, "missing", str, default="error")
    if missing not in _MISSING:
        raise ValueError(f"'missing' cannot be {missing!r}")
    columns = _entry_of_type(record, "columns", list)
    if not columns:
        raise ValueError("there are no columns")
    return Encoding(
        columns=tuple(_column(entry) for entry in columns),
        target=_entry_of_type(record, "target", str),
        weight=_entry_of_type(record, "weight", str, optional=True),
        positive=_entry_of_type(record, "positive", str, optional=True),
        above=_entry_of_type(record, "above", (int, float), optional=True),
        numeric=_entry_of_type(record, "numeric", bool, default=False),
        whole=_entry_of_type(record, "whole", bool, default=False),
        missing=missing,
        spelling=_words(record, "spelling", []),
        decimal=_entry_of_type(record, "decimal", str, default="."),
        source=_entry_of_type(record, "source", str, default=""),
        reading=ReadOptions.from_record(_entry_of_type(record, "reading", dict, default={})),
    )


def _column_record(column: Column) -> dict[str, Any]:
    both = {"name": column.name, "fill": column.fill, "flag": column.flag, "typical": column.typical}
    if isinstance(column, Number):
        return {"kind": "number", **both, "unit": column.unit}
    if isinstance(column, Date):
        return {"kind": "date", **both, "form": column.form, "since": column.since}
    if isinstance(column, Ordered):
        return {"kind": "ordered", **both, "values": list(column.values), "others": column.others}
    return {"kind": "category", **both, "values": list(column.values), "others": column.others}


def _column(entry: Mapping[str, Any]) -> Column:
    name, flag = _entry_of_type(entry, "name", str), _entry_of_type(entry, "flag", bool, default=False)
    if entry["kind"] in ("number", "date"):
        fill = _entry_of_type(entry, "fill", (int, float), optional=True)
        typical = _entry_of_type(entry, "typical", (int, float), optional=True)
        fill, typical = (None if number is None else float(number) for number in (fill, typical))
        if entry["kind"] == "date":
            form, since = _entry_of_type(entry, "form", str), _entry_of_type(entry, "since", str)
            if form not in FORMS or math.isnan(day_number(since, FORMS[0])) or len(since) != len(FORMS[0]):
                raise ValueError(f"a column of dates cannot have the form {form!r} and the first date {since!r}")
            return Date(name=name, form=form, since=since, fill=fill, flag=flag, typical=typical)
        unit = _entry_of_type(entry, "unit", str, optional=True)
        return Number(name=name, fill=fill, unit=unit, flag=flag, typical=typical)
    if entry["kind"] in ("category", "ordered"):
        values, fill = _words(entry, "values"), _entry_of_type(entry, "fill", str, optional=True)
        if len(values) < 2 or (fill is not None and fill not in values):
            raise ValueError(f"a column of words cannot have the words {values!r} with {fill!r} for missing cells")
        typical = _entry_of_type(entry, "typical", str, optional=True)
        if entry["kind"] == "ordered":
            others = _entry_of_type(entry, "others", bool, default=True)
            return Ordered(name=name, values=values, fill=fill, flag=flag, typical=typical, others=others)
        others = _entry_of_type(entry, "others", bool, default=False)
        return Category(name=name, values=values, fill=fill, flag=flag, typical=typical, others=others)
    raise ValueError(f"the kind of a column cannot be {entry['kind']!r}")


def _entry_of_type(
    record: Mapping[str, Any], name: str, kind: Any, *, default: Any = None, optional: bool = False
) -> Any:
    """The entry ``name`` if its type is ``kind``; with a default, or if optional, it may be absent.

    The value None is allowed if the entry is optional.
    """
    value = record.get(name, default) if optional or default is not None else record[name]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if (value is None and optional) or type(value) in kinds:
        return value
    raise ValueError(f"{name!r} cannot be {value!r}")


def _words(record: Mapping[str, Any], name: str, default: Any = None) -> tuple[str, ...]:
    values = _entry_of_type(record, name, list, default=default)
    if not all(isinstance(word, str) for word in values):
        raise ValueError(f"{name!r} must hold words, got {values!r}")
    return tuple(values)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
