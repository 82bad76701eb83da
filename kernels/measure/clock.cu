// The clock of one multiprocessor: its cycles against the nanoseconds that pass meanwhile.

#include <cstdint>

// out[0] is cycles, out[1] nanoseconds, over at least `nanoseconds`. One block of one thread.
extern "C" __global__ void clock_window(uint64_t* out, uint64_t nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    uint64_t cycles = clock64();
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
    out[0] = clock64() - cycles;
    out[1] = now - start;
}
