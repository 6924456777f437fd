"""The help of the command line as a page."""

from __future__ import annotations

import argparse
import os


def page() -> str:
    """A section a command, with its help as the terminal shows it."""
    from margotree.cli.main import build_parser

    os.environ["COLUMNS"] = "100"
    parser = build_parser()
    subs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = [f"## margotree {name}\n\n```text\n{sub.format_help()}```\n" for name, sub in subs.choices.items()]
    return "---\norphan: true\n---\n\n# All commands\n\n" + "\n".join(parts)
