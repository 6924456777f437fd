"""Generate completion scripts for bash, zsh and fish from the parser."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from margotree.private_names import arguments, subcommands


@dataclass(frozen=True)
class Option:
    """An option of a command as completion needs it; ``choices`` is empty if any value is allowed."""

    flag: str
    help: str
    choices: tuple[str, ...]
    takes_value: bool


def script(shell: str) -> str:
    """The completion script for bash, zsh or fish."""
    from margotree.cli.main import build_parser

    commands = _commands(build_parser())
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


Commands = dict[str, tuple[str, list[Option], tuple[str, ...]]]


def _commands(parser: argparse.ArgumentParser) -> Commands:
    """For each command: its help, its options, and the choices of its first positional argument (empty: a file)."""
    return {name: (text, _options(sub), _words(sub)) for name, text, sub in subcommands(parser)}


def _options(parser: argparse.ArgumentParser) -> list[Option]:
    return [
        Option(a.option_strings[-1], (a.help or "").replace("%%", "%"), tuple(map(str, a.choices or ())), a.nargs != 0)
        for a in arguments(parser)
        if a.option_strings
    ]


def _words(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    return next((tuple(map(str, a.choices)) for a in arguments(parser) if not a.option_strings and a.choices), ())


def _bash(commands: Commands) -> str:
    cases = []
    for name, (_, options, words) in commands.items():
        values = "".join(
            f'            {o.flag}) COMPREPLY=($(compgen -W "{" ".join(o.choices)}" -- "$cur")); return ;;\n'
            for o in options
            if o.choices
        )
        flags = " ".join(o.flag for o in options)
        first = (
            f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"))'
            if words
            else 'COMPREPLY=($(compgen -f -- "$cur"))'
        )
        cases.append(
            f"    {name})\n"
            + (f'        case "$prev" in\n{values}        esac\n' if values else "")
            + f'        if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W "{flags}" -- "$cur"))\n'
            + f"        else {first}; fi ;;\n"
        )
    return (
        "# margotree completion for bash\n_margotree() {\n"
        '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"\n'
        "    COMPREPLY=()\n"
        "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
        f'        COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$cur")); return\n    fi\n'
        '    case "${COMP_WORDS[1]}" in\n' + "".join(cases) + "    esac\n}\n"
        "complete -o filenames -F _margotree margotree\n"
    )


def _zsh(commands: Commands) -> str:
    listed = "\n".join(f"        {_zsh_quote(f'{name}:{text}')}" for name, (text, _, _) in commands.items())
    cases = []
    for name, (_, options, words) in commands.items():
        specs = [_zsh_spec(o) for o in options] + [f"'*:: :({' '.join(words)})'" if words else "'*:file:_files'"]
        cases.append(f"        {name}) _arguments \\\n            " + " \\\n            ".join(specs) + " ;;\n")
    return (
        "#compdef margotree\n_margotree() {\n    local -a commands\n    commands=(\n" + listed + "\n    )\n"
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
        "    shift words; (( CURRENT-- ))\n"
        '    case "$words[1]" in\n' + "".join(cases) + "    esac\n}\n"
        'if [[ "$funcstack[1]" == "_margotree" ]]; then _margotree "$@"; else compdef _margotree margotree; fi\n'
    )


def _zsh_spec(option: Option) -> str:
    text = option.help.translate(str.maketrans("[]:", "(),", "'"))
    value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files" if option.takes_value else ""
    return f"'{option.flag}[{text}]{value}'"


def _zsh_quote(text: str) -> str:
    return "'" + text.replace("'", "") + "'"


def _fish(commands: Commands) -> str:
    no_command = "not __fish_seen_subcommand_from " + " ".join(commands)
    lines = ["# margotree completion for fish"]
    for name, (text, options, words) in commands.items():
        lines.append(f"complete -c margotree -f -n '{no_command}' -a {name} -d '{_fish_quote(text)}'")
        after_command = f"__fish_seen_subcommand_from {name}"
        if words:
            lines.append(f"complete -c margotree -f -n '{after_command}' -a '{' '.join(words)}'")
        for o in options:
            value = f" -x -a '{' '.join(o.choices)}'" if o.choices else " -r" if o.takes_value else ""
            name_flag = f"-l {o.flag[2:]}" if o.flag.startswith("--") else f"-s {o.flag[1:]}"
            lines.append(f"complete -c margotree -n '{after_command}' {name_flag}{value} -d '{_fish_quote(o.help)}'")
    return "\n".join(lines) + "\n"


def _fish_quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
