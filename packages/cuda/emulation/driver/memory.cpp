// Memory. Programs see addresses where nobody may read or write; the bytes are a fixed distance
// behind them. They are a file without a name, one for each device, which has pages only where
// somebody wrote, and which other processes can map.
#include "emulation/driver/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <shared_mutex>

namespace plait::cuda::driver {
namespace {

constexpr size_t kSpace = size_t(1) << 36;  // addresses of a device
constexpr size_t kDistance = kSpace * kMaxDevices;
constexpr size_t kUnit = 64 << 10;     // allocations begin at multiples
constexpr size_t kFilled = 64 << 20;  // so many bytes of new memory hold a pattern
constexpr int kPattern = 0xff;         // NaN, -1

struct Space {
  std::shared_mutex lock;
  uintptr_t shown = 0;                     // where the addresses of device 0 begin
  std::map<uintptr_t, Allocation> ranges;  // by their beginnings
  size_t cursor[kMaxDevices] = {};  // where to look for room: freed addresses rest a while
  size_t live[kMaxDevices] = {};
  int file[kMaxDevices] = {-1, -1, -1, -1};
};
Space &space() {
  static auto *one = new Space();
  return *one;
}

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Under the lock: reserves addresses and opens the file of a device.
bool open_device(Space &s, int device) {
  if (!s.shown) {
    void *all =
        mmap(nullptr, 2 * kDistance, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return false;
    s.shown = reinterpret_cast<uintptr_t>(all);
  }
  if (s.file[device] >= 0) return true;
  const int file = memfd_create("plait-cuda-emulation", MFD_CLOEXEC);
  if (file < 0) return false;
  void *bytes = reinterpret_cast<void *>(s.shown + kDistance + size_t(device) * kSpace);
  if (ftruncate(file, off_t(kSpace)) ||
      mmap(bytes, kSpace, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
           0) == MAP_FAILED) {
    close(file);
    return false;
  }
  madvise(bytes, kSpace, MADV_DONTFORK);
  s.file[device] = file;
  return true;
}

// Under the lock: addresses of a device, with room around them; 0: there are none.
uintptr_t take_addresses(Space &s, int device, size_t bytes) {
  const uintptr_t first = s.shown + size_t(device) * kSpace;
  const size_t needed = rounded(bytes, kUnit) + kUnit;
  for (int round = 0; round < 2; round++) {
    uintptr_t at = first + s.cursor[device];
    while (at + needed <= first + kSpace) {
      auto next = s.ranges.lower_bound(at);
      if (next == s.ranges.end() || next->first >= at + needed) {
        s.cursor[device] = at + needed - first;
        return at;
      }
      at = rounded(next->second.end, kUnit) + kUnit;
    }
    s.cursor[device] = kUnit;
  }
  return 0;
}

bool find(Space &s, uintptr_t address, Allocation *out) {  // under the lock
  auto next = s.ranges.upper_bound(address);
  if (next == s.ranges.begin()) return false;
  const Allocation &range = (--next)->second;
  if (address >= range.end) return false;
  *out = range;
  return true;
}

bool find_for_kernel(int device, uintptr_t address, emulation::Range *out) {
  Allocation range;
  if (!find_allocation(address, &range)) return false;
  const unsigned peers = context_of(device).peers.load(std::memory_order_relaxed);
  if (range.device >= 0 && range.device != device && !(peers >> range.device & 1)) return false;
  *out = {range.begin, range.end, range.distance};
  return true;
}

}  // namespace

size_t memory_limit() {
  static const size_t value = [] {
    const char *text = getenv("PLAIT_CUDA_MEMORY");
    const size_t bytes = text ? size_t(strtoull(text, nullptr, 10)) : 0;
    return bytes == 0 ? size_t(2) << 30 : bytes < kSpace / 2 ? bytes : kSpace / 2;
  }();
  return value;
}

const emulation::Driver &services() {
  static const emulation::Driver driver = {find_for_kernel};
  return driver;
}

bool find_allocation(uintptr_t address, Allocation *out) {
  Space &s = space();
  const std::shared_lock<std::shared_mutex> hold(s.lock);
  return find(s, address, out);
}
char *host_address(int device, Address address, size_t bytes) {
  Allocation range;
  if (!find_allocation(uintptr_t(address), &range)) return nullptr;
  if (range.device >= 0 && device >= 0 && range.device != device) {
    const unsigned peers = context_of(device).peers.load(std::memory_order_relaxed);
    if (!(peers >> range.device & 1)) return nullptr;
  }
  if (bytes > range.end - uintptr_t(address)) return nullptr;
  return reinterpret_cast<char *>(uintptr_t(address) + uintptr_t(range.distance));
}
bool is_pinned(const void *address, size_t bytes) {
  Allocation range;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return find_allocation(begin, &range) && range.device < 0 && bytes <= range.end - begin;
}
bool is_shown(const void *address) {
  Space &s = space();
  const std::shared_lock<std::shared_mutex> hold(s.lock);
  const auto at = reinterpret_cast<uintptr_t>(address);
  return s.shown && at >= s.shown && at < s.shown + 2 * kDistance;
}

int file_of(int device) {
  Space &s = space();
  const std::shared_lock<std::shared_mutex> hold(s.lock);
  return s.file[device];
}
size_t offset_of(const Allocation &range) {
  return range.begin - space().shown - size_t(range.device) * kSpace;
}

Address map_opened(int device, int file, size_t offset, size_t bytes) {
  Space &s = space();
  const std::lock_guard<std::shared_mutex> hold(s.lock);
  if (!open_device(s, device)) return 0;
  const uintptr_t begin = take_addresses(s, device, bytes);
  if (!begin) return 0;
  void *to = reinterpret_cast<void *>(begin + kDistance);
  if (mmap(to, rounded(bytes, kUnit), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
           off_t(offset)) == MAP_FAILED)
    return 0;
  madvise(to, rounded(bytes, kUnit), MADV_DONTFORK);
  s.ranges[begin] = {begin, begin + bytes, device, true, ptrdiff_t(kDistance)};
  return begin;
}
bool unmap_opened(Address address) {
  Space &s = space();
  const std::lock_guard<std::shared_mutex> hold(s.lock);
  const auto at = s.ranges.find(uintptr_t(address));
  if (at == s.ranges.end() || !at->second.opened) return false;
  const Allocation range = at->second;
  // the device's own file comes back to this place
  mmap(reinterpret_cast<void *>(range.begin + kDistance), rounded(range.end - range.begin, kUnit),
       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, s.file[range.device],
       off_t(offset_of(range)));
  s.ranges.erase(at);
  return true;
}

Result memory_info(size_t *unused, size_t *total) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  Space &s = space();
  const std::shared_lock<std::shared_mutex> hold(s.lock);
  if (unused) *unused = memory_limit() - s.live[context->ordinal];
  if (total) *total = memory_limit();
  return kSuccess;
}

Result memory_alloc(Address *out, size_t bytes) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || !bytes) return kInvalidValue;
  if (const Result r = check_capture()) return r;
  if (is_due(kAllocFailsIn)) return kOutOfMemory;
  const int device = context->ordinal;
  Space &s = space();
  uintptr_t begin;
  {
    const std::lock_guard<std::shared_mutex> hold(s.lock);
    if (bytes > memory_limit() - s.live[device] || !open_device(s, device)) return kOutOfMemory;
    begin = take_addresses(s, device, bytes);
    if (!begin) return kOutOfMemory;
    s.live[device] += bytes;
    s.ranges[begin] = {begin, begin + bytes, device, false, ptrdiff_t(kDistance)};
  }
  memset(reinterpret_cast<void *>(begin + kDistance), kPattern, bytes < kFilled ? bytes : kFilled);
  count(kAllocs);
  count(kLiveBytes, int64_t(bytes));
  *out = begin;
  return kSuccess;
}

