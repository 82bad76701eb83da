/* A driver library for the loader's tests: enough of cuda.h to open a device, hold memory and
 * "run" three kernels, with every answer that a test wants to see set by a -D option. Device
 * memory is the host's own. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 12040
#endif
#ifndef INIT_CODE
#define INIT_CODE 0
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef ALLOCATE_CODE
#define ALLOCATE_CODE 0
#endif
#ifndef LOAD_CODE
#define LOAD_CODE 0
#endif
#ifndef LAUNCH_CODE
#define LAUNCH_CODE 0
#endif
#ifndef SYNCHRONIZE_CODE
#define SYNCHRONIZE_CODE 0
#endif

typedef int Code;
typedef void *Handle;

/* Kernels: handle 1 stores its second argument, 2 damages the byte before, 3 the byte after. */
static const char *KERNELS[] = {"store", "damage_before", "damage_after"};

static int launched;

Code cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
#ifndef ONLY_VERSION
Code cuInit(unsigned flags) { return flags ? 1 : INIT_CODE; }

Code cuGetErrorName(Code code, const char **text) {
  switch (code) {
  case 1: *text = "CUDA_ERROR_INVALID_VALUE"; return 0;
  case 2: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
  case 34: *text = "CUDA_ERROR_STUB_LIBRARY"; return 0;
  case 100: *text = "CUDA_ERROR_NO_DEVICE"; return 0;
  case 214: *text = "CUDA_ERROR_ECC_UNCORRECTABLE"; return 0;
  case 218: *text = "CUDA_ERROR_INVALID_PTX"; return 0;
  case 222: *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return 0;
  case 700: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
  case 701: *text = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; return 0;
  case 702: *text = "CUDA_ERROR_LAUNCH_TIMEOUT"; return 0;
  case 716: *text = "CUDA_ERROR_MISALIGNED_ADDRESS"; return 0;
  case 803: *text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
  default: *text = NULL; return 1;
  }
}
Code cuGetErrorString(Code code, const char **text) {
  static char words[] = "words of the fake driver";
  *text = words;
  return code == 999 ? 1 : 0;
}

Code cuDeviceGetCount(int *count) { *count = DEVICES; return 0; }
Code cuDeviceGet(int *device, int ordinal) { *device = ordinal + 40; return 0; }
Code cuDeviceGetName(char *name, int length, int device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)length);
  return 0;
}
Code cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 30;
  return 0;
}
Code cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (device < 40 || device >= 40 + DEVICES) return 101;
  switch (attribute) {
  case 1: case 2: case 3: *value = 1024; return 0;
  case 4: *value = 64; return 0;
  case 5: *value = 0x7fffffff; return 0;
  case 6: case 7: *value = 65535; return 0;
  case 8: *value = 49152; return 0;
  case 10: *value = 32; return 0;
  case 12: *value = 65536; return 0;
  case 13: *value = 1980000; return 0;
  case 16: *value = 4; return 0;
#ifndef NO_TIMING
  case 36: *value = 3201000; return 0;
#endif
  case 37: *value = 6144; return 0;
  case 38: *value = 62914560; return 0;
  case 32: case 34: case 50: *value = 0; return 0;
  case 33: *value = 0x3b; return 0;
  case 39: *value = 2048; return 0;
  case 40: *value = 3; return 0;
  case 75: *value = 9; return 0;
  case 76: *value = 0; return 0;
  case 81: *value = 233472; return 0;
  case 82: *value = 65536; return 0;
  case 97: *value = 232448; return 0;
  case 106: *value = 32; return 0;
  case 108: *value = 39321600; return 0;
  case 111: *value = 1024; return 0;
  default: return 1;
  }
}

Code cuCtxCreate_v2(Handle *context, unsigned flags, int device) {
  (void)flags; (void)device;
  *context = (Handle)7;
  return 0;
}
Code cuCtxDestroy_v2(Handle context) { return context == (Handle)7 ? 0 : 201; }
Code cuCtxSetCurrent(Handle context) { return context == (Handle)7 ? 0 : 201; }
Code cuCtxSynchronize(void) { return launched ? SYNCHRONIZE_CODE : 0; }

Code cuModuleLoadDataEx(Handle *module, const void *image, unsigned count, int *options,
                        void **values) {
  (void)image;
  if (LOAD_CODE) {
    const char *log = "ptxas application ptx input, line 2; error   : the fake dislikes this\n";
    for (unsigned i = 0; i < count; i++)
      if (options[i] == 5) strcpy(values[i], log);
    return LOAD_CODE;
  }
  *module = (Handle)9;
  return 0;
}
Code cuModuleUnload(Handle module) { return module == (Handle)9 ? 0 : 400; }
Code cuModuleGetFunction(Handle *function, Handle module, const char *name) {
  (void)module;
  for (uintptr_t i = 0; i < 3; i++)
    if (!strcmp(name, KERNELS[i])) { *function = (Handle)(i + 1); return 0; }
  return 500;
}
Code cuFuncGetAttribute(int *value, int attribute, Handle function) {
  (void)function;
  *value = attribute == 0 ? 1024 : attribute == 4 ? 16 : 0;
  return 0;
}
Code cuFuncSetAttribute(Handle function, int attribute, int value) {
  (void)function; (void)attribute; (void)value;
  return 0;
}
Code cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Handle function, int threads,
                                                 size_t shared) {
  (void)function;
  if (threads < 1 || threads > 1024) return 1;
  int fit = 2048 / threads;
  int held = (int)(233472 / (shared + 1024));
  *blocks = fit < held ? fit : held;
  return 0;
}
#ifndef NO_PARAMETERS
Code cuFuncGetParamInfo(Handle function, size_t index, size_t *offset, size_t *size) {
  (void)function;
  if (index > 1) return 1;
  *offset = index * 8;
  *size = index ? 4 : 8;
  return 0;
}
#endif
#ifndef NO_LISTING
Code cuModuleGetFunctionCount(unsigned *count, Handle module) {
  (void)module;
  *count = 3;
  return 0;
}
Code cuModuleEnumerateFunctions(Handle *functions, unsigned count, Handle module) {
  (void)module;
  for (unsigned i = 0; i < count; i++) functions[i] = (Handle)(uintptr_t)(i + 1);
  return 0;
}
Code cuFuncGetName(const char **name, Handle function) {
  *name = KERNELS[(uintptr_t)function - 1];
  return 0;
}
#endif

