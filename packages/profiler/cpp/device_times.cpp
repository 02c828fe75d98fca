#include "device_times.hpp"

#include <plait/fork.hpp>
#include <plait/plait.hpp>

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "clock.hpp"
#include "signature.hpp"

namespace plait::profiler {
namespace {

struct Launched {
  Row row;
  plait_device_event *before, *after;
};

// Of one device. Rows whose events were reached have times in milliseconds after `first`.
struct Device {
  DLDevice device;
  plait_device_event *first = nullptr;
  std::deque<Launched> waiting;
  struct Timed {
    Row row;
    double begin, length;
  };
  std::vector<Timed> timed;
};

// A device that keeps records, and the rows of calls that it may have records of.
struct Watched {
  DLDevice device;
  std::unordered_map<uint64_t, Row> calls;  // by plait_call::launch
};

ForkMutex mutex;
auto &watched = *new std::map<uint16_t, Watched>;
auto &natives = *new std::map<uint64_t, uint64_t>;  // numbers of streams, by those of devices
auto &devices = *new std::map<uint16_t, Device>;
auto &streams = *new std::map<const plait_stream *, uint64_t>;
constexpr size_t most_waiting = 1024;
constexpr int32_t most_types = 32, most_devices = 16;  // that are looked for

// Saves the thread's error while a device is called. What goes wrong with a
// profile's own events is nothing to the program.
class KeptError {
 public:
  explicit KeptError(plait_thread *thread) : thread_(thread), error_(thread->error) {
    if (error_) plait_retain(error_);
  }
  ~KeptError() {
    if (thread_->error) plait_release(thread_->error);
    thread_->error = error_;
  }

 private:
  plait_thread *thread_;
  plait_error *error_;
};

const plait_device *table_of(const plait_runtime *runtime, DLDevice d) {
  return role<plait_device>(runtime, d.device_type);
}

uint16_t number_of(DLDevice d) { return uint16_t(d.device_type << 8 | (d.device_id & 255)); }

// The rows of the records of a device; `mutex` is not held.
struct Records {
  const Watched *device;
  std::vector<Work> *works;
  Recent recent;
  bool is_whole = true;

