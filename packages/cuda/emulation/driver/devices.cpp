// Devices and what they can do: numbers like those of a GPU, but few units, so that grids are small
// and threads loop.
#include <cstdio>
#include <cstring>

#include "emulation/driver/memory.h"

namespace plait::cuda::driver {
namespace {

Result check(Device device) {
  if (const Result r = entered()) return r;
  return device < 0 || device >= devices() ? kInvalidDevice : kSuccess;
}

}  // namespace

Result device_count(int *number) {
  if (const Result r = entered()) return r;
  if (!number) return kInvalidValue;
  *number = devices();
  return kSuccess;
}
Result device_get(Device *device, int ordinal) {
  if (const Result r = check(ordinal)) return r;
  if (!device) return kInvalidValue;
  *device = ordinal;
  return kSuccess;
}
Result device_name(char *name, int length, Device device) {
  if (const Result r = check(device)) return r;
  if (!name || length <= 0) return kInvalidValue;
  snprintf(name, size_t(length), "plait emulation");
  return kSuccess;
}
Result device_uuid(Uuid *uuid, Device device) {
  if (const Result r = check(device)) return r;
  if (!uuid) return kInvalidValue;
  memcpy(uuid->bytes, "plait emulation", 16);
  uuid->bytes[15] = char('0' + device);
  return kSuccess;
}
Result device_memory(size_t *bytes, Device device) {
  if (const Result r = check(device)) return r;
  if (!bytes) return kInvalidValue;
  *bytes = memory_limit();
  return kSuccess;
}
Result device_attribute(int *value, int attribute, Device device) {
  if (const Result r = check(device)) return r;
  if (!value) return kInvalidValue;
  switch (attribute) {
    case kMaxSharedMemory: *value = 48 << 10; return kSuccess;
    case kMaxThreadsPerUnit: *value = 2048; return kSuccess;
    case kUnits: *value = 4; return kSuccess;
    case kPciDomain: *value = 0; return kSuccess;
    case kMajor: *value = 9; return kSuccess;
    case kMinor: *value = 0; return kSuccess;
    case kMaxSharedMemoryOptIn: *value = 227 << 10; return kSuccess;
    case kL2Bytes: *value = 4 << 20; return kSuccess;
    case kIntegrated: *value = 0; return kSuccess;
    default: return kInvalidValue;
  }
}
Result can_access_peer(int *can, Device device, Device peer) {
  if (const Result r = check(device)) return r;
  if (const Result r = check(peer)) return r;
  if (!can) return kInvalidValue;
  *can = device != peer;
  return kSuccess;
}
Result enable_peer(Context peer, unsigned flags) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (flags) return kInvalidValue;
  for (int i = 0; i < devices(); i++) {
    if (peer != &context_of(i)) continue;
    if (peer == context) return kInvalidDevice;
    return context->peers.fetch_or(1u << i) >> i & 1 ? kPeerAlreadyEnabled : kSuccess;
  }
  return kInvalidContext;
}

Result profiler_start() {
  count(kProfiles);
  return kSuccess;
}
Result profiler_stop() { return kSuccess; }

}  // namespace plait::cuda::driver
