"""What all tests share."""

import signal

import hypothesis
import pytest

from extras import missing_package, reason

#: The warnings of a fit about its data and its tree: most tests have few samples.  A test about one of them uses
#: ``pytest.warns``, which sees ignored warnings, too.
FIT_WARNINGS = ("FewSplitsWarning", "FewLeavesWarning", "RareClassWarning", "CutOffWarning", "UnwrittenProofWarning")


# No test has a deadline: the first call of a kernel loads or compiles it, and machines differ.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


def pytest_configure(config):
    """Ignore the warnings of fits; not in pyproject.toml, which would import margotree before coverage is measured."""
    for name in FIT_WARNINGS:
        config.addinivalue_line("filterwarnings", f"ignore::margotree.estimators.fit_warnings.{name}")


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
