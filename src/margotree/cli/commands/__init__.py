"""The commands, one module each.

``HELP`` is the line in the list of commands, the module docstring is the text of ``margotree COMMAND --help``, ``add``
adds the options to a parser, and ``run`` executes the command and returns its exit code.
"""
