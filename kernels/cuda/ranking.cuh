// The order that argmax, routers and samplers put elements in: by value, descending; a NaN, of
// whatever sign and payload, before every number; -0 and +0 equal; of equal elements, two NaNs
// among them, the one with the lower index first.
#pragma once

#include "common.cuh"

namespace ranking {

// Below the key of every element.
constexpr uint64_t kNone = 0;

// Larger for a larger value and never zero. A bf16 value ranks as the float that it widens to.
__device__ inline uint32_t value_rank(float value) {
    const uint32_t bits = __float_as_uint(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return fault("nan_dropped") ? 1u : 0xffffffffu;
    const bool negative = (bits >> 31) != 0 && magnitude != 0;
    return negative ? 0x80000000u - magnitude : 0x80000000u + magnitude;
}

// A key for each element that puts a row in order: by rank, then by the lower index.
__device__ inline uint64_t element_key(float value, unsigned index) {
    const uint32_t place = fault("tie_order") ? index : ~index;
    return static_cast<uint64_t>(value_rank(value)) << 32 | place;
}

__device__ inline unsigned key_index(uint64_t key) {
    const uint32_t place = static_cast<uint32_t>(key);
    return fault("tie_order") ? place : ~place;
}

}  // namespace ranking
