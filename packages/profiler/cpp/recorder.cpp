#include "recorder.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace plait::profiler {
namespace {

constexpr size_t most_texts = 1 << 16;  // limit of distinct names and shapes in a ring

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

std::atomic<uint64_t> last_session{0};

// The ring of this thread in the session that it wrote to last.
struct Current {
  uint64_t session = 0;
  std::shared_ptr<Ring> ring;
};
thread_local Current current;

void append_shape(std::string &text, const plait_tensor *t) {
  text += '[';
  for (int32_t i = 0; t && i < t->dl.ndim; i++)
    text += (i ? ", " : "") + std::to_string(t->dl.shape[i]);
  text += ']';
}

// One list for each argument: a shape, a list of shapes for Tensor[], empty for other arguments
// than tensors.
std::string shapes_of(const plait_call *call) {
  std::string text = "[";
  for (uint16_t i = 0; i < call->n_in; i++) {
    const plait_value &v = call->in[i];
    if (i) text += ", ";
    if (v.tag != PLAIT_TENSORS) {
      append_shape(text, v.tag == PLAIT_TENSOR ? v.u.t : nullptr);
      continue;
    }
    text += '[';
    for (uint32_t k = 0; k < v.n; k++) {
      if (k) text += ", ";
      append_shape(text, v.u.ts[k]);
    }
    text += ']';
  }
  return text + "]";
}

}  // namespace

// Rings.

void Ring::push(const Record &record) {
  if (records_.size() < capacity_)
    records_.push_back(record);
  else
    records_[count_ % capacity_] = record;
  count_++;
}

const char *Ring::keep(const std::string &text) {
  if (texts_.size() >= most_texts && !texts_.count(text)) return "(too many names)";
  return texts_.insert(text).first->c_str();
}

void Ring::copy(Record *to) const {
  const size_t oldest = count_ > records_.size() ? count_ % capacity_ : 0;
  const auto middle = records_.begin() + std::ptrdiff_t(oldest);
  std::copy(records_.begin(), middle, std::copy(middle, records_.end(), to));
}

// Callbacks for the runtime.

void Recorder::begin(void *self, const plait_event *e, uint64_t *token) {
  const uint64_t t = now();
  if (token)
    *token = t;
  else  // ALLOC and FREE have no end
    static_cast<Recorder *>(self)->add(e, t, t, PLAIT_OK);
}

void Recorder::end(void *self, const plait_event *e, uint64_t token, plait_status status) {
  static_cast<Recorder *>(self)->add(e, token, now(), status);
}

const std::shared_ptr<Ring> &Recorder::ring() {
  const uint64_t session = session_;
  if (current.session != session) {
    const auto thread = uint64_t(syscall(SYS_gettid));
    const std::lock_guard<ProcessLock> lock(mutex_);
    const auto known = std::find_if(rings_.begin(), rings_.end(),
                                    [&](const auto &r) { return r->thread == thread; });
    current.ring = known == rings_.end() ? std::make_shared<Ring>(capacity_, thread) : *known;
    if (known == rings_.end()) rings_.push_back(current.ring);
    current.session = session;
  }
  return current.ring;
}

void Recorder::add(const plait_event *e, uint64_t start, uint64_t end, plait_status status) {
  if (!on_ || start < begun_) return;
  const std::shared_ptr<Ring> *ring;
  try {
    ring = &this->ring();
  } catch (const std::bad_alloc &) {
    lost_++;  // without memory the event is dropped, so that profiling never ends the program
    return;
  }
  // sequentially consistent, like `on_`: stop() waits for threads that saw `on_` set
  (*ring)->writing = true;
  if (on_) record(**ring, e, start, end, status);
  (*ring)->writing = false;
}

void Recorder::record(Ring &ring, const plait_event *e, uint64_t start, uint64_t end,
                      plait_status status) const {
  try {
    Record r{start, end, nullptr, nullptr, e->a, e->b, e->kind, status, ring.thread};
    if (e->kind == PLAIT_EVENT_OP) {
      r.name = e->name;  // operators live as long as the process
      if (shapes_ && e->call) r.shapes = ring.keep(shapes_of(e->call));
    } else if (e->name) {
      r.name = ring.keep(e->name);
    }
    ring.push(r);
  } catch (const std::bad_alloc &) {
    ring.miss();
  }
}

// Sessions.

plait_status Recorder::start(const plait_runtime *runtime, uint64_t kinds, uint64_t capacity,
                             bool shapes) {
  clear();
  capacity_ = capacity;
  shapes_ = shapes;
  session_ = ++last_session;
  begun_ = now();
  on_ = true;
  // an event of an old session may still use the observer, so only `kinds` changes
  __atomic_store_n(&observer_.kinds, kinds, __ATOMIC_RELAXED);
  const plait_status status = runtime->observe(runtime->thread(), &observer_, 1);
  if (status < 0) on_ = false;
  return status;
}

void Recorder::stop(const plait_runtime *runtime) {
  runtime->observe(runtime->thread(), &observer_, 0);
  on_ = false;
  const std::lock_guard<ProcessLock> lock(mutex_);
  for (const auto &ring : rings_)
    while (ring->writing) sched_yield();
}

uint64_t Recorder::size() const {
  const std::lock_guard<ProcessLock> lock(mutex_);
  uint64_t n = 0;
  for (const auto &ring : rings_) n += ring->size();
  return n;
}

uint64_t Recorder::dropped() const {
  const std::lock_guard<ProcessLock> lock(mutex_);
  uint64_t n = lost_;
  for (const auto &ring : rings_) n += ring->dropped();
  return n;
}

void Recorder::copy(Record *to) const {
  const std::lock_guard<ProcessLock> lock(mutex_);
  for (const auto &ring : rings_) {
    ring->copy(to);
    to += ring->size();
  }
}

void Recorder::clear() {
  const std::lock_guard<ProcessLock> lock(mutex_);
  rings_.clear();
  lost_ = 0;
}

}  // namespace plait::profiler
