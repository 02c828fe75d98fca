// Errors that are found after the call has returned: what kernels report, and what the driver says.

#include <cstdio>
#include <string>
#include <utility>

#include "host/device.h"

namespace plait::cuda {
namespace {

ForkMutex &lock() {
  static auto *mutex = new ForkMutex();  // used until the process ends
  return *mutex;
}

// Names of arguments, by their place in the list plus one: kernels report numbers.
constexpr int kNameShift = 48;  // launches count below
constexpr uint64_t kMostNames = 1024;
std::atomic<const char *> names[kMostNames];

// The text that a report of a kernel means.
void describe(const FaultRecord *r, uint32_t code, plait_device_error *e) {
  const uint64_t place = r->launch >> kNameShift;
  const char *name = place ? names[place - 1].load() : nullptr;
  const std::string subject = name ? "`" + std::string(name) + "`" : "the values";
  e->code = PLAIT_VALUE_ERROR;
  if (code == kIndexFault) e->code = PLAIT_INDEX_ERROR;
  if (code == kSingularFault || code == kPivotFault) e->code = PLAIT_LINALG_ERROR;
  e->launch = r->launch & ((uint64_t(1) << kNameShift) - 1);
  if (code == kIndexFault)
    snprintf(e->text, sizeof e->text, "index %.0f is out of bounds: %s must be in [%.0f, %.0f)",
             r->value, subject.c_str(), r->low, r->high);
  else if (code == kSingularFault)
    snprintf(e->text, sizeof e->text,
             "matrix %.0f of the batch is singular: element %.0f of its diagonal is 0", r->value,
             r->low);
  else if (code == kPivotFault)
    snprintf(e->text, sizeof e->text, "%s must hold numbers from %.0f to %.0f; got %.0f",
             subject.c_str(), r->low, r->high, r->value);
  else if (r->high >= 1e300)
    snprintf(e->text, sizeof e->text, "%s must be in [%g, inf), so at least %g; got %g%s",
             subject.c_str(), r->low, r->low, r->value, r->value < 0 ? ", which is negative" : "");
  else
    snprintf(e->text, sizeof e->text, "%s must be in [%g, %g]; got %g%s", subject.c_str(), r->low,
             r->high, r->value, r->low == 0 && r->high == 1 ? " (probabilities are required)" : "");
}

// Takes the report of a kernel; the next one may be written then. Threads take turns, so that none
// reads what the next report writes. A kernel that still runs reports again: that is no new error.
bool take_report(DeviceState *s, plait_device_error *e) {
  const std::lock_guard<ForkMutex> hold(lock());
  FaultRecord *r = s->fault;
  const uint32_t code = __atomic_load_n(&r->code, __ATOMIC_ACQUIRE);
  if (!code) return false;
  describe(r, code, e);
  const bool is_new = !e->launch || s->reported.exchange(e->launch) != e->launch;
  __atomic_store_n(&r->code, 0u, __ATOMIC_RELAXED);
  __atomic_store_n(&r->claimed, 0u, __ATOMIC_RELEASE);
  return is_new;
}

// Errors of `note_failure`, by device; under the lock.
Raise &noted_failure(int device) {
  static auto *all = new Raise[kMaxDevices];
  return all[device];
}

int32_t take_error(void *, DLDevice device, plait_device_error *out) {
  DeviceState *s = state_if_used(device.device_id);
  if (!s) return 0;
  const int lost = s->lost.load(std::memory_order_relaxed);
  if (PLAIT_LIKELY(!lost && !__atomic_load_n(&s->fault->code, __ATOMIC_RELAXED))) return 0;
  plait_device_error e{};
  e.size = out->size < sizeof e ? out->size : sizeof e;
  if (!take_report(s, &e)) {
    if (!lost) return 0;  // another thread took the report, or this one did before
    e = plait_device_error{};
    e.size = out->size < sizeof e ? out->size : sizeof e;
    const char *text = nullptr;
    if (driver::api.error_text(driver::Result(lost), &text) != driver::kSuccess || !text)
      text = "unknown error";
    e.code = PLAIT_ERROR, e.fatal = 1;
    snprintf(e.text, sizeof e.text, "%s (error %d of the driver)", text, lost);
  }
  memcpy(out, &e, e.size);
  return 1;
}

}  // namespace

uint64_t tagged(uint64_t launch, const char *argument) {
  if (!argument) return launch;
  uint64_t i = reinterpret_cast<uintptr_t>(argument) / 8 % kMostNames;
  for (uint64_t tries = 0; tries < kMostNames; tries++, i = (i + 1) % kMostNames) {
    const char *other = names[i].load(std::memory_order_relaxed);
    if (other == argument || (!other && names[i].compare_exchange_strong(other, argument)) ||
        other == argument)
      return launch | (i + 1) << kNameShift;
  }
  return launch;
}

void note_failure(DLDevice device, Raise raise) {
  DeviceState *s = state_if_used(device.device_id);
  if (!s) return;
  const std::lock_guard<ForkMutex> hold(lock());
  noted_failure(device.device_id) = std::move(raise);
  s->noted.store(true);
}

plait_status raise_noted(plait_thread *thread, DLDevice device) {
  DeviceState *s = state_if_used(device.device_id);
  if (PLAIT_LIKELY(!s || !s->noted.load(std::memory_order_relaxed))) return PLAIT_OK;
  Raise raise;
  {
    const std::lock_guard<ForkMutex> hold(lock());
    if (!s->noted.exchange(false)) return PLAIT_OK;  // another thread took it
    raise = std::exchange(noted_failure(device.device_id), nullptr);
  }
  return raise(thread);
}

void add_faults(plait_device &t) { t.take_error = take_error; }

}  // namespace plait::cuda
