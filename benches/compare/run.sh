#!/bin/sh
# Compiles the cases and compares, on cores 0 and 1. `cargo xtask toolchain --peers` installs what
# it needs. Arguments go to compare.py: --quick, --rounds N, --only NAME, --json FILE.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=${ASSAY_TOOLCHAIN:-$root/.toolchain}
target=${CARGO_TARGET_DIR:-$root/target}
export PYTHONPATH=$tools/peers-numba-0.61.2:$tools/triton-3.6.0
cd "$root"
cargo build --release -q -p assay-emulator --bench launches
binary=$(ls -t "$target"/release/deps/launches-* | grep -v '\.d$' | head -n 1)
python3 benches/compare/prepare.py "$target/compare" \
    "$tools/cuda-13.0.88/nvidia/cu13/bin/nvcc"
taskset -c 0,1 python3 benches/compare/compare.py \
    --emulator "$binary" --folder "$target/compare" "$@"
