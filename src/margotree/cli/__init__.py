"""The command line: ``margotree`` parses, calls and prints.

Nothing heavy is imported before a command runs, so that help and completion answer at once.
"""

from margotree.cli.main import main

__all__ = ["main"]
