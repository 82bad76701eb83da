// Kernels broken on purpose, from the same source as the correct ones: `-DASSAY_FAULT="name"`
// builds the fault of that name, and without it every `fault(...)` is false and leaves no trace.
#pragma once

#ifndef ASSAY_FAULT
#define ASSAY_FAULT ""
#endif

// Whether this build carries the fault called `name`.
__host__ __device__ constexpr bool fault(const char* name) {
    const char* built = ASSAY_FAULT;
    while (*built != '\0' && *built == *name) {
        ++built;
        ++name;
    }
    return *built == *name;
}
