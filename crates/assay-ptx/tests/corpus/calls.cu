// Calls of all kinds: printf, assert, functions that are not inlined, pointers, recursion.
#include <assert.h>
#include <stdio.h>

struct Big { double a[5]; int b; char c[3]; };
__constant__ float coefficients[4] = {1.0f, -2.5f, 3e-3f, 4e20f};
__device__ int counter = 7;
__device__ const char* names[2] = {"one", "two\n"};
__device__ int* pointer_to_counter = &counter;
extern __shared__ float dynamic[];

__device__ __noinline__ Big make_big(int n, double seed) {
  Big big;
  for (int i = 0; i < 5; i++) big.a[i] = seed * i;
  big.b = n;
  big.c[0] = big.c[1] = big.c[2] = char(n);
  return big;
}
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float cube(float x) { return x * x * x; }
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__device__ float (*const table[2])(float) = {square, cube};

extern "C" __global__ void __launch_bounds__(128, 2) calls(float* y, int n, Big by_value) {
  Big big = make_big(n, by_value.a[2]);
  assert(n > 0);
  float (*f)(float) = table[n & 1];
  dynamic[threadIdx.x] = f(y[0]);
  __syncthreads();
  y[1] = dynamic[n] + big.a[3] + big.c[1] + factorial(n) + coefficients[n & 3];
  printf("%s %d %f\n", names[n & 1], n, y[1]);
  if (n == 99) __trap();
  atomicAdd(pointer_to_counter, by_value.b);
}

extern "C" __global__ void local_arrays(const int* index, int* y, int n) {
  int scratch[40];
  char bytes[10];
  for (int i = 0; i < 40; i++) scratch[i] = i * n;
  for (int i = 0; i < 10; i++) bytes[index[i] % 10] = char(index[i]);
  for (int i = 0; i < n; i++) scratch[index[i] % 40] += bytes[i % 10];
  y[threadIdx.x] = scratch[threadIdx.x % 40];
}

extern "C" __global__ void switched(int* y, int n) {
  switch (n) {
    case 0: y[0] = 5; break;
    case 1: y[1] = y[0] * 3; break;
    case 2: y[2] = square(y[1]); break;
    case 3: y[3] = y[2] ^ 0x55; break;
    case 4: y[4] = cube(y[3]); break;
    case 5: y[5] = __popc(y[4]); break;
    case 6: asm volatile("exit;"); break;
    case 7: __nanosleep(100); break;
    default: y[0] = clock() + clock64() + __brev(n); break;
  }
}

extern "C" __global__ void heap(int n, void** out) {
  int* p = (int*)malloc(n * 4);
  if (p) memset(p, 0, n * 4);
  out[0] = p;
  int* q = (int*)__builtin_alloca(n);
  q[n / 8] = 3;
  out[1] = (void*)(long)q[0];
  free(p);
}
