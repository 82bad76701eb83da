// Additions that are made or not, in one predicated instruction each, and the smallest of values.

#pragma once

#include <cstdint>

static __device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return uint32_t(__cvta_generic_to_shared(pointer));
}

static __device__ __forceinline__ void count_shared(uint32_t address, uint32_t value) {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(value));
}

static __device__ __forceinline__ void add_if(bool condition, uint32_t& count) {
    asm("{.reg .pred p; setp.ne.u32 p, %1, 0; @p add.u32 %0, %0, 1;}"
        : "+r"(count)
        : "r"(uint32_t(condition)));
}

// Counts a positive error, and adds its distance.
static __device__ __forceinline__ void add_if_positive(float error, uint32_t& count, uint32_t& sum,
                                                       uint32_t steps) {
    asm("{.reg .pred p; setp.gt.f32 p, %2, 0f00000000;"
        "@p add.u32 %0, %0, 1; @p add.u32 %1, %1, %3;}"
        : "+r"(count), "+r"(sum)
        : "f"(error), "r"(steps));
}
template <typename Steps>
static __device__ __forceinline__ void add_if_positive(double error, uint32_t& count, Steps& sum,
                                                       Steps steps) {
    add_if(error > 0, count);
    sum += error > 0 ? steps : 0;
}

static __device__ __forceinline__ float larger(float largest, float error) {
    return fmaxf(largest, fabsf(error));
}
static __device__ __forceinline__ double larger(double largest, double error) {
    return fabs(error) > largest ? fabs(error) : largest;
}

// Whether some candidates may be zeros where their words differ from the reference's.
template <typename Float> struct Zeros;
template <> struct Zeros<float> {
    float least = 1;
    __device__ __forceinline__ void look(float candidate, bool) {
        least = fminf(least, fabsf(candidate));
    }
    __device__ __forceinline__ bool any() const { return least == 0; }
};
template <> struct Zeros<double> {
    bool found = false;
    __device__ __forceinline__ void look(double candidate, bool differs) {
        found |= (candidate == 0) & differs;
    }
    __device__ __forceinline__ bool any() const { return found; }
};
