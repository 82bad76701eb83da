#!/bin/sh
# Regenerates the PTX of this folder with the pinned compiler: build.sh path/to/nvcc
set -eu
nvcc=$1
here=$(cd "$(dirname "$0")" && pwd)
# In a folder of a fixed name, because debug output names the folder.
mkdir -p /tmp/corpus
cp "$here"/*.cu /tmp/corpus
cd /tmp/corpus
for name in cub cooperative calls floats atomics warps formats tensor; do
  "$nvcc" -arch=compute_80 -ptx -O3 -std=c++17 "$name.cu" -o "$name.sm_80.ptx"
done
"$nvcc" -arch=compute_80 -ptx -O3 -std=c++17 -use_fast_math floats.cu -o floats.fast.sm_80.ptx
"$nvcc" -arch=compute_80 -ptx -G -std=c++17 debug.cu -o debug.sm_80.ptx
"$nvcc" -arch=compute_80 -ptx -O3 -lineinfo -std=c++17 debug.cu -o lines.sm_80.ptx
for name in atomics formats floats cooperative; do
  "$nvcc" -arch=compute_90 -ptx -O3 -std=c++17 "$name.cu" -o "$name.sm_90.ptx"
done
"$nvcc" -arch=compute_90a -ptx -O3 -std=c++17 hopper.cu -o hopper.sm_90a.ptx
"$nvcc" -arch=compute_120a -ptx -O3 -std=c++17 blackwell.cu -o blackwell.sm_120a.ptx
"$nvcc" -arch=compute_120 -ptx -O3 -std=c++17 warps.cu -o warps.sm_120.ptx
cp ./*.ptx "$here"
rm -r /tmp/corpus
