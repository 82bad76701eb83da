// A row sum as a reader of CUB's documentation would write it: BlockLoad brings a tile of the row into
// registers, BlockReduce sums the block's parts. Nothing here follows this project's style.
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>

constexpr int BLOCK_THREADS    = 128;
constexpr int ITEMS_PER_THREAD = 4;
constexpr int TILE_ITEMS       = BLOCK_THREADS * ITEMS_PER_THREAD;

extern "C" __global__ void row_sum_cub(const float* d_in, float* d_out, int num_cols)
{
  using BlockLoadT   = cub::BlockLoad<float, BLOCK_THREADS, ITEMS_PER_THREAD, cub::BLOCK_LOAD_TRANSPOSE>;
  using BlockReduceT = cub::BlockReduce<float, BLOCK_THREADS>;

  __shared__ union
  {
    typename BlockLoadT::TempStorage load;
    typename BlockReduceT::TempStorage reduce;
  } temp_storage;

  const float* d_row = d_in + static_cast<size_t>(blockIdx.x) * num_cols;

  float thread_sum = 0.0f;
  for (int offset = 0; offset < num_cols; offset += TILE_ITEMS)
  {
    float items[ITEMS_PER_THREAD];
    const int valid_items = min(TILE_ITEMS, num_cols - offset);
    BlockLoadT(temp_storage.load).Load(d_row + offset, items, valid_items, 0.0f);
    __syncthreads();

#pragma unroll
    for (int i = 0; i < ITEMS_PER_THREAD; ++i)
    {
      thread_sum += items[i];
    }
  }

  const float row_sum = BlockReduceT(temp_storage.reduce).Sum(thread_sum);
  if (threadIdx.x == 0)
  {
    d_out[blockIdx.x] = row_sum;
  }
}
