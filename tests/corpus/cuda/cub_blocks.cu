// CUB's algorithms of a warp and a block.
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

struct Larger {
  __device__ bool operator()(float a, float b) const { return a > b; }
};

extern "C" __global__ void sums(const float* x, float* y, int n) {
  using Reduce = cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using Raking = cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_RAKING>;
  __shared__ union {
    typename Reduce::TempStorage a;
    typename Raking::TempStorage b;
  } storage;
  float total = 0;
  for (int i = threadIdx.x; i < n; i += 128) total += x[blockIdx.x * n + i];
  float a = Reduce(storage.a).Sum(total);
  __syncthreads();
  float b = Raking(storage.b).Reduce(total, cuda::maximum<>{});
  if (threadIdx.x == 0) y[2 * blockIdx.x] = a, y[2 * blockIdx.x + 1] = b;
}

extern "C" __global__ void scans(const int* x, int* y, int* total) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 64, cub::BLOCK_SCAN_RAKING>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  int items[4], sum;
  Load(storage.load).Load(x, items, 250, 0);
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(items, items, sum);
  __syncthreads();
  Store(storage.store).Store(y, items, 250);
  if (threadIdx.x == 0) *total = sum;
}

extern "C" __global__ void sorts(unsigned* keys, int* values, float* merged) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 2, int>;
  using Merge = cub::BlockMergeSort<float, 64, 2>;
  __shared__ union {
    typename Sort::TempStorage sort;
    typename Merge::TempStorage merge;
  } storage;
  int t = threadIdx.x;
  unsigned k[2] = {keys[2 * t], keys[2 * t + 1]};
  int v[2] = {2 * t, 2 * t + 1};
  Sort(storage.sort).Sort(k, v);
  keys[2 * t] = k[0], keys[2 * t + 1] = k[1];
  values[2 * t] = v[0], values[2 * t + 1] = v[1];
  float f[2] = {merged[2 * t], merged[2 * t + 1]};
  __syncthreads();
  Merge(storage.merge).Sort(f, Larger{});
  merged[2 * t] = f[0], merged[2 * t + 1] = f[1];
}

extern "C" __global__ void bins(const unsigned char* x, unsigned* counts) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 16, cub::BLOCK_HISTO_SORT>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ unsigned local[16];
  unsigned char items[4];
  for (int i = 0; i < 4; i++) items[i] = x[threadIdx.x * 4 + i];
  Histogram(storage).Histogram(items, local);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x] = local[threadIdx.x];
}

extern "C" __global__ void warps(const double* x, double* y, int* z) {
  __shared__ typename cub::WarpReduce<double>::TempStorage reduce[2];
  __shared__ typename cub::WarpScan<int, 16>::TempStorage scan[4];
  int w = threadIdx.x / 32;
  double m = cub::WarpReduce<double>(reduce[w]).Reduce(x[threadIdx.x], cuda::maximum<>{});
  if (threadIdx.x % 32 == 0) y[w] = m;
  int sum;
  cub::WarpScan<int, 16>(scan[threadIdx.x / 16]).InclusiveSum(int(threadIdx.x), sum);
  z[threadIdx.x] = sum;
}
