// Pieces of language models: attention, cross entropy, dropout, top-k, gathers.
#include <cuda_bf16.h>
#include <math_constants.h>

#define FULL 0xffffffffu

// Flash attention forward for one head of 64: a warp a row of queries, 32 keys at a time.
extern "C" __global__ void attention(const float* q, const float* k, const float* v, float* o,
                                     int keys, int causal) {
  extern __shared__ float tile[];
  float* tk = tile;
  float* tv = tile + 32 * 65;
  int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  float q0 = q[row * 64 + lane] * 0.125f, q1 = q[row * 64 + lane + 32] * 0.125f;
  float m = -CUDART_INF_F, sum = 0, o0 = 0, o1 = 0;
  for (int start = 0; start < keys; start += 32) {
    __syncthreads();
    for (int i = threadIdx.y * 32 + lane; i < 32 * 64; i += blockDim.y * 32) {
      bool in = start + i / 64 < keys;
      tk[i / 64 * 65 + i % 64] = in ? k[start * 64 + i] : 0;
      tv[i / 64 * 65 + i % 64] = in ? v[start * 64 + i] : 0;
    }
    __syncthreads();
    float s = 0;
    for (int d = 0; d < 32; d++) {
      s += __shfl_sync(FULL, q0, d) * tk[lane * 65 + d];
      s += __shfl_sync(FULL, q1, d) * tk[lane * 65 + d + 32];
    }
    if (start + lane >= keys || (causal && start + lane > row)) s = -CUDART_INF_F;
    float top = s;
    for (int d = 16; d > 0; d >>= 1) top = fmaxf(top, __shfl_xor_sync(FULL, top, d));
    float next = fmaxf(m, top);
    if (next == -CUDART_INF_F) continue;
    float p = __expf(s - next), shrink = __expf(m - next);
    m = next, sum *= shrink, o0 *= shrink, o1 *= shrink;
    for (int j = 0; j < 32; j++) {
      float w = __shfl_sync(FULL, p, j);
      sum += w, o0 += w * tv[j * 65 + lane], o1 += w * tv[j * 65 + lane + 32];
    }
  }
  o[row * 64 + lane] = o0 / sum, o[row * 64 + lane + 32] = o1 / sum;
}

extern "C" __global__ void cross_entropy(const __nv_bfloat16* logits, const long long* target,
                                         float* loss, __nv_bfloat16* gradient, int n) {
  __shared__ float parts[8];
  const __nv_bfloat16* row = logits + blockIdx.x * n;
  auto fold = [&](float v, bool largest) {
    for (int d = 16; d > 0; d >>= 1) {
      float w = __shfl_xor_sync(FULL, v, d);
      v = largest ? fmaxf(v, w) : v + w;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (int w = 1; w < blockDim.x / 32; w++) v = largest ? fmaxf(v, parts[w]) : v + parts[w];
    return v;
  };
  float top = -CUDART_INF_F, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, __bfloat162float(row[i]));
  top = fold(top, true);
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(__bfloat162float(row[i]) - top);
  sum = fold(sum, false);
  long long at = target[blockIdx.x];
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float p = at < 0 ? 0 : expf(__bfloat162float(row[i]) - top) / sum - (i == at);
    gradient[blockIdx.x * n + i] = __float2bfloat16(p);
  }
  if (threadIdx.x == 0)
    loss[blockIdx.x] = at < 0 ? 0 : logf(sum) + top - __bfloat162float(row[at]);
}

// Philox 4x32-10 as PyTorch and Triton use it: four words a counter.
extern "C" __global__ void dropout(const float4* x, float4* y, uint4* words, uint2 key,
                                   float keep) {
  uint4 c = make_uint4(blockIdx.x * blockDim.x + threadIdx.x, 0, 0, 0);
  for (int round = 0; round < 10; round++) {
    unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
    unsigned h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
    c = make_uint4(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
    key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
  }
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = c;
  float4 v = x[i];
  unsigned limit = unsigned(keep * 4294967296.f);
  y[i] = make_float4(c.x < limit ? v.x / keep : 0, c.y < limit ? v.y / keep : 0,
                     c.z < limit ? v.z / keep : 0, c.w < limit ? v.w / keep : 0);
}

// The k largest of 256 in order, one tournament a place, by one warp; ties to the lower index.
extern "C" __global__ void top_k(const float* x, float* best, int* where, int k) {
  float mine[8];
  for (int i = 0; i < 8; i++) mine[i] = x[blockIdx.x * 256 + i * 32 + threadIdx.x];
  for (int place = 0; place < k; place++) {
    float v = -CUDART_INF_F;
    int at = 1 << 30;
    for (int i = 0; i < 8; i++)
      if (mine[i] > v) v = mine[i], at = i * 32 + threadIdx.x;
    for (int d = 16; d > 0; d >>= 1) {
      float w = __shfl_xor_sync(FULL, v, d);
      int other = __shfl_xor_sync(FULL, at, d);
      if (w > v || (w == v && other < at)) v = w, at = other;
    }
    for (int i = 0; i < 8; i++)
      if (at == i * 32 + threadIdx.x) mine[i] = -CUDART_INF_F;
    if (threadIdx.x == 0) best[blockIdx.x * k + place] = v, where[blockIdx.x * k + place] = at;
  }
}

// y[page[i / 16]][i % 16] in and a transposed tile out, through padded shared memory.
extern "C" __global__ void gather_transpose(const short* pages, const int* table, short* y) {
  __shared__ short tile[32][33];
  int x = threadIdx.x, r = threadIdx.y;
  for (int i = r; i < 32; i += 8)
    tile[i][x] = pages[(table[blockIdx.x * 2 + i / 16] * 16 + i % 16) * 32 + x];
  __syncthreads();
  for (int i = r; i < 32; i += 8) y[(blockIdx.x * 32 + i) * 32 + x] = tile[x][i];
}
