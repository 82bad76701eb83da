"""Runs a case in Triton's interpreter: a name a line in, milliseconds out. See compare.py.

The interpreter asks its arguments for what a torch tensor has. It needs no torch: [`Tensor`] is a
numpy array that answers.
"""

import os
import sys
import time

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import triton.language as tl

import cases
import kernels

DTYPES = {"float16": tl.float16, "float32": tl.float32}


class Tensor:
    """As much of a torch tensor as Triton's interpreter looks at."""

    def __init__(self, array):
        self.array = array
        self.dtype = DTYPES[array.dtype.name]

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, *_, **__):
        return Tensor(self.array)

    def set_(self, storage, *_):
        self.array = storage.array

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.shape

    def stride(self):
        return self.array.strides

    def copy_(self, _):
        pass


def main():
    known = {case.name: case for case in cases.all_cases() if case.peer == "triton"}
    for line in sys.stdin:
        case = known[line.strip()]
        arguments = [Tensor(a.copy()) if isinstance(a, np.ndarray) else a for a in case.arguments]
        kernel = getattr(kernels, case.kernel)
        begin = time.perf_counter()
        kernel[case.grid](*arguments, **case.constants)
        spent = 1000 * (time.perf_counter() - begin)
        found = arguments[case.output].array.astype(np.float64)
        print(f"{spent} {np.abs(found - case.expected).max()}", flush=True)


if __name__ == "__main__":
    main()
