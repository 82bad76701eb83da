// Calls of every sort, for optimised builds and for -G: printf, assert, recursion, pointers.
#include <cassert>
#include <cstdio>

extern "C" __global__ void says(const int* x, int* y) {
  int i = threadIdx.x;
  if (x[i] > 6) printf("x[%d] = %d, %s, %.2f\n", i, x[i], x[i] & 1 ? "odd" : "even", x[i] * 0.5);
  assert(x[i] < 1000);
  y[i] = x[i] + 1;
}

__device__ __noinline__ int collatz(int n) { return n & 1 ? 3 * n + 1 : n / 2; }

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(unsigned* y) {
  int i = threadIdx.x, steps = 0;
  for (int n = i + 1; n != 1; n = collatz(n)) steps++;
  y[i] = steps;
  y[blockDim.x + i] = fibonacci(i % 12);
  y[2 * blockDim.x + i] = ackermann(2, i % 4);
}

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
  float radius;
  __device__ Disc(float r) : radius(r) {}
  __device__ float area() const override { return 3 * radius * radius; }
};

__device__ __noinline__ float twice(float v) { return 2 * v; }
__device__ __noinline__ float square(float v) { return v * v; }
__device__ __noinline__ float minus(float v) { return -v; }
__device__ float (*const table[3])(float) = {twice, square, minus};

extern "C" __global__ void pointers(const float* x, float* y, int which) {
  int i = threadIdx.x;
  Square s(x[i]);
  Disc d(x[i]);
  const Shape* shape = i % 3 == which ? (const Shape*)&s : &d;
  y[i] = shape->area();
  y[blockDim.x + i] = table[(i + which) % 3](x[i]);
}

struct Big {
  int v[20];
};

__device__ __noinline__ Big rotate(Big b, int by) {
  Big r;
  for (int i = 0; i < 20; i++) r.v[(i + by) % 20] = b.v[i];
  return r;
}

extern "C" __global__ void structures(Big b, int* y) {
  Big r = rotate(b, threadIdx.x);
  for (int i = 0; i < 20; i++) y[threadIdx.x * 20 + i] = r.v[i];
}

__constant__ int weights[4] = {1, 10, 100, 1000};
__device__ int counter = 5;

extern "C" __global__ void locals(const int* x, int* y, int n) {
  int stack[16];
  for (int i = 0; i < 16; i++) stack[i] = x[i] * weights[i & 3];
  int at = threadIdx.x & 15;
  switch (n & 7) {
    case 0: at = 15 - at; break;
    case 1: at ^= 5; break;
    case 2: at = at * 3 & 15; break;
    case 3: at = 0; break;
    case 5: at = 7; break;
    default: break;
  }
  y[threadIdx.x] = stack[at] + (threadIdx.x == 0 ? atomicAdd(&counter, 0) : 0);
}

extern "C" __global__ void heap(int* y) {
  int* p = (int*)malloc(4 * (threadIdx.x + 1));
  for (int i = 0; i <= threadIdx.x; i++) p[i] = i * threadIdx.x;
  int sum = 0;
  for (int i = 0; i <= threadIdx.x; i++) sum += p[i];
  free(p);
  y[threadIdx.x] = sum;
}
