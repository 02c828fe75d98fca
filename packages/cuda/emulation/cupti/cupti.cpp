// A stand-in for libcupti.so.13 on the emulated driver: it writes the records that plait-cuda asks
// for, in CUPTI's layout and order, with times by the driver's clock.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulation/trace.h"
#include "host/cupti_types.h"

namespace {

using namespace plait::cuda;         // NOLINT: a library of C functions
using namespace plait::cuda::cupti;  // NOLINT
using emulation::TracedKind;
using emulation::TracedWork;

// The record of a call, as long as that of CUPTI; no program reads one.
struct CallRecord {
  RecordKind kind;
  uint32_t function;
  uint64_t begin, end;
  uint32_t process, thread, correlation, result;
};

constexpr size_t kMostBytes = 4096;  // of a buffer, so that tests see many

struct State {
  std::mutex lock;
  BufferRequest request = nullptr;
  BufferComplete complete = nullptr;
  uint64_t enabled = 0;  // a bit for each kind
  uint8_t *buffer = nullptr;
  size_t size = 0, used = 0;
};
State &state() {
  static auto *one = new State();  // streams run until the process ends
  return *one;
}
std::atomic<int64_t> buffers{0}, records{0}, is_refused{0};

std::unordered_map<uint32_t, std::vector<uint64_t>> &pushed() {
  static thread_local std::unordered_map<uint32_t, std::vector<uint64_t>> stacks;
  return stacks;
}

// A function of the driver that is loaded.
template <class T>
T driver_function(const char *name) {
  Dl_info info;
  std::string path = dladdr(&buffers, &info) ? info.dli_fname : "";
  path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
  void *function = dlsym(dlopen(path.c_str(), RTLD_NOW), name);
  T result;
  memcpy(&result, &function, sizeof result);
  return result;
}

bool is_enabled(RecordKind kind) { return state().enabled >> kind & 1; }

// Under the lock.
void give_back() {
  State &s = state();
  if (!s.buffer) return;
  s.complete(nullptr, 0, s.buffer, s.size, s.used);
  s.buffer = nullptr;
  buffers--;
}

// Under the lock. Without a buffer the record is dropped, as by CUPTI.
void put(const void *record, size_t bytes) {
  State &s = state();
  bytes = (bytes + 7) / 8 * 8;
  if (s.buffer && s.used + bytes > s.size) give_back();
  if (!s.buffer) {
    size_t most_records = 0;
    s.request(&s.buffer, &s.size, &most_records);
    if (!s.buffer) return;
    buffers++;
    s.used = 0;
    s.size = s.size < kMostBytes ? s.size : kMostBytes;
  }
  memcpy(s.buffer + s.used, record, bytes);
  s.used += bytes;
  records++;
}

// CUPTI writes what threads have pushed only beside records of calls, and before them.
void on_call(uint32_t call) {
  const std::lock_guard<std::mutex> hold(state().lock);
  if (!is_enabled(kDriverCall)) return;
  for (const auto &[whose, numbers] : pushed()) {
    if (numbers.empty() || !is_enabled(kExternal)) continue;
    const ExternalRecord r = {kExternal, ExternalKind(whose), numbers.back(), call, 0};
    put(&r, sizeof r);
  }
  CallRecord r{};
  r.kind = kDriverCall;
  r.correlation = call;
  put(&r, sizeof r);
}

RecordKind kind_of(TracedKind kind) {
  switch (kind) {
    case TracedKind::kKernel: return kKernel;
    case TracedKind::kPeerCopy: return kPeerCopy;
    case TracedKind::kFill: return kFill;
    default: return kCopy;
  }
}

template <class T>
T record_of(const TracedWork &work) {
  T r{};
  r.kind = kind_of(work.kind);
  r.begin = work.begin, r.end = work.end;
  r.device = uint32_t(work.device), r.stream = work.stream, r.correlation = work.call;
  return r;
}

void on_work(const TracedWork &work) {
  const std::lock_guard<std::mutex> hold(state().lock);
  if (!is_enabled(kind_of(work.kind))) return;
  if (work.kind == TracedKind::kKernel) {
    auto r = record_of<KernelRecord>(work);
    r.name = work.name;
    put(&r, sizeof r);
  } else if (work.kind == TracedKind::kPeerCopy) {
    auto r = record_of<PeerCopyRecord>(work);
    r.bytes = work.bytes;
    put(&r, sizeof r);
  } else {
    auto r = record_of<MemoryRecord>(work);
    r.bytes = work.bytes;
    put(&r, sizeof r);
  }
}

const emulation::Tracer kTracer = {on_call, on_work};

size_t size_of(RecordKind kind) {
  switch (kind) {
    case kKernel: return sizeof(KernelRecord);
    case kCopy:
    case kFill: return sizeof(MemoryRecord);
    case kPeerCopy: return sizeof(PeerCopyRecord);
    case kExternal: return sizeof(ExternalRecord);
    case kDriverCall: return sizeof(CallRecord);
    default: return 0;
  }
}

Status set_enabled(RecordKind kind, bool on) {
  static const auto trace = driver_function<decltype(&plait_emulation_trace)>(kTraceFunction);
  if (kind >= 64) return kInvalidKind;
  if (on && is_refused) return kInsufficientPrivileges;
  uint64_t now;
  {
    const std::lock_guard<std::mutex> hold(state().lock);
    if (on && !state().request) return kInvalidParameter;
    if (on)
      state().enabled |= uint64_t(1) << kind;
    else
      state().enabled &= ~(uint64_t(1) << kind);
    now = state().enabled;
  }
  trace(now ? &kTracer : nullptr);
  return kSuccess;
}

}  // namespace

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// For tests: how many records were written, how many buffers the program has not got back, and
// whether recording is refused, as it is to users without the right to it.
PLAIT_EXPORT int64_t plait_cupti_records() { return records; }
PLAIT_EXPORT int64_t plait_cupti_buffers() { return buffers; }
PLAIT_EXPORT void plait_cupti_refuse(int64_t refused) { is_refused = refused; }

