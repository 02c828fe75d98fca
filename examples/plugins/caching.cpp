// A plug-in that brings an allocator for a device of another plug-in: memory of the pretend
// accelerator (device.c) is cached, as a driver's must be. A device of your own provides the same
// table together with its own tables.
//
//   c++ -std=c++17 -O2 -shared -fPIC -fvisibility=hidden -I<headers> caching.cpp -o caching.so
#include <plait/caching_allocator.hpp>

namespace {

plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  const auto *device = PLAIT_ROLE(plait_device, runtime->role("device", kDLExtDev));
  if (!device || !PLAIT_HAS(plait_device, device, memory_alloc))
    return runtime->raise(runtime->thread(), PLAIT_NOT_IMPLEMENTED, self->name,
                          "the device `ext` with `memory_alloc` must be loaded before");
  auto *memory = new plait::CachingAllocator(runtime, device);  // never deleted: tensors may stay
  return runtime->provide(runtime->thread(), "allocator", kDLExtDev, &memory->table()->h, self,
                          nullptr);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1;
const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-caching", "1.0", 0, init, nullptr};
