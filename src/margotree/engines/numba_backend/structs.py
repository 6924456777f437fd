"""Structs: named tuples of arrays and numbers that compiled functions pass by pointer.

Numba unpacks a named tuple at every call: the pointer, the shape and the strides of each array are arguments of their
own, some eighty for a workspace.  These were a third of all instructions of the kernels, and at run time they were
passed on the stack.  A struct is stored once, when Python calls an entry point, for as long as it runs.  Functions
receive its address and read what they need; they do not write to it, and the optimiser treats it as constant.

Arrays read from a struct are borrowed: kernels must not return them to Python.  Read-only arrays have the same type as
writeable ones, so that kernels are not compiled again for them; a kernel must not write to an array that may be
read-only.  With ``NUMBA_BOUNDSCHECK=1`` the compiler refuses a kernel that does.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array

_WORD = ir.IntType(64)


class Struct(types.Type):
    """The type of a struct: the names of its fields, and their types."""

    def __init__(self, kind: type, fields: tuple[str, ...], members: tuple[Any, ...]) -> None:
        self.kind, self.fields, self.members = kind, fields, members
        super().__init__(f"Struct({kind.__module__}.{kind.__qualname__}, {', '.join(map(str, members))})")

    def field_offset(self, field: str) -> tuple[int, Any]:
        """The number of words before a field, and its type."""
        at = self.fields.index(field)
        return sum(map(_n_words, self.members[:at])), self.members[at]

    @property
    def words(self) -> int:
        """The number of words of the struct."""
        return sum(map(_n_words, self.members))


def _n_words(member: Any) -> int:
    """The words of a field: for an array its pointer, shape and, unless C-contiguous, strides; for a number one."""
    if not isinstance(member, types.Array):
        return 1
    return 1 + member.ndim * (1 if member.layout == "C" else 2)


def register(kind: type) -> None:
    """Let compiled functions receive these named tuples by pointer."""

    @typeof_impl.register(kind)
    def _(value: Any, context: Any) -> Any:
        members = tuple(_writable(typeof_impl(member, context)) for member in value)
        return None if None in members else Struct(kind, value._fields, members)


def _writable(member: Any) -> Any:
    """The type of a field, the same for read-only and writeable arrays."""
    if not isinstance(member, types.Array) or member.mutable or getattr(config, "BOUNDSCHECK", None):
        return member
    return member.copy(readonly=False)


@register_model(Struct)
class _Model(models.OpaqueModel):
    """A pointer."""


@unbox(Struct)
def _unbox_struct(whole: Struct, obj: Any, c: Any) -> Any:
    """Store a named tuple in the stack frame of the function that Python calls."""
    builder, context = c.builder, c.context
    members = types.Tuple(whole.members)
    native = c.unbox(members, obj)
    block = cgutils.alloca_once(builder, _WORD, size=whole.words)
    for k, (field, member) in enumerate(zip(whole.fields, whole.members, strict=True)):
        at, _ = whole.field_offset(field)
        for q, word in enumerate(_words_of(context, builder, member, builder.extract_value(native.value, k))):
            builder.store(word, builder.bitcast(builder.gep(block, [_WORD(at + q)]), word.type.as_pointer()))

    def cleanup() -> None:
        if native.cleanup is not None:
            native.cleanup()
        if context.enable_nrt:
            context.nrt.decref(builder, members, native.value)

    address = _behind_memory_barrier(builder, builder.bitcast(block, context.get_value_type(whole)))
    return NativeValue(address, is_error=native.is_error, cleanup=cleanup)


def _behind_memory_barrier(builder: Any, address: Any) -> Any:
    """The same address, behind a barrier: nothing is read from it before everything is written."""
    return builder.asm(ir.FunctionType(address.type, [address.type]), "", "=r,0,~{memory}", [address], True)


def _words_of(context: Any, builder: Any, member: Any, value: Any) -> list[Any]:
    """The words of a field's value, as stored."""
    if not isinstance(member, types.Array):
        return [context.get_value_as_data(builder, member, value)]
    array = make_array(member)(context, builder, value)
    sizes = cgutils.unpack_tuple(builder, array.shape, member.ndim)
    if member.layout != "C":
        sizes = [*sizes, *cgutils.unpack_tuple(builder, array.strides, member.ndim)]
    return [array.data, *sizes]


@infer_getattr
class _Fields(AttributeTemplate):
    """Types of the fields, for ``struct.field``."""

    key = Struct

    def _type_of_field(self, whole: Struct, field: str) -> Any:
        return whole.field_offset(field)[1] if field in whole.fields else None

    generic_resolve: Any = _type_of_field


@lower_getattr_generic(Struct)
def _load_field(context: Any, builder: Any, whole: Struct, address: Any, field: str) -> Any:
    """Instructions for ``struct.field``."""
    at, member = whole.field_offset(field)
    block = builder.bitcast(address, _WORD.as_pointer())

    def word(offset: int, kind: Any) -> Any:
        field_offset = builder.gep(block, [_WORD(at + offset)], inbounds=True)
        value = builder.load(builder.bitcast(field_offset, kind.as_pointer()))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if not isinstance(member, types.Array):
        return context.data_model_manager[member].from_data(builder, word(0, context.get_data_type(member)))
    array = make_array(member)(context, builder)
    shape = [word(1 + axis, _WORD) for axis in range(member.ndim)]
    itemsize = getattr(member.dtype, "bitwidth", 8) // 8
    if member.layout == "C":
        strides = [_WORD(itemsize)]
        for size in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], size, flags=["nsw"]))
    else:
        strides = [word(1 + member.ndim + axis, _WORD) for axis in range(member.ndim)]
    populate_array(array, word(0, array.data.type), shape, strides, itemsize, meminfo=None)
    return array._getvalue()
