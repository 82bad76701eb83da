"""Times torch's comparisons of two float32 arrays on a GPU, beside a plain reading of both.

    python3 torch_equal.py >> speed.jsonl

The arrays are of the kind that crates/assay-compare/tests/device_gpu.rs compares: normal values, and
the same with their two lowest bits changed. One line of JSON a comparison, times of the host's clock
in milliseconds from a device at rest to the answer; the plain reading between two events.
"""

import json
import time

import cupy
import torch

ELEMENTS = 1 << 28
TIMES = 31
READ = r"""
extern "C" __global__ void read(const uint4* a, const uint4* b, size_t n, unsigned* out) {
    unsigned sum = 0;
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += 4 * step) {
        uint4 x[4], y[4];
#pragma unroll
        for (int k = 0; k < 4; k++) x[k] = a[at + k * step], y[k] = b[at + k * step];
#pragma unroll
        for (int k = 0; k < 4; k++)
            sum += (x[k].x ^ x[k].y ^ x[k].z ^ x[k].w) + (y[k].x ^ y[k].y ^ y[k].z ^ y[k].w);
    }
    if (sum == 12345) *out = sum;
}
"""


def summary(times):
    times = sorted(times)
    return {
        "median": round(times[(len(times) - 1) // 2], 6),
        "least": round(times[0], 6),
        "most": round(times[-1], 6),
        "n": len(times),
    }


def called(compare):
    times = []
    for turn in range(TIMES + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        compare()
        torch.cuda.synchronize()
        if turn >= 3:
            times.append((time.perf_counter() - start) * 1e3)
    return times


def plain_read(a, b):
    kernel = cupy.RawKernel(READ, "read")
    one, other, out = (cupy.from_dlpack(t.view(torch.int32)) for t in (a, b, a[:1].clone()))
    times = []
    for turn in range(TIMES + 3):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        # 1024 groups of 256 threads divide the arrays, four words of 16 bytes at a time.
        kernel((1024,), (256,), (one, other, cupy.uint64(ELEMENTS // 4), out))
        end.record()
        end.synchronize()
        if turn >= 3:
            times.append(cupy.cuda.get_elapsed_time(start, end))
    return times


def main():
    torch.manual_seed(1)
    a = torch.randn(ELEMENTS, device="cuda") * 4
    change = torch.randint(0, 4, (ELEMENTS,), device="cuda", dtype=torch.int32)
    b = (a.view(torch.int32) ^ change).view(torch.float32)
    close = {"rtol": 1e-4, "atol": 1e-4}
    same = a.clone()
    peers = {
        "torch.equal": lambda: torch.equal(same, a),
        "torch.testing.assert_close": lambda: torch.testing.assert_close(b, a, **close),
        "torch.allclose": lambda: torch.allclose(b, a, **close),
    }
    date = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
    name = torch.cuda.get_device_name()
    print(json.dumps({"what": "torch", "version": torch.__version__, "device": name, "date": date}))
    for name, compare in peers.items():
        line = {"what": name, "format": "f32", "elements": ELEMENTS}
        line["call_ms"] = summary(called(compare))
        print(json.dumps({**line, "sm_clock_mhz": torch.cuda.clock_rate()}))
    line = {"what": "plain read of both", "format": "f32", "elements": ELEMENTS}
    line["device_ms"] = summary(plain_read(a, b))
    print(json.dumps({**line, "sm_clock_mhz": torch.cuda.clock_rate()}))


main()
