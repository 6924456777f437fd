"""Print a completion script for a shell.

bash: margotree completion bash >> ~/.bashrc; zsh: save as _margotree on your fpath; fish: save as
~/.config/fish/completions/margotree.fish.
"""

from __future__ import annotations

import argparse

from margotree.cli import exit_codes

HELP = "print a completion script for bash, zsh or fish"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    from margotree.cli.completion import script

    print(script(args.shell), end="")
    return exit_codes.OK