  void add(const plait_activity &a) {
    const auto known = device->calls.find(a.launch);
    Row row = known == device->calls.end() ? Row{} : known->second;
    const uint64_t launched =
        known == device->calls.end() ? (a.queued ? a.queued : a.begin) : row.start;
    if (known == device->calls.end()) row.thread = row.process = uint32_t(getpid());
    row.kind = DEVICE;
    row.depth = 0;
    row.device = number_of(a.device);
    row.start = a.begin;
    row.duration = a.end - a.begin;
    const uint64_t queued = a.queued && a.queued < a.begin ? a.begin - a.queued : 0;
    const uint64_t stream =
        a.stream ? natives.try_emplace(a.stream, natives.size() + 1).first->second : 0;
    row.b = stream_and_queue(stream, queued);
    if (a.name) row.signature = signature_of(recent, DEVICE, a.name);
    works->push_back({launched, row});
  }
  static void each(void *arg, const plait_activity *a) {
    auto *r = static_cast<Records *>(arg);
    try {
      r->add(*a);
    } catch (const std::bad_alloc &) {
      r->is_whole = false;
    }
  }
};

// Sets the times of the events at the front of the queue that were reached, or of all events. The
// device itself is called: the runtime would report errors of the program's own work here.
void settle(const plait_runtime *runtime, Device &d, bool all) {
  const plait_device *table = table_of(runtime, d.device);
  plait_thread *thread = runtime->thread();
  while (!d.waiting.empty()) {
    Launched &l = d.waiting.front();
    int32_t done = 0;
    if (table && !all && (table->event_query(table->ctx, thread, l.after, &done) < 0 || !done))
      return;
    double begin = 0, length = 0;
    if (table && table->event_elapsed(table->ctx, thread, d.first, l.before, &begin) == PLAIT_OK &&
        table->event_elapsed(table->ctx, thread, l.before, l.after, &length) == PLAIT_OK)
      d.timed.push_back({l.row, begin, length});
    plait_release(l.before);
    plait_release(l.after);
    d.waiting.pop_front();
  }
}

// The host's time, in nanoseconds, at which the first event was reached; 0 if it is unknown.
double time_of_first(const plait_runtime *runtime, const Device &d) {
  const plait_device *table = table_of(runtime, d.device);
  plait_thread *thread = runtime->thread();
  plait_device_event *last = nullptr;
  double length = 0;
  if (!table || runtime->event_new(thread, d.device, PLAIT_EVENT_TIMED, &last) < 0 || !last)
    return 0;
  const bool matched = runtime->event_record(thread, last, nullptr) == PLAIT_OK &&
                       table->event_wait(table->ctx, thread, last) == PLAIT_OK;
  const auto end = double(now());
  const bool timed =
      matched && table->event_elapsed(table->ctx, thread, d.first, last, &length) == PLAIT_OK;
  plait_release(last);
  return timed ? end - length * 1e6 : 0;
}

}  // namespace

bool watches(const plait_runtime *runtime, DLDevice d) {
  const plait_device *table = table_of(runtime, d);
  if (!table || !PLAIT_HAS(plait_device, table, activity_start)) return false;
  const std::lock_guard<ForkMutex> lock(mutex);
  if (watched.count(number_of(d))) return true;
  plait_thread *thread = runtime->thread();
  const KeptError error(thread);
  if (table->activity_start(table->ctx, thread, d) < 0) return false;
  watched[number_of(d)].device = d;
  return true;
}

// Whether the device was used in this process, and not by its parent before a fork.
static bool is_used(const plait_runtime *runtime, const plait_allocator *allocator, DLDevice d) {
  plait_alloc_stats stats{};
  stats.size = sizeof stats;
  allocator->stats(allocator->ctx, d, &stats);
  if (!stats.allocations) return false;
  const KeptError error(runtime->thread());
  plait_device_event *event = nullptr;
  if (runtime->event_new(runtime->thread(), d, PLAIT_EVENT_TIMED, &event) < 0) return false;
  plait_release(event);
  return true;
}

void watch_used(const plait_runtime *runtime) {
  for (int32_t type = kDLCPU + 1; type < most_types; type++) {
    const auto *table = role<plait_device>(runtime, type);
    const auto *allocator = role<plait_allocator>(runtime, type);
    if (!table || !PLAIT_HAS(plait_device, table, activity_start)) continue;
    if (!allocator || !allocator->stats) continue;
    for (int32_t id = 0; id < most_devices; id++)
      if (const DLDevice d{DLDeviceType(type), id}; is_used(runtime, allocator, d))
        watches(runtime, d);
  }
}

void add_watched(const Row &row, DLDevice d, uint64_t launch) {
  const std::lock_guard<ForkMutex> lock(mutex);
  const auto at = watched.find(number_of(d));
  if (at != watched.end()) at->second.calls[launch] = row;
}

// Ends the records of all devices and appends their rows.
static plait_status collect_records(const plait_runtime *runtime, std::vector<Work> &works) {
  std::map<uint16_t, Watched> all;
  {
    const std::lock_guard<ForkMutex> lock(mutex);
    all.swap(watched);
  }
  plait_thread *thread = runtime->thread();
  plait_status status = PLAIT_OK;
  for (auto &[number, w] : all) {
    if (status == PLAIT_OK) status = runtime->synchronize(thread, w.device);
    const plait_device *table = table_of(runtime, w.device);
    if (!table || !PLAIT_HAS(plait_device, table, activity_stop)) continue;
    const KeptError error(thread);
    Records records{&w, &works, {}, true};
    table->activity_stop(table->ctx, thread, w.device, Records::each, &records);
    if (!records.is_whole) throw std::bad_alloc();
  }
  return status;
}

plait_device_event *mark_stream(const plait_runtime *runtime, const plait_call *c) {
  const plait_device *table = table_of(runtime, c->device);
  if (!table || !table->event_new || !table->event_elapsed) return nullptr;
  const KeptError error(c->thread);
  plait_device_event *event = nullptr;
  if (runtime->event_new(c->thread, c->device, PLAIT_EVENT_TIMED, &event) < 0 || !event)
    return nullptr;
  if (runtime->event_record(c->thread, event, c->stream) == PLAIT_OK) return event;
  plait_release(event);
  return nullptr;
}

uint64_t stream_number(const plait_stream *stream) {
  if (!stream) return 0;
  const std::lock_guard<ForkMutex> lock(mutex);
  return streams.try_emplace(stream, streams.size() + 1).first->second;
}

void add_launch(const plait_runtime *runtime, const Row &row, plait_device_event *before,
                plait_device_event *after) {
  const std::lock_guard<ForkMutex> lock(mutex);
  Device &d = devices[row.device];
  d.device = before->device;
  if (!d.first) {
    d.first = before;
    plait_retain(before);
  }
  d.waiting.push_back({row, before, after});
  if (d.waiting.size() <= most_waiting) return;
  const KeptError error(runtime->thread());
  settle(runtime, d, false);
}

plait_status collect_launches(const plait_runtime *runtime, std::vector<Work> &works) {
  std::map<uint16_t, Device> all;
  {
    const std::lock_guard<ForkMutex> lock(mutex);
    all.swap(devices);
  }
  plait_thread *thread = runtime->thread();
  plait_status status = collect_records(runtime, works);
  for (auto &[number, d] : all) {
    if (status == PLAIT_OK) status = runtime->synchronize(thread, d.device);
    const KeptError error(thread);
    settle(runtime, d, true);
    const double first = time_of_first(runtime, d);
    for (Device::Timed &t : d.timed) {
      const uint64_t launched = t.row.start;
      t.row.start = uint64_t(first + t.begin * 1e6);
      t.row.duration = uint64_t(t.length * 1e6);
      if (first > 0) works.push_back({launched, t.row});
    }
    plait_release(d.first);
  }
  return status;
}

void forget_launches() {
  const std::lock_guard<ForkMutex> lock(mutex);
  devices.clear();
  watched.clear();
}

}  // namespace plait::profiler
