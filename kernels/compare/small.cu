// The comparison of formats whose values the host gives in a table, and of tensor floats.

#include "worst.cuh"

COMPARE(tf32, Tf32, 5)
COMPARE(table, Table, 5)
COMPARE(packed, Packed, 5)
