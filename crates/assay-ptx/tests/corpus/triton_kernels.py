"""Regenerates triton.*.ptx with Triton 3.6.0 and no GPU: PYTHONPATH=path/to/triton python3 triton_kernels.py"""

import pathlib
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * cols + at, value / tl.sum(value, 0), mask=at < cols)


@triton.jit
def matmul(a, b, c, k, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    kk = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for at in range(0, k, K):
        left = tl.load(a + m[:, None] * sa + (at + kk)[None, :])
        right = tl.load(b + (at + kk)[:, None] * sb + n[None, :])
        total += tl.dot(left, right)
    tl.store(c + m[:, None] * sc + n[None, :], total.to(tl.bfloat16))


@triton.jit
def atomics(x, i, f, h, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask)
    tl.atomic_add(f + at % 7, value, mask=mask)
    tl.atomic_max(i + at % 5, at, mask=mask)
    tl.atomic_min(f + at % 3, value, mask=mask)
    tl.atomic_add(h + at, value.to(tl.float16), mask=mask)
    tl.atomic_cas(i + 9, 0, 1)
    tl.atomic_xchg(i + 10, 3, sem="release")


@triton.jit
def sort_scan(x, y, z, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(y + at, tl.sort(value))
    tl.store(z + at, tl.cumsum(value, 0) + tl.sqrt(tl.abs(value)) + tl.sin(value))
    tl.store(z, tl.argmax(value, 0).to(tl.float32))


BF16 = dict(a="*bf16", b="*bf16", c="*bf16", k="i32", sa="i32", sb="i32", sc="i32")
JOBS = [
    ("softmax", softmax, dict(x="*fp32", y="*fp32", cols="i32"), dict(BLOCK=1024), (80, 90, 120)),
    ("matmul", matmul, BF16, dict(M=64, N=64, K=32), (80, 90, 120)),
    ("atomics", atomics, dict(x="*fp32", i="*i32", f="*fp32", h="*fp16", n="i32"),
     dict(BLOCK=128), (80, 90)),
    ("sort_scan", sort_scan, dict(x="*fp32", y="*fp32", z="*fp32"), dict(BLOCK=128), (80,)),
]

for name, kernel, signature, constants, architectures in JOBS:
    signature = {**signature, **{key: "constexpr" for key in constants}}
    for architecture in architectures:
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        built = triton.compile(source, target=GPUTarget("cuda", architecture, 32))
        out = pathlib.Path(__file__).with_name(f"triton.{name}.sm_{architecture}.ptx")
        text = re.sub(r'"/[^"]*/', '"/corpus/', built.asm["ptx"])
        out.write_text(text)
