// Times of a device's work from CUPTI, where that library is installed: the device writes them, so
// nothing is put into the streams, and kernels of other libraries and of graphs are seen as well.
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/activity.h"
#include "host/cupti_types.h"
#include "host/device.h"
#include "host/library.h"

namespace plait::cuda {
namespace {

using namespace cupti;  // NOLINT: the names of its functions

struct Functions {
#define PLAIT_CUPTI_FUNCTION(name, exported, parameters) Status(*name) parameters;
#include "host/cupti_functions.h"
#undef PLAIT_CUPTI_FUNCTION
};

// NULL: there is none, or PLAIT_CUDA_CUPTI=0 in the environment refuses it.
const Functions *library() {
  const char *choice = getenv("PLAIT_CUDA_CUPTI");
  if (choice && strcmp(choice, "0") == 0) return nullptr;
  static Functions functions;
  static const Functions *const chosen = []() -> const Functions * {
    void *const opened =
        open_library({{"cu13/lib", "libcupti.so.13"}, {"cuda_cupti/lib", "libcupti.so.12"}});
    const bool has_all = opened && look_up(opened, {
#define PLAIT_CUPTI_FUNCTION(name, exported, parameters) {&functions.name, exported},
#include "host/cupti_functions.h"
#undef PLAIT_CUPTI_FUNCTION
                                                   });
    return has_all ? &functions : nullptr;
  }();
  return chosen;
}

// Records of external numbers are written with those of calls, so calls are recorded too.
constexpr RecordKind kKinds[] = {kExternal, kDriverCall, kRuntimeCall, kKernel,
                                 kCopy,     kPeerCopy,   kFill};
constexpr size_t kBufferBytes = size_t(1) << 20;

// One moment by the clock of the host and by that of the records.
struct Moment {
  uint64_t host = 0, record = 0;
};

// What a device did.
struct DeviceWork {
  plait_activity_kind kind;
  const char *name;  // of a kernel; else NULL
  uint64_t begin, end, bytes;
  uint32_t device, stream, correlation;
};

// Times of the host's clock for those of records, from one moment at each end of a recording: the
// two clocks may differ in speed.
class TimeScale {
 public:
  TimeScale(Moment first, Moment last) : first_(first) {
    if (last.record > first.record && last.host > first.host)
      rate_ = double(last.host - first.host) / double(last.record - first.record);
  }
  uint64_t host_time(uint64_t record) const {
    const auto after = double(int64_t(record - first_.record));
    return first_.host + uint64_t(int64_t(after * rate_));
  }

 private:
  Moment first_;
  double rate_ = 1;
};

class CuptiClock final : public ActivityClock {
 public:
  plait_status start(plait_thread *thread, DLDevice device) override;
  plait_status stop(plait_thread *thread, DLDevice device,
                    void (*each)(void *arg, const plait_activity *), void *arg) override;
  void *begin(const QueuedWork &work) override;
  void end(void *token) override;
  void take_buffer(uint8_t *buffer, size_t valid_bytes);

 private:
  bool enable();
  void disable();
  Moment moment() const;
  void add(const Record &record);
  std::vector<DeviceWork> take_works(int device);
  plait_activity describe(const DeviceWork &work, const TimeScale &scale) const;

  const Functions *api_ = nullptr;
  uint32_t measured_ = 0;  // a bit for each device
  uint32_t default_streams_[kMaxDevices] = {};
  Moment first_;

