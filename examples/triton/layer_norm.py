"""Layer norm of rows of fp16: mean, variance about the mean, then the row, in blocks of BLOCK."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x, w, b, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        total += tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        values = tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
        centred = tl.where(column < cols, values - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        column = start + offsets
        inside = column < cols
        values = tl.load(x + row + column, mask=inside).to(tl.float32)
        weight = tl.load(w + column, mask=inside).to(tl.float32)
        offset = tl.load(b + column, mask=inside).to(tl.float32)
        tl.store(y + row + column, (values - mean) * scale * weight + offset, mask=inside)