// Waits for the device, as its work may use the memory.
Result memory_free(Address address) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!address) return kSuccess;
  if (const Result r = check_capture()) return r;
  Space &s = space();
  Allocation range;
  if (!find_allocation(uintptr_t(address), &range) || range.begin != uintptr_t(address) ||
      range.device < 0 || range.opened)
    return kInvalidValue;
  for (int i = 0; i < devices(); i++)  // peers use it, too
    if (i == range.device || context_of(i).peers >> range.device & 1) drain_device(context_of(i));
  const size_t bytes = range.end - range.begin;
  {
    const std::lock_guard<std::shared_mutex> hold(s.lock);
    if (!s.ranges.erase(range.begin)) return kInvalidValue;  // another thread has freed it
    s.live[range.device] -= bytes;
    fallocate(s.file[range.device], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              off_t(offset_of(range)), off_t(rounded(bytes, kUnit)));
  }
  count(kLiveBytes, -int64_t(bytes));
  return kSuccess;
}

Result address_range(Address *base, size_t *bytes, Address address) {
  if (const Result r = entered()) return r;
  Allocation range;
  if (!find_allocation(uintptr_t(address), &range)) return kNotFound;
  if (base) *base = range.begin;
  if (bytes) *bytes = range.end - range.begin;
  return kSuccess;
}

Result pinned_alloc(void **out, size_t bytes, unsigned flags) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || !bytes || flags > 7) return kInvalidValue;
  if (const Result r = check_capture()) return r;
  void *data = mmap(nullptr, rounded(bytes, kUnit), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return kOutOfMemory;
  Space &s = space();
  const std::lock_guard<std::shared_mutex> hold(s.lock);
  const auto begin = reinterpret_cast<uintptr_t>(data);
  s.ranges[begin] = {begin, begin + bytes, -1, false, 0};
  *out = data;
  return kSuccess;
}

Result pinned_free(void *data) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!data) return kSuccess;
  if (const Result r = check_capture()) return r;
  Space &s = space();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  Allocation range;
  if (!find_allocation(begin, &range) || range.begin != begin || range.device >= 0)
    return kInvalidValue;
  for (int i = 0; i < devices(); i++) drain_device(context_of(i));
  const std::lock_guard<std::shared_mutex> hold(s.lock);
  if (!s.ranges.erase(begin)) return kInvalidValue;
  munmap(data, rounded(range.end - range.begin, kUnit));
  return kSuccess;
}

Result pinned_address(Address *out, void *data, unsigned flags) {
  if (const Result r = entered()) return r;
  if (!out || flags || !is_pinned(data, 1)) return kInvalidValue;
  *out = reinterpret_cast<uintptr_t>(data);
  return kSuccess;
}

Result pointer_attribute(void *value, int attribute, Address address) {
  if (const Result r = entered()) return r;
  Allocation range;
  if (!value || !find_allocation(uintptr_t(address), &range)) return kInvalidValue;
  if (attribute == kPointerMemoryType)
    *static_cast<unsigned *>(value) = range.device < 0 ? kMemoryOfHost : kMemoryOfDevice;
  else if (attribute == kPointerOrdinal)
    *static_cast<int *>(value) = range.device < 0 ? 0 : range.device;
  else
    return kInvalidValue;
  return kSuccess;
}

}  // namespace plait::cuda::driver
