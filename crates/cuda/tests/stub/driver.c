// A stub of libcuda.so.1, for tests without a GPU.
//
// Device memory is host memory, kernels do nothing, and every call is written
// to a log. The environment variable WARPLINE_STUB or stub_configure() configures
// it with words separated by spaces:
//   devices=1 cc=9.0 driver=12080 free=BYTES params=8:4:4 fail=cuMemAlloc_v2:2
//   resident=N         resident clusters, and resident CTAs per SM
//   serialized=LINE    the compiler emits an advisory for that line of the PTX
//   l2=BYTES           the size of the L2 cache
// The log is also appended to the file WARPLINE_STUB_LOG.
// PTX that contains "BAD" is rejected with a log. A module has every kernel except
// "none". -DWITHOUT_TENSOR_MAPS omits the tensor map function.
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int R;
typedef void *H;
typedef unsigned long long P;
typedef struct { unsigned id, pad, value[16]; } Attribute;
typedef struct {
  unsigned gx, gy, gz, bx, by, bz, shared;
  H stream;
  Attribute *attributes;
  unsigned count;
} Launch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char calls[1 << 16];
static size_t used;
static int live; // contexts, buffers, streams, events, modules not released
static int devices = 1, major = 9, minor = 0, version = 12080, fail_code, max_shared = 49152;
static int resident = 2, serialized, l2 = 60 << 20;
static FILE *log_file; // WARPLINE_STUB_LOG
static size_t free_bytes = 1 << 20, param[16], params;
static char fail_name[64];
static __thread int depth; // contexts pushed on this thread

void stub_configure(const char *words) {
  const char *word;
  if ((word = strstr(words, "devices="))) devices = atoi(word + 8);
  if ((word = strstr(words, "cc="))) sscanf(word, "cc=%d.%d", &major, &minor);
  if ((word = strstr(words, "driver="))) version = atoi(word + 7);
  if ((word = strstr(words, "free="))) free_bytes = strtoull(word + 5, 0, 10);
  if ((word = strstr(words, "fail="))) sscanf(word, "fail=%63[^:]:%d", fail_name, &fail_code);
  if ((word = strstr(words, "resident="))) resident = atoi(word + 9);
  if ((word = strstr(words, "l2="))) l2 = atoi(word + 3);
  if ((word = strstr(words, "serialized="))) serialized = atoi(word + 11);
  if ((word = strstr(words, "params=")))
    for (word += 6, params = 0; *word == '=' || *word == ':';) param[params++] = strtoull(word + 1, (char **)&word, 10);
}
__attribute__((constructor)) static void from_environment(void) {
  if (getenv("WARPLINE_STUB")) stub_configure(getenv("WARPLINE_STUB"));
  if (getenv("WARPLINE_STUB_LOG")) log_file = fopen(getenv("WARPLINE_STUB_LOG"), "a");
}
const char *stub_calls(void) { return calls; }
int stub_live(void) { return live; }
int stub_depth(void) { return depth; }

static void log_call(const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  pthread_mutex_lock(&lock);
  if (used < sizeof calls - 512) used += vsnprintf(calls + used, 512, format, args);
  if (log_file) vfprintf(log_file, format, again), fflush(log_file);
  pthread_mutex_unlock(&lock);
  va_end(again);
  va_end(args);
}
static R enter(const char *name, int need_context) {
  if (strcmp(name, "cuCtxPushCurrent_v2") && strcmp(name, "cuCtxPopCurrent_v2")) log_call("%s\n", name);
  if (!strcmp(name, fail_name)) return fail_code;
  return need_context && depth == 0 ? 201 : 0; // INVALID_CONTEXT
}
static R create(H *handle) {
  *handle = malloc(16);
  __sync_fetch_and_add(&live, 1);
  return 0;
}
static R destroy(H handle) {
  free(handle);
  __sync_fetch_and_sub(&live, 1);
  return 0;
}
#define ENTER(need) { R r = enter(__func__, need); if (r) return r; }

