"""Records: named arrays and numbers that compiled functions hand on as one address.

Numba takes a named tuple apart at every call: the pointer, the shape and the strides of each of its arrays are
arguments of their own, some eighty for a workspace.  Writing that down was a third of all that the kernels were made
of, and at run time they went through the stack.  A record lies in one place for as long as an entry point runs,
written when Python calls it.  Functions get its address and read what they need; nobody writes to it, and the
optimiser is told so.

Arrays read from a record are borrowed: kernels must not hand them back to Python.
"""

from __future__ import annotations

from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array

T = TypeVar("T")

_WORD = ir.IntType(64)


class Record(types.Type):
    """The type of a record: what its fields are called, and their types."""

    def __init__(self, kind: type, fields: tuple[str, ...], members: tuple[Any, ...]) -> None:
        self.kind, self.fields, self.members = kind, fields, members
        super().__init__(f"Record({kind.__module__}.{kind.__qualname__}, {', '.join(map(str, members))})")

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


def record(kind: type[T]) -> type[T]:
    """Class decorator: compiled functions take these named tuples by address."""

    @typeof_impl.register(kind)
    def _(value: Any, context: Any) -> Any:
        members = tuple(typeof_impl(member, context) for member in value)
        return None if None in members else Record(kind, value._fields, members)

    return kind


@register_model(Record)
class _Model(models.OpaqueModel):
    """An address."""


@unbox(Record)
def _written(record: Record, obj: Any, c: Any) -> Any:
    """Write a named tuple down in the frame of the function that Python calls."""
    builder, context = c.builder, c.context
    whole = types.Tuple(record.members)
    native = c.unbox(whole, obj)
    block = cgutils.alloca_once(builder, _WORD, size=record.words)
    for k, (field, member) in enumerate(zip(record.fields, record.members, strict=True)):
        at, _ = record.place(field)
        for q, word in enumerate(_taken_apart(context, builder, member, builder.extract_value(native.value, k))):
            builder.store(word, builder.bitcast(builder.gep(block, [_WORD(at + q)]), word.type.as_pointer()))

    def cleanup() -> None:
        if native.cleanup is not None:
            native.cleanup()
        if context.enable_nrt:
            context.nrt.decref(builder, whole, native.value)

    address = _published(builder, builder.bitcast(block, context.get_value_type(record)))
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
    key = Record

    def generic_resolve(self, record: Record, field: str) -> Any:  # type: ignore[override]
        return record.place(field)[1] if field in record.fields else None


@lower_getattr_generic(Record)
def _read(context: Any, builder: Any, record: Record, address: Any, field: str) -> Any:
    at, member = record.place(field)
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
