// The comparison of integers of 16 bits and more.

#include "worst.cuh"

COMPARE(i16, I16, 4)
COMPARE(u16, U16, 4)
COMPARE(i32, I32, 4)
COMPARE(u32, U32, 4)
COMPARE(i64, I64, 3)
COMPARE(u64, U64, 3)
