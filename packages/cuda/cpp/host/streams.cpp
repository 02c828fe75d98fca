// Streams, events and copies. NULL is the driver's default stream; ours do not wait for it.
#include "host/activity.h"
#include "host/capture.h"
#include "host/device.h"

namespace plait::cuda {
namespace {

using driver::api;

// The result of a wait of the host: an error of the driver, or one that was noted meanwhile.
plait_status settle_wait(plait_thread *thread, DLDevice device, driver::Result result,
                         const char *what) {
  PLAIT_TRY(settle(thread, device, result, what));
  return raise_noted(thread, device);
}

// Copies ------------------------------------------------------------------------------------------

plait_status copy_between(plait_thread *thread, driver::Address to, DLDevice there,
                          driver::Address from, DLDevice here, uint64_t nbytes,
                          driver::Stream stream) {
  const DeviceState *other = state_of(thread, there.device_id);
  if (!other) return thread->error ? thread->error->code : PLAIT_ERROR;
  PLAIT_TRY(use(thread, here));
  PLAIT_CUDA(
      thread, here, "copying between devices",
      copy_to_peer(to, other->context, from, used_state(here.device_id).context, nbytes, stream));
  return PLAIT_OK;
}

// Puts a copy into a stream. One to the host that finds the device lost is no error here: the
// runtime asks for errors behind it, and names what was in flight.
plait_status put_copy(plait_thread *thread, void *to, DLDevice there, const void *from,
                      DLDevice here, uint64_t nbytes, driver::Stream stream) {
  const auto target = driver::Address(to), source = driver::Address(from);
  if (here.device_type == kDLCPU) {
    PLAIT_CUDA(thread, there, "copying to the device",
               copy_to_device(target, from, nbytes, stream));
  } else if (there.device_type == kDLCPU) {
    return settle_wait(thread, here, api.copy_to_host(to, source, nbytes, stream),
                       "copying from the device");
  } else if (here.device_id == there.device_id) {
    PLAIT_CUDA(thread, here, "copying on the device",
               copy_on_device(target, source, nbytes, stream));
  } else {
    return copy_between(thread, target, there, source, here, nbytes, stream);
  }
  return PLAIT_OK;
}

plait_status copy(void *, plait_thread *thread, void *to, DLDevice there, const void *from,
                  DLDevice here, uint64_t nbytes, plait_stream *s, uint64_t flags) try {
  if (!nbytes) return PLAIT_OK;
  const bool to_host = there.device_type == kDLCPU, from_host = here.device_type == kDLCPU;
  const DLDevice device = from_host ? there : here;
  PLAIT_TRY(use(thread, device));
  const driver::Stream stream = native(s);
  {
    const Activity measure(device, stream, PLAIT_ACTIVITY_COPY, "copy", 0, nbytes);
    PLAIT_TRY(put_copy(thread, to, there, from, here, nbytes, stream));
  }
  if (flags & PLAIT_COPY_ASYNC && (to_host || from_host)) {
    keep_for_graph(device, stream, to_host ? to : from);
    return PLAIT_OK;
  }
  if (!(to_host || from_host)) return PLAIT_OK;
  const driver::Result result = api.stream_synchronize(stream);
  if (to_host) return settle_wait(thread, device, result, "waiting for a copy");
  return result == driver::kSuccess ? plait_status(PLAIT_OK)
                                    : fail_on(thread, device, result, "waiting for a copy");
} catch (const std::bad_alloc &) {
  return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda", "out of memory for a graph");
}

// Streams -----------------------------------------------------------------------------------------

plait_status synchronize(void *, plait_thread *thread, DLDevice device) {
  PLAIT_TRY(use(thread, device));
  return settle_wait(thread, device, api.context_synchronize(), "waiting for the device");
}
plait_status stream_synchronize(void *, plait_thread *thread, DLDevice device, plait_stream *s) {
  PLAIT_TRY(use(thread, device));
  return settle_wait(thread, device, api.stream_synchronize(native(s)), "waiting for a stream");
}

plait_status stream_new(void *, plait_thread *thread, plait_stream *s) {
  PLAIT_TRY(use(thread, s->device));
  driver::Stream stream;
  PLAIT_CUDA(thread, s->device, "creating a stream",
             stream_create(&stream, driver::kStreamNonBlocking, s->priority));
  s->native = stream;
  return PLAIT_OK;
}
void stream_free(void *, plait_stream *s) {
  if (use_quietly(s->device)) api.stream_destroy(native(s));
}

// Work of a device that is lost counts as done, as no wait for it would end; see `settle`.
plait_status query(plait_thread *thread, DLDevice device, driver::Result result, int32_t *done) {
  *done = result != driver::kNotReady;
  if (result == driver::kNotReady) return PLAIT_OK;
  return settle(thread, device, result, "asking for the state of work");
}
plait_status stream_query(void *, plait_thread *thread, DLDevice device, plait_stream *s,
                          int32_t *done) {
  PLAIT_TRY(use(thread, device));
  return query(thread, device, api.stream_query(native(s)), done);
}

plait_status priorities(void *, plait_thread *thread, DLDevice device, int32_t *lowest,
                        int32_t *highest) {
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "asking for priorities", stream_priorities(lowest, highest));
  return PLAIT_OK;
}

// Events ------------------------------------------------------------------------------------------

driver::Event event_of(const plait_device_event *e) {
  return static_cast<driver::Event>(e->native);
}

plait_status event_new(void *, plait_thread *thread, plait_device_event *e) {
  PLAIT_TRY(use(thread, e->device));
  unsigned flags = e->flags & PLAIT_EVENT_TIMED ? 0u : unsigned(driver::kEventNoTiming);
  if (e->flags & PLAIT_EVENT_SHARED) flags |= driver::kEventInterprocess;
  driver::Event event;
  PLAIT_CUDA(thread, e->device, "creating an event", event_create(&event, flags));
  e->native = event;
  return PLAIT_OK;
}
void event_free(void *, plait_device_event *e) {
  if (use_quietly(e->device)) api.event_destroy(event_of(e));
}
plait_status event_record(void *, plait_thread *thread, plait_device_event *e, plait_stream *s) {
  PLAIT_TRY(use(thread, e->device));
  PLAIT_CUDA(thread, e->device, "recording an event", event_record(event_of(e), native(s)));
  return PLAIT_OK;
}
plait_status event_query(void *, plait_thread *thread, plait_device_event *e, int32_t *done) {
  PLAIT_TRY(use(thread, e->device));
  return query(thread, e->device, api.event_query(event_of(e)), done);
}
plait_status event_wait(void *, plait_thread *thread, plait_device_event *e) {
  PLAIT_TRY(use(thread, e->device));
  return settle_wait(thread, e->device, api.event_synchronize(event_of(e)), "waiting for an event");
}
plait_status stream_wait(void *, plait_thread *thread, DLDevice device, plait_stream *s,
                         plait_device_event *e) {
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "waiting for an event in a stream",
             stream_wait(native(s), event_of(e), 0));
  return PLAIT_OK;
}
plait_status event_elapsed(void *, plait_thread *thread, plait_device_event *from,
                           plait_device_event *to, double *milliseconds) {
  PLAIT_TRY(use(thread, from->device));
  float time = 0;
  PLAIT_CUDA(thread, from->device, "reading the time between events",
             event_elapsed(&time, event_of(from), event_of(to)));
  *milliseconds = double(time);
  return PLAIT_OK;
}

}  // namespace

void add_streams(plait_device &t) {
  t.copy = copy;
  t.synchronize = synchronize;
  t.stream_synchronize = stream_synchronize;
  t.stream_new = stream_new;
  t.stream_free = stream_free;
  t.stream_query = stream_query;
  t.priorities = priorities;
  t.event_new = event_new;
  t.event_free = event_free;
  t.event_record = event_record;
  t.event_query = event_query;
  t.event_wait = event_wait;
  t.stream_wait = stream_wait;
  t.event_elapsed = event_elapsed;
}

}  // namespace plait::cuda
