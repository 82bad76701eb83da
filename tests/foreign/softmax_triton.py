"""Compiles a row softmax with Triton, ahead of time and with no GPU, and writes its PTX.

    PYTHONPATH=<where Triton is> python3 softmax_triton.py OUTPUT_FOLDER

The kernel is what a reader of Triton's documentation would write: one program a row, the whole row
in one block whose size is the power of two above it, masked where the row ends. Assay's manifest
beside this file (foreign_triton.toml) launches it.
"""

import json
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

BLOCK_SIZE = 1024
NUM_WARPS = 4


@triton.jit
def softmax_kernel(
    output_ptr,
    input_ptr,
    input_row_stride,
    output_row_stride,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_cols

    values = tl.load(input_ptr + row * input_row_stride + columns, mask=mask, other=-float("inf"))
    shifted = values - tl.max(values, axis=0)
    numerator = tl.exp(shifted)
    denominator = tl.sum(numerator, axis=0)
    tl.store(output_ptr + row * output_row_stride + columns, numerator / denominator, mask=mask)


def compile_softmax():
    """The kernel for sm_80: fp32 in and out."""
    source = ASTSource(
        fn=softmax_kernel,
        signature={
            "output_ptr": "*fp32",
            "input_ptr": "*fp32",
            "input_row_stride": "i32",
            "output_row_stride": "i32",
            "n_cols": "i32",
            "BLOCK_SIZE": "constexpr",
        },
        constexprs={"BLOCK_SIZE": BLOCK_SIZE},
    )
    return triton.compile(
        source, target=GPUTarget("cuda", 80, 32), options={"num_warps": NUM_WARPS}
    )


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    compiled = compile_softmax()
    (folder / "softmax_triton.ptx").write_text(compiled.asm["ptx"])
    launch = {
        "symbol": compiled.metadata.name,
        "block": compiled.metadata.num_warps * 32,
        "shared": compiled.metadata.shared,
    }
    (folder / "softmax_triton.json").write_text(json.dumps(launch) + "\n")


if __name__ == "__main__":
    main()
