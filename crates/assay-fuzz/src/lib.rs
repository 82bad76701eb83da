//! Runs candidates over the ugly shapes: empty, prime, misaligned, transposed, strided, broadcast
//! and huge, each with a recipe that repeats it, failures shrunk to the smallest shape.
