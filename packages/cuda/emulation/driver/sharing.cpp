// Memory and events of other processes, through /proc: a handle names a process and its file.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "emulation/driver/event.h"
#include "emulation/driver/memory.h"

namespace plait::cuda::driver {
namespace {

constexpr size_t kEvents = 1 << 14;  // of a process

struct Content {  // of a handle
  char kind[8];
  int32_t process, file, device;
  uint64_t offset, bytes;
};
static_assert(sizeof(Content) <= sizeof(IpcHandle), "a handle holds what it names");
const char kMemory[8] = "memory", kEvent[8] = "event";

IpcHandle handle_of(const Content &content) {
  IpcHandle handle = {};
  memcpy(handle.bytes, &content, sizeof content);
  return handle;
}
Result read_handle(const IpcHandle &handle, const char *kind, Content *out) {
  memcpy(out, handle.bytes, sizeof *out);
  if (memcmp(out->kind, kind, sizeof out->kind)) return kInvalidHandle;
  if (out->device < 0 || out->device >= devices()) return kInvalidDevice;
  return out->process == getpid() ? kInvalidContext : kSuccess;
}
int open_file(const Content &content) {
  const std::string path =
      "/proc/" + std::to_string(content.process) + "/fd/" + std::to_string(content.file);
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

// Memory that is open: opened again, it has the same address.
struct Opened {
  std::mutex lock;
  std::map<std::tuple<int, int, uint64_t>, std::pair<Address, int>> all;  // address and users
};
Opened &opened() {
  static auto *one = new Opened();
  return *one;
}

// Events of this process that others may see, in one file.
struct Events {
  std::mutex lock;
  int file = -1;
  SharedEvent *all = nullptr;
  size_t used = 0;
  std::vector<SharedEvent *> unused;
};
Events &events() {
  static auto *one = new Events();
  return *one;
}

void *map_file(int file, size_t bytes) {
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

SharedEvent *take_shared_event() {
  Events &e = events();
  const std::lock_guard<std::mutex> hold(e.lock);
  if (!e.all) {
    const int file = memfd_create("plait-cuda-events", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    if (ftruncate(file, off_t(kEvents * sizeof(SharedEvent))) == 0)
      e.all = static_cast<SharedEvent *>(map_file(file, kEvents * sizeof(SharedEvent)));
    if (!e.all) {
      close(file);
      return nullptr;
    }
    e.file = file;
  }
  if (!e.unused.empty()) {
    SharedEvent *event = e.unused.back();
    e.unused.pop_back();
    event->recorded = 0;
    event->reached = 0;
    return event;
  }
  return e.used < kEvents ? &e.all[e.used++] : nullptr;
}
void give_shared_event(SharedEvent *event) {
  Events &e = events();
  const std::lock_guard<std::mutex> hold(e.lock);
  e.unused.push_back(event);
}

Result share_memory(IpcHandle *out, Address address) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  Allocation range;
  if (!out || !find_allocation(uintptr_t(address), &range) || range.device < 0 || range.opened)
    return kInvalidValue;
  Content content = {{},           getpid(),         file_of(range.device),
                     range.device, offset_of(range), range.end - range.begin};
  memcpy(content.kind, kMemory, sizeof content.kind);
  *out = handle_of(content);
  return kSuccess;
}

Result open_memory(Address *out, IpcHandle handle, unsigned flags) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || flags != kIpcLazyPeer) return kInvalidValue;
  if (const Result r = check_capture()) return r;
  Content content;
  if (const Result r = read_handle(handle, kMemory, &content)) return r;
  Opened &o = opened();
  const std::lock_guard<std::mutex> hold(o.lock);
  const auto key = std::make_tuple(content.process, content.file, content.offset);
  const auto at = o.all.find(key);
  if (at != o.all.end()) {
    at->second.second++;
    return *out = at->second.first, kSuccess;
  }
  const int file = open_file(content);
  if (file < 0) return kMapFailed;
  const Address address = map_opened(content.device, file, content.offset, content.bytes);
  close(file);
  if (!address) return kMapFailed;
  if (content.device != context->ordinal) context->peers |= 1u << content.device;
  o.all[key] = {address, 1};
  *out = address;
  return kSuccess;
}

// Waits for the devices, as their work may use the memory.
Result close_memory(Address address) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (const Result r = check_capture()) return r;
  for (int i = 0; i < devices(); i++) drain_device(context_of(i));
  Opened &o = opened();
  const std::lock_guard<std::mutex> hold(o.lock);
  for (auto at = o.all.begin(); at != o.all.end(); ++at) {
    if (at->second.first != address) continue;
    if (--at->second.second) return kSuccess;
    o.all.erase(at);
    return unmap_opened(address) ? kSuccess : kInvalidValue;
  }
  return kInvalidValue;
}

Result share_event(IpcHandle *out, Event handle) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  const EventPtr event = find_event(handle);
  if (!event) return kInvalidHandle;
  if (!out || !event->shared || event->opened) return kInvalidValue;
  Events &e = events();
  const std::lock_guard<std::mutex> hold(e.lock);
  Content content = {{}, getpid(), e.file, context->ordinal, uint64_t(event->shared - e.all), 0};
  memcpy(content.kind, kEvent, sizeof content.kind);
  *out = handle_of(content);
  event->was_shared = true;
  return kSuccess;
}

Result open_event(Event *out, IpcHandle handle) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out) return kInvalidValue;
  Content content;
  if (const Result r = read_handle(handle, kEvent, &content)) return r;
  if (content.offset >= kEvents) return kInvalidHandle;
  const int file = open_file(content);
  if (file < 0) return kMapFailed;
  auto *all = static_cast<SharedEvent *>(map_file(file, kEvents * sizeof(SharedEvent)));
  close(file);
  if (!all) return kMapFailed;
  auto event = std::make_shared<EventHandle>();
  event->home = context;
  event->flags = kEventNoTiming | kEventInterprocess;
  event->shared = all + content.offset;
  event->opened = true;
  event->mapping =
      std::shared_ptr<void>(all, [](void *data) { munmap(data, kEvents * sizeof(SharedEvent)); });
  *out = add_event(std::move(event));
  return kSuccess;
}

}  // namespace plait::cuda::driver
