// CUB's algorithms of a whole device: the host calls instantiate the kernels, which the PTX holds.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

void instantiate(void* temp, size_t bytes, int* x, int* y, unsigned* keys, int n) {
  cub::DeviceReduce::Sum(temp, bytes, x, y, n);
  cub::DeviceScan::ExclusiveSum(temp, bytes, x, y, n);
  cub::DeviceRadixSort::SortKeys(temp, bytes, keys, keys + n, n);
}
