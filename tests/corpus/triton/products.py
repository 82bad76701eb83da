"""Matrix products: every type of tl.dot, persistent, dequantising, through descriptors, scaled."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, m, n, k, PRECISION: tl.constexpr, TOTAL: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)[:, None]
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)[None, :]
    total = tl.zeros([TILE_M, TILE_N], TOTAL)
    for start in range(0, k, TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(
            a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0)
        right = tl.load(
            b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n), other=0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=TOTAL)
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < m) & (column < n))


@triton.jit
def matmul_transposed(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    """B is n by k, so that both operands lie along k: 8-bit types need it on sm_90."""
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)[:, None]
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros([TILE_M, TILE_N], c.dtype.element_ty)
    for start in range(0, k, TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(
            a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        right = tl.load(
            b + column[:, None] * k + along[None, :],
            mask=(column[:, None] < n) & (along[None, :] < k), other=0.0)
        total = tl.dot(left, right.T, total, out_dtype=c.dtype.element_ty)
    tl.store(c + row * n + column[None, :], total, mask=(row < m) & (column[None, :] < n))


@triton.jit
def matmul_persistent(
    a, b, c, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):
    """As many programs as there are multiprocessors take tiles in turn, in groups of rows."""
    rows, columns = tl.cdiv(m, TILE_M), tl.cdiv(n, TILE_N)
    for tile in range(tl.program_id(0), rows * columns, tl.num_programs(0)):
        group = tile // (GROUP * columns)
        size = min(rows - group * GROUP, GROUP)
        tile_m = group * GROUP + (tile % (GROUP * columns)) % size
        tile_n = (tile % (GROUP * columns)) // size
        row = tile_m * TILE_M + tl.arange(0, TILE_M)[:, None]
        column = tile_n * TILE_N + tl.arange(0, TILE_N)[None, :]
        total = tl.zeros([TILE_M, TILE_N], tl.float32)
        for start in range(0, k, TILE_K):
            along = start + tl.arange(0, TILE_K)
            left = tl.load(
                a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
            right = tl.load(
                b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n),
                other=0.0)
            total = tl.dot(left, right, total)
        tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


@triton.jit
def matmul_int4(
    a, packed, scales, c, m, n, k, GROUP: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):
    """Weights of 4 bits, two a byte along k, less 8 and times a scale a group of k and column."""
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)[:, None]
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)[None, :]
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, k, TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(a + row * k + along[None, :], mask=row < m, other=0.0)
        down = along[:, None]
        both = tl.load(packed + (down // 2) * n + column, mask=column < n, other=0)
        weight = ((both >> ((down % 2) * 4)) & 15) - 8
        scale = tl.load(scales + (down // GROUP) * n + column, mask=column < n, other=0.0)
        total = tl.dot(left, weight.to(tl.float16) * scale, total)
    tl.store(c + row * n + column, total.to(tl.float16), mask=(row < m) & (column < n))


@triton.jit
def matmul_descriptor(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    """Tiles through tensor descriptors that the kernel makes: the hardware's copies on sm_90."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TILE_M, TILE_K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [TILE_K, TILE_N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TILE_M, TILE_N])
    row, column = tl.program_id(0) * TILE_M, tl.program_id(1) * TILE_N
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, k, TILE_K):
        total = tl.dot(left.load([row, start]), right.load([start, column]), total)
    out.store([row, column], total.to(tl.float16))


@triton.jit
def descriptor_reduce(x, y, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Tiles copied in and added to memory, at edges too."""
    left = tl.make_tensor_descriptor(x, [rows, cols], [cols, 1], [ROWS, COLS])
    out = tl.make_tensor_descriptor(y, [rows, cols], [cols, 1], [ROWS, COLS])
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    out.atomic_add([row, column], left.load([row, column]))


@triton.jit
def matmul_scaled(
    a, a_scales, b, b_scales, c, n,
    A_TYPE: tl.constexpr, B_TYPE: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr,
    BLOCK: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):
    """One tile of 8-bit or 4-bit elements with a scale for every BLOCK of them along k."""
    row = tl.arange(0, TILE_M)[:, None]
    column = tl.arange(0, TILE_N)
    along_a = tl.arange(0, TILE_K // A_PACK)[None, :]
    along_b = tl.arange(0, TILE_K // B_PACK)[None, :]
    group = tl.arange(0, TILE_K // BLOCK)[None, :]
    left = tl.load(a + row * (TILE_K // A_PACK) + along_a)
    right = tl.load(b + column[:, None] * (TILE_K // B_PACK) + along_b)
    left_scale = tl.load(a_scales + row * (TILE_K // BLOCK) + group)
    right_scale = tl.load(b_scales + column[:, None] * (TILE_K // BLOCK) + group)
    total = tl.dot_scaled(left, left_scale, A_TYPE, right.T, right_scale, B_TYPE)
    tl.store(c + row * n + column[None, :], total)
