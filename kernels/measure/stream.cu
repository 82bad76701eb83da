// The streams through device memory that win on the devices seen so far.

#include "stream.cuh"

READ(4, 0, a)
READ(8, 1, b)
READ(16, 1, b)
WRITE(1, 0, a)
WRITE(1, 1, b)
WRITE(2, 0, a)
COPY(1, 0, a)
COPY(1, 1, b)
COPY(2, 1, b)
TRIAD(1, 0, a)
TRIAD(1, 1, b)
GATHER(4, 0, a)
GATHER(8, 0, a)
