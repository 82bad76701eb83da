// The comparison of formats whose values the host gives in a table, and of tensor floats.

#include "worst.cuh"

COMPARE(tf32, Tf32, 4)
COMPARE(table, Table, 4)
COMPARE(packed, Packed, 4)
