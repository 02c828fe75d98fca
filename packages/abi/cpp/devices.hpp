// What the runtime keeps of devices other than the CPU; shared by dispatch, memory and copies.
#pragma once
#include "runtime.hpp"

namespace plait::abi {

struct Frame;

// The table of the device's type, or nullptr.
inline const plait_device *device_table(DLDevice d) {
  return is_accelerator(d) ? in_force(roles.device[d.device_type]) : nullptr;
}

// A device that was used before a fork is gone in the child, and so is one whose plug-in was
// stopped at the end of the process: none of its functions is called. `begin_use` refuses it, and
// one whose number is too large; each call, allocation, stream and event begins with it.
plait_status begin_use(plait_thread *, DLDevice);
void start_use(int32_t device_type);
void end_use(int32_t device_type);
bool is_gone(DLDevice);
plait_status gone(plait_thread *, DLDevice);       // the error
plait_status no_device(plait_thread *, DLDevice);  // the error if no component provides it

// A status of the device's function `function`: errors without a text get one. `before` was the
// thread's error when it was called.
plait_status complete_error(plait_thread *, DLDevice, const char *function, plait_status,
                            const plait_error *before);

// Calls the device's function `function`; see `complete_error`.
template <class F>
plait_status call_device(plait_thread *thread, DLDevice d, const char *function, F &&call) {
  const plait_error *before = thread->error;
  return complete_error(thread, d, function, call(), before);
}

// The number of storages, streams and events that a device type has.
void count_live(DLDevice, int64_t change);
int64_t live_on(int32_t device_type);

// Before a call on a device: its stream, and the errors of earlier calls.
plait_status enter_device(plait_call *);

plait_stream *current_stream(plait_thread *, DLDevice);  // borrowed

// Keeps memory of the host alive until the work that is in the stream is done; `let_go` releases
// what is.
plait_status keep_until_done(plait_thread *, DLDevice, plait_stream *, plait_storage *);
void let_go(plait_thread *, DLDevice);

// Waits for a device without the host language's lock: its work may need that.
template <class F>
plait_status unlocked(F wait) {
  struct Job {
    F *wait;
    plait_status status;
  } job{&wait, PLAIT_ERROR};
  const auto run = [](void *arg) {
    auto *j = static_cast<Job *>(arg);
    j->status = (*j->wait)();
  };
  if (const plait_host *host = in_force(roles.host))
    host->unlocked(host->ctx, run, &job);
  else
    run(&job);
  return job.status;
}

// From waits.cpp. A device's own function, which waits to the end, is called behind each of these.
// They are called without the host language's lock, and fail only where a signal of it (Ctrl-C)
// waits.

// Returns when the event is reached.
plait_status until_reached(plait_thread *, const plait_device *, plait_device_event *);
// Returns when what is in the stream now is done.
plait_status until_done(plait_thread *, const plait_device *, DLDevice, plait_stream *);
// An event behind what is in the stream now, or nullptr if that is done or cannot be queried.
plait_status event_behind(plait_thread *, const plait_device *, DLDevice, plait_stream *,
                          plait_device_event **);

// From late_errors.cpp.

// Gives a call on a device its number.
uint64_t launch(plait_thread *, const plait_op *, DLDevice, const plait_stream *);
// A stream has waited for another one, up to this launch; an error of that is an error of both.
plait_status note_wait(plait_thread *, DLDevice, const plait_stream *waiter,
                       const plait_stream *source, uint64_t launch);
void forget_stream(const plait_stream *);
uint64_t last_launch(DLDevice);
// All launches up to this one are done.
void reach(DLDevice, uint64_t launch);

// What the thread has waited for; errors of other threads' calls there are raised, too.
enum class Waits { no, stream, device };
// The error of an earlier call, or PLAIT_OK.
plait_status late_error(plait_thread *, DLDevice, Waits, const plait_stream * = nullptr);

// From copies.cpp.

// copy_ where its tensors are on two devices.
plait_status copy_across(Frame *);

// From fallback.cpp.

bool falls_back(DLDevice);
// Runs a call of a device on the CPU, on copies.
plait_status run_on_cpu(plait_call *);

}  // namespace plait::abi
