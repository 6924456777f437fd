"""Inner functions become machine code once, inside the entry points that call them, and never by themselves.

Numba optimises each function together with all that it calls and makes machine code of the lot, for every function
anew: a function at the bottom is compiled once for itself and once more for each of its callers and theirs.  Inner
functions are not called from Python, so all but the last of that is thrown away.  Here they are only lowered; the entry
point links them in and is optimised as a whole.  And a number or a flag that is written down in a call is an ordinary
number or flag; Numba would make a version of the function for each.

Some of the rest is done in shorter ways (`lowering`, `cached_typing`).

This module, `lowering`, `cached_typing` and `structs` build on Numba's internals and are imported only where `choice`
finds them.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import options
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

from margotree.engines.numba_backend.cached_typing import remembered
from margotree.engines.numba_backend.choice import ways
from margotree.engines.numba_backend.lowering import DirectLowering

#: How the variables are called in which functions find their environments.
_ENVIRONMENT = "_ZN08NumbaEnv"
#: Numba's option that leaves out reference counts, if this version has it.
_NOT_COUNTED = {"_nrt": False} if hasattr(options.DefaultOptions, "_nrt") else {}


def pipeline(entry: bool, counted: bool) -> dict[str, Any]:
    """Options of `njit` for entry points and for functions that only they call, with references counted or not."""
    uncounted = {} if counted or "references" not in ways() else _NOT_COUNTED
    return {"pipeline_class": _Entry if entry else _Inner, **uncounted}


def without_literals(dispatcher: Any) -> None:
    """Have a function take ``f(0)`` and ``f(i)`` for calls of one kind."""
    template = dispatcher.get_call_template

    def plain(args: Any, kws: Any) -> Any:
        return template(tuple(map(types.unliteral, args)), {key: types.unliteral(arg) for key, arg in kws.items()})

    dispatcher.get_call_template = plain


class _NoEngine:
    """What a library without machine code says when it is told where an environment is."""

    def set_env(self, name: str, env: Any) -> None:
        pass


class _Lowered(JITCodeLibrary):
    """An inner function and all that it calls, linked and not optimised."""

    codegen: Any = _NoEngine()

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # older ones have none
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _Whole(JITCodeLibrary):
    """An entry point with all that it calls, whose environments it sets since they did not."""

    def finalize(self) -> None:
        super().finalize()
        engine: Any = self._codegen
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT) and (env := lookup_environment(variable.name)) is not None:
                engine.set_env(variable.name, env)


class _Entry(Compiler):
    """Numba's compiler with another library."""

    library: type[JITCodeLibrary] = _Whole

    def compile_extra(self, func: Any) -> Any:
        if self.state.library is None and "linking" in ways():
            self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        with global_compiler_lock, remembered():
            return super().compile_extra(func)

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()
        if "lowering" in ways():
            for one in pipelines:
                one.passes[:] = [(DirectLowering if step is NativeLowering else step, why) for step, why in one.passes]
        return pipelines


class _Inner(_Entry):
    library = _Lowered
