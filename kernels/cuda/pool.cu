// Average pooling of a feature map over windows of 3 x 3: bf16 in and out, fp32 sums.
//
// The map is [height, width, channels], channels innermost. Two strides: 1, where a border of zeros
// keeps the map's size, and 3, which gathers a tower's patches into tokens; there the last windows
// may hang over the edges. Terms outside the map count as zeros, so that every sum is divided by 9.
// A thread sums eight neighbouring channels of one window, row by row.
#include "common.cuh"

constexpr int kThreads = 64;
constexpr unsigned kPack = 8;
constexpr unsigned kSide = 3;

// The extents of a feature map.
struct Map {
    unsigned height;
    unsigned width;
    unsigned channels;
};

// The window's sums; terms outside the map are left out.
__device__ static Pack<kPack> window_sums(const __nv_bfloat16* x, const Map& map, int top,
                                          int left, unsigned channel) {
    const bool aligned = rows_aligned<kPack>(x, map.channels);
    constexpr unsigned kRows = fault("last_tile_dropped") ? kSide - 1 : kSide;
    Pack<kPack> sums = {};
#pragma unroll
    for (unsigned k = 0; k < kRows * kSide; ++k) {
        const int row = top + static_cast<int>(k / kSide);
        const int col = left + static_cast<int>(k % kSide);
        if (row < 0 || row >= static_cast<int>(map.height)) continue;
        const bool wraps = fault("edge_wraps") && row + 1 < static_cast<int>(map.height) && row > 0;
        if (!wraps && (col < 0 || col >= static_cast<int>(map.width))) continue;
        const __nv_bfloat16* pixel =
            x + (static_cast<int64_t>(row) * map.width + col) * map.channels;
        const Pack<kPack> terms = load<kPack>(pixel, channel, map.channels, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) {
            float sum = sums.at[i] + terms.at[i];
            if constexpr (fault("rounding_added")) {
                sum = __bfloat162float(__float2bfloat16_rn(sum));
            }
            sums.at[i] = carried(sum);
        }
    }
    return sums;
}

// One block an output pixel and 512 channels.
template <unsigned Stride>
__device__ static void pool(const __nv_bfloat16* x, __nv_bfloat16* y, const Map& map,
                            unsigned out_height, unsigned out_width) {
    constexpr int kBorder = Stride == 1 && !fault("border_dropped") ? 1 : 0;
    const unsigned channel = (blockIdx.y * kThreads + threadIdx.x) * kPack;
    const unsigned row = blockIdx.x / out_width;
    const unsigned col = blockIdx.x % out_width;
    if (row >= out_height || channel >= map.channels) return;
    if (fault("dropped_tail") && map.channels - channel < kPack) return;

    const int top = static_cast<int>(row * Stride) - kBorder;
    const int left = static_cast<int>(col * Stride) - kBorder;
    Pack<kPack> pack = window_sums(x, map, top, left, channel);
    const int inside = (min(left + 3, static_cast<int>(map.width)) - max(left, 0)) *
                       (min(top + 3, static_cast<int>(map.height)) - max(top, 0));
    const float count = fault("counts_inside") ? static_cast<float>(inside) : 9.0f;
#pragma unroll
    for (float& value : pack.at) value /= count;
    store(pack, row_start(y, blockIdx.x, map.channels), channel, map.channels,
          rows_aligned<kPack>(y, map.channels));
}

extern "C" __global__ void __launch_bounds__(kThreads)
average_pool_bf16(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y,
                  unsigned height, unsigned width, unsigned channels) {
    pool<1>(x, y, {height, width, channels}, height, width);
}

extern "C" __global__ void __launch_bounds__(kThreads)
token_pool_bf16(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y,
                unsigned height, unsigned width, unsigned channels) {
    pool<kSide>(x, y, {height, width, channels}, (height + 2) / kSide, (width + 2) / kSide);
}
