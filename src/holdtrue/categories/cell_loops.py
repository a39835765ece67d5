"""Compiled loops that write the cells of rows, and fetch them; importing this imports numba.

Rows lie together in memory, so all columns are gone through at once. Twins are in `cells`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from holdtrue.columns.loops import compiled

AHEAD = 16  # rows by which cells are fetched before they are read
_instruction: Callable[..., Any] = intrinsic


@_instruction
def fetch(_: Any, cells: Any, row: Any, column: Any) -> Any:
    """Have the line of memory that holds a cell brought to the cache, without waiting for it.

    The rows of a leaf lie anywhere in the table: half of the time would go in waiting.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, *kinds = signature.args
        array = context.make_array(kind)(context, builder, arguments[0])
        at = [
            context.cast(builder, index, given, types.uintp)
            for index, given in zip(arguments[1:], kinds, strict=True)
        ]
        pointer = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
            context, builder, kind, array, at
        )
        pointer = builder.bitcast(pointer, cgutils.voidptr_t)
        word = cgutils.int32_t
        declared = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], declared)
        builder.call(prefetch, [pointer, word(0), word(3), word(1)])  # to read; keep; data
        return context.get_dummy_value()

    return types.void(cells, row, column), generate


@compiled
def place_cells(
    codes: np.ndarray, cell_of_code: np.ndarray, cells: np.ndarray, column: int
) -> None:
    """Write the cells of a column of ``cells``, shape (n_rows, n_columns), by the rows' codes."""
    for i in range(len(codes)):
        cells[i, column] = cell_of_code[codes[i]]


@compiled
def code_integers(
    rows: np.ndarray,
    low: np.ndarray,
    first: np.ndarray,
    weight: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
) -> Any:
    """Write ``value - low`` of each integer and add its row's weight; whether all were in range.

    The counts of column j begin at ``first[j]`` and end at ``first[j + 1]``.
    """
    for i in range(len(rows)):
        in_range = True
        for j in range(rows.shape[1]):
            code = rows[i, j] - low[j]
            if code < 0 or code >= first[j + 1] - first[j]:
                in_range = False
                break
            codes[i, j] = code
            counts[np.uint64(first[j] + code)] += weight[i]
        if not in_range:
            return False
    return True


@compiled
def place_codes(
    codes: np.ndarray,
    feature: np.ndarray,
    first: np.ndarray,
    cell_of_code: np.ndarray,
    cells: np.ndarray,
) -> None:
    """Write the cells of all columns of ``cells``, shape (n_rows, n_columns).

    ``first`` is where the part of each column begins in ``cell_of_code``, ``feature`` its feature.
    """
    for i in range(len(codes)):
        for at in range(len(feature)):
            cells[i, at] = cell_of_code[np.uint64(first[at] + codes[i, feature[at]])]