R cuDriverGetVersion(int *out) { ENTER(0) *out = version; return 0; }
R cuInit(unsigned flags) { ENTER(0) return flags ? 1 : devices ? 0 : 100; }
R cuGetErrorName(R r, const char **out) {
  *out = r == 1 ? "CUDA_ERROR_INVALID_VALUE" : r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
       : r == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : r == 218 ? "CUDA_ERROR_INVALID_PTX"
       : r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : 0;
  return *out ? 0 : 1;
}
R cuGetErrorString(R r, const char **out) {
  *out = r == 700 ? "an illegal memory access was encountered" : r < 300 ? "a text of the stub" : 0;
  return *out ? 0 : 1;
}

R cuDeviceGetCount(int *out) { ENTER(0) *out = devices; return 0; }
R cuDeviceGet(int *out, int i) { ENTER(0) if (i < 0 || i >= devices) return 101; *out = 40 + i; return 0; }
R cuDeviceGetName(char *out, int len, int d) { ENTER(0) snprintf(out, len, "Stand-in %d", d - 40); return 0; }
R cuDeviceTotalMem_v2(size_t *out, int d) { ENTER(0) *out = 1ull << 37; return 0; }
R cuDeviceGetAttribute(int *out, int which, int d) {
  ENTER(0)
  switch (which) {
  case 13: *out = 1980000; return 0;
  case 16: *out = 132; return 0;
  case 36: return 1; // not reported
  case 37: *out = 6144; return 0;
  case 38: *out = l2; return 0;
  case 75: *out = major; return 0;
  case 76: *out = minor; return 0;
  case 97: *out = 232448; return 0;
  }
  return 1;
}

R cuDevicePrimaryCtxRetain(H *out, int d) { ENTER(0) __sync_fetch_and_add(&live, 1); *out = (H)(intptr_t)d; return 0; }
R cuDevicePrimaryCtxRelease_v2(int d) { ENTER(0) __sync_fetch_and_sub(&live, 1); return 0; }
R cuCtxPushCurrent_v2(H context) { ENTER(0) depth++; return 0; }
R cuCtxPopCurrent_v2(H *out) { ENTER(1) depth--; *out = 0; return 0; }
R cuCtxSynchronize(void) { ENTER(1) return 0; }

R cuMemGetInfo_v2(size_t *free, size_t *total) { ENTER(1) *free = free_bytes; *total = 1ull << 37; return 0; }
R cuMemAlloc_v2(P *out, size_t bytes) {
  ENTER(1)
  if (bytes == 0) return 1;
  if (bytes > free_bytes) return 2;
  H memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  __sync_fetch_and_add(&live, 1);
  *out = (P)(uintptr_t)memory;
  return 0;
}
R cuMemFree_v2(P address) { ENTER(1) return destroy((H)(uintptr_t)address); }
R cuMemcpyHtoDAsync_v2(P to, const void *from, size_t n, H s) { ENTER(1) memcpy((H)(uintptr_t)to, from, n); return 0; }
R cuMemcpyDtoHAsync_v2(H to, P from, size_t n, H s) { ENTER(1) memcpy(to, (H)(uintptr_t)from, n); return 0; }
R cuMemcpyDtoDAsync_v2(P to, P from, size_t n, H s) { ENTER(1) memcpy((H)(uintptr_t)to, (H)(uintptr_t)from, n); return 0; }
R cuMemsetD8Async(P to, unsigned char byte, size_t n, H s) { ENTER(1) memset((H)(uintptr_t)to, byte, n); return 0; }

R cuMemHostAlloc(H *out, size_t bytes, unsigned flags) {
  ENTER(1)
  if (flags != 3) return 1; // portable and mapped
  *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  memset(*out, 0xa5, bytes);
  __sync_fetch_and_add(&live, 1);
  return 0;
}
R cuMemHostGetDevicePointer_v2(P *out, H memory, unsigned flags) { ENTER(1) *out = (P)(uintptr_t)memory; return flags; }
R cuMemFreeHost(H memory) { ENTER(1) return destroy(memory); }

