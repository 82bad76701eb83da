// What surrounds a timed kernel: a hold on the stream, two stamps of one multiprocessor's clock,
// and a flush of the L2 cache.

#include <cstdint>

namespace {

__device__ uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ uint32_t multiprocessor() {
    uint32_t number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

}  // namespace

// Keeps the stream waiting until `*flag` is `ticket`, so that what the host queues meanwhile runs
// without a gap. Gives up after `timeout` nanoseconds: the host may wait for this very stream.
// state[0..6]: cycles and nanoseconds at its start, its multiprocessor, whether it gave up, its own
// nanoseconds, the ticket. One block of one thread.
extern "C" __global__ void hold(const volatile uint32_t* flag, uint32_t ticket, uint64_t timeout,
                                uint64_t* state) {
    uint64_t start = nanoseconds();
    state[0] = clock64();
    state[1] = start;
    state[2] = multiprocessor();
    uint64_t gave_up = 0;
    while (*flag != ticket) {
        if (nanoseconds() - start > timeout) {
            gave_up = 1;
            break;
        }
    }
    state[3] = gave_up;
    state[4] = nanoseconds() - start;
    state[5] = ticket;
}

// What has passed on the multiprocessor of `state` since its stamp. out[0..5]: cycles,
// nanoseconds, whether the hold gave up, the hold's own nanoseconds, its ticket. Blocks of one
// thread, enough for one on every multiprocessor; only those of the right one write, and any of
// them will do.
extern "C" __global__ void stamp(const uint64_t* state, uint64_t* out) {
    if (multiprocessor() != state[2]) {
        return;
    }
    uint64_t cycles = clock64() - state[0];
    uint64_t passed = nanoseconds() - state[1];
    out[1] = passed;
    out[2] = state[3];
    out[3] = state[4];
    out[4] = state[5];
    out[0] = cycles;
}

// Reads `count` times 16 bytes, so that the L2 cache holds them and nothing else. It writes
// nothing: no line is left that would have to go to memory during what is timed.
extern "C" __global__ void flush(const uint4* bytes, uint64_t count, uint32_t* never) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint32_t all = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        uint4 word = bytes[i];
        all |= word.x & word.y & word.z & word.w;
    }
    // The buffer is filled so that this never holds, which the compiler cannot know.
    if (all == 0x5a17c0deu) {
        *never = all;
    }
}

// Does nothing: what is left of a bracket around it is the bracket's own cost.
extern "C" __global__ void nothing() {}
