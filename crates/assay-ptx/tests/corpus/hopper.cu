// sm_90a: wgmma, mbarrier, bulk and tensor copies, tensormaps, clusters.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float* x) {
  __shared__ float part[32];
  cg::cluster_group cluster = cg::this_cluster();
  part[threadIdx.x & 31] = x[threadIdx.x];
  cluster.sync();
  float* other = cluster.map_shared_rank(part, cluster.block_rank() ^ 1);
  atomicAdd(other, 1.0f);
  x[threadIdx.x] = other[threadIdx.x & 31];
  cluster.sync();
}

extern "C" __global__ void copies(const char* src, char* dst, const void* map, float4 acc) {
  __shared__ alignas(128) char tile[2048];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(tile);
  unsigned mb = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(mb));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("fence.proxy.async.shared::cta;");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" :: "r"(mb));
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(mb));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
               "1024, [%2];" :: "r"(at), "l"(src), "r"(mb));
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3}], [%4];" :: "r"(at), "l"(map), "r"(0), "r"(1), "r"(mb));
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %3}], [%4], %5, %6;"
               :: "r"(at), "l"(map), "r"(0), "r"(1), "r"(mb), "h"((short)3), "l"(7ll));
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %1}];" :: "l"(map), "r"(0));
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;"
               " @P1 bra DONE; bra LAB_WAIT; DONE: }" :: "r"(mb), "r"(0));
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.test_wait.shared::cta.b64 P1, [%0], %1;"
               " @P1 bra DONE; bra LAB_WAIT; DONE: }" :: "r"(mb), "l"(0ll));
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %1}], [%2];"
               :: "l"(map), "r"(0), "r"(at));
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 64;"
               :: "l"(dst), "r"(at));
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
               "[%0, {%1, %1}], [%2];" :: "l"(map), "r"(0), "r"(at));
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group.read 0;");
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(mb));
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
               :: "r"(at), "l"(src));
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0x1, %1;"
               :: "r"(at), "r"(64));
  asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 0x7;" :: "r"(at));
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
               ".aligned [%0], [%1], 0x80;" :: "l"(map), "r"(at));
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 0x80;" :: "l"(map));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};"
               :: "r"(at), "r"(5));
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;");
  asm volatile("{ .reg .pred p; .reg .b32 leader; elect.sync leader|p, -1; @p trap;"
               " elect.sync _|p, 0xffffffff; @p brkpt; }");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %1}, [%2];"
               :: "r"(at), "r"(1), "r"(mb));
  dst[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void wgmma(float* out, unsigned long long da, unsigned long long db) {
  float d[4] = {out[0], out[1], out[2], out[3]};
  unsigned a[4] = {1, 2, 3, 4};
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;"
               " wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, p, 1, "
               "1, 0, 1; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(da), "l"(db), "r"(1));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
               "%8, 1, -1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; i++) out[i] = d[i];
}
