// Rates of mma.sync in double precision, in the shape that sm_90 has. A register of 64 bits is two
// words, the low one first.

#include "mma.cuh"

namespace {

struct f64 {
    static constexpr int A = 16, B = 8, C = 8;
    __device__ static double whole(const uint32_t* words) {
        return __hiloint2double(static_cast<int>(words[1]), static_cast<int>(words[0]));
    }
    __device__ static void multiply(uint32_t* c, const uint32_t* a, const uint32_t* b) {
        double d[4] = {whole(c), whole(c + 2), whole(c + 4), whole(c + 6)};
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11},"
                     " {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                     : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                     : "d"(whole(a)), "d"(whole(a + 2)), "d"(whole(a + 4)), "d"(whole(a + 6)),
                       "d"(whole(a + 8)), "d"(whole(a + 10)), "d"(whole(a + 12)),
                       "d"(whole(a + 14)), "d"(whole(b)), "d"(whole(b + 2)), "d"(whole(b + 4)),
                       "d"(whole(b + 6)));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            c[2 * i] = static_cast<uint32_t>(__double2loint(d[i]));
            c[2 * i + 1] = static_cast<uint32_t>(__double2hiint(d[i]));
        }
    }
};

}  // namespace

MMA_KERNEL(f64, 1, 2)
