// Warp operations and integer instructions.
extern "C" __global__ void warp_ops(int* x, unsigned* y, float* f, long long* l) {
  unsigned full = 0xffffffffu;
  int v = x[threadIdx.x];
  int s = __shfl_sync(full, v, 3) + __shfl_up_sync(full, v, 1) + __shfl_down_sync(full, v, 2, 16);
  float g = __shfl_xor_sync(full, f[0], 16);
  s += __all_sync(full, v > 1) + __any_sync(full, v > 2) + __ballot_sync(full, v > 3);
  s += __match_any_sync(full, v);
  int all;
  s += __match_all_sync(full, v, &all) + all + __match_any_sync(full, l[0]);
  s += __reduce_add_sync(full, v) + __reduce_max_sync(full, unsigned(v)) +
       __reduce_xor_sync(full, unsigned(v)) + __reduce_min_sync(full, v);
  s += __activemask() + __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
  __syncwarp();
  asm volatile("bar.sync 1, 64;");
  asm volatile("bar.arrive 2, 64;");
  asm volatile("barrier.sync.aligned 3;");
  asm volatile("{ .reg .pred p, q; setp.gt.and.s32 p|q, %1, 3, !p; vote.sync.uni.pred p, q, -1;"
               " @!p add.s32 %0, %0, 1; }" : "+r"(s) : "r"(v));
  unsigned lanes[8];
  asm("mov.u32 %0, %%laneid;" : "=r"(lanes[0]));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes[1]));
  asm("mov.u32 %0, %%warpid;" : "=r"(lanes[2]));
  asm("mov.u32 %0, %%smid;" : "=r"(lanes[3]));
  asm("mov.u32 %0, %%envreg3;" : "=r"(lanes[4]));
  asm("mov.u32 %0, WARP_SZ;" : "=r"(lanes[5]));
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(lanes[6]));
  asm("mov.u32 %0, %%nctaid.y;" : "=r"(lanes[7]));
  unsigned long long timer;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
  for (int i = 0; i < 8; i++) y[i + 40] = lanes[i];
  x[threadIdx.x] = s;
  f[1] = g;
  l[1] = timer;
}

extern "C" __global__ void integers(int* x, unsigned* y, long long* l, short* h) {
  int a = x[0], b = x[1], c = x[2];
  unsigned p = y[0], q = y[1], r = y[2];
  x[3] = a / b + a % c + __mulhi(a, b) + (a << 3) + (b >> (c & 31)) + abs(a) + min(a, b);
  y[3] = p / q + p % r + __umulhi(p, q) + (p >> 5) + max(p, q) + __usad(p, q, r) + p * 7;
  y[4] = __clz(p) + __popc(q) + __brev(r) + __ffs(p) + __byte_perm(p, q, 0x5410);
  y[5] = __funnelshift_l(p, q, r) + __funnelshift_rc(p, q, r) + (p & q | ~r) + __fns(p, 0, 3);
  y[6] = __dp4a(p, q, r) + __dp2a_lo(p, q, r) + __sad(a, b, r) + __mul24(a, b);
  y[7] = __vadd4(p, q) + __vabsdiffu4(p, q) + __vmaxs2(p, q) + __vcmpgtu4(p, q);
  l[2] = l[0] * l[1] + l[0] / l[1] + __mul64hi(l[0], l[1]) + (long long)a * b + __clzll(l[0]) +
         __popcll(l[1]) + __brevll(l[0]) + llabs(l[1]);
  unsigned __int128 wide = (unsigned __int128)l[3] * l[4] + l[5];
  l[6] = wide >> 64;
  l[7] = wide;
  h[0] = h[1] + h[2] * h[3] - (h[4] >> 2) + max(h[5], h[6]);
  char k = char(a);
  x[4] = k + (signed char)b + (unsigned char)c;
  int bits, field, found, mask;
  asm("bfe.s32 %0, %1, 3, 5;" : "=r"(bits) : "r"(a));
  asm("bfi.b32 %0, %1, %2, 8, 8;" : "=r"(field) : "r"(a), "r"(b));
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(found) : "r"(p));
  asm("bmsk.clamp.b32 %0, %1, 4;" : "=r"(mask) : "r"(a));
  x[5] = bits + field + found + mask;
  asm("{ .reg .u32 t; add.cc.u32 t, %1, %2; addc.cc.u32 t, t, 0; subc.u32 %0, t, 1; }"
      : "=r"(field) : "r"(a), "r"(b));
  asm("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %1; shf.l.wrap.b32 %0, lo, hi, 0x10;\n\t"
      ".reg .b16 a0, a1; mov.b32 {a0, a1}, lo; mov.b32 %0, {a1, a0};\n\t"
      "slct.s32.s32 %0, lo, hi, -3; cnot.b32 %0, %0; szext.wrap.s32 %0, %0, 0b101; }"
      : "=r"(mask) : "l"(l[0]));
  asm("{ .reg .pred p, q; setp.lo.or.u32 p, %1, 012, q; @p bra DONE; add.s32 %0, %0, -1; DONE: }"
      : "+r"(found) : "r"(p));
  asm("{ .reg .pred p, q; setp.hs.u32 p, %1, 0x1F; @p bra DONE; lop3.or.b32 %0|p, %0, %1, 3, "
      "0x3f, q; DONE: }" : "+r"(found) : "r"(p));
  x[6] = field + mask + found;
}
