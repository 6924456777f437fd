"""The command line ``margotree``.

Modules import NumPy, scikit-learn and the engines only inside functions, so that help and completion are fast.

- ``main``: the parser, the call of a command, and the handling of errors; start reading here.
- ``commands``: one module per command.
- ``options``, ``model_options``: options that several commands share.
- ``evaluation``: the accuracy on new rows (``fit --holdout``, ``fit --cv``).
- ``saved_trees``, ``output_files``: trees with the description of their table; checks and writing of files.
- ``console``, ``exit_codes``, ``completion``: printing, exit codes and errors, completion scripts of shells.
"""

try:
    from margotree.cli.main import main
except KeyboardInterrupt:  # Ctrl-C right after the start
    raise SystemExit(130) from None

__all__ = ["main"]
