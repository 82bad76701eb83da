"""Times a large fp16 matrix product of torch and prints its rate as JSON."""

import json
import sys

import torch

if not torch.cuda.is_available():
    sys.exit("torch sees no GPU")
SIDE = 8192
torch.manual_seed(1)
a = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
b = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
out = torch.empty(SIDE, SIDE, device="cuda", dtype=torch.float16)
for _ in range(10):
    torch.mm(a, b, out=out)
times = []
for _ in range(30):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.mm(a, b, out=out)
    end.record()
    end.synchronize()
    times.append(start.elapsed_time(end) * 1e-3)
median = sorted(times)[len(times) // 2]
print(json.dumps({"flops": 2 * SIDE**3 / median, "torch": torch.__version__, "samples": len(times)}))
