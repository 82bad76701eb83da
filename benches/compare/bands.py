"""Holds products of numpy and torch against bands of reduction order.

    python3 bands.py path/to/assay >> bands.jsonl

Matrices of normal values (and each fourth seed with no sign in one of them) are multiplied in fp32
by numpy, by torch on the CPU, by cuBLAS, and by cuBLAS in two halves of K: all of these are right.
TF32, bf16 and one element moved by 1e-3 are not. `assay compare --matmul-of` judges each. One line
of JSON a kind and size: how many pass, and how far out the farthest element of each product lies,
in half widths of its band.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import numpy as np
import torch

SEEDS = 28
SIZES = [(256, 384, 512), (128, 128, 3000), (512, 512, 64)]
WRONG = ["tf32", "bf16", "one element"]


def products(a, b):
    """Every kind of product of two matrices."""
    on_cpu = torch.from_numpy(a), torch.from_numpy(b)
    one, other = (matrix.cuda() for matrix in on_cpu)
    half = a.shape[1] // 2
    torch.backends.cuda.matmul.allow_tf32 = False
    cublas = (one @ other).cpu().numpy()
    moved = cublas.copy()
    moved[a.shape[0] // 2, b.shape[1] // 3] += 1e-3
    yield "numpy", a @ b
    yield "torch, CPU", (on_cpu[0] @ on_cpu[1]).numpy()
    yield "cuBLAS", cublas
    halves = one[:, :half] @ other[:half] + one[:, half:] @ other[half:]
    yield "cuBLAS, two halves of K", halves.cpu().numpy()
    yield "one element", moved
    torch.backends.cuda.matmul.allow_tf32 = True
    yield "tf32", (one @ other).cpu().numpy()
    yield "bf16", (one.bfloat16() @ other.bfloat16()).float().cpu().numpy()


def judge(assay, a, b, candidate):
    """Whether a product passes, how far out its farthest element is, and z."""
    command = [assay, "compare", "--matmul-of", a, b, candidate, "--json", "-"]
    alone = dict(os.environ, RAYON_NUM_THREADS="1")
    done = subprocess.run(command, capture_output=True, text=True, env=alone, check=False)
    comparison = json.loads(done.stdout)["comparisons"][0]
    band = comparison["band"]
    return comparison["outcome"], band["max_bands"], band["z"]


def main():
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    assay, judged = os.path.abspath(sys.argv[1]), defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:

        def save(name, array):
            np.save(f"{folder}/{name}.npy", array)
            return f"{folder}/{name}.npy"

        for seed in range(SEEDS):
            random = np.random.default_rng(seed)
            for rows, columns, terms in SIZES:
                a = random.standard_normal((rows, terms)).astype(np.float32)
                b = random.standard_normal((terms, columns)).astype(np.float32)
                a = np.abs(a) if seed % 4 == 3 else a
                paths = save(f"{seed}-{terms}-a", a), save(f"{seed}-{terms}-b", b)
                for kind, product in products(a, b):
                    path = save(f"{seed}-{terms}-{kind}", product)
                    run = pool.submit(judge, assay, *paths, path)
                    judged[kind, rows, columns, terms].append(run)
        for (kind, rows, columns, terms), runs in judged.items():
            outcomes, farthest, z = zip(*(run.result() for run in runs))
            line = {
                "kind": kind,
                "right": kind not in WRONG,
                "shape": [rows, columns],
                "terms": terms,
                "products": len(runs),
                "pass": outcomes.count("pass"),
                "fail": outcomes.count("fail"),
                "z": z[0],
                "farthest": {"least": min(farthest), "most": max(farthest)},
                "device": torch.cuda.get_device_name(),
                "date": date,
                "torch": torch.__version__,
                "numpy": np.__version__,
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
