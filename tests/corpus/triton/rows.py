"""Kernels that work on rows: norms, softmax, a loss, dropout, rotary embedding, activations."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + row + column, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row + column, weights / tl.sum(weights, axis=0), mask=inside)


@triton.jit
def softmax_rows(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < cols)
    values = tl.load(x + row * cols + column, mask=inside, other=-float("inf")).to(tl.float32)
    values = tl.where(row < rows, values, 0.0)
    weights = tl.exp(values - tl.max(values, axis=1, keep_dims=True))
    result = weights / tl.sum(weights, axis=1, keep_dims=True)
    tl.store(y + row * cols + column, result, mask=inside)


@triton.jit
def layer_norm(x, w, b, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * cols
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
        centred = tl.where(column < cols, values - mean, 0.0)
        squares += centred * centred
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < cols
        values = tl.load(x + row + column, mask=inside).to(tl.float32)
        weight = tl.load(w + column, mask=inside).to(tl.float32)
        offset = tl.load(b + column, mask=inside).to(tl.float32)
        tl.store(y + row + column, (values - mean) * scale * weight + offset, mask=inside)


@triton.jit
def rms_norm(x, w, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / cols + eps)
    weight = tl.load(w + column, mask=inside).to(tl.float32)
    tl.store(y + row + column, (values * scale * weight).to(tl.bfloat16), mask=inside)


@triton.jit
def cross_entropy(x, labels, losses, gradients, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < cols
    label = tl.load(labels + row)
    values = tl.load(x + row * cols + column, mask=inside, other=-float("inf"))
    top = tl.max(values, axis=0)
    weights = tl.exp(values - top)
    total = tl.sum(weights, axis=0)
    chosen = tl.load(x + row * cols + label)
    tl.store(losses + row, tl.log(total) + top - chosen)
    gradient = weights / total - tl.where(column == label, 1.0, 0.0)
    tl.store(gradients + row * cols + column, gradient, mask=inside)


@triton.jit
def dropout(x, y, count, keep, seed, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = tl.load(x + place, mask=inside)
    kept = tl.rand(seed, place) < keep
    tl.store(y + place, tl.where(kept, values / keep, 0.0), mask=inside)


@triton.jit
def rope(q, cosines, sines, y, heads, HALF: tl.constexpr):
    token, head = tl.program_id(0), tl.program_id(1)
    at = (token * heads + head) * (2 * HALF)
    place = tl.arange(0, HALF)
    cosine = tl.load(cosines + token * HALF + place)
    sine = tl.load(sines + token * HALF + place)
    first = tl.load(q + at + place).to(tl.float32)
    second = tl.load(q + at + HALF + place).to(tl.float32)
    tl.store(y + at + place, (first * cosine - second * sine).to(tl.float16))
    tl.store(y + at + HALF + place, (second * cosine + first * sine).to(tl.float16))


@triton.jit
def rope_pairs(q, cosines, sines, y, heads, HALF: tl.constexpr):
    """The other convention: neighbours turn together, taken apart and put together in registers."""
    token, head = tl.program_id(0), tl.program_id(1)
    at = (token * heads + head) * (2 * HALF)
    place = tl.arange(0, HALF)
    cosine = tl.load(cosines + token * HALF + place)
    sine = tl.load(sines + token * HALF + place)
    both = tl.load(q + at + tl.arange(0, 2 * HALF)).to(tl.float32)
    first, second = tl.split(tl.reshape(both, [HALF, 2]))
    turned = tl.join(first * cosine - second * sine, second * cosine + first * sine)
    tl.store(y + at + tl.arange(0, 2 * HALF), tl.reshape(turned, [2 * HALF]).to(tl.float16))


@triton.jit
def activations(x, y, count, BLOCK: tl.constexpr):
    """GELU, SiLU, softplus, tanh and others in turn: the mathematical functions of Triton."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    v = tl.load(x + place, mask=inside)
    tl.store(y + place, v * 0.5 * (1 + tl.erf(v * 0.7071067811865476)), mask=inside)
    tl.store(y + count + place, v * tl.sigmoid(v), mask=inside)
    tl.store(y + 2 * count + place, tl.log(1 + tl.exp(v)), mask=inside)
    tl.store(y + 3 * count + place, libdevice.tanh(v), mask=inside)
    tl.store(y + 4 * count + place, tl.sin(v) + tl.cos(v), mask=inside)
    tl.store(y + 5 * count + place, tl.exp2(tl.log2(tl.abs(v) + 1)), mask=inside)
    tl.store(y + 6 * count + place, libdevice.expm1(v) + libdevice.log1p(tl.abs(v)), mask=inside)
    tl.store(y + 7 * count + place, tl.floor(v) + tl.ceil(v) + tl.fma(v, v, v), mask=inside)


@triton.jit
def quantise(x, y, scales, cols, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of fp32 to 8-bit floats, with a scale a row."""
    row = tl.program_id(0) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + row + column, mask=inside, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(values), axis=0), 1e-12) / LARGEST
    tl.store(y + row + column, (values / scale).to(y.dtype.element_ty), mask=inside)
    tl.store(scales + tl.program_id(0), scale)


@triton.jit
def dequantise(x, scales, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row + column, values * tl.load(scales + tl.program_id(0)), mask=inside)
