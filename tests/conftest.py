"""What all tests share."""

import signal

import pytest

from extras import missing_package, reason


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """A shell that runs the suite in the background has it ignore Ctrl-C, which many tests press."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that fails because a package of an extra is not installed is skipped, and says which."""
    report = yield
    if call.excinfo is not None and report.outcome == "failed" and (name := missing_package(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: {reason(name)}")
    return report
