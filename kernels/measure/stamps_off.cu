// The demonstration with its stamps off.

#include "staged_sum.cuh"
