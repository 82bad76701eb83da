"""The Triton kernels of the comparison, written as Triton's own tutorials write them."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    """One program a row, the whole row in one block."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + column, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One program a tile of C, row-major, sums in f32."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    at_a = a + row[:, None] * K + k[None, :]
    at_b = b + k[:, None] * N + column[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = K - step * BK
        tile_a = tl.load(at_a, mask=k[None, :] < left, other=0.0)
        tile_b = tl.load(at_b, mask=k[:, None] < left, other=0.0)
        total = tl.dot(tile_a, tile_b, total)
        at_a += BK
        at_b += BK * N
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c + row[:, None] * N + column[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def attention(q, k, v, o, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One program 64 queries of one head; keys in blocks, running maximum and sum."""
    head = tl.program_id(1) * S * D
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.arange(0, BN)
    d = tl.arange(0, D)
    queries = tl.load(q + head + row[:, None] * D + d[None, :])
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    result = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, S, BN):
        keys = tl.load(k + head + (start + column)[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * scale
        new = tl.maximum(largest, tl.max(scores, axis=1))
        shrink = tl.exp2(largest - new)
        weights = tl.exp2(scores - new[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(v + head + (start + column)[:, None] * D + d[None, :])
        result = tl.dot(weights.to(tl.float16), values, result * shrink[:, None])
        largest = new
    result = result / total[:, None]
    tl.store(o + head + row[:, None] * D + d[None, :], result.to(tl.float16))
