// The numbers of calls on a device, and the errors that a device reports after such a call has
// returned. An error belongs to the thread that made the call, where it is raised in any case, and
// to the stream of the call: it is also raised once in another thread that waits for that stream,
// or for one that has waited for it.
#include <algorithm>

#include "devices.hpp"
#include "frame.hpp"

namespace plait::abi {
namespace {

constexpr uint64_t kRememberedLaunches = 1024;  // whose operators an error may name
constexpr int kMostAtOnce = 64;  // errors that are taken from a device at one call

struct Launch {
  std::atomic<uint64_t> number;  // written last
  std::atomic<const plait_op *> op, composite;
  std::atomic<uint64_t> thread;
  std::atomic<const plait_stream *> stream;  // to compare with: it may be freed
};

// An error that was not raised yet in the thread that made the call.
struct LateError {
  plait_device_error error;
  DLDevice device;
  std::string names;  // of the operators
  uint64_t thread;  // Thread::number; 0: not known, or the thread has ended
  const plait_stream *stream;  // as in Launch
  bool raised;  // in another thread
};

// A stream that has waited for another one of its device.
struct Behind {
  int32_t device;
  const plait_stream *waiter, *source;  // to compare with; NULL: the default stream
  uint64_t launch;  // the last one before the event
};

struct Launches {
  std::atomic<uint64_t> last;
  std::atomic<uint64_t> reached;  // the last one before an event that is known to be reached
  Launch ring[kRememberedLaunches];
  ProcessLock lock;  // of the lists
  std::vector<LateError> errors;
  std::vector<Behind> waits;
  std::atomic<size_t> n_errors;
};
// never destroyed: threads of devices may work while the process ends
Launches *const of_type = new Launches[PLAIT_MAX_DEVICE_TYPES]();

const Launch *find(DLDevice d, uint64_t number) {
  const Launch &at = of_type[d.device_type].ring[number % kRememberedLaunches];
  return number && at.number.load(std::memory_order_acquire) == number ? &at : nullptr;
}

const std::string &base_of(const plait_op *op) { return static_cast<const Op *>(op)->parsed.base; }

// "layer_norm: mul", of a composite that was called and the part that found the error; internal
// operators are not named.
std::string names_of(const Launch &at) {
  const plait_op *op = at.op, *composite = at.composite;
  if (!composite || composite == op) return base_of(op);
  if (op->flags & PLAIT_OP_INTERNAL) return base_of(composite);
  return base_of(composite) + ": " + base_of(op);
}

// The operators that were launched behind the last event that is known to be reached.
std::string launched_since(DLDevice d) {
  const Launches &launches = of_type[d.device_type];
  const uint64_t last = launches.last;
  uint64_t n = launches.reached;
  std::string names;
  if (last - n > kRememberedLaunches) n = last - kRememberedLaunches, names = "...";
  while (n < last) {
    const Launch *at = find(d, ++n);
    if (at) names += (names.empty() ? "" : ", ") + std::string(at->op.load()->name);
  }
  return names.empty() ? "nothing" : names;
}

constexpr int kLongestChain = 8;  // of streams that wait for one another

// Whether a stream has waited, by others between them or not, for a launch of another one.
bool is_behind(const Launches &launches, const plait_stream *stream, const LateError &e,
               int chain = 0) {
  if (stream == e.stream) return true;
  if (chain == kLongestChain) return false;
  return std::any_of(launches.waits.begin(), launches.waits.end(), [&](const Behind &b) {
    return b.waiter == stream && b.device == e.device.device_id && b.launch >= e.error.launch &&
           is_behind(launches, b.source, e, chain + 1);
  });
}

bool concerns(const LateError &e, const plait_thread *thread, DLDevice d, Waits waits,
              const plait_stream *stream) {
  if (!same(e.device, d)) return false;
  if (!e.thread || e.thread == static_cast<const Thread *>(thread)->number) return true;
  if (e.raised) return false;
  return waits == Waits::device ||
         (waits == Waits::stream && is_behind(of_type[d.device_type], stream, e));
}

// The origin is left out: a call that finds the error in one of its parts is not its cause.
plait_status raise_late(plait_thread *thread, const LateError &e) {
  const std::string names = e.names.empty() ? "" : e.names + ": ", device = device_text(e.device);
  const plait_status code = is_own_code(e.error.code) ? e.error.code : PLAIT_ERROR;
  if (e.error.fatal)
    return raise(thread, code, nullptr,
                 "%s%s failed and does no more work: %s; launched since the last event that was "
                 "reached: %s",
                 names.c_str(), device.c_str(), e.error.text, launched_since(e.device).c_str());
  return raise(thread, code, nullptr, "%s%s (found by %s after the call had returned)",
               names.c_str(), e.error.text, device.c_str());
}

// Takes the oldest error from the device.
bool take(const plait_device *table, DLDevice d, LateError *out) {
  *out = LateError{};
  out->error.size = sizeof out->error;
  if (!table->take_error(table->ctx, d, &out->error)) return false;
  out->error.text[sizeof out->error.text - 1] = 0;
  out->device = d;
  if (const Launch *at = find(d, out->error.launch)) {
    out->names = names_of(*at);
    out->thread = is_alive(at->thread) ? at->thread.load() : 0;
    out->stream = at->stream;
  }
  return true;
}

// Raises the oldest error in the list that concerns the thread. It stays there until it is raised
// in its own thread.
plait_status raise_kept(plait_thread *thread, DLDevice d, Waits waits, const plait_stream *stream) {
  Launches &launches = of_type[d.device_type];
  if (!launches.n_errors.load(std::memory_order_acquire)) return PLAIT_OK;
  LateError e{};
  {
    const std::lock_guard<ProcessLock> lock(launches.lock);
    const auto at = std::find_if(
        launches.errors.begin(), launches.errors.end(),
        [&](const LateError &each) { return concerns(each, thread, d, waits, stream); });
    if (at == launches.errors.end()) return PLAIT_OK;
    e = *at;
    at->raised = true;
    if (!e.thread || e.thread == static_cast<Thread *>(thread)->number) launches.errors.erase(at);
    launches.n_errors = launches.errors.size();
  }
  return raise_late(thread, e);
}

}  // namespace

uint64_t launch(plait_thread *t, const plait_op *op, DLDevice d, const plait_stream *stream) {
  const auto *thread = static_cast<const Thread *>(t);
  Launches &launches = of_type[d.device_type];
  const uint64_t number = ++launches.last;
  Launch &at = launches.ring[number % kRememberedLaunches];
  at.op.store(op, std::memory_order_relaxed);
  at.composite.store(thread->composite, std::memory_order_relaxed);
  at.thread.store(thread->number, std::memory_order_relaxed);
  at.stream.store(stream, std::memory_order_relaxed);
  at.number.store(number, std::memory_order_release);
  return number;
}

plait_status note_wait(plait_thread *thread, DLDevice d, const plait_stream *waiter,
                       const plait_stream *source, uint64_t launch) {
  if (waiter == source) return PLAIT_OK;
  return border(thread, nullptr, [&]() -> plait_status {
    Launches &launches = of_type[d.device_type];
    const std::lock_guard<ProcessLock> lock(launches.lock);
    for (Behind &b : launches.waits)
      if (b.waiter == waiter && b.source == source && b.device == d.device_id)
        return b.launch = std::max(b.launch, launch), PLAIT_OK;
    launches.waits.push_back({d.device_id, waiter, source, launch});
    return PLAIT_OK;
  });
}

void forget_stream(const plait_stream *s) {
  Launches &launches = of_type[s->device.device_type];
  const std::lock_guard<ProcessLock> lock(launches.lock);
  auto &list = launches.waits;
  list.erase(std::remove_if(list.begin(), list.end(),
                            [s](const Behind &b) { return b.waiter == s || b.source == s; }),
             list.end());
}

uint64_t last_launch(DLDevice d) { return of_type[d.device_type].last; }

void reach(DLDevice d, uint64_t launch) {
  std::atomic<uint64_t> &reached = of_type[d.device_type].reached;
  uint64_t seen = reached;
  while (seen < launch && !reached.compare_exchange_weak(seen, launch)) {
  }
}

plait_status late_error(plait_thread *thread, DLDevice d, Waits waits, const plait_stream *stream) {
  const plait_device *table = device_table(d);
  if (!table || !PLAIT_HAS(plait_device, table, take_error)) return PLAIT_OK;
  return border(thread, nullptr, [&]() -> plait_status {
    Launches &launches = of_type[d.device_type];
    LateError e;
    for (int i = 0; i < kMostAtOnce && take(table, d, &e); i++) {
      if (e.error.fatal) return raise_late(thread, e);  // in every call, for ever
      const std::lock_guard<ProcessLock> lock(launches.lock);
      launches.errors.push_back(e);
      launches.n_errors = launches.errors.size();
      if (concerns(e, thread, d, waits, stream)) break;
    }
    return raise_kept(thread, d, waits, stream);
  });
}

void forget_thread(uint64_t number) {
  for (int32_t type = 0; type < PLAIT_MAX_DEVICE_TYPES; type++) {
    Launches &launches = of_type[type];
    if (!launches.n_errors.load(std::memory_order_acquire)) continue;
    const std::lock_guard<ProcessLock> lock(launches.lock);
    auto &list = launches.errors;
    for (LateError &e : list)
      if (e.thread == number) e.thread = 0;
    list.erase(std::remove_if(list.begin(), list.end(),
                              [](const LateError &e) { return !e.thread && e.raised; }),
               list.end());
    launches.n_errors = list.size();
  }
}

}  // namespace plait::abi
