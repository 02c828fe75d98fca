#include "host/nccl_group.h"

#include <unistd.h>

#include <algorithm>

#include "host/activity.h"
#include "host/nccl_calls.h"
#include "host/nccl_control.h"

namespace plait::cuda::nccl {
namespace {

using collectives::Collective;
using collectives::Explanation;
using collectives::now;
using collectives::Outcome;
using driver::api;

plait_status fail_with(plait_thread *thread, const char *caller, Result result, Comm comm) {
  return thread->runtime->raise(thread, PLAIT_ERROR, caller, "%s",
                                error_text(result, comm).c_str());
}

}  // namespace

Operation::~Operation() {
  if (done && use_quietly(device)) api.event_destroy(done);
}

Group::Group(plait_communicator *control, double timeout)
    : control_(control),
      rank_(control->rank),
      size_(control->size),
      timeout_(timeout),
      pid_(getpid()),
      others_(control->size, nullptr),
      left_(control->size, 0) {}

Group::~Group() { plait_release(control_); }

// Starting ----------------------------------------------------------------------------------------

plait_status Group::raise_failure(plait_thread *thread, const char *caller) {
  Failure failure;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    failure = failure_;
  }
  told_ = true;
  return collectives::status_of(thread, caller, failure.outcome, failure.text);
}

plait_status Group::start(plait_thread *thread, const Collective &c, double timeout,
                          plait_stream *stream, bool waits, OperationPtr *out) {
  const char *const kind = collectives::kind_name(c.kind);
  if (failed_) return raise_failure(thread, kind);
  if (c.kind == PLAIT_BARRIER) {
    *out = std::make_shared<Operation>(kind, DLDevice{kDLCPU, 0}, timeout);
    return barrier(thread, timeout);
  }
  PLAIT_TRY(check_reduction(thread, c));
  const DLDevice device = (c.n_in ? c.in[0] : c.out[0])->dl.device;
  PLAIT_TRY(use(thread, device));
  int capturing = 0;
  PLAIT_CUDA(thread, device, kind, capture_status(native(stream), &capturing));
  if (capturing)
    return runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, kind,
                          "collectives cannot be recorded in a graph; call it outside");
  const auto operation = std::make_shared<Operation>(kind, device, timeout);
  const std::lock_guard<std::mutex> hold(launching_);
  Channel channel;
  PLAIT_TRY(channel_of(thread, c, device, &channel));
  PLAIT_TRY(launch(thread, c, channel, stream, waits, *operation));
  *out = operation;
  const std::lock_guard<std::mutex> hold_list(mutex_);
  start_watching();
  running_.push_back(operation);
  changed_.notify_all();
  return PLAIT_OK;
}

// The control group's barrier, behind the work that this member has put into streams.
plait_status Group::barrier(plait_thread *thread, double timeout) {
  collectives::Signals signals(thread);
  for (;;) {
    std::unique_lock<std::mutex> hold(mutex_);
    if (running_.empty()) break;
    changed_.wait_for(hold, kPause);
    hold.unlock();
    if (failed_ && failure_.since + 2 * kGrace < now()) break;
    if (signals.asked()) {  // it may wait for the interpreter's lock
      abort("barrier", true);
      break;
    }
  }
  if (failed_) return raise_failure(thread, "barrier");
  plait_collective c{};
  c.size = sizeof c, c.kind = PLAIT_BARRIER, c.timeout = timeout;
  return control_->table->start(control_->table->ctx, thread, control_, &c, nullptr, nullptr);
}

