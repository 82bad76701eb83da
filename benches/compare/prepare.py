"""Compiles the cases for the emulator: PTX and a launch description a case.

    PYTHONPATH=<numpy, triton> python3 prepare.py FOLDER [NVCC]

compare.py writes the inputs beside them. Triton's kernels are compiled ahead of time for sm_80, with no GPU. The one that stands for Numba's
is CUDA C++ with the same statements, compiled by NVCC.
"""

import pathlib
import subprocess
import sys

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import cases
import kernels

SUITE = pathlib.Path(__file__).parents[2] / "kernels" / "cuda"


def compiled_triton(case):
    function = getattr(kernels, case.kernel)
    names = function.arg_names
    signature = dict(zip(names, case.signature + ["constexpr"] * len(case.constants)))
    # Numbers that are multiples of 16 are said to be, as Triton's launcher does.
    even = [["tt.divisibility", 16]]
    attributes = {
        (position,): even
        for position, argument in enumerate(case.arguments)
        if isinstance(argument, np.ndarray) or (isinstance(argument, int) and argument % 16 == 0)
    }
    source = ASTSource(
        fn=function, signature=signature, constexprs=case.constants, attrs=attributes
    )
    made = triton.compile(
        source, target=GPUTarget("cuda", 80, 32), options={"num_warps": case.warps}
    )
    return made.asm["ptx"], made.metadata.name, (made.metadata.num_warps * 32,), made.metadata.shared


def compiled_cuda(case, nvcc):
    here = pathlib.Path(__file__).parent
    command = [nvcc, "-arch=sm_80", "-ptx", here / f"{case.kernel}.cu", "-o", "/dev/stdout"]
    ptx = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return ptx, case.kernel, case.block, 0


def from_suite(case):
    ptx = (SUITE / f"{case.kernel}.ptx").read_text()
    return ptx, f"{case.kernel}_f32", case.block, 0


def three(values):
    return " ".join(str(value) for value in (*values, 1, 1)[:3])


def describe(case, folder, number, nvcc):
    compiled = {
        "triton": compiled_triton,
        "numba": lambda case: compiled_cuda(case, nvcc),
        None: from_suite,
    }
    ptx, symbol, block, shared = compiled[case.peer](case)
    stem = f"case{number}"
    (folder / f"{stem}.ptx").write_text(ptx)
    lines = [
        f"name {case.name}", f"ptx {stem}.ptx", f"symbol {symbol}", f"grid {three(case.grid)}",
        f"block {three(block)}", f"shared {shared}", f"output {case.output}",
    ]
    for position, (argument, kind) in enumerate(zip(case.arguments, case.signature)):
        if isinstance(argument, np.ndarray):
            lines.append(f"buffer {stem}.{position}.bin")
        else:
            lines.append(f"{kind} {argument}")
    (folder / f"{stem}.case").write_text("\n".join(lines) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = sys.argv[2] if len(sys.argv) > 2 else None
    for number, case in enumerate(cases.all_cases()):
        if case.peer == "numba" and nvcc is None:
            print(f"SKIPPED {case.name}: no nvcc", file=sys.stderr)
            continue
        describe(case, folder, number, nvcc)


if __name__ == "__main__":
    main()
