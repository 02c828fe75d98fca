#include "host/activity.h"

#include <time.h>

#include <vector>

#include "host/device.h"

namespace plait::cuda {

std::atomic<bool> is_measured;

struct ActivityRecord {
  DLDevice device;
  driver::Stream stream;
  driver::Event begin, end;
  plait_activity_kind kind;
  const char *name;
  uint64_t launch, queued, nbytes;
};

namespace {

using driver::api;

struct Measurements {
  ForkMutex mutex;
  std::vector<ActivityRecord> records;
  std::vector<driver::Event> spare[kMaxDevices];
  // an event of each device that is measured, else NULL, and when the host saw it
  std::atomic<driver::Event> reference[kMaxDevices];
  uint64_t reference_time[kMaxDevices] = {};
};
Measurements &measurements() {
  static auto *all = new Measurements();  // used until the process ends
  return *all;
}

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

// An event with a time, behind the work of the stream; NULL if there is none.
driver::Event event_behind(DLDevice device, driver::Stream stream) {
  driver::Event event = nullptr;
  {
    Measurements &all = measurements();
    const std::lock_guard<ForkMutex> hold(all.mutex);
    if (auto &spare = all.spare[device.device_id]; !spare.empty()) {
      event = spare.back();
      spare.pop_back();
    }
  }
  if (!event && api.event_create(&event, 0) != driver::kSuccess) return nullptr;
  if (api.event_record(event, stream) == driver::kSuccess) return event;
  api.event_destroy(event);
  return nullptr;
}

bool is_captured(driver::Stream stream) {
  int status = driver::kNotCapturing;
  return api.capture_status(stream, &status) != driver::kSuccess || status != driver::kNotCapturing;
}

}  // namespace

void Activity::begin(DLDevice device, driver::Stream stream, plait_activity_kind kind,
                     const char *name, uint64_t launch, uint64_t nbytes) {
  if (!measurements().reference[device.device_id] || is_captured(stream)) return;
  const driver::Event event = event_behind(device, stream);
  if (!event) return;
  record_ = new (std::nothrow)
      ActivityRecord{device, stream, event, nullptr, kind, name, launch, now(), nbytes};
  if (!record_) api.event_destroy(event);
}

void Activity::end() {
  record_->end = event_behind(record_->device, record_->stream);
  bool is_noted = false;
  if (record_->end) try {
      Measurements &all = measurements();
      const std::lock_guard<ForkMutex> hold(all.mutex);
      all.records.push_back(*record_);
      is_noted = true;
    } catch (const std::bad_alloc &) {  // the profiler does not see this one
    }
  if (!is_noted) {
    api.event_destroy(record_->begin);
    if (record_->end) api.event_destroy(record_->end);
  }
  delete record_;
}

namespace {

plait_status start(void *, plait_thread *thread, DLDevice device) {
  PLAIT_TRY(use(thread, device));
  driver::Event reference;
  PLAIT_CUDA(thread, device, "creating an event", event_create(&reference, 0));
  PLAIT_CUDA(thread, device, "waiting for the device", context_synchronize());
  PLAIT_CUDA(thread, device, "recording an event", event_record(reference, nullptr));
  PLAIT_CUDA(thread, device, "waiting for an event", event_synchronize(reference));
  Measurements &all = measurements();
  all.reference_time[device.device_id] = now();
  if (driver::Event before = all.reference[device.device_id].exchange(reference))
    api.event_destroy(before);
  is_measured.store(true);
  return PLAIT_OK;
}

// The records of a device, which leave the list.
std::vector<ActivityRecord> take_records(DLDevice device) {
  Measurements &all = measurements();
  std::vector<ActivityRecord> result, others;
  const std::lock_guard<ForkMutex> hold(all.mutex);
  for (const ActivityRecord &r : all.records)
    (r.device.device_id == device.device_id ? result : others).push_back(r);
  all.records.swap(others);
  return result;
}

// A record as the profiler gets it. The driver tells times as float32 milliseconds since the
// reference, so they are exact to a microsecond for some ten seconds.
plait_activity describe(const ActivityRecord &r, driver::Event reference, uint64_t reference_time) {
  float begin = 0, end = 0;
  api.event_elapsed(&begin, reference, r.begin);
  api.event_elapsed(&end, reference, r.end);
  plait_activity a{};
  a.size = sizeof a;
  a.kind = r.kind;
  a.launch = r.launch;
  a.begin = reference_time + uint64_t(double(begin) * 1e6);
  a.end = reference_time + uint64_t(double(end) * 1e6);
  a.queued = r.queued;
  a.stream = uint64_t(reinterpret_cast<uintptr_t>(r.stream));
  a.nbytes = r.nbytes;
  a.name = r.name;
  a.device = r.device;
  return a;
}

plait_status stop(void *, plait_thread *thread, DLDevice device,
                  void (*each)(void *arg, const plait_activity *), void *arg) try {
  PLAIT_TRY(use(thread, device));
  Measurements &all = measurements();
  const driver::Event reference = all.reference[device.device_id].exchange(nullptr);
  if (!reference) return PLAIT_OK;
  bool is_used = false;
  for (const auto &other : all.reference) is_used |= other.load() != nullptr;
  is_measured.store(is_used);
  const uint64_t time = all.reference_time[device.device_id];
  const driver::Result result = api.context_synchronize();
  for (const ActivityRecord &r : take_records(device)) {
    if (result == driver::kSuccess) {
      const plait_activity a = describe(r, reference, time);
      each(arg, &a);
    }
    const std::lock_guard<ForkMutex> hold(all.mutex);
    all.spare[device.device_id].push_back(r.begin);
    all.spare[device.device_id].push_back(r.end);
  }
  api.event_destroy(reference);
  return settle(thread, device, result, "waiting for the device");
} catch (const std::bad_alloc &) {
  return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda", "out of memory for records");
}

}  // namespace

void add_activity(plait_device &t) {
  t.activity_start = start;
  t.activity_stop = stop;
}

}  // namespace plait::cuda
