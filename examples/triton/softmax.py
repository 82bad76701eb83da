"""Row softmax: one program a row, the row in blocks of BLOCK columns, the maximum taken online."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    offsets = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        values = tl.load(x + row + column, mask=column < cols, other=float("-inf"))
        largest = tl.maximum(largest, values, propagate_nan=tl.PropagateNan.ALL)
    top = tl.max(largest, axis=0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        values = tl.load(x + row + column, mask=column < cols, other=float("-inf"))
        total += tl.exp(values - top)
    scale = tl.sum(total, axis=0)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        inside = column < cols
        values = tl.load(x + row + column, mask=inside)
        tl.store(y + row + column, tl.exp(values - top) / scale, mask=inside)


@triton.jit
def softmax_short_tail(x, y, cols, BLOCK: tl.constexpr):
    """The same with a mistake: what fills up the last block is 0, and counts as exp(0 - top)."""
    row = tl.program_id(0).to(tl.int64) * cols
    offsets = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        values = tl.load(x + row + column, mask=column < cols, other=float("-inf"))
        largest = tl.maximum(largest, values, propagate_nan=tl.PropagateNan.ALL)
    top = tl.max(largest, axis=0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        values = tl.load(x + row + column, mask=column < cols, other=0.0)
        total += tl.exp(values - top)
    scale = tl.sum(total, axis=0)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        inside = column < cols
        values = tl.load(x + row + column, mask=inside)
        tl.store(y + row + column, tl.exp(values - top) / scale, mask=inside)
