// The comparison of integers of 16 bits and more, of either sign.

#include "worst.cuh"

COMPARE(int16, Int16, 5)
COMPARE(int32, Int32, 4)
COMPARE(int64, Int64, 3)