// A stream's first byte is 1 during a capture; the default stream cannot be
// captured.
R cuStreamCreate(H *out, unsigned flags) {
  ENTER(1)
  if (flags != 1) return 1;
  create(out);
  *(char *)*out = 0;
  return 0;
}
static int is_captured(H s) { return s && *(char *)s; }
R cuStreamDestroy_v2(H s) { ENTER(1) return destroy(s); }
R cuStreamSynchronize(H s) { ENTER(1) return is_captured(s) ? 900 : 0; } // STREAM_CAPTURE_UNSUPPORTED
R cuStreamWaitEvent(H s, H e, unsigned flags) { ENTER(1) return flags; }
R cuStreamBeginCapture_v2(H s, int mode) {
  ENTER(1)
  if (!s || mode != 1 || is_captured(s)) return 1;
  *(char *)s = 1;
  return 0;
}
R cuStreamEndCapture(H s, H *out) {
  ENTER(1)
  if (!is_captured(s)) return 1;
  *(char *)s = 0;
  return create(out);
}
R cuStreamIsCapturing(H s, int *out) { ENTER(1) *out = is_captured(s); return 0; }
R cuGraphInstantiateWithFlags(H *out, H graph, P flags) { ENTER(1) return flags ? 1 : create(out); }
R cuGraphLaunch(H exec, H s) { ENTER(1) return 0; }
R cuGraphDestroy(H graph) { ENTER(1) return destroy(graph); }
R cuGraphExecDestroy(H exec) { ENTER(1) return destroy(exec); }
R cuEventCreate(H *out, unsigned flags) { ENTER(1) return flags ? 1 : create(out); }
R cuEventDestroy_v2(H e) { ENTER(1) return destroy(e); }
R cuEventRecord(H e, H s) { ENTER(1) return 0; }
R cuEventQuery(H e) { ENTER(1) return 0; }
R cuEventSynchronize(H e) { ENTER(1) return 0; }
R cuEventElapsedTime(float *ms, H start, H end) { ENTER(1) *ms = 1.5f; return 0; }

typedef struct { char *info, *error, image[64]; } Link;

static void options(Link *link, unsigned n, int *names, H *values) {
  for (unsigned i = 0; i < n; i++) {
    if (names[i] == 3) link->info = values[i];
    else if (names[i] == 5) link->error = values[i];
    else log_call("  jit %d=%zu\n", names[i], (size_t)values[i]);
  }
}
static R compile(Link *link, const char *text) {
  if (strstr(text, "BAD")) {
    if (link->error) strcpy(link->error, "ptxas application ptx input, line 7; error : Unknown symbol 'BAD'\n");
    return 218;
  }
  if (!link->info) return 0;
  link->info += sprintf(link->info, "ptxas info : Used 8 registers\n");
  if (serialized)
    sprintf(link->info,
            "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized around line %d in "
            "function 'scale'\n",
            serialized);
  return 0;
}
// A library's first byte is the compiler's result, which the driver reports at
// cuLibraryGetModule.
R cuLibraryLoadData(H *out, const void *image, int *names, H *values, unsigned n, int *more, H *values_of_more,
                    unsigned m) {
  ENTER(1)
  Link link = {0};
  options(&link, n, names, values);
  create(out);
  *(unsigned char *)*out = memcmp(image, "\177ELF", 4) ? compile(&link, image) : 0;
  return m;
}
R cuLibraryGetModule(H *out, H library) { ENTER(1) *out = library; return *(unsigned char *)library; }
R cuLibraryUnload(H library) { ENTER(1) return destroy(library); }
R cuLinkCreate_v2(unsigned n, int *names, H *values, H *out) {
  ENTER(1)
  Link *link = calloc(1, sizeof *link);
  options(link, n, names, values);
  __sync_fetch_and_add(&live, 1);
  *out = link;
  return 0;
}
R cuLinkAddData_v2(H state, int type, H data, size_t size, const char *name, unsigned n, int *names, H *values) {
  ENTER(1)
  if (type != 1 || ((char *)data)[size - 1]) return 1; // PTX ends in NUL
  Link *link = state;
  R r = compile(link, data);
  if (!r && link->info && strstr(data, "setmaxnreg"))
    strcat(link->info,
           "ptxas info : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across "
           "compilation units.\n");
  return r;
}
R cuLinkComplete(H state, H *image, size_t *size) {
  ENTER(1)
  Link *link = state;
  memcpy(link->image, "\177ELF\2\1", 6);
  *image = link->image;
  *size = sizeof link->image;
  return 0;
}
R cuLinkDestroy(H state) { ENTER(1) return destroy(state); }
R cuModuleGetFunction(H *out, H m, const char *name) { ENTER(1) *out = m; return strcmp(name, "none") ? 0 : 500; }
R cuFuncGetAttribute(int *out, int which, H f) {
  ENTER(1)
  *out = which == 0 ? 1024 : which == 1 ? 16 : which == 3 ? 24 : which == 4 ? 8 : which == 8 ? max_shared - 16 : -1;
  return 0;
}
R cuFuncSetAttribute(H f, int which, int value) { ENTER(1) log_call("  set %d=%d\n", which, value); return 0; }
R cuFuncGetParamInfo(H f, size_t i, size_t *offset, size_t *size) {
  ENTER(1)
  if (i >= params) return 1;
  *offset = 0;
  *size = param[i];
  return 0;
}
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, H f, int threads, size_t shared) { ENTER(1) *out = resident; return 0; }
R cuOccupancyMaxActiveClusters(int *out, H f, const Launch *l) {
  ENTER(1)
  for (unsigned i = 0; i < l->count; i++)
    if (l->attributes[i].id == 4) return *out = resident, 0;
  return 1;
}
R cuLaunchKernelEx(const Launch *l, H f, void **values, void **extra) {
  ENTER(1)
  log_call("  grid=%u,%u,%u block=%u,%u,%u shared=%u extra=%d stream=%d attributes=%u\n", l->gx, l->gy, l->gz, l->bx,
      l->by, l->bz, l->shared, extra != 0, l->stream != 0, l->count);
  for (unsigned i = 0; i < l->count; i++)
    log_call("  attribute %u=%u,%u,%u\n", l->attributes[i].id, l->attributes[i].value[0], l->attributes[i].value[1],
        l->attributes[i].value[2]);
  for (size_t i = 0; i < params; i++) {
    P word = 0;
    memcpy(&word, values[i], param[i] < 8 ? param[i] : 8);
    log_call("  param %zu=%#llx aligned=%d\n", param[i], word, (uintptr_t)values[i] % (param[i] < 64 ? param[i] : 64) == 0);
  }
  return 0;
}

