// Block-wide reduction, scan and radix sort as CUB writes them.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

extern "C" __global__ void block_sum(const float* x, float* y, int n) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float total = 0;
  for (int i = threadIdx.x; i < n; i += 256) total += x[blockIdx.x * n + i];
  total = Reduce(storage).Sum(total);
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}

extern "C" __global__ void block_scan(const int* x, int* y) {
  using Scan = cub::BlockScan<int, 128>;
  __shared__ typename Scan::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; i++) items[i] = x[threadIdx.x * 4 + i];
  Scan(storage).ExclusiveSum(items, items);
  for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = items[i];
}

extern "C" __global__ void block_sort(unsigned* keys) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 2>;
  __shared__ typename Sort::TempStorage storage;
  unsigned items[2] = {keys[threadIdx.x * 2], keys[threadIdx.x * 2 + 1]};
  Sort(storage).Sort(items);
  keys[threadIdx.x * 2] = items[0];
  keys[threadIdx.x * 2 + 1] = items[1];
}

extern "C" __global__ void warp_max(const double* x, double* y) {
  __shared__ typename cub::WarpReduce<double>::TempStorage storage;
  double m = cub::WarpReduce<double>(storage).Reduce(x[threadIdx.x], cuda::maximum<>{});
  if (threadIdx.x == 0) y[0] = m;
}
