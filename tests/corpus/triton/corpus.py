"""Compiles the corpus of Triton kernels for every target, ahead of time and with no GPU.

    PYTHONPATH=<where Triton is> python3 corpus.py compile.py OUTPUT_FOLDER [NAME ...]

`compile.py` is the script that Assay itself compiles with. The folder gets one PTX a kernel and
target, and `index.tsv`: name, target, symbol, warps, shared bytes, global scratch a block, blocks a
cluster; or name, target, `refused` and Triton's reason.
"""

import importlib.util
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
TARGETS = (80, 90, 120)


def job(name, source, function, signature, options=None, targets=TARGETS, **constexprs):
    return {
        "name": name, "file": str(HERE / f"{source}.py"), "function": function,
        "signature": [kind.strip() for kind in signature.split(",")], "constexprs": constexprs,
        "options": options or {}, "targets": targets,
    }


def product(name, types, function="matmul", options=None, targets=TARGETS, **constexprs):
    a, b, c = types.split()
    signature = f"*{a}:16, *{b}:16, *{c}:16, i32, i32, i32:16"
    return job(name, "products", function, signature, options, targets, **constexprs)


def scaled(name, a, b, block, scale="u8"):
    """One tile of dot_scaled; 4-bit elements lie two a byte."""
    store = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "e2m1": "u8"}
    pack = {"e4m3": 1, "e5m2": 1, "e2m1": 2}
    signature = f"*{store[a]}:16, *{scale}:16, *{store[b]}:16, *{scale}:16, *fp32:16, i32"
    return job(
        name, "products", "matmul_scaled", signature, A_TYPE=a, B_TYPE=b, A_PACK=pack[a],
        B_PACK=pack[b], BLOCK=block, TILE_M=128, TILE_N=32, TILE_K=128)


TILES = {"TILE_M": 64, "TILE_N": 32, "TILE_K": 32}
SHORT = {"TILE_M": 32, "TILE_N": 32, "TILE_K": 32}