  mutable ForkMutex mutex_;  // of what follows
  uint64_t first_number_ = 1;
  std::vector<QueuedWork> queued_;  // the number of each is first_number_ plus its index
  std::unordered_map<uint32_t, uint64_t> numbers_;  // by the correlation of a call
  std::vector<DeviceWork> works_;
};

CuptiClock &own_clock() {
  static auto *clock = new CuptiClock();  // used until the process ends
  return *clock;
}

void request_buffer(uint8_t **buffer, size_t *bytes, size_t *most_records) {
  *buffer = static_cast<uint8_t *>(malloc(kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // as many as there is room for
}
void complete_buffer(driver::Context, uint32_t, uint8_t *buffer, size_t, size_t valid_bytes) {
  own_clock().take_buffer(buffer, valid_bytes);
}

void CuptiClock::take_buffer(uint8_t *buffer, size_t valid_bytes) {
  try {
    const std::lock_guard<ForkMutex> hold(mutex_);
    Record *record = nullptr;
    while (buffer && api_->next_record(buffer, valid_bytes, &record) == kSuccess) add(*record);
  } catch (const std::bad_alloc &) {  // the profiler does not see the rest
  }
  free(buffer);
}

template <class T>
T read(const Record &record) {
  T result;
  memcpy(&result, &record, sizeof result);
  return result;
}

// Under the lock.
void CuptiClock::add(const Record &record) {
  DeviceWork work;
  switch (record.kind) {
    case kKernel: {
      const auto r = read<KernelRecord>(record);
      work = {PLAIT_ACTIVITY_KERNEL, r.name, r.begin, r.end, 0, r.device, r.stream, r.correlation};
      break;
    }
    case kCopy:
    case kFill: {
      const auto r = read<MemoryRecord>(record);
      const auto kind = r.kind == kFill ? PLAIT_ACTIVITY_FILL : PLAIT_ACTIVITY_COPY;
      work = {kind, nullptr, r.begin, r.end, r.bytes, r.device, r.stream, r.correlation};
      break;
    }
    case kPeerCopy: {
      const auto r = read<PeerCopyRecord>(record);
      work = {PLAIT_ACTIVITY_COPY, nullptr, r.begin, r.end, r.bytes, r.device, r.stream,
              r.correlation};
      break;
    }
    case kExternal: {
      const auto r = read<ExternalRecord>(record);
      if (r.whose == kCustom2) numbers_[r.correlation] = r.number;
      return;
    }
    default: return;
  }
  if (work.begin && work.end >= work.begin && work.device < kMaxDevices) works_.push_back(work);
}

// The two clocks are read one after the other; the quickest of a few tries counts.
Moment CuptiClock::moment() const {
  Moment best;
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < 8; i++) {
    uint64_t record = 0;
    const uint64_t before = monotonic_time();
    if (api_->timestamp(&record) != kSuccess) break;
    const uint64_t length = monotonic_time() - before;
    if (length >= shortest) continue;
    shortest = length;
    best = {before + length / 2, record};
  }
  return best;
}

void CuptiClock::disable() {
  for (const RecordKind kind : kKinds) api_->disable(kind);
}
bool CuptiClock::enable() {
  if (api_->register_buffers(request_buffer, complete_buffer) != kSuccess) return false;
  bool works = true;
  for (const RecordKind kind : kKinds) works = works && api_->enable(kind) == kSuccess;
  if (works) first_ = moment();
  if (works && first_.record) return true;
  disable();
  return false;
}

plait_status CuptiClock::start(plait_thread *, DLDevice device) {
  if (!measured_) {
    const Functions *api = library();
    if (!api) return PLAIT_DECLINE;
    {
      const std::lock_guard<ForkMutex> hold(mutex_);
      api_ = api;
      first_number_ += queued_.size();  // a number means one thing as long as the process lives
      queued_.clear(), numbers_.clear(), works_.clear();
    }
    if (!enable()) return PLAIT_DECLINE;
  }
  const int number = device.device_id;
  if (api_->stream_number(nullptr, nullptr, 0, &default_streams_[number]) != kSuccess)
    default_streams_[number] = UINT32_MAX;
  measured_ |= 1u << number;
  return PLAIT_OK;
}

void *CuptiClock::begin(const QueuedWork &work) {
  uint64_t number;
  try {
    const std::lock_guard<ForkMutex> hold(mutex_);
    number = first_number_ + queued_.size();
    queued_.push_back(work);
  } catch (const std::bad_alloc &) {  // the profiler does not know this one's operator
    return nullptr;
  }
  return api_->push(kCustom2, number) == kSuccess ? this : nullptr;
}
void CuptiClock::end(void *) {
  uint64_t last;
  api_->pop(kCustom2, &last);
}

// The work of a device, which leaves the list.
std::vector<DeviceWork> CuptiClock::take_works(int device) {
  std::vector<DeviceWork> result, others;
  const std::lock_guard<ForkMutex> hold(mutex_);
  for (const DeviceWork &work : works_)
    (int(work.device) == device ? result : others).push_back(work);
  works_.swap(others);
  return result;
}

plait_activity CuptiClock::describe(const DeviceWork &work, const TimeScale &scale) const {
  QueuedWork queued{};
  {
    const std::lock_guard<ForkMutex> hold(mutex_);
    const auto known = numbers_.find(work.correlation);
    const uint64_t index = known == numbers_.end() ? UINT64_MAX : known->second - first_number_;
    if (index < queued_.size()) queued = queued_[index];
  }
  plait_activity a{};
  a.size = sizeof a;
  a.kind = work.kind;
  a.launch = queued.launch;
  a.begin = scale.host_time(work.begin);
  a.end = scale.host_time(work.end);
  a.queued = queued.queued;
  a.stream = work.stream == default_streams_[work.device] ? 0 : uint64_t(work.stream) + 1;
  a.nbytes = work.bytes;
  a.name = work.name ? work.name : work.kind == PLAIT_ACTIVITY_FILL ? "fill" : "copy";
  a.device = DLDevice{kDLCUDA, int32_t(work.device)};
  return a;
}

plait_status CuptiClock::stop(plait_thread *thread, DLDevice device,
                              void (*each)(void *arg, const plait_activity *), void *arg) {
  measured_ &= ~(1u << device.device_id);
  const driver::Result result = driver::api.context_synchronize();
  if (!measured_) disable();
  const Status status = api_->flush(0);  // the device is idle, so its records are whole
  const TimeScale scale(first_, moment());
  const std::vector<DeviceWork> works = take_works(device.device_id);
  if (result == driver::kSuccess && status == kSuccess)
    for (const DeviceWork &work : works) {
      const plait_activity a = describe(work, scale);
      each(arg, &a);
    }
  return settle(thread, device, result, "waiting for the device");
}

}  // namespace

ActivityClock &cupti_clock() { return own_clock(); }

}  // namespace plait::cuda
