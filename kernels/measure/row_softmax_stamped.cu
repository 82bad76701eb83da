// The softmax of rows with its stamps on.

#define ASSAY_STAMPS 1
#include "row_softmax.cuh"