Code cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (ALLOCATE_CODE) return ALLOCATE_CODE;
  if (bytes > (size_t)1 << 30) return 2;
  void *memory = aligned_alloc(512, (bytes + 511) / 512 * 512);
  *address = (uint64_t)(uintptr_t)memory;
  return memory ? 0 : 2;
}
Code cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
Code cuMemGetInfo_v2(size_t *available, size_t *total) {
  *available = 4096;
  *total = (size_t)1 << 30;
  return 0;
}
Code cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
Code cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  memcpy(to, (void *)(uintptr_t)from, bytes);
  return 0;
}
Code cuMemsetD8_v2(uint64_t address, unsigned char byte, size_t bytes) {
  memset((void *)(uintptr_t)address, byte, bytes);
  return 0;
}

#ifndef NO_TRANSFERS
Code cuMemsetD8Async(uint64_t address, unsigned char byte, size_t bytes, Handle stream) {
  (void)stream;
  return cuMemsetD8_v2(address, byte, bytes);
}
Code cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Handle stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return 0;
}
Code cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Handle stream) {
  (void)stream;
  return cuMemcpyHtoD_v2(to, from, bytes);
}
Code cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Handle stream) {
  (void)stream;
  return cuMemcpyDtoH_v2(to, from, bytes);
}
Code cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  (void)flags;
  if (ALLOCATE_CODE) return ALLOCATE_CODE;
  if (bytes > (size_t)1 << 30) return 2;
  *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *memory ? 0 : 2;
}
Code cuMemFreeHost(void *memory) { free(memory); return 0; }
Code cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags) {
  if (flags) return 1;
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}
/* Reached at the second question. */
Code cuEventQuery(Handle event) {
  static int asked;
  (void)event;
  return asked++ ? 0 : 600;
}
Code cuEventRecordWithFlags(Handle event, Handle stream, unsigned flags) {
  (void)event; (void)stream;
  return flags == 1 ? 0 : 1;
}
Code cuCtxResetPersistingL2Cache(void) { return 0; }
#endif

Code cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                    unsigned by, unsigned bz, unsigned shared, Handle stream, void **arguments,
                    void **extra) {
  (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)stream;
  (void)extra;
  if (LAUNCH_CODE) return LAUNCH_CODE;
  launched = 1;
  uint64_t address;
  uint32_t value;
  memcpy(&address, arguments[0], 8);
  memcpy(&value, arguments[1], 4);
  unsigned char *memory = (unsigned char *)(uintptr_t)address;
  switch ((uintptr_t)function) {
  case 1: memcpy(memory, &value, 4); break;
  case 2: memory[-1] ^= 0x40; break;
  case 3: memory[value] ^= 0x40; break;
  }
  return 0;
}

Code cuStreamCreate(Handle *stream, unsigned flags) {
  (void)flags;
  *stream = (Handle)11;
  return 0;
}
Code cuStreamDestroy_v2(Handle stream) { (void)stream; return 0; }
Code cuStreamSynchronize(Handle stream) { (void)stream; return 0; }
Code cuEventCreate(Handle *event, unsigned flags) {
  (void)flags;
  *event = (Handle)13;
  return 0;
}
Code cuEventDestroy_v2(Handle event) { (void)event; return 0; }
Code cuEventRecord(Handle event, Handle stream) { (void)event; (void)stream; return 0; }
Code cuEventSynchronize(Handle event) { (void)event; return 0; }
Code cuEventElapsedTime(float *milliseconds, Handle start, Handle end) {
  (void)start; (void)end;
  *milliseconds = 1.5f;
  return 0;
}
Code cuStreamBeginCapture_v2(Handle stream, int mode) { (void)stream; (void)mode; return 0; }
Code cuStreamEndCapture(Handle stream, Handle *graph) {
  (void)stream;
  *graph = (Handle)15;
  return 0;
}
Code cuGraphInstantiateWithFlags(Handle *executable, Handle graph, unsigned long long flags) {
  (void)graph; (void)flags;
  *executable = (Handle)17;
  return 0;
}
#ifndef NO_GRAPHS
Code cuGraphLaunch(Handle executable, Handle stream) { (void)executable; (void)stream; return 0; }
#endif
Code cuGraphDestroy(Handle graph) { (void)graph; return 0; }
Code cuGraphExecDestroy(Handle executable) { (void)executable; return 0; }
#endif
