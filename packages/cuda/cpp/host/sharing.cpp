// Memory and events of a device in other processes. The driver shares whole allocations, which are
// segments of the allocator, and opens each once in a process; tensors are parts of them.
#include <memory>
#include <vector>

#include "host/device.h"

namespace plait::cuda {
namespace {

using driver::api;

// An allocation of another process, open in this one; or one of this process that was described to
// another one and may come back.
struct SharedSegment {
  driver::IpcHandle handle;
  int device;
  driver::Address base;
  uint64_t uses;  // tensors of this process that lie in it
  bool is_own;
};
struct SharedSegments {
  ForkMutex mutex;
  std::vector<SharedSegment *> list;
};
SharedSegments &segments() {
  static auto *all = new SharedSegments();  // used until the process ends
  return *all;
}

// Under the lock.
SharedSegment *find(const driver::IpcHandle &handle, int device) {
  for (SharedSegment *each : segments().list)
    if (each->device == device && !memcmp(&each->handle, &handle, sizeof handle)) return each;
  return nullptr;
}

plait_status remember_own(plait_thread *thread, DLDevice device, const driver::IpcHandle &handle,
                          driver::Address base) try {
  const std::lock_guard<ForkMutex> hold(segments().mutex);
  auto &list = segments().list;
  for (SharedSegment *each : list)
    if (each->is_own && each->device == device.device_id && each->base == base)
      return each->handle = handle, PLAIT_OK;  // the address may serve a later allocation
  list.push_back(nullptr);
  list.back() = new SharedSegment{handle, device.device_id, base, 0, true};
  return PLAIT_OK;
} catch (const std::bad_alloc &) {
  return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda", "out of memory for sharing memory");
}

plait_status share(void *, plait_thread *thread, DLDevice device, void *data, uint64_t,
                   plait_shared_memory *out) {
  PLAIT_TRY(use(thread, device));
  driver::Address base = 0;
  size_t nbytes = 0;
  PLAIT_CUDA(thread, device, "sharing memory",
             address_range(&base, &nbytes, driver::Address(data)));
  driver::IpcHandle handle;
  PLAIT_CUDA(thread, device, "sharing memory", share_memory(&handle, base));
  PLAIT_TRY(remember_own(thread, device, handle, base));
  out->offset = driver::Address(data) - base;
  out->fd = -1;
  out->length = sizeof handle;
  memcpy(out->handle, &handle, sizeof handle);
  return PLAIT_OK;
}

plait_status open_segment(plait_thread *thread, DLDevice device, const driver::IpcHandle &handle,
                          SharedSegment **out) {
  auto &list = segments().list;
  list.reserve(list.size() + 1);
  auto s = std::make_unique<SharedSegment>(SharedSegment{handle, device.device_id, 0, 0, false});
  PLAIT_CUDA(thread, device,
             "opening memory of another process, which must live and keep it until then",
             open_memory(&s->base, handle, driver::kIpcLazyPeer));
  list.push_back(*out = s.release());
  return PLAIT_OK;
}

plait_status share_open(void *, plait_thread *thread, DLDevice device,
                        const plait_shared_memory *from, uint64_t, void **data, void **opened) try {
  driver::IpcHandle handle;
  if (from->length != sizeof handle)
    return runtime->raise(thread, PLAIT_VALUE_ERROR, "cuda",
                          "a description of shared memory has %zu bytes, got %u", sizeof handle,
                          from->length);
  memcpy(&handle, from->handle, sizeof handle);
  PLAIT_TRY(use(thread, device));
  const std::lock_guard<ForkMutex> hold(segments().mutex);
  SharedSegment *s = find(handle, device.device_id);
  if (!s) PLAIT_TRY(open_segment(thread, device, handle, &s));
  s->uses++;
  *data = reinterpret_cast<void *>(s->base + from->offset);
  *opened = s;
  return PLAIT_OK;
} catch (const std::bad_alloc &) {
  return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda", "out of memory for sharing memory");
}

void share_close(void *, DLDevice device, void *, uint64_t, void *opened) {
  auto *s = static_cast<SharedSegment *>(opened);
  const std::lock_guard<ForkMutex> hold(segments().mutex);
  if (--s->uses || s->is_own) return;
  auto &list = segments().list;
  for (size_t i = 0; i < list.size(); i++)
    if (list[i] == s) {
      list[i] = list.back();
      list.pop_back();
      break;
    }
  if (use_quietly(device)) api.close_memory(s->base);
  delete s;
}

// Events.

plait_status event_share(void *, plait_thread *thread, plait_device_event *e,
                         plait_shared_memory *out) {
  PLAIT_TRY(use(thread, e->device));
  driver::IpcHandle handle;
  PLAIT_CUDA(thread, e->device, "sharing an event, which only the process that made it can do",
             share_event(&handle, static_cast<driver::Event>(e->native)));
  out->offset = 0;
  out->fd = -1;
  out->length = sizeof handle;
  memcpy(out->handle, &handle, sizeof handle);
  return PLAIT_OK;
}

plait_status event_open(void *, plait_thread *thread, const plait_shared_memory *from,
                        plait_device_event *e) {
  driver::IpcHandle handle;
  if (from->length != sizeof handle)
    return runtime->raise(thread, PLAIT_VALUE_ERROR, "cuda",
                          "a description of a shared event has %zu bytes, got %u", sizeof handle,
                          from->length);
  memcpy(&handle, from->handle, sizeof handle);
  PLAIT_TRY(use(thread, e->device));
  driver::Event event;
  PLAIT_CUDA(thread, e->device, "opening an event of another process", open_event(&event, handle));
  e->native = event;
  return PLAIT_OK;
}

}  // namespace

void add_sharing(plait_device &t) {
  t.share = share;
  t.share_open = share_open;
  t.share_close = share_close;
  t.event_share = event_share;
  t.event_open = event_open;
}

}  // namespace plait::cuda
