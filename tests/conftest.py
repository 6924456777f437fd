"""What all tests share."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """A shell that runs the suite in the background has it ignore Ctrl-C, which many tests press."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