JOBS = [
    job("softmax", "rows", "softmax", "*fp32, *fp32, i32", BLOCK=1024),
    job("softmax_rows", "rows", "softmax_rows", "*fp16, *fp32, i32, i32", ROWS=8, BLOCK=64),
    job("layer_norm", "rows", "layer_norm", "*fp16, *fp16, *fp16, *fp16, i32, fp32", BLOCK=512),
    job("rms_norm", "rows", "rms_norm", "*bf16:16, *bf16:16, *bf16:16, i32:16, fp32",
        {"num_warps": 8}, BLOCK=1024),
    job("cross_entropy", "rows", "cross_entropy", "*fp32, *i64, *fp32, *fp32, i32", BLOCK=512),
    job("dropout", "rows", "dropout", "*fp32, *fp32, i32, fp32, i32", BLOCK=256),
    job("rope", "rows", "rope", "*fp16, *fp32, *fp32, *fp16, i32", {"num_warps": 1}, HALF=32),
    job("rope_pairs", "rows", "rope_pairs", "*fp16, *fp32, *fp32, *fp16, i32", {"num_warps": 1},
        HALF=32),
    job("activations", "rows", "activations", "*fp32, *fp32, i32", BLOCK=128),
    job("quantise_e4m3", "rows", "quantise", "*fp32, *fp8e4nv, *fp32, i32", LARGEST=448.0,
        BLOCK=256),
    job("quantise_e5m2", "rows", "quantise", "*fp32, *fp8e5, *fp32, i32", LARGEST=57344.0,
        BLOCK=256),
    job("dequantise_e4m3", "rows", "dequantise", "*fp8e4nv, *fp32, *fp32, i32", BLOCK=256),
    job("dequantise_e5m2", "rows", "dequantise", "*fp8e5, *fp32, *fp32, i32", BLOCK=256),
    job("top_k", "choice", "top_k", "*fp32, *fp32, i32", K=8, BLOCK=256),
    job("top_k_indices", "choice", "top_k_indices", "*fp32, *fp32, *i32, i32", K=4, BLOCK=256),
    job("sort", "choice", "sort", "*i32, *i32, i32", DESCENDING=False, BLOCK=256),
    job("scans", "choice", "scans", "*i32, *i32, *i32, *fp32, *fp32", BLOCK=256),
    job("histogram", "choice", "histogram", "*i32, *i32, i32", BINS=64, BLOCK=256),
    job("atomics", "choice", "atomics", "*i32, *i32, *i32, i32", BLOCK=128),
    job("float_atomics", "choice", "float_atomics", "*fp16, *fp16, *fp32, i32", BLOCK=128),
    job("reductions", "choice", "reductions", "*i32, *i32", ROWS=32, COLS=64),
    job("gather", "choice", "gather", "*i32, *i32, *i32", ROWS=16, COLS=64),
    product("matmul_bf16", "bf16 bf16 fp32", PRECISION="ieee", TOTAL="tl.float32", **TILES),
    product("matmul_f16", "fp16 fp16 fp16", PRECISION="ieee", TOTAL="tl.float32", **TILES),
    product("matmul_f16_short", "fp16 fp16 fp32", options={"num_warps": 2}, PRECISION="ieee",
            TOTAL="tl.float32", **SHORT),
    product("matmul_f16_total", "fp16 fp16 fp16", PRECISION="ieee", TOTAL="tl.float16", **TILES),
    product("matmul_tf32", "fp32 fp32 fp32", PRECISION="tf32", TOTAL="tl.float32", **TILES),
    product("matmul_tf32x3", "fp32 fp32 fp32", PRECISION="tf32x3", TOTAL="tl.float32", **SHORT),
    product("matmul_ieee", "fp32 fp32 fp32", PRECISION="ieee", TOTAL="tl.float32", **SHORT),
    product("matmul_f64", "fp64 fp64 fp64", PRECISION="ieee", TOTAL="tl.float64", **SHORT),
    product("matmul_e4m3", "fp8e4nv fp8e4nv fp32", "matmul_transposed", **TILES),
    product("matmul_e5m2", "fp8e5 fp8e5 fp32", "matmul_transposed", **TILES),
    product("matmul_int8", "i8 i8 i32", "matmul_transposed", **TILES),
    product("matmul_persistent", "bf16 bf16 fp32", "matmul_persistent", {"num_stages": 2}, GROUP=2,
            **TILES),
    job("matmul_int4", "products", "matmul_int4",
        "*fp16:16, *i8:16, *fp16:16, *fp16:16, i32, i32:16, i32:16", GROUP=32, **TILES),
    product("matmul_descriptor", "fp16 fp16 fp16", "matmul_descriptor", **TILES),
    product("matmul_cluster", "fp16 fp16 fp32", options={"num_ctas": 2}, targets=(90, 120),
            PRECISION="ieee", TOTAL="tl.float32", TILE_M=128, TILE_N=32, TILE_K=32),
    job("descriptor_reduce", "products", "descriptor_reduce", "*fp32:16, *fp32:16, i32, i32:16",
        ROWS=16, COLS=32),
    scaled("matmul_mxfp8", "e4m3", "e4m3", 32),
    scaled("matmul_mxfp8_e5m2", "e5m2", "e4m3", 32),
    scaled("matmul_mxfp4", "e2m1", "e2m1", 32),
    scaled("matmul_mxfp8_mxfp4", "e4m3", "e2m1", 32),
    scaled("matmul_nvfp4", "e2m1", "e2m1", 16, "fp8e4nv"),
    job("attention", "attention", "attention", "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, fp32",
        CAUSAL=False, ROWS=64, KEYS=32, DIM=64),
    job("attention_causal", "attention", "attention",
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, fp32", {"num_stages": 2}, CAUSAL=True,
        ROWS=64, KEYS=32, DIM=64),
]


def script(path):
    spec = importlib.util.spec_from_file_location("compile", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_assembler():
    """Stops after the PTX: what the assembler makes of it is of no use here."""
    from triton import knobs

    def stages(backend, stages, *_):
        stages["cubin"] = lambda ptx, metadata: b""

    knobs.runtime.add_stages_inspection_hook = stages


def alone(compiler, job, output):
    """One job in a process of its own, which Triton may take down with it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        log = os.open(output / f"{job['name']}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        answer = compiler.answer(job, output)
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if said:
        return json.loads(said)
    log = (output / f"{job['name']}.log").read_text(errors="replace")
    asserted = [line for line in log.splitlines() if "Assertion" in line]
    return {"error": "Triton died: " + (asserted or log.splitlines() or ["?"])[-1], "hint": None}


def line(job, target, answer):
    facts = answer.get("facts")
    if facts is None:
        reason = [answer["error"].strip(), answer.get("hint") or ""]
        said = [line.strip() for line in "\n".join(reason).splitlines() if line.strip()]
        return [job["name"], target, "refused", " ".join(said)[-200:]]
    return [
        job["name"], target, facts["symbol"], facts["warps"], facts["shared_bytes"],
        facts["global_scratch"][0], facts["blocks_per_cluster"]]


def main():
    compiler, output = script(sys.argv[1]), pathlib.Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    without_assembler()
    with (output / "index.tsv").open("w") as index:
        for job in JOBS:
            if sys.argv[3:] and job["name"] not in sys.argv[3:]:
                continue
            for target in job["targets"]:
                name = f"{job['name']}.sm_{target}"
                answer = alone(compiler, {**job, "name": name, "target": target}, output)
                fields = [str(field) for field in line(job, target, answer)]
                index.write("\t".join(fields) + "\n")
                index.flush()


if __name__ == "__main__":
    main()
