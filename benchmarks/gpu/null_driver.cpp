// A driver that does nothing and succeeds: what a call costs on the host, without a GPU.
//
//   c++ -std=c++17 -O2 -shared -fPIC -Ipackages/cuda/cpp benchmarks/gpu/null_driver.cpp
//       -o FOLDER/libcuda.so.1
//   LD_LIBRARY_PATH=FOLDER python benchmarks/gpu/launch_cost.py
#include <cstdlib>
#include <cstring>

#include "driver/types.h"

using namespace plait::cuda::driver;

namespace {

// The default of a function: its results stay as they are.
template <class... A>
Result nothing(A...) {
  return kSuccess;
}
int any_object;
template <class T>
Result give(T **out) {
  *out = reinterpret_cast<T *>(&any_object);
  return kSuccess;
}

}  // namespace

extern "C" {
#define PLAIT_WEAK __attribute__((visibility("default")))
PLAIT_WEAK Result cuDriverGetVersion(int *version) { return *version = 13000, kSuccess; }
PLAIT_WEAK Result cuDeviceGetCount(int *count) { return *count = 1, kSuccess; }
PLAIT_WEAK Result cuDeviceGet(Device *d, int) { return *d = 0, kSuccess; }
PLAIT_WEAK Result cuDeviceGetAttribute(int *value, int which, Device) {
  *value = which == kMajor ? 9 : which == kUnits ? 132 : which == kMaxThreadsPerUnit ? 2048 : 98304;
  return kSuccess;
}
PLAIT_WEAK Result cuDevicePrimaryCtxRetain(Context *c, Device) { return give(c); }
PLAIT_WEAK Result cuCtxGetCurrent(Context *c) { return give(c); }
PLAIT_WEAK Result cuModuleLoad(Module *m, const char *) { return give(m); }
PLAIT_WEAK Result cuModuleGetFunction(Function *f, Module, const char *) { return give(f); }
PLAIT_WEAK Result cuEventCreate(Event *e, unsigned) { return give(e); }
PLAIT_WEAK Result cuStreamCreateWithPriority(Stream *s, unsigned, int) { return give(s); }
PLAIT_WEAK Result cuMemAlloc_v2(Address *a, size_t n) {
  return *a = Address(std::aligned_alloc(512, (n + 511) / 512 * 512)), kSuccess;
}
PLAIT_WEAK Result cuMemHostAlloc(void **p, size_t n, unsigned) {
  return *p = std::calloc(1, n), kSuccess;
}
PLAIT_WEAK Result cuMemHostGetDevicePointer_v2(Address *a, void *p, unsigned) {
  return *a = Address(p), kSuccess;
}
PLAIT_WEAK Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t n, Stream) {
  return std::memcpy(reinterpret_cast<void *>(to), from, n), kSuccess;
}
PLAIT_WEAK Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t n, Stream) {
  return std::memcpy(to, reinterpret_cast<const void *>(from), n), kSuccess;
}
PLAIT_WEAK Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  return *free = *total = size_t(1) << 36, kSuccess;
}
PLAIT_WEAK Result cuGetErrorString(Result, const char **text) {
  return *text = "no error", kSuccess;
}
#define PLAIT_NOTHING(name) \
  PLAIT_WEAK Result name() { return nothing(); }
PLAIT_NOTHING(cuInit)
PLAIT_NOTHING(cuGetErrorName)
PLAIT_NOTHING(cuDeviceGetName)
PLAIT_NOTHING(cuDeviceGetUuid_v2)
PLAIT_NOTHING(cuDeviceTotalMem_v2)
PLAIT_NOTHING(cuDeviceCanAccessPeer)
PLAIT_NOTHING(cuDevicePrimaryCtxRelease_v2)
PLAIT_NOTHING(cuCtxSetCurrent)
PLAIT_NOTHING(cuCtxSynchronize)
PLAIT_NOTHING(cuCtxGetStreamPriorityRange)
PLAIT_NOTHING(cuCtxEnablePeerAccess)
PLAIT_NOTHING(cuModuleUnload)
PLAIT_NOTHING(cuFuncGetAttribute)
PLAIT_NOTHING(cuFuncSetAttribute)
PLAIT_NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
PLAIT_NOTHING(cuLaunchKernel)
PLAIT_NOTHING(cuLaunchHostFunc)
PLAIT_NOTHING(cuMemFree_v2)
PLAIT_NOTHING(cuMemGetAddressRange_v2)
PLAIT_NOTHING(cuMemFreeHost)
PLAIT_NOTHING(cuPointerGetAttribute)
PLAIT_NOTHING(cuMemcpyDtoDAsync_v2)
PLAIT_NOTHING(cuMemcpyPeerAsync)
PLAIT_NOTHING(cuMemsetD8Async)
PLAIT_NOTHING(cuMemsetD32Async)
PLAIT_NOTHING(cuStreamDestroy_v2)
PLAIT_NOTHING(cuStreamQuery)
PLAIT_NOTHING(cuStreamSynchronize)
PLAIT_NOTHING(cuStreamWaitEvent)
PLAIT_NOTHING(cuEventDestroy_v2)
PLAIT_NOTHING(cuEventRecord)
PLAIT_NOTHING(cuEventQuery)
PLAIT_NOTHING(cuEventSynchronize)
PLAIT_NOTHING(cuEventElapsedTime)
PLAIT_NOTHING(cuIpcGetMemHandle)
PLAIT_NOTHING(cuIpcOpenMemHandle_v2)
PLAIT_NOTHING(cuIpcCloseMemHandle)
PLAIT_NOTHING(cuIpcGetEventHandle)
PLAIT_NOTHING(cuIpcOpenEventHandle)
PLAIT_NOTHING(cuStreamBeginCapture_v2)
PLAIT_NOTHING(cuStreamEndCapture)
PLAIT_NOTHING(cuStreamIsCapturing)
PLAIT_NOTHING(cuGraphInstantiateWithFlags)
PLAIT_NOTHING(cuGraphLaunch)
PLAIT_NOTHING(cuGraphExecDestroy)
PLAIT_NOTHING(cuGraphDestroy)
}
