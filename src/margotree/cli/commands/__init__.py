"""One module a command: HELP in a line, ``add`` its options, ``run`` it."""
