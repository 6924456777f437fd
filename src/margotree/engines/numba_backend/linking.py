"""Inner functions become machine code once, inside the entry points that call them, and never on their own.

Numba optimises each function together with all that it calls and generates machine code for the whole, for every
function: a function at the bottom is compiled once for itself and once more for each of its direct and indirect
callers.  Inner functions are not called from Python, so only the last of these is needed.  Here they are only lowered;
the entry point links them and is optimised as a whole.  A literal number or flag in a call is typed as an ordinary one;
Numba would compile a version of the function for each literal.

`lowering` and `cached_typing` shorten other steps of the compilation.

This module, `lowering`, `cached_typing` and `structs` use Numba's internals and are imported only where `choice` finds
these.
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

from margotree.engines.numba_backend.cached_typing import cached_call_types
from margotree.engines.numba_backend.choice import ways
from margotree.engines.numba_backend.lowering import DirectLowering

#: Prefix of the variables in which functions find their environments.
_ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"
#: Numba's option that omits reference counts, if this version has it.
_NO_REFERENCE_COUNTS = {"_nrt": False} if hasattr(options.DefaultOptions, "_nrt") else {}


def pipeline(entry: bool, counted: bool) -> dict[str, Any]:
    """Options of `njit` for entry points and for inner functions, with or without reference counts."""
    uncounted = {} if counted or "references" not in ways() else _NO_REFERENCE_COUNTS
    return {"pipeline_class": _EntryCompiler if entry else _InnerCompiler, **uncounted}


def without_literals(dispatcher: Any) -> None:
    """Let a function treat the calls ``f(0)`` and ``f(i)`` alike."""
    template = dispatcher.get_call_template

    def plain(args: Any, kws: Any) -> Any:
        return template(tuple(map(types.unliteral, args)), {key: types.unliteral(arg) for key, arg in kws.items()})

    dispatcher.get_call_template = plain


class _NoExecutionEngine:
    """The execution engine of a library without machine code; it ignores environments."""

    def set_env(self, name: str, env: Any) -> None:
        pass


class _LoweredLibrary(JITCodeLibrary):
    """An inner function and all that it calls, linked but not optimised."""

    codegen: Any = _NoExecutionEngine()

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


class _LinkedLibrary(JITCodeLibrary):
    """An entry point with all that it calls; it sets the environments of its inner functions, which did not."""

    def finalize(self) -> None:
        super().finalize()
        engine: Any = self._codegen
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT_PREFIX) and (env := lookup_environment(variable.name)) is not None:
                engine.set_env(variable.name, env)


class _EntryCompiler(Compiler):
    """Numba's compiler with another library and lowering."""

    library: type[JITCodeLibrary] = _LinkedLibrary

    def compile_extra(self, func: Any) -> Any:
        if self.state.library is None and "linking" in ways():
            self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        with global_compiler_lock, cached_call_types():
            return super().compile_extra(func)

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()
        if "lowering" in ways():
            for one in pipelines:
                one.passes[:] = [(DirectLowering if step is NativeLowering else step, why) for step, why in one.passes]
        return pipelines


class _InnerCompiler(_EntryCompiler):
    """The compiler of inner functions."""

    library = _LoweredLibrary
