// Waits for a device that a signal of the host language (Ctrl-C) can end. A device's own functions
// wait to the end, so they are called when what they wait for is known to be done.
#include <algorithm>
#include <chrono>
#include <thread>

#include "devices.hpp"

namespace plait::abi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr microseconds kSpin{200};  // a short wait does not sleep
constexpr microseconds kShortest{20}, kLongest{10'000};  // one sleep
constexpr int kShare = 64;  // a sleep is this part of the time that has passed
constexpr milliseconds kSignals{50};  // between two looks for a signal

plait_status interrupted(plait_thread *thread) {
  const plait_host *host = in_force(roles.host);
  if (!host || !host->interrupted(host->ctx)) return PLAIT_OK;
  return thread->error ? thread->error->code
                       : raise(thread, PLAIT_ERROR, nullptr, "the wait was interrupted");
}

}  // namespace

plait_status until_reached(plait_thread *thread, const plait_device *table,
                           plait_device_event *event) {
  if (!table->event_new || !in_force(roles.host)) return PLAIT_OK;
  const Clock::time_point begin = Clock::now();
  Clock::time_point looked = begin;
  for (;;) {
    int32_t done = 1;
    // the wait that follows reports the error
    if (table->event_query(table->ctx, thread, event, &done) < 0) return clear(thread), PLAIT_OK;
    if (done) return PLAIT_OK;
    const Clock::time_point now = Clock::now();
    if (now - looked >= kSignals) {
      if (const plait_status s = interrupted(thread); s < 0) return s;
      looked = now;
    }
    const auto waited = std::chrono::duration_cast<microseconds>(now - begin);
    if (waited < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::clamp(waited / kShare, kShortest, kLongest));
  }
}

plait_status event_behind(plait_thread *thread, const plait_device *table, DLDevice d,
                          plait_stream *stream, plait_device_event **out) {
  *out = nullptr;
  if (!table->event_new || !in_force(roles.host)) return PLAIT_OK;
  int32_t done = 0;
  plait_status s = table->stream_query(table->ctx, thread, d, stream, &done);
  if (s >= 0 && done) return PLAIT_OK;
  if (s >= 0) s = event_new(thread, d, 0, out);
  if (s >= 0) s = event_record(thread, *out, stream);
  if (s < 0) {
    plait_release(*out);
    *out = nullptr;
  }
  return s;
}

plait_status until_done(plait_thread *thread, const plait_device *table, DLDevice d,
                        plait_stream *stream) {
  plait_device_event *event = nullptr;
  plait_status s = event_behind(thread, table, d, stream, &event);
  if (s < 0) return clear(thread), PLAIT_OK;
  if (event) s = until_reached(thread, table, event);
  plait_release(event);
  return s;
}

}  // namespace plait::abi