plait_status Group::launch(plait_thread *thread, const Collective &c, const Channel &channel,
                           plait_stream *stream, bool waits, Operation &operation) {
  const DLDevice device = channel.device;
  const char *const kind = operation.kind;
  driver::Event before = nullptr;
  PLAIT_CUDA(thread, device, kind, event_create(&before, driver::kEventNoTiming));
  driver::Result result = api.event_record(before, native(stream));
  if (!result) result = api.stream_wait(channel.stream, before, 0);
  api.event_destroy(before);
  if (result) return fail_on(thread, device, result, kind);
  PLAIT_CUDA(thread, device, kind, event_create(&operation.done, driver::kEventNoTiming));
  {
    const Activity measure(device, channel.stream, PLAIT_ACTIVITY_KERNEL, kind, 0);
    if (const Result r = put(c, rank(), size(), channel))
      return fail_with(thread, kind, r, channel.comm);
  }
  PLAIT_CUDA(thread, device, kind, event_record(operation.done, channel.stream));
  if (!waits) return PLAIT_OK;
  operation.awaited = true;
  PLAIT_CUDA(thread, device, kind, stream_wait(native(stream), operation.done, 0));
  for (uint32_t i = 0; i < c.n_in; i++) runtime->record_use(c.in[i]->storage, stream);
  for (uint32_t i = 0; i < c.n_out; i++) runtime->record_use(c.out[i]->storage, stream);
  return PLAIT_OK;
}

// Communicators of NCCL ---------------------------------------------------------------------------

plait_status Group::channel_of(plait_thread *thread, const Collective &c, DLDevice device,
                               Channel *out) {
  Route route;
  if (c.kind == PLAIT_SEND) route = {int64_t(rank()), int64_t(c.root)};
  if (c.kind == PLAIT_RECEIVE) route = {int64_t(c.root), int64_t(rank())};
  if (!channels_.count(route)) {
    const bool is_message = route.from >= 0;
    const plait_status s =
        is_message ? make_pair(thread, c.root, device) : make_common(thread, device);
    if (s < 0) {  // the others would wait for this one
      Explanation text = explain(thread);
      fail(s == PLAIT_TIMEOUT_ERROR ? Outcome::timed_out : Outcome::broken, text,
           text.lost.empty());
      return s;
    }
  }
  *out = channels_[route];
  if (plait::same(out->device, device)) return PLAIT_OK;
  return runtime->raise(thread, PLAIT_VALUE_ERROR, collectives::kind_name(c.kind),
                        "the first collective of the group had tensors on %s, which is this rank's "
                        "device in it; got one on %s",
                        plait::device_text(runtime, out->device).c_str(),
                        plait::device_text(runtime, device).c_str());
}

// The communicator of all members.
plait_status Group::make_common(plait_thread *thread, DLDevice device) {
  UniqueId id{};
  if (rank() == 0) PLAIT_TRY(new_id(thread, &id));
  PLAIT_TRY(exchange(thread, PLAIT_BROADCAST, 0, &id, sizeof id));
  return make_channel(thread, Route{}, rank(), size(), device, id);
}

// Messages from one member to another have a communicator for each direction, so that they do not
// wait for each other. Both are made at the first message.
plait_status Group::make_pair(plait_thread *thread, uint32_t peer, DLDevice device) {
  const uint32_t low = std::min(peer, rank()), high = std::max(peer, rank());
  UniqueId ids[2] = {};
  if (rank() == low)
    for (UniqueId &id : ids) PLAIT_TRY(new_id(thread, &id));
  PLAIT_TRY(exchange(thread, rank() == low ? PLAIT_SEND : PLAIT_RECEIVE, peer, ids, sizeof ids));
  PLAIT_TRY(make_channel(thread, {low, high}, rank() == low ? 0 : 1, 2, device, ids[0]));
  return make_channel(thread, {high, low}, rank() == high ? 0 : 1, 2, device, ids[1]);
}

plait_status Group::new_id(plait_thread *thread, UniqueId *id) {
  if (const Result r = library()->unique_id(id))
    return fail_with(thread, "ncclGetUniqueId", r, nullptr);
  return PLAIT_OK;
}

