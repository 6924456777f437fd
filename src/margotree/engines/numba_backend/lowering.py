"""Array entries, loops over ranges and plain variables in few LLVM instructions.

Numba generates some forty instructions for ``a[i]``, mostly for negative indices, about a hundred for a loop, for steps
of either sign and zero, and clears every variable that is no longer needed.  Kernels contain thousands of these, and
the optimiser spends its time on their removal.  Here

- an index counts from the start: kernels must not use negative indices, except for literal numbers.  With
  ``NUMBA_BOUNDSCHECK=1`` negative indices raise :class:`IndexError`, as indices beyond the end do;
- the step of a range is not zero;
- variables without a counted reference to an array are not cleared.

Like `linking`, this module uses Numba's internals and is not used where they are missing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.np.arrayobj import load_item, store_item

_ENTRIES = (types.Number, types.Boolean)


class _Lower(Lower):
    """Numba's translation of typed instructions to LLVM, with shorter code for frequent ones."""

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        array = self.typeof(value.name)
        at = self._indices(array, index)
        if at is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        pointer = self._pointer(array, self.loadvar(value.name), at)
        entry = load_item(self.context, self.builder, array, pointer)
        return self.context.cast(self.builder, entry, array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        array, kind = self.typeof(target_var.name), self.typeof(value_var.name)
        at = self._indices(array, index_var) if isinstance(kind, _ENTRIES) else None
        if at is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        entry = self.context.cast(self.builder, self.loadvar(value_var.name), kind, array.dtype)
        pointer = self._pointer(array, self.loadvar(target_var.name), at)
        return store_item(self.context, self.builder, array, entry, pointer)

    def _indices(self, array: Any, index: Any) -> list[Any] | None:
        """The index along each axis; None for other kinds of indices and for negative literals."""
        index_type = self.typeof(index.name)
        kinds = tuple(getattr(index_type, "types", (index_type,)))
        if type(array) is not types.Array or not isinstance(array.dtype, _ENTRIES) or len(kinds) != array.ndim:
            return None
        if not all(isinstance(kind, types.Integer) for kind in kinds):
            return None
        value = self.loadvar(index.name)
        indices = cgutils.unpack_tuple(self.builder, value) if isinstance(index_type, types.BaseTuple) else [value]
        at = [self.context.cast(self.builder, one, kind, types.intp) for one, kind in zip(indices, kinds, strict=True)]
        return None if any(isinstance(one, ir.Constant) and one.constant < 0 for one in at) else at

    def _pointer(self, array: Any, value: Any, at: list[Any]) -> Any:
        """Pointer to an array entry."""
        builder, model = self.builder, self.context.data_model_manager[array]
        data, shape, strides = (model.get_field_position(field) for field in ("data", "shape", "strides"))
        if self.context.enable_boundscheck:
            for axis, index in enumerate(at):
                cgutils.do_boundscheck(self.context, builder, index, builder.extract_value(value, (shape, axis)), axis)
        start = builder.extract_value(value, data)
        if array.layout == "C":
            offset = at[0]
            for axis, index in enumerate(at[1:], 1):
                offset = builder.add(builder.mul(offset, builder.extract_value(value, (shape, axis))), index)
            return builder.gep(start, [offset])
        offset = ir.Constant(at[0].type, 0)
        for axis, index in enumerate(at):
            offset = builder.add(offset, builder.mul(index, builder.extract_value(value, (strides, axis))))
        return cgutils.pointer_add(builder, start, offset)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op in ("getiter", "iternext", "pair_first", "pair_second"):
            kind, value = self.typeof(expr.value.name), self.loadvar(expr.value.name)
            if expr.op == "getiter" and isinstance(kind, types.RangeType):
                return self._range(resty, value)
            if expr.op == "iternext" and isinstance(kind, types.RangeIteratorType):
                return self._next(resty, kind, value)
            if isinstance(kind, types.Pair) and isinstance(kind.first_type, types.Integer):
                model = self.context.data_model_manager[kind]
                field = model.get_field_position(expr.op.removeprefix("pair_"))
                return self.builder.extract_value(value, field)
        return super().lower_expr(resty, expr)

    def _range(self, resty: Any, value: Any) -> Any:
        """The state of a loop: the current number, the step, and how many numbers are left."""
        builder = self.builder
        start, stop, step = (builder.extract_value(value, k) for k in range(3))
        one = ir.Constant(step.type, 1)
        upward = builder.icmp_signed(">", step, ir.Constant(step.type, 0))
        past = builder.select(upward, builder.sub(step, one), builder.add(step, one))
        count = builder.sdiv(builder.add(builder.sub(stop, start), past), step)
        loop = self.context.make_helper(builder, resty)
        loop.iter, loop.count = cgutils.alloca_once(builder, start.type), cgutils.alloca_once(builder, start.type)
        loop.stop, loop.step = stop, step
        builder.store(start, loop.iter)
        builder.store(count, loop.count)
        return loop._getvalue()

    def _next(self, resty: Any, kind: Any, value: Any) -> Any:
        """The current number, and whether one was left."""
        builder, model = self.builder, self.context.data_model_manager[kind]
        at, step, left = (builder.extract_value(value, model.get_field_position(f)) for f in ("iter", "step", "count"))
        count, number = builder.load(left), builder.load(at)
        builder.store(builder.sub(count, ir.Constant(count.type, 1)), left)
        builder.store(builder.add(number, step), at)
        pair = self.context.make_helper(builder, resty)
        pair.first, pair.second = number, builder.icmp_signed(">", count, ir.Constant(count.type, 0))
        return pair._getvalue()

    def _holds_no_reference(self, name: str) -> bool:
        """Whether a variable holds no counted reference."""
        return not self._disable_sroa_like_opt and not (
            self.context.enable_nrt and self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo()
        )

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Memory for a variable, without debug information."""
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if argidx is not None or name in self._singly_assigned_vars or not self._holds_no_reference(name):
            super().storevar(value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        if not self._holds_no_reference(name):
            super().delvar(name)
        elif name not in self._blk_local_varmap:  # as in Numba: deleted before it is set, so it needs memory
            self._singly_assigned_vars.discard(name)
            self._alloca_var(name, self.typeof(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class DirectLowering(NativeLowering):
    """The last compiler pass, with this lowering."""

    _name = "direct_lowering"

    @property
    def lowering_class(self) -> type[_Lower]:
        return _Lower
