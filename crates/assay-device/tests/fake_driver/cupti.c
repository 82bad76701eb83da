/* A CUPTI for the tests: each flush while it is enabled hands over RECORDS kernels of 1 us, 2 us,
 * and so on, in falling order of their starts. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef VERSION
#define VERSION 130001
#endif
#ifndef ENABLE_CODE
#define ENABLE_CODE 0
#endif
#ifndef RECORDS
#define RECORDS 3
#endif
#ifndef DROPPED
#define DROPPED 0
#endif
#define BYTES 216

typedef int Code;
static void (*request)(uint8_t **, size_t *, size_t *);
static void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
static int enabled;

Code cuptiGetVersion(uint32_t *version) { *version = VERSION; return 0; }
Code cuptiGetResultString(Code code, const char **text) {
  *text = code == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_OTHER";
  return 0;
}
#ifndef NO_CALLBACKS
Code cuptiActivityRegisterCallbacks(void (*r)(uint8_t **, size_t *, size_t *),
                                    void (*c)(void *, uint32_t, uint8_t *, size_t, size_t)) {
  request = r;
  complete = c;
  return 0;
}
#endif
Code cuptiActivityEnable(int kind) {
  if (ENABLE_CODE) return ENABLE_CODE;
  enabled = kind == 10;
  return 0;
}
Code cuptiActivityDisable(int kind) { enabled = 0; return kind == 10 ? 0 : 21; }
Code cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
  uint8_t *next = *record ? *record + BYTES : buffer;
  if (next + BYTES > buffer + valid) return 12;
  *record = next;
  return 0;
}
Code cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
  (void)context; (void)stream;
  *dropped = DROPPED;
  return 0;
}
Code cuptiActivityFlushAll(uint32_t flag) {
  if (!enabled) return 0;
  uint8_t *buffer = NULL;
  size_t bytes = 0, most = 0;
  request(&buffer, &bytes, &most);
  if (!buffer || bytes < RECORDS * BYTES) return 8;
  for (uint64_t i = 0; i < RECORDS; i++) {
    uint8_t *record = buffer + i * BYTES;
    int kind = i == 1 ? 1 : flag ? 10 : 3;
    uint64_t start = 1000000 - 10000 * i, end = start + 1000 * (i + 1);
    uint32_t correlation = 7 + (uint32_t)i, stream = 13;
    const char *name = "spin";
    memcpy(record, &kind, 4);
    memcpy(record + 16, &start, 8);
    memcpy(record + 24, &end, 8);
    memcpy(record + 48, &stream, 4);
    memcpy(record + 92, &correlation, 4);
    memcpy(record + 104, &name, 8);
  }
  complete((void *)3, 0, buffer, bytes, RECORDS * BYTES);
  return 0;
}
