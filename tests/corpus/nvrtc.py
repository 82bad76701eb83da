"""Compiles CUDA C++ with NVRTC: nvrtc.py LIBRARY SOURCE [OPTION...] -o OUTPUT."""

import ctypes
import sys

library, path, *options, _, output = sys.argv[1:]
nvrtc = ctypes.CDLL(library)
program = ctypes.c_void_p()
with open(path, "rb") as file:
    source = file.read()


def text(size, get):
    """What one of the library's two-step calls says."""
    length = ctypes.c_size_t()
    size(program, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    get(program, buffer)
    return buffer.value


nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, path.encode(), 0, None, None)
given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
if nvrtc.nvrtcCompileProgram(program, len(options), given) != 0:
    sys.exit(text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode())
with open(output, "wb") as file:
    file.write(text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))