#ifndef WITHOUT_TENSOR_MAPS
R cuTensorMapEncodeTiled(P map[16], int dtype, unsigned rank, H base, const P *dims, const P *strides,
                         const unsigned *box, const unsigned *steps, int interleave, int swizzle, int l2, int fill) {
  ENTER(1)
  log_call("  dtype=%d rank=%u base=%p interleave=%d swizzle=%d l2=%d fill=%d\n", dtype, rank, base, interleave, swizzle, l2,
      fill);
  for (unsigned i = 0; i < rank; i++)
    log_call("  dim %llu stride %llu box %u step %u\n", dims[i], i + 1 < rank ? strides[i] : 0, box[i], steps[i]);
  for (int i = 0; i < 16; i++) map[i] = 0x1000 + i;
  return (uintptr_t)map % 64 ? 1 : 0;
}

R cuTensorMapEncodeIm2col(P map[16], int dtype, unsigned rank, H base, const P *dims, const P *strides,
                          const int *lower, const int *upper, unsigned channels, unsigned pixels,
                          const unsigned *steps, int interleave, int swizzle, int l2, int fill) {
  ENTER(1)
  log_call("  dtype=%d rank=%u base=%p interleave=%d swizzle=%d l2=%d fill=%d channels=%u pixels=%u\n", dtype, rank, base,
      interleave, swizzle, l2, fill, channels, pixels);
  for (unsigned i = 0; i < rank; i++)
    log_call("  dim %llu stride %llu step %u\n", dims[i], i + 1 < rank ? strides[i] : 0, steps[i]);
  for (unsigned i = 0; i + 2 < rank; i++) log_call("  corners %d %d\n", lower[i], upper[i]);
  for (int i = 0; i < 16; i++) map[i] = 0x2000 + i;
  return (uintptr_t)map % 64 ? 1 : 0;
}

R cuTensorMapReplaceAddress(P map[16], H base) {
  ENTER(1)
  log_call("  base=%p\n", base);
  map[1] = (uintptr_t)base;
  return (uintptr_t)map % 64 ? 1 : 0;
}
#endif
