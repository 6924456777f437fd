"""Compiled kernels shared by the engines: free functions on arrays, released from the GIL and cached on disk."""