plait_status Group::exchange(plait_thread *thread, uint32_t kind, uint32_t peer, void *data,
                             size_t nbytes) {
  const Tensor t = bytes_on_cpu(thread, nbytes);
  memcpy(t.data<char>(), data, nbytes);
  plait_tensor *const handle = t.get();
  const bool gives = kind == PLAIT_BROADCAST ? rank() == peer : kind == PLAIT_SEND;
  plait_collective c{};
  c.size = sizeof c, c.kind = kind, c.peer = peer, c.tag = kIdTag;
  c.in = &handle, c.out = &handle;
  c.n_in = gives, c.n_out = !gives;
  PLAIT_TRY(control_->table->start(control_->table->ctx, thread, control_, &c, nullptr, nullptr));
  memcpy(data, t.data<char>(), nbytes);
  return PLAIT_OK;
}

plait_status Group::make_channel(plait_thread *thread, Route route, uint32_t rank, uint32_t size,
                                 DLDevice device, const UniqueId &id) {
  PLAIT_TRY(use(thread, device));
  Channel channel{device, nullptr, nullptr};
  if (const Result r = library()->init(&channel.comm, int(size), id, int(rank)))
    return fail_with(thread, "ncclCommInitRank", r, nullptr);
  int lowest = 0, highest = 0;
  driver::Result result = api.stream_priorities(&lowest, &highest);
  if (!result) result = api.stream_create(&channel.stream, driver::kStreamNonBlocking, highest);
  if (result) {
    library()->abort(channel.comm);
    return fail_on(thread, device, result, "creating a stream for collectives");
  }
  channels_[route] = channel;
  return PLAIT_OK;
}

// Results -----------------------------------------------------------------------------------------

plait_status Group::query(plait_thread *thread, const Operation &operation, int32_t *done) {
  *done = 1;
  if (operation.failed) return raise_failure(thread, operation.kind);
  if (!operation.done) return PLAIT_OK;
  PLAIT_TRY(use(thread, operation.device));
  const driver::Result result = api.event_query(operation.done);
  *done = result != driver::kNotReady;
  // a failure is noted before it ends the work
  if (operation.failed) return raise_failure(thread, operation.kind);
  if (!*done || !result) return PLAIT_OK;
  return settle(thread, operation.device, result, operation.kind);
}

plait_status Group::wait(plait_thread *thread, Operation &operation) {
  if (operation.failed) return raise_failure(thread, operation.kind);
  if (!operation.done) return PLAIT_OK;
  int32_t done = 0;
  PLAIT_TRY(query(thread, operation, &done));
  if (done) return PLAIT_OK;
  if (failed_) return raise_failure(thread, operation.kind);
  operation.awaited = true;
  plait_stream *const stream = runtime->stream(thread, operation.device);
  PLAIT_CUDA(thread, operation.device, operation.kind,
             stream_wait(native(stream), operation.done, 0));
  return PLAIT_OK;
}

plait_status Group::split(plait_thread *thread, int64_t color, int64_t key,
                          std::shared_ptr<Group> *out) {
  if (failed_) return raise_failure(thread, "split");
  plait_communicator *part = nullptr;
  const plait_collectives *table = control_->table;
  PLAIT_TRY(table->split(table->ctx, thread, control_, color, key, &part));
  *out = part ? std::make_shared<Group>(part, timeout_) : nullptr;
  return PLAIT_OK;
}

void Group::abort(const char *reason, bool by_user) {
  const plait_collectives *table = control_->table;
  const std::string own = "rank " + std::to_string(rank()) + " (pid " + std::to_string(pid_) + ")";
  if (by_user && PLAIT_HAS(plait_collectives, table, interrupt)) {
    table->interrupt(table->ctx, control_, reason);
    Explanation text(own + " was interrupted" + collectives::during(reason));
    text.kind = collectives::FAILURE_INTERRUPTED;
    return fail(Outcome::interrupted, text, false);
  }
  table->abort(table->ctx, control_, reason);
  fail(Outcome::broken,
       Explanation(own + " aborted the group: " + reason, collectives::FAILURE_ABORTED), false);
}

}  // namespace plait::cuda::nccl
