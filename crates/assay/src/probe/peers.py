"""Measures what other libraries get of a GPU; prints one line of JSON for each.

    peers.py ORDINAL full|quick TEXT

Lines are {"device", "multiprocessors"} first, then for each peer {"at": its name} and either
{"entries", "name", "version", "unit", "values"} or {"entries", "name", "missing"}, and {"end": true}
last. Only peers of entries whose names contain TEXT are measured.
"""

import json
import sys
import time

ORDINAL, QUICK, ONLY = int(sys.argv[1]), sys.argv[2] == "quick", sys.argv[3]
SAMPLES = 9 if QUICK else 30


def say(**line):
    print(json.dumps(line), flush=True)


def first_line(error):
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0] if words else ''}"[:200]


try:
    import torch
except Exception as error:
    say(missing=f"python3 imports no torch ({first_line(error)}); `pip install torch` installs it")
    sys.exit(0)
if not torch.cuda.is_available():
    say(missing=f"torch {torch.__version__} sees no GPU")
    sys.exit(0)
torch.cuda.set_device(ORDINAL)
ABOUT = torch.cuda.get_device_properties(ORDINAL)
say(device=ABOUT.name, multiprocessors=ABOUT.multi_processor_count)
TORCH = torch.__version__
GPU = torch.device("cuda", ORDINAL)
START, END = (torch.cuda.Event(enable_timing=True) for _ in range(2))


def wanted(entries):
    return any(ONLY in entry for entry in entries)


def peer(entries, name, version, unit, values):
    """Says what `values()` gives, or why it gives nothing."""
    if not wanted(entries):
        return
    say(at=name)
    try:
        say(entries=entries, name=name, version=version, unit=unit, values=values())
    except Exception as error:
        say(entries=entries, name=name, missing=first_line(error))


def nanoseconds(work, samples=SAMPLES):
    """Times by events; what holds the stream lets all be queued before any of it starts."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    found = []
    for _ in range(samples):
        torch.cuda._sleep(400_000)
        START.record()
        work()
        END.record()
        END.synchronize()
        found.append(START.elapsed_time(END) * 1e6)
    return found


def rates(amount, work, samples=SAMPLES):
    return [amount * 1e9 / ns for ns in nanoseconds(work, samples)]


def by_host(work, samples):
    """Nanoseconds by the host's clock until the device is idle."""
    work()
    found = []
    for _ in range(samples):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) * 1e9)
    return found


