"""Kernels that choose, order and count: top-k, sort, scans, histograms, atomics."""

import triton
import triton.language as tl


@triton.jit
def top_k(x, y, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + column, mask=column < cols, other=-float("inf"))
    tl.store(y + row * K + tl.arange(0, K), tl.topk(values, K))


@triton.jit
def top_k_indices(x, values_out, indices_out, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    """A round a choice: the largest, the first of equals, then without it."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + column, mask=column < cols, other=-float("inf"))
    for k in tl.static_range(K):
        top, index = tl.max(values, axis=0, return_indices=True, return_indices_tie_break_left=True)
        tl.store(values_out + row * K + k, top)
        tl.store(indices_out + row * K + k, index)
        values = tl.where(column == index, -float("inf"), values)


@triton.jit
def sort(x, y, cols, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + column, mask=column < cols, other=2147483647)
    tl.store(y + row * cols + column, tl.sort(values, descending=DESCENDING), mask=column < cols)


@triton.jit
def combine(a, b, c, d):
    """Composition of x -> a x + b."""
    return a * c, b * c + d


@triton.jit
def scans(x, sums, products, largest, states, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(values, axis=0))
    tl.store(products + at, tl.cumsum(values, axis=0, reverse=True))
    floats = values.to(tl.float32)
    tl.store(largest + at, tl.associative_scan(floats, 0, maximum))
    decay = tl.full([BLOCK], 0.5, tl.float32)
    _, state = tl.associative_scan((decay, floats), 0, combine)
    tl.store(states + at, state)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def histogram(x, counts, count, BINS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = tl.load(x + place, mask=inside, other=0)
    found = tl.histogram(values, BINS, mask=inside)
    tl.atomic_add(counts + tl.arange(0, BINS), found)


@triton.jit
def atomics(x, out, locks, count, BLOCK: tl.constexpr):
    """Every kind of atomic on words of `out`, each with an outcome that no order changes."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = tl.load(x + place, mask=inside)
    tl.atomic_add(out + 0, tl.sum(tl.where(inside, values, 0), axis=0))
    tl.atomic_max(out + 1 + place % 7, values, mask=inside)
    tl.atomic_min(out + 8 + place % 7, values, mask=inside)
    tl.atomic_and(out + 15 + 0 * place, values | 255, mask=inside, sem="relaxed")
    tl.atomic_or(out + 16 + 0 * place, values, mask=inside, sem="acquire")
    tl.atomic_xor(out + 17 + 0 * place, values, mask=inside, sem="release", scope="cta")
    while tl.atomic_cas(locks, 0, 1) == 1:
        pass
    tl.store(out + 18, tl.load(out + 18, volatile=True) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(locks, 0)


@triton.jit
def float_atomics(x, halves, floats, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = tl.load(x + place, mask=inside)
    tl.atomic_add(halves + place % 16, values, mask=inside)
    tl.atomic_add(floats + place % 16, values.to(tl.float32), mask=inside)
    tl.atomic_max(floats + 16 + 0 * place, values.to(tl.float32), mask=inside)


@triton.jit
def reductions(x, y, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.arange(0, ROWS)
    column = tl.arange(0, COLS)
    values = tl.load(x + row[:, None] * COLS + column[None, :])
    tl.store(y + column, tl.sum(values, axis=0))
    tl.store(y + COLS + row, tl.max(values, axis=1))
    tl.store(y + COLS + ROWS + row, tl.argmin(values, axis=1))
    tl.store(y + COLS + 2 * ROWS + column, tl.xor_sum(values, axis=0))
    turned = tl.trans(values)
    tl.store(y + COLS + 2 * ROWS + COLS + column[:, None] * ROWS + row[None, :], turned)
    flipped = tl.sum(tl.flip(values, 1) * column, axis=1)
    tl.store(y + 2 * COLS + 2 * ROWS + ROWS * COLS + row, flipped)


@triton.jit
def gather(x, indices, y, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLS)[None, :]
    values = tl.load(x + row * COLS + column)
    index = tl.load(indices + row * COLS + column)
    tl.store(y + row * COLS + column, tl.gather(values, index, axis=1))
