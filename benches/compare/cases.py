"""What is compared: kernels, sizes, inputs, and what comes out. Sizes are those of the README."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass
class Case:
    """A launch. `arguments` are arrays (device buffers) and Python numbers, in order."""

    name: str
    kernel: str
    peer: str
    grid: tuple
    constants: dict
    arguments: list
    signature: list
    output: int
    expected: np.ndarray
    tolerance: float
    warps: int = 4
    block: tuple = None


def _values(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _softmax_of(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax():
    rows, columns = 1024, 4096
    x = _values(1, rows, columns)
    return Case(
        "softmax 1024x4096 f32", "softmax", "triton", (rows,), {"BLOCK": columns},
        [x, np.zeros_like(x), columns], ["*fp32", "*fp32", "i32"], 1, _softmax_of(x), 1e-5,
    )


def matmul(tile, n=512):
    a, b = (_values(seed, n, n).astype(np.float16) for seed in (2, 3))
    bm, bn, bk = tile
    return Case(
        f"matmul {n}^3 f16 {bm}x{bn}x{bk}", "matmul", "triton", (n // bm, n // bn),
        {"BM": bm, "BN": bn, "BK": bk}, [a, b, np.zeros_like(a), n, n, n],
        ["*fp16", "*fp16", "*fp16", "i32", "i32", "i32"], 2,
        a.astype(np.float64) @ b.astype(np.float64), 0.1, warps=4 if bm > 16 else 1,
    )


def attention(s=1024, d=64, h=8, bm=64, bn=64):
    q, k, v = (_values(seed, h, s, d).astype(np.float16) for seed in (4, 5, 6))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / math.sqrt(d)
    weights = np.stack([_softmax_of(head) for head in scores])
    return Case(
        f"attention S={s} D={d} H={h} f16", "attention", "triton", (s // bm, h),
        {"D": d, "BM": bm, "BN": bn},
        [q, k, v, np.zeros_like(q), float(math.log2(math.e) / math.sqrt(d)), s],
        ["*fp16", "*fp16", "*fp16", "*fp16", "fp32", "i32"], 3,
        weights @ v.astype(np.float64), 0.01,
    )


def numba_softmax():
    rows, columns = 4, 1024
    x = _values(7, rows, columns)
    return Case(
        "softmax 4x1024 f32, a thread an element's stride", "row_softmax", "numba", (rows,), {},
        [x, np.zeros_like(x), columns], ["*fp32", "*fp32", "i32"], 1, _softmax_of(x), 1e-5,
        block=(256,),
    )


def suite(kernel, rows=256, columns=4096):
    """A kernel of the built-in suite as nvcc compiled it; nobody else runs it without a GPU."""
    x = _values(8, rows, columns)
    y, w = np.zeros(rows, dtype=np.float32), _values(9, columns)
    row_sum = ([x, y, rows, columns], 1, x.astype(np.float64).sum(axis=1))
    arguments, output, expected = {
        "row_sum": row_sum,
        "softmax": ([x, np.zeros_like(x), rows, columns], 1, _softmax_of(x)),
        "gemv": ([x, w, y, rows, columns], 2, x.astype(np.float64) @ w),
    }[kernel]
    kinds = ["*fp32" if isinstance(argument, np.ndarray) else "i32" for argument in arguments]
    return Case(
        f"suite's {kernel}_f32 {rows}x{columns}", kernel, None, (rows,), {}, arguments, kinds,
        output, expected, 1e-2, block=(256,),
    )


def all_cases():
    tiles = [(64, 64, 32), (16, 16, 16)]
    compared = [softmax(), *map(matmul, tiles), attention(), numba_softmax()]
    return compared + [suite(kernel) for kernel in ("row_sum", "softmax", "gemv")]
