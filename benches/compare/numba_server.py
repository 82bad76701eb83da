"""Runs the row softmax in Numba's CUDA simulator: a line in, milliseconds out. See compare.py."""

import math
import os
import sys
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda, float32

import cases


@cuda.jit
def row_softmax(x, y, columns):
    partial = cuda.shared.array(256, float32)
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    largest = -math.inf
    for column in range(thread, columns, 256):
        largest = max(largest, x[row, column])
    partial[thread] = largest
    cuda.syncthreads()
    step = 128
    while step > 0:
        if thread < step:
            partial[thread] = max(partial[thread], partial[thread + step])
        cuda.syncthreads()
        step //= 2
    largest = partial[0]
    cuda.syncthreads()
    total = float32(0)
    for column in range(thread, columns, 256):
        total += math.exp(x[row, column] - largest)
    partial[thread] = total
    cuda.syncthreads()
    step = 128
    while step > 0:
        if thread < step:
            partial[thread] += partial[thread + step]
        cuda.syncthreads()
        step //= 2
    total = partial[0]
    for column in range(thread, columns, 256):
        y[row, column] = math.exp(x[row, column] - largest) / total


def main():
    case = cases.numba_softmax()
    x, y, columns = case.arguments
    for _ in sys.stdin:
        y = np.zeros_like(x)
        begin = time.perf_counter()
        row_softmax[case.grid[0], case.block[0]](x, y, columns)
        spent = 1000 * (time.perf_counter() - begin)
        worst = float(np.abs(y - case.expected).max())
        print(f"{spent} {worst}", flush=True)


if __name__ == "__main__":
    main()
