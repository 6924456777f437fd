"""The alternating search's kernels: one start each, without the interpreter."""
