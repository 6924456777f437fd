"""Structs: named arrays and numbers that compiled functions hand on as one address.

Numba takes a named tuple apart at every call: the pointer, the shape and the strides of each of its arrays are
arguments of their own, some eighty for a workspace.  Writing that down was a third of all that the kernels were made
of, and at run time they went through the stack.  A struct lies in one place for as long as an entry point runs,
written when Python calls it.  Functions get its address and read what they need; they do not write to it, and
the optimiser is told so.

Arrays read from a struct are borrowed: kernels must not hand them back to Python.  Frozen arrays count as others, so
that kernels are not compiled once more for them; a kernel must not write to an array that may be frozen.  With
``NUMBA_BOUNDSCHECK=1`` one that does is refused by the compiler.
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
    """The type of a struct: what its fields are called, and their types."""

    def __init__(self, kind: type, fields: tuple[str, ...], members: tuple[Any, ...]) -> None:
        self.kind, self.fields, self.members = kind, fields, members
        super().__init__(f"Struct({kind.__module__}.{kind.__qualname__}, {', '.join(map(str, members))})")

    def place(self, field: str) -> tuple[int, Any]:
        """How many words lie before a field, and its type."""
        at = self.fields.index(field)
        return sum(map(_words, self.members[:at])), self.members[at]

    @property
    def words(self) -> int:
        return sum(map(_words, self.members))


def _words(member: Any) -> int:
    """An array's pointer and shape, and the strides unless the shape tells; a number."""
    if not isinstance(member, types.Array):
        return 1
    return 1 + member.ndim * (1 if member.layout == "C" else 2)


def register(kind: type) -> None:
    """Have compiled functions take these named tuples by address."""

    @typeof_impl.register(kind)
    def _(value: Any, context: Any) -> Any:
        members = tuple(_writable(typeof_impl(member, context)) for member in value)
        return None if None in members else Struct(kind, value._fields, members)


def _writable(member: Any) -> Any:
    """The same type whether or not an array is frozen."""
    if not isinstance(member, types.Array) or member.mutable or getattr(config, "BOUNDSCHECK", None):
        return member
    return member.copy(readonly=False)


@register_model(Struct)
class _Model(models.OpaqueModel):
    """An address."""


@unbox(Struct)
def _written(whole: Struct, obj: Any, c: Any) -> Any:
    """Write a named tuple down in the frame of the function that Python calls."""
    builder, context = c.builder, c.context
    members = types.Tuple(whole.members)
    native = c.unbox(members, obj)
    block = cgutils.alloca_once(builder, _WORD, size=whole.words)
    for k, (field, member) in enumerate(zip(whole.fields, whole.members, strict=True)):
        at, _ = whole.place(field)
        for q, word in enumerate(_taken_apart(context, builder, member, builder.extract_value(native.value, k))):
            builder.store(word, builder.bitcast(builder.gep(block, [_WORD(at + q)]), word.type.as_pointer()))

    def cleanup() -> None:
        if native.cleanup is not None:
            native.cleanup()
        if context.enable_nrt:
            context.nrt.decref(builder, members, native.value)

    address = _published(builder, builder.bitcast(block, context.get_value_type(whole)))
    return NativeValue(address, is_error=native.is_error, cleanup=cleanup)


def _published(builder: Any, address: Any) -> Any:
    """The same address, in such a way that nothing is read from it before all is written."""
    return builder.asm(ir.FunctionType(address.type, [address.type]), "", "=r,0,~{memory}", [address], True)


def _taken_apart(context: Any, builder: Any, member: Any, value: Any) -> list[Any]:
    if not isinstance(member, types.Array):
        return [context.get_value_as_data(builder, member, value)]
    array = make_array(member)(context, builder, value)
    sizes = cgutils.unpack_tuple(builder, array.shape, member.ndim)
    if member.layout != "C":
        sizes = [*sizes, *cgutils.unpack_tuple(builder, array.strides, member.ndim)]
    return [array.data, *sizes]


@infer_getattr
class _Fields(AttributeTemplate):
    key = Struct

    def generic_resolve(self, whole: Struct, field: str) -> Any:  # type: ignore[override]
        return whole.place(field)[1] if field in whole.fields else None


@lower_getattr_generic(Struct)
def _read(context: Any, builder: Any, whole: Struct, address: Any, field: str) -> Any:
    at, member = whole.place(field)
    block = builder.bitcast(address, _WORD.as_pointer())

    def word(offset: int, kind: Any) -> Any:
        place = builder.gep(block, [_WORD(at + offset)], inbounds=True)
        value = builder.load(builder.bitcast(place, kind.as_pointer()))
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
