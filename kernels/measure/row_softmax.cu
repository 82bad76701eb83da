// The softmax of rows as it ships: nothing is left of its stamps.

#include "row_softmax.cuh"