PLAIT_EXPORT Status cuptiGetTimestamp(uint64_t *to) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  *to = uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
  return kSuccess;
}
PLAIT_EXPORT Status cuptiGetStreamIdEx(driver::Context, driver::Stream stream, uint8_t,
                                       uint32_t *to) {
  static const auto find = driver_function<decltype(&plait_emulation_stream)>(kStreamFunction);
  return (*to = find(stream)) ? kSuccess : kInvalidParameter;
}
PLAIT_EXPORT Status cuptiActivityRegisterCallbacks(BufferRequest request, BufferComplete complete) {
  if (!request || !complete) return kInvalidParameter;
  const std::lock_guard<std::mutex> hold(state().lock);
  state().request = request, state().complete = complete;
  return kSuccess;
}
PLAIT_EXPORT Status cuptiActivityEnable(RecordKind kind) { return set_enabled(kind, true); }
PLAIT_EXPORT Status cuptiActivityDisable(RecordKind kind) { return set_enabled(kind, false); }
PLAIT_EXPORT Status cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard<std::mutex> hold(state().lock);
  give_back();
  return kSuccess;
}
PLAIT_EXPORT Status cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, Record **at) {
  uint8_t *next = buffer;
  if (*at) next = reinterpret_cast<uint8_t *>(*at) + (size_of((*at)->kind) + 7) / 8 * 8;
  if (next >= buffer + valid_bytes) return kLimitReached;
  *at = reinterpret_cast<Record *>(next);
  return size_of((*at)->kind) ? kSuccess : kInvalidKind;
}
PLAIT_EXPORT Status cuptiActivityPushExternalCorrelationId(ExternalKind whose, uint64_t number) {
  pushed()[whose].push_back(number);
  return kSuccess;
}
PLAIT_EXPORT Status cuptiActivityPopExternalCorrelationId(ExternalKind whose, uint64_t *last) {
  auto &numbers = pushed()[whose];
  if (numbers.empty()) return kQueueEmpty;
  if (last) *last = numbers.back();
  numbers.pop_back();
  return kSuccess;
}