def best(ways):
    """The values of the way with the highest median."""
    tried, refused = [], None
    for way in ways:
        try:
            tried.append(way())
        except Exception as error:
            refused = error
    if not tried:
        raise refused
    return max(tried, key=lambda values: sorted(values)[len(values) // 2])


def memory():
    if not wanted(["dram_read", "dram_write", "dram_copy", "dram_triad", "device_to_device"]):
        return
    size = min((2 if QUICK else 4) << 30, torch.cuda.mem_get_info()[1] // 16)
    count = size // 4 // 65536 * 65536
    size = count * 4
    a = torch.randn(count, device=GPU)
    b, c = (torch.zeros(count, device=GPU) for _ in range(2))
    word = ("B/s",)
    peer(["dram_read"], "torch sum", TORCH, *word, lambda: rates(size, a.sum))
    peer(["dram_write"], "torch fill_", TORCH, *word, lambda: rates(size, lambda: b.fill_(3.0)))
    peer(["dram_write"], "torch zero_", TORCH, *word, lambda: rates(size, b.zero_))
    for entry in ["dram_copy", "device_to_device"]:
        peer([entry], "torch copy_", TORCH, *word, lambda: rates(2 * size, lambda: b.copy_(a)))
    triad = lambda: torch.add(a, b, alpha=3, out=c)
    peer(["dram_triad"], "torch add with alpha", TORCH, *word, lambda: rates(3 * size, triad))
    if TRITON:
        total = torch.zeros(1, device=GPU)
        shapes = [(1024, 4), (4096, 8), (8192, 8), (8192, 4)]

        def each(kernel, times, *arguments):
            def way(block, warps):
                grid = (count // block,)
                return rates(times * size, lambda: kernel[grid](*arguments, block, num_warps=warps))
            return lambda: best([lambda s=s: way(*s) for s in shapes])

        version = TRITON.__version__
        peer(["dram_read"], "Triton sum", version, *word, each(KERNELS.total, 1, a, total))
        peer(["dram_write"], "Triton fill", version, *word, each(KERNELS.fill, 1, b))
        for entry in ["dram_copy", "device_to_device"]:
            peer([entry], "Triton copy", version, *word, each(KERNELS.copy, 2, a, b))
        peer(["dram_triad"], "Triton triad", version, *word, each(KERNELS.triad, 3, a, b, c))


def gather():
    if not wanted(["dram_gather"]):
        return
    # As many bytes as the probe's: of fewer, caches hold a part.
    size = min((2 if QUICK else 4) << 30, torch.cuda.mem_get_info()[1] // 16)
    rows = 1 << (size // 16).bit_length() - 1
    x = torch.randn(rows, 4, device=GPU)
    order, out = torch.randperm(rows, device=GPU), torch.empty(rows, 4, device=GPU)
    pick = lambda: torch.index_select(x, 0, order, out=out)
    few = 5
    peer(["dram_gather"], "torch index_select of rows of 16 bytes", TORCH, "B/s",
         lambda: rates(rows * 16, pick, few))
    if TRITON:
        total = torch.zeros(1, device=GPU)
        half = (rows.bit_length() - 1) // 2
        way = lambda n: rates(
            rows * 16, lambda: KERNELS.gather[(rows // n,)](x, total, rows - 1, half, n, num_warps=4))
        peer(["dram_gather"], "Triton gather of rows of 16 bytes", TRITON.__version__, "B/s",
             lambda: best([lambda n=n: way(n) for n in (128, 256, 512)]))


def replayed(amount, work, count):
    """Rates of work that is captured `count` times into a graph."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(count):
            work()
    return rates(amount * count, graph.replay)


def cached():
    if not wanted(["l2_read", "l2_write"]):
        return
    size = 16 << 20
    x = torch.randn(size // 4, device=GPU)
    out = torch.zeros(1, device=GPU)
    peer(["l2_read"], "torch sum of 16 MiB in a graph", TORCH, "B/s",
         lambda: replayed(size, lambda: torch.sum(x, 0, keepdim=True, out=out), 50))
    peer(["l2_write"], "torch fill_ of 16 MiB in a graph", TORCH, "B/s",
         lambda: replayed(size, lambda: x.fill_(3.0), 50))
    if TRITON:
        passes = 100

        def way(kernel, block, warps):
            chunks = size // 4 // block
            work = lambda: kernel[(chunks,)](x, out, chunks, passes, block, num_warps=warps)
            return rates(size * passes, work)

        shapes = [(2048, 4), (4096, 8), (4096, 4), (8192, 8)]
        for entry, kernel, word in [("l2_read", KERNELS.again, "sum"),
                                    ("l2_write", KERNELS.refill, "fill")]:
            peer([entry], f"Triton {word} of 16 MiB, repeated", TRITON.__version__, "B/s",
                 lambda: best([lambda s=s: way(kernel, *s) for s in shapes]))


def products():
    def random(dtype, side):
        return torch.randn(side, side, device=GPU).to(dtype)

    def plain(dtype, side, tf32=False):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = random(dtype, side), random(dtype, side)
        out = torch.empty_like(a)
        found = rates(2 * side**3, lambda: torch.mm(a, b, out=out))
        torch.backends.cuda.matmul.allow_tf32 = False
        return found

    def int8():
        a, b = (torch.randint(-127, 127, (8192, 8192), device=GPU, dtype=torch.int8)
                for _ in range(2))
        return rates(2 * 8192**3, lambda: torch._int_mm(a, b.t()))

    def fp8():
        a, b = (random(torch.float8_e4m3fn, 8192) for _ in range(2))
        one = torch.ones((), device=GPU)
        return rates(2 * 8192**3, lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True))

    def sparse(dtype):
        a, b = (random(dtype, 8192) for _ in range(2))
        mask = torch.tensor([0, 0, 1, 1], device=GPU, dtype=torch.bool).tile(8192, 2048)
        a = torch.sparse.to_sparse_semi_structured(a.masked_fill(~mask, 0))
        return rates(2 * 8192**3, lambda: torch.mm(a, b))

    def tensor(kind):
        return [f"wgmma_{kind}", f"mma_{kind}"]

    for kind, unit, values in [
        ("bf16", "FLOP/s", lambda: plain(torch.bfloat16, 8192)),
        ("f16", "FLOP/s", lambda: plain(torch.float16, 8192)),
        ("tf32", "FLOP/s", lambda: plain(torch.float32, 8192, True)),
        ("s8", "OP/s", int8),
        ("e4m3", "FLOP/s", fp8),
        ("bf16_sparse", "FLOP/s", lambda: sparse(torch.bfloat16)),
        ("f16_sparse", "FLOP/s", lambda: sparse(torch.float16)),
    ]:
        peer(tensor(kind), "torch matmul of 8192^3", TORCH, unit, values)
    peer(["mma_f64", "fma_f64"], "torch matmul of 4096^3", TORCH, "FLOP/s",
         lambda: plain(torch.float64, 4096))
    peer(["fma_f32"], "torch matmul of 4096^3", TORCH, "FLOP/s",
         lambda: plain(torch.float32, 4096))


def transfers():
    size = 1 << (26 if QUICK else 28)
    samples = 5 if QUICK else 15

    def pinned(up):
        host = torch.empty(size, dtype=torch.uint8, pin_memory=True).fill_(7)
        device = torch.zeros(size, dtype=torch.uint8, device=GPU)
        to, of = (device, host) if up else (host, device)
        return rates(size, lambda: to.copy_(of, non_blocking=True), samples)

    def pageable(up):
        host = torch.empty(size, dtype=torch.uint8).fill_(7)
        device = torch.zeros(size, dtype=torch.uint8, device=GPU)
        to, of = (device, host) if up else (host, device)
        return [size * 1e9 / ns for ns in by_host(lambda: to.copy_(of), samples)]

    for up, way in [(True, "host_to_device"), (False, "device_to_host")]:
        peer([f"{way}_pinned"], "torch copy_", TORCH, "B/s", lambda: pinned(up))
        peer([f"{way}_pageable"], "torch copy_", TORCH, "B/s", lambda: pageable(up))


def launches(name, version, launch, capture):
    """`launch()` starts a kernel that does nothing; `capture(n)` gives the replay of n of them."""
    train, samples = 256 if QUICK else 1024, 20 if QUICK else 50

    def queued():
        return [ns / train for ns in by_host(lambda: [launch() for _ in range(train)], samples)]

    def node():
        short, long = nanoseconds(capture(1)), nanoseconds(capture(512))
        base = sorted(short)[len(short) // 2]
        return [(ns - base) / 511 for ns in long]

    peer(["launch_queued"], name, version, "ns", queued)
    peer(["launch_round_trip"], name, version, "ns", lambda: by_host(launch, 2 * samples))
    peer(["graph_round_trip"], name, version, "ns", lambda: by_host(capture(1), 2 * samples))
    peer(["graph_node"], name, version, "ns", node)


def launch_costs():
    if not wanted(["launch_queued", "launch_round_trip", "graph_round_trip", "graph_node"]):
        return
    spin = lambda: torch.cuda._sleep(0)

    def captured(count):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                spin()
        return graph.replay

    launches("torch, a spin of no cycles", TORCH, spin, captured)
    try:
        import cupy
    except Exception as error:
        say(entries=["launch_queued"], name="cupy", missing=first_line(error))
        return
    try:
        cupy.cuda.Device(ORDINAL).use()
        source = 'extern "C" __global__ void nothing() {}'
        kernel = cupy.RawKernel(source, "nothing")
        kernel((1,), (1,), ())
        # The stream that torch's events and waits are of.
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

        def replay(count):
            own = cupy.cuda.Stream(non_blocking=True)
            with own:
                own.begin_capture()
                for _ in range(count):
                    kernel((1,), (1,), ())
                graph = own.end_capture()
            return lambda: graph.launch(stream)

        launches("cupy, a kernel that does nothing", cupy.__version__,
                 lambda: kernel((1,), (1,), ()), replay)
    except Exception as error:
        say(entries=["launch_queued"], name="cupy", missing=first_line(error))


TRITON = None
try:
    import triton as TRITON
    import triton.language as tl

    @TRITON.jit
    def _total(x, out, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out, tl.sum(tl.load(x + at)))

    @TRITON.jit
    def _fill(x, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.full((BLOCK,), 3.0, tl.float32))

    @TRITON.jit
    def _copy(x, y, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at))

    @TRITON.jit
    def _triad(x, y, z, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(z + at, tl.load(x + at) + 3.0 * tl.load(y + at))

    @TRITON.jit
    def _gather(x, out, mask, half, ROWS: tl.constexpr):
        # One-to-one below a power of two, without neighbours.
        row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        row = (row * 2654435761) & mask
        row = row ^ (row >> half)
        row = (row * 2246822519) & mask
        at = row[:, None] * 4 + tl.arange(0, 4)[None, :]
        tl.atomic_add(out, tl.sum(tl.sum(tl.load(x + at), 1), 0))

    @TRITON.jit
    def _again(x, out, chunks, passes, BLOCK: tl.constexpr):
        # In each pass every chunk is read by one program, in each by another.
        sums = tl.zeros((BLOCK,), tl.float32)
        for turn in range(passes):
            chunk = (tl.program_id(0) + turn * 61) % chunks
            sums += tl.load(x + chunk * BLOCK + tl.arange(0, BLOCK), cache_modifier=".cg")
        tl.atomic_add(out, tl.sum(sums))

    @TRITON.jit
    def _refill(x, out, chunks, passes, BLOCK: tl.constexpr):
        for turn in range(passes):
            chunk = (tl.program_id(0) + turn * 61) % chunks
            value = tl.full((BLOCK,), 1.0, tl.float32) * turn
            tl.store(x + chunk * BLOCK + tl.arange(0, BLOCK), value, cache_modifier=".cg")

    class KERNELS:
        total, fill, copy, triad, gather, again, refill = (
            _total, _fill, _copy, _triad, _gather, _again, _refill)
except Exception as error:
    TRITON = None
    say(entries=["dram_read"], name="Triton", missing=first_line(error))

for group in [launch_costs, memory, gather, cached, transfers, products]:
    try:
        group()
    except Exception as error:
        say(entries=[], name=group.__name__, missing=first_line(error))
    torch.cuda.empty_cache()
say(end=True)
