"""Machine code is kept, is never stale, and is compiled by several processes without anybody noticing."""

import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import margotree
from margotree.engines.kernels import jit, linking, parallel

ENTRY = """
from margotree.engines.kernels.jit import kernel
from margotree.engines.kernels.trial_inner import three


@kernel()
def answer():
    return three()
"""
INNER = """
from margotree.engines.kernels.jit import inner


@inner()
def three():
    return {}
"""
ASK = """
from margotree.engines.kernels.trial_entry import answer
print(answer(), sum(answer.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package's kernels with two of our own, one compiled into the other."""
    source = Path(margotree.__file__).parent
    home = tmp_path / "margotree"
    (home / "engines").mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "engines" / "__init__.py").touch()
    ignore = shutil.ignore_patterns("__pycache__")
    kernels = Path(shutil.copytree(source / "engines" / "kernels", home / "engines" / "kernels", ignore=ignore))
    (kernels / "trial_entry.py").write_text(ENTRY)
    (kernels / "trial_inner.py").write_text(INNER.format(3))
    return kernels


def start(package, **env):
    """Another process that asks the copy, and not the package that is being tested."""
    env = {**os.environ, "PYTHONPATH": str(package.parents[2]), **env}
    return subprocess.Popen(
        [sys.executable, "-c", ASK], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ask(package, **env):
    out, err = start(package, **env).communicate(timeout=600)
    assert out, err
    value, hits = out.split()
    return int(value), int(hits), err


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_changed_kernel_is_compiled_anew(package, tmp_path, elsewhere):
    """The entry point's file does not change, only that of a function compiled into it."""
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if elsewhere else {}
    assert ask(package, **env)[:2] == (3, 0)
    assert ask(package, **env)[:2] == (3, 1)
    (package / "trial_inner.py").write_text(INNER.format(4))
    assert ask(package, **env)[:2] == (4, 0)
    assert ask(package, **env)[:2] == (4, 1)


def test_machine_code_with_types_that_are_no_more_is_compiled_anew(package, tmp_path):
    """Numba reads the types it was compiled for before it looks whether it is current."""
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert ask(package, **env)[:2] == (3, 0)
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    with index.open("rb") as file:
        version = pickle.load(file)
    for broken in (b"cmargotree.no_such_module\nThing\n.", b"cmargotree.engines\nNoSuchThing\n.", b""):
        index.write_bytes(pickle.dumps(version) + broken)
        assert ask(package, **env)[:2] == (3, 0)
        assert ask(package, **env)[:2] == (3, 1)


def test_processes_that_start_at_once_do_not_disturb_each_other(package):
    (package / "trial_inner.py").write_text(INNER.format(5))
    processes = [start(package) for _ in range(3)]
    assert [process.communicate(timeout=600)[0].split()[0] for process in processes] == ["5"] * 3
    assert ask(package)[:2] == (5, 1)


def test_without_a_folder_to_write_it_says_so_once_and_goes_on(package, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.touch()
    value, hits, said = ask(package, NUMBA_CACHE_DIR=str(nowhere / "cache"), HOME=str(nowhere))
    if "no folder" not in said:
        pytest.skip("Numba found a folder all the same")
    assert (value, hits) == (3, 0)
    assert said.count("no folder") == 1


def test_a_line_on_a_topic_is_said_once(capsys):
    jit.say_once("first", "a topic of this test")
    jit.say_once("second", "a topic of this test")
    assert capsys.readouterr().err == "margotree: first\n"


def test_parts_are_compiled_whatever_happens_to_the_other_processes(monkeypatch):
    """Parts that other processes fail at are done here."""
    done = []
    monkeypatch.setattr(parallel, "_help", lambda missing: missing.popleft())
    monkeypatch.setattr(parallel, "run", done.append)
    monkeypatch.setattr(jit, "_said", {"compiling"})
    parts = ["no_such_module:one", "no_such_module:two"]
    parallel.compile_parts(parts)
    assert set(done) == set(parts)


@pytest.mark.skipif(parallel.fcntl is None, reason="this system has no locks of files")
def test_what_another_process_is_compiling_is_waited_for(monkeypatch, tmp_path):
    part, done = "margotree.engines.kernels.parallel:_probe", []
    monkeypatch.setattr(parallel, "_marker", lambda part: tmp_path / "a.compiled")
    monkeypatch.setattr(parallel, "_ready", set())
    waiting = threading.Thread(target=lambda: done.append(parallel.run(part)))
    with parallel.alone(part):
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and not done
    waiting.join(10.0)
    assert done and (tmp_path / "a.compiled").exists()
    (tmp_path / "a.lock").unlink()
    with parallel.alone(part):  # it is in the cache: there is nothing to wait for
        assert not (tmp_path / "a.lock").exists()


@jit.inner()
def _share(a, b, half):
    if a < 0:
        raise ValueError("a share of less than nothing")
    return 0.5 * (a + b) if half else float(a)


@jit.kernel()
def _shares(i):
    return _share(0, i, True) + _share(i, 1, False) + _share(i, i, i > 0)


def test_inner_functions_are_compiled_inside_their_callers_and_once_for_all_numbers():
    assert _shares(4) == 2.0 + 4.0 + 4.0
    with pytest.raises(ValueError, match="less than nothing"):
        _shares(-1)
    if linking.Compiler is not None and _share.signatures:  # nothing is compiled if the entry point was kept
        (compiled,) = _share.overloads.values()
        assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0


def test_a_numba_without_these_internals_compiles_in_its_own_way(package):
    path = package / "linking.py"
    path.write_text(path.read_text().replace("import JITCodeLibrary", "import NoSuchLibrary"))
    assert ask(package)[:2] == (3, 0)
    assert ask(package)[:2] == (3, 1)
