"""Flash attention forward: online softmax over blocks of keys, causal or not."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q, k, v, o, length, scale,
    CAUSAL: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr,
):
    head = tl.program_id(1) * length * DIM
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    along = tl.arange(0, DIM)
    query = tl.load(
        q + head + row[:, None] * DIM + along[None, :], mask=row[:, None] < length, other=0.0)
    top = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, DIM], tl.float32)
    last = min((tl.program_id(0) + 1) * ROWS, length) if CAUSAL else length
    for start in range(0, last, KEYS):
        key = start + tl.arange(0, KEYS)
        keys = tl.load(
            k + head + key[None, :] * DIM + along[:, None], mask=key[None, :] < length, other=0.0)
        scores = tl.dot(query, keys) * (scale * 1.4426950408889634)
        seen = key[None, :] < length
        if CAUSAL:
            seen = seen & (row[:, None] >= key[None, :])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(
            v + head + key[:, None] * DIM + along[None, :], mask=key[:, None] < length, other=0.0)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None])
        top = higher
    result = result / total[:, None]
    tl.store(
        o + head + row[:, None] * DIM + along[None, :], result.to(tl.float16),
        mask=row[:, None] < length)
