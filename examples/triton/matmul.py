"""Matrix product of bf16 on tensor cores: a tile of C a program, K in steps, all edges masked."""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, k, TILE_K):
        inner = start + tl.arange(0, TILE_K)
        left = tl.load(
            a + rows[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + inner[:, None] * n + cols[None, :],
            mask=(inner[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(left, right, total)
    tl.store(
        c + rows[:, None] * n + cols[None, :],
        total,
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )
