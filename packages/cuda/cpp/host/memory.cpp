// Memory of the driver: what the allocator takes its segments from, and pinned memory of the host.
#include <map>
#include <vector>

#include "host/capture.h"
#include "host/device.h"

namespace plait::cuda {
namespace {

using driver::api;

// A device whose context serves for questions about all of them: one that is in use, else the
// first.
DLDevice any_used() {
  for (int i = 0; i < kMaxDevices; i++)
    if (state_if_used(i)) return {kDLCUDA, i};
  return {kDLCUDA, 0};
}

// What this process has of a device's memory, and how much it may have.
struct Share {
  std::atomic<uint64_t> used{0}, limit{UINT64_MAX};
  std::atomic<uint32_t> process{0};  // `forks.number` of the process that counts
};
Share shares[kMaxDevices];

// A child has nothing of its parent's memory.
Share &share_of(int device) {
  Share &s = shares[device];
  const uint32_t process = forks.number.load(std::memory_order_relaxed);
  if (s.process.exchange(process) != process) s.used = 0;
  return s;
}

plait_status memory_alloc(void *, plait_thread *thread, DLDevice device, uint64_t nbytes,
                          void **data) {
  PLAIT_TRY(use(thread, device));
  Share &share = share_of(device.device_id);
  const uint64_t limit = share.limit;
  if (share.used.fetch_add(nbytes) + nbytes > limit) {
    share.used -= nbytes;
    return runtime->raise(thread, PLAIT_MEMORY_ERROR, nullptr,
                          "the process may have %llu bytes of the device",
                          static_cast<unsigned long long>(limit));
  }
  driver::Address address = 0;
  const driver::Result result = api.memory_alloc(&address, nbytes);
  if (result != driver::kSuccess) share.used -= nbytes;
  if (result == driver::kOutOfMemory) return PLAIT_MEMORY_ERROR;
  if (result != driver::kSuccess) return fail_on(thread, device, result, "allocating memory");
  *data = reinterpret_cast<void *>(address);
  return PLAIT_OK;
}
void memory_free(void *, DLDevice device, void *data, uint64_t nbytes) {
  if (!use_quietly(device)) return;
  api.memory_free(driver::Address(data));
  share_of(device.device_id).used -= nbytes;
}
plait_status memory_info(void *, plait_thread *thread, DLDevice device, uint64_t *free_bytes,
                         uint64_t *total_bytes) {
  PLAIT_TRY(use(thread, device));
  size_t free = 0, total = 0;
  PLAIT_CUDA(thread, device, "asking for free memory", memory_info(&free, &total));
  *free_bytes = free, *total_bytes = total;
  return PLAIT_OK;
}

plait_status memory_device(void *, plait_thread *thread, const void *data, int32_t *device) {
  PLAIT_TRY(use(thread, any_used()));
  unsigned type = 0;
  const auto address = driver::Address(data);
  if (api.pointer_attribute(&type, driver::kPointerMemoryType, address) != driver::kSuccess ||
      type != driver::kMemoryOfDevice ||
      api.pointer_attribute(device, driver::kPointerOrdinal, address) != driver::kSuccess)
    return runtime->raise(thread, PLAIT_VALUE_ERROR, "cuda",
                          "memory of a CUDA device is required, and there is none at %p", data);
  return PLAIT_OK;
}

// Pinned memory. The driver takes long to pin memory, and waits for the whole device when it gives
// some back, so blocks serve again. Their sizes are powers of two.

constexpr int kSmallest = 9, kLargest = 48;  // exponents of the sizes

struct PinnedBlock {
  int exponent;
  uint32_t graphs;  // that copy from or to it
  bool is_waiting;  // for those, to be used again
};
struct PinnedBlocks {
  ForkMutex mutex;
  std::map<char *, PinnedBlock> all;
  std::vector<void *> blocks[kLargest + 1];  // that nobody uses
};
PinnedBlocks &pinned() {
  static auto *all = new PinnedBlocks();  // used until the process ends
  return *all;
}

int exponent_of(uint64_t nbytes) {
  int e = kSmallest;
  while (e < kLargest && (uint64_t(1) << e) < nbytes) e++;
  return e;
}

void *take_pinned(int exponent) {
  PinnedBlocks &all = pinned();
  const std::lock_guard<ForkMutex> hold(all.mutex);
  auto &list = all.blocks[exponent];
  if (list.empty()) return nullptr;
  void *data = list.back();
  list.pop_back();
  return data;
}

void give_up_pinned() {
  std::vector<void *> all;
  {
    PinnedBlocks &of = pinned();
    const std::lock_guard<ForkMutex> hold(of.mutex);
    for (auto &list : of.blocks) {
      all.insert(all.end(), list.begin(), list.end());
      list.clear();
    }
    for (void *each : all) of.all.erase(static_cast<char *>(each));
  }
  for (void *each : all) api.pinned_free(each);
}

plait_status pinned_alloc(void *, plait_thread *thread, uint64_t nbytes, void **data) try {
  const DLDevice device = any_used();
  PLAIT_TRY(use(thread, device));
  const int exponent = exponent_of(nbytes);
  if ((*data = take_pinned(exponent))) return PLAIT_OK;
  const uint64_t size = uint64_t(1) << exponent;
  const unsigned flags = driver::kPinnedPortable | driver::kPinnedMapped;
  driver::Result result =
      size < nbytes ? driver::kOutOfMemory : api.pinned_alloc(data, size, flags);
  if (result == driver::kOutOfMemory && size >= nbytes) {
    give_up_pinned();
    result = api.pinned_alloc(data, size, flags);
  }
  if (result == driver::kSuccess) {
    PinnedBlocks &all = pinned();
    const std::lock_guard<ForkMutex> hold(all.mutex);
    all.all[static_cast<char *>(*data)] = {exponent, 0, false};
    return PLAIT_OK;
  }
  *data = nullptr;
  if (result == driver::kOutOfMemory)
    return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda",
                          "the host has no %llu bytes of memory that can be pinned",
                          static_cast<unsigned long long>(nbytes));
  return fail_on(thread, device, result, "pinning memory");
} catch (const std::bad_alloc &) {
  return PLAIT_MEMORY_ERROR;
}

void pinned_free(void *, void *data, uint64_t nbytes) {
  PinnedBlocks &all = pinned();
  try {
    const std::lock_guard<ForkMutex> hold(all.mutex);
    const auto at = all.all.find(static_cast<char *>(data));
    if (at != all.all.end() && at->second.graphs) {
      at->second.is_waiting = true;
      return;
    }
    all.blocks[exponent_of(nbytes)].push_back(data);
  } catch (const std::bad_alloc &) {
    if (use_quietly(any_used())) api.pinned_free(data);
  }
}

}  // namespace

void hold_pinned(const void *address, std::vector<void *> &held) {
  PinnedBlocks &all = pinned();
  auto *place = static_cast<char *>(const_cast<void *>(address));
  const std::lock_guard<ForkMutex> hold(all.mutex);
  auto at = all.all.upper_bound(place);
  if (at == all.all.begin()) return;
  --at;
  if (place >= at->first + (uint64_t(1) << at->second.exponent)) return;
  held.push_back(at->first);
  at->second.graphs++;
}

void release_pinned(void *block) {
  PinnedBlocks &all = pinned();
  const std::lock_guard<ForkMutex> hold(all.mutex);
  const auto at = all.all.find(static_cast<char *>(block));
  if (at == all.all.end() || --at->second.graphs || !at->second.is_waiting) return;
  at->second.is_waiting = false;
  try {
    all.blocks[at->second.exponent].push_back(block);
  } catch (const std::bad_alloc &) {  // the block is lost
  }
}

void add_memory(plait_device &t) {
  t.memory_alloc = memory_alloc;
  t.memory_free = memory_free;
  t.memory_info = memory_info;
  t.memory_device = memory_device;
  t.pinned_alloc = pinned_alloc;
  t.pinned_free = pinned_free;
}

}  // namespace plait::cuda

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// Lets this process have at most so many bytes of a device; -1 for a number that is too large.
PLAIT_EXPORT int plait_cuda_limit_memory(int device, uint64_t nbytes) {
  using namespace plait::cuda;
  if (device < 0 || device >= kMaxDevices) return -1;
  share_of(device).limit = nbytes;
  return 0;
}
PLAIT_EXPORT uint64_t plait_cuda_memory_limit(int device) {
  using namespace plait::cuda;
  return device < 0 || device >= kMaxDevices ? UINT64_MAX : share_of(device).limit.load();
}
