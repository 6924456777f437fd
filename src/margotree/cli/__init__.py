"""The command line: ``margotree`` parses, calls and prints.

Nothing heavy is imported before a command runs, so that help and completion answer at once.
"""

try:
    from margotree.cli.main import main
except KeyboardInterrupt:  # Ctrl-C right after the start
    raise SystemExit(130) from None

__all__ = ["main"]
