"""Machine code is saved, is never stale, and is compiled by several processes at a time."""

import os
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import margotree
from margotree import notices
from margotree.engines.numba_backend import Part, choice, inner, kernel
from margotree.engines.numba_backend import ahead_of_time as ahead
from margotree.engines.numba_backend.sealed_files import read_sealed, write_sealed

ENTRY = """
from margotree.engines.numba_backend import kernel
from margotree.engines.trial_inner import three


@kernel()
def answer():
    return three()
"""
INNER = """
from margotree.engines.numba_backend import inner



@inner()
def three():
    return {}
"""
ASK = """
from margotree.engines.trial_entry import answer
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
    engines = home / "engines"
    shutil.copytree(source / "engines" / "numba_backend", engines / "numba_backend", ignore=ignore)
    for name in ("atomic_files.py", "notices.py"):
        shutil.copy(source / name, home / name)
    (engines / "trial_entry.py").write_text(ENTRY)
    (engines / "trial_inner.py").write_text(INNER.format(3))
    return engines


def start(package, before="", **env):
    """Another process that asks the copy, and not the package that is being tested."""
    env = {**os.environ, "PYTHONPATH": str(package.parents[1]), **env}
    return subprocess.Popen(
        [sys.executable, "-c", before + ASK], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ask(package, before="", **env):
    out, err = start(package, before, **env).communicate(timeout=600)
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


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # as a full disk: no file gets a byte
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are set in Unix's way")
def test_a_full_disk_costs_the_saved_code_and_one_line(package, tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    value, hits, said = ask(package, before=FULL, **env)
    assert (value, hits) == (3, 0)
    assert said.count("not saved") == 1 and "NUMBA_CACHE_DIR" in said
    assert ask(package, **env) == (3, 0, "")  # there is room again
    assert ask(package, **env) == (3, 1, "")


def damaged(data):
    """What becomes of files: cut off, empty, a bit in the machine code flipped, another file altogether."""
    at = 2 * len(data) // 3
    return data[: len(data) // 2], b"", data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :], b"something else"


def test_damaged_files_are_compiled_anew_and_replaced(package, tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert ask(package, **env) == (3, 0, "")
    (file,) = (tmp_path / "cache").rglob("trial_entry*.nbc")
    intact = read_sealed(file)
    assert intact is not None
    for wrong in damaged(file.read_bytes()):
        file.write_bytes(wrong)
        assert read_sealed(file) is None
        assert ask(package, **env) == (3, 0, "")
        assert read_sealed(file) is not None
    assert ask(package, **env) == (3, 1, "")


def test_a_file_passes_for_no_other(tmp_path):
    write_sealed(tmp_path / "one", b"data")
    (tmp_path / "one").rename(tmp_path / "two")
    assert read_sealed(tmp_path / "two") is None


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions are those of a Unix user")
def test_a_file_that_cannot_be_read_is_compiled_anew(package, tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert ask(package, **env) == (3, 0, "")
    (file,) = (tmp_path / "cache").rglob("trial_entry*.nbc")
    file.chmod(0)
    assert ask(package, **env)[:2] == (3, 0)


def test_files_of_former_sources_are_removed(package, tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ask(package, **env)
    (package / "trial_inner.py").write_text(INNER.format(4))
    assert ask(package, **env)[:2] == (4, 0)
    assert len([*(tmp_path / "cache").rglob("trial_entry*.nbc")]) == 1


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
    notices.print_once("first", "a topic of this test")
    notices.print_once("second", "a topic of this test")
    assert capsys.readouterr().err == "margotree: first\n"


def test_parts_that_other_processes_fail_at_are_compiled_here(monkeypatch, tmp_path):
    module = "no_such_module_elsewhere"
    called = []
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(one=lambda: called.append("one"), two=called.append))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2}, raising=False)
    ahead.compile_ahead([Part(f"{module}:one", 3.0), Part(f"{module}:two:words", 2.0), Part(f"{module}:two:more", 1.0)])
    assert sorted(called) == ["more", "one", "words"]


def test_parts_that_others_include_are_compiled_with_them(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    monkeypatch.setattr(ahead, "run", called.append)
    small = Part("unknown:small", 1.0)
    middle = Part("unknown:middle", 2.0, includes=(small,))
    large = Part("unknown:large", 3.0, includes=(middle,))
    ahead.compile_ahead([small, Part("unknown:other", 2.5), large, Part("unknown:training")])
    assert called[:2] == ["unknown:large", "unknown:other"]
    assert set(called[2:]) == {"unknown:small", "unknown:large", "unknown:other", "unknown:training"}


@pytest.mark.skipif(ahead.fcntl is None, reason="this system has no locks of files")
def test_what_another_process_is_compiling_is_waited_for(monkeypatch, tmp_path):
    part, done = f"{ahead.MODULE}:_probe", []
    monkeypatch.setattr(ahead, "_marker", lambda part: tmp_path / "a.compiled")
    monkeypatch.setattr(ahead, "_compiled", set())
    waiting = threading.Thread(target=lambda: done.append(ahead.run(part)))
    with ahead.compile_lock(part):
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and not done
    waiting.join(10.0)
    assert done and (tmp_path / "a.compiled").exists()
    (tmp_path / "a.lock").unlink()
    with ahead.compile_lock(part):  # it is in the cache: there is nothing to wait for
        assert not (tmp_path / "a.lock").exists()


@inner()
def _share(a, b, half):
    if a < 0:
        raise ValueError("a share of less than nothing")
    return 0.5 * (a + b) if half else float(a)


@kernel()
def _shares(i):
    return _share(0, i, True) + _share(i, 1, False) + _share(i, i, i > 0)


def test_inner_functions_are_compiled_inside_their_callers_and_once_for_all_numbers():
    assert _shares(4) == 2.0 + 4.0 + 4.0
    with pytest.raises(ValueError, match="less than nothing"):
        _shares(-1)
    if "linking" in choice.ways() and _share.signatures:  # nothing is compiled if the entry point was kept
        (compiled,) = _share.overloads.values()
        assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0


@pytest.mark.parametrize(
    ("file", "there", "gone"),
    [
        ("linking.py", "import JITCodeLibrary", "import NoSuchLibrary"),
        ("linking.py", "options.DefaultOptions", "options.NoSuchOptions"),
        ("lowering.py", "import load_item", "import no_such_item"),
        ("choice.py", "(0, 68)", "(0, 60)"),
    ],
)
def test_a_numba_without_these_internals_compiles_in_its_own_way(package, file, there, gone):
    path = package / "numba_backend" / file
    assert there in path.read_text()
    path.write_text(path.read_text().replace(there, gone))
    before = "from margotree.engines.numba_backend.choice import ways\nassert not ways()\n"
    assert ask(package, before) == (3, 0, "")
    assert ask(package, before) == (3, 1, "")


def test_a_numba_without_its_cache_compiles_in_every_process_and_says_so(package):
    path = package / "numba_backend" / "disk_cache.py"
    path.write_text(path.read_text().replace("import FunctionCache", "import NoSuchCache"))
    for _ in range(2):
        value, hits, said = ask(package)
        assert (value, hits, said.count("not saved")) == (3, 0, 1)


def test_both_ways_of_compiling_are_kept_side_by_side(package):
    for hits in (0, 1):
        assert ask(package) == (3, hits, "")
        assert ask(package, MARGOTREE_NUMBA="plain") == (3, hits, "")
        assert ask(package, MARGOTREE_NUMBA="without linking") == (3, hits, "")
        assert ask(package, NUMBA_BOUNDSCHECK="1") == (3, hits, "")


def test_the_versions_of_numba_that_can_be_installed_are_those_tested():
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    (first, last), (_, above) = choice.TESTED[0], choice.TESTED[1]
    bounds = next(one for one in project["dependencies"] if one.startswith("numba"))
    assert bounds == f"numba>={first}.{last},<0.{above + 1}"


def test_an_unknown_way_of_compiling_is_refused(package):
    with pytest.raises(AssertionError, match='MARGOTREE_NUMBA must be "plain"'):
        ask(package, MARGOTREE_NUMBA="fast")
