/* A management library for the tests: one GPU at 00000000:3B:00.0. */
#include <string.h>

#ifndef INIT_CODE
#define INIT_CODE 0
#endif
#ifndef REASONS
#define REASONS 0x1ULL
#endif

typedef int Code;
typedef void *Handle;
#define GPU ((Handle)5)
#define TELL(handle, place, number) \
  if ((handle) != GPU) return 2; \
  *(place) = (number); \
  return 0

Code nvmlInit_v2(void) { return INIT_CODE; }
Code nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(Code code) {
  return code == 3 ? "Not Supported" : code == 6 ? "Not Found" : code == 9 ? "Driver Not Loaded"
         : code == 15 ? "GPU is lost" : 0;
}
Code nvmlDeviceGetHandleByPciBusId_v2(const char *id, Handle *device) {
  if (strcmp(id, "00000000:3B:00.0")) return 6;
  *device = GPU;
  return 0;
}
Code nvmlDeviceGetClockInfo(Handle device, int kind, unsigned *mhz) {
#ifdef LOST
  return 15;
#endif
  TELL(device, mhz, kind == 1 ? 1755 : kind == 2 ? 3201 : 0);
}
Code nvmlDeviceGetMaxClockInfo(Handle device, int kind, unsigned *mhz) {
  TELL(device, mhz, kind == 1 ? 1980 : 3201);
}
Code nvmlDeviceGetPowerUsage(Handle device, unsigned *milliwatts) {
  (void)device; (void)milliwatts;
  return 3;
}
Code nvmlDeviceGetEnforcedPowerLimit(Handle device, unsigned *mw) { TELL(device, mw, 650000); }
Code nvmlDeviceGetPowerManagementDefaultLimit(Handle device, unsigned *mw) {
  TELL(device, mw, 700000);
}
Code nvmlDeviceGetTemperature(Handle device, int sensor, unsigned *celsius) {
  TELL(device, celsius, sensor == 0 ? 41 : 0);
}
Code nvmlDeviceGetCurrentClocksThrottleReasons(Handle device, unsigned long long *bits) {
  TELL(device, bits, REASONS);
}
Code nvmlDeviceGetMaxPcieLinkGeneration(Handle device, unsigned *g) { TELL(device, g, 5); }
Code nvmlDeviceGetMaxPcieLinkWidth(Handle device, unsigned *lanes) { TELL(device, lanes, 16); }
Code nvmlDeviceGetPersistenceMode(Handle device, unsigned *mode) { TELL(device, mode, 1); }
Code nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned *count, void *infos) {
  (void)device;
  if (infos || *count) return 1;
  *count = 2;
  return 7;
}
Code nvmlSystemGetNVMLVersion(char *text, unsigned length) {
  strncpy(text, "13.580.1", length);
  return 0;
}
