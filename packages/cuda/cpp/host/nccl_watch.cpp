// What ends a group over NCCL: members that are lost, errors, timeouts, and leaving.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "host/nccl_control.h"
#include "host/nccl_group.h"

namespace plait::cuda::nccl {
namespace {

using collectives::Explanation;
using collectives::now;
using collectives::Outcome;
using driver::api;

constexpr double kListenAfter = 0.2;  // seconds that work is in flight before others are asked
constexpr double kGoodbye = 5;  // seconds that a member which leaves waits for the others

// Explains the error of the thread (`explain`), which is then forgotten.
Explanation take_error(plait_thread *thread) {
  const Explanation result = explain(thread);
  thread->runtime->clear(thread);
  return result;
}

}  // namespace

// `mutex_` is held.
void Group::start_watching() {
  if (watching_) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  const plait_status s = plait::border(runtime->thread(), "nccl", [&] {
    std::thread([self = shared_from_this()] { self->watch(); }).detach();
    return PLAIT_OK;
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  plait::check(s);
  watching_ = true;
}

void Group::watch() {
  plait_thread *const thread = runtime->thread();
  std::unique_lock<std::mutex> hold(mutex_);
  while (!closed_) {
    if (running_.empty())
      changed_.wait(hold, [&] { return closed_ || !running_.empty(); });
    else
      changed_.wait_for(hold, kPause);
    remove_finished();
    if (running_.empty()) {
      changed_.notify_all();
      continue;
    }
    hold.unlock();
    plait::border(thread, "nccl", [&] {
      look(thread);
      return PLAIT_OK;
    });
    runtime->clear(thread);
    hold.lock();
  }
  watching_ = false;
  changed_.notify_all();
}

// `mutex_` is held. Work of a device that is lost, or that was stopped as the process ends, counts
// as finished.
void Group::remove_finished() {
  const auto is_over = [](const OperationPtr &o) {
    return !use_quietly(o->device) || api.event_query(o->done) != driver::kNotReady;
  };
  running_.erase(std::remove_if(running_.begin(), running_.end(), is_over), running_.end());
}

// Looks for what keeps the work in flight from ending.
void Group::look(plait_thread *thread) {
  if (failed_) {
    if (now() > failure_.since + kGrace) give_up();
    return;
  }
  OperationPtr late, oldest;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (const OperationPtr &o : running_) {
      if (!oldest || o->began < oldest->began) oldest = o;
      if (now() > o->began + o->timeout) late = o;
    }
  }
  if (!oldest) return;
  if (now() > oldest->began + kListenAfter) {
    listen_to_others(thread);
    hear_others(thread);
  }
  if (failed_) return;
  if (late) {  // the others are not told: they may call something else, and find out themselves
    const std::string text =
        "waited " + collectives::seconds(late->timeout) + " s for the other ranks";
    return fail(Outcome::timed_out, Explanation(text, collectives::FAILURE_TIMED_OUT), false);
  }
  const std::unique_lock<std::mutex> hold(launching_, std::try_to_lock);
  if (!hold) return;
  for (const auto &[route, channel] : channels_) {
    Result result = kSuccess;
    const Result asked = library()->async_error(channel.comm, &result);
    if (asked == kSuccess && result != kSuccess && result != kInProgress)
      return fail(Outcome::broken, Explanation(error_text(result, channel.comm)), true);
  }
}

// Begins to receive the messages with which the others leave. They fail where a member is lost.
void Group::listen_to_others(plait_thread *thread) {
  if (listening_) return;
  listening_ = true;
  for (uint32_t r = 0; r < size(); r++) {
    if (r == rank()) continue;
    const Tensor t = bytes_on_cpu(thread, 1);
    plait_tensor *const handle = t.get();
    plait_collective c{};
    c.size = sizeof c, c.kind = PLAIT_RECEIVE, c.peer = r, c.tag = kLeaveTag, c.timeout = 1e8;
    c.out = &handle, c.n_out = 1;
    const plait_collectives *table = control_->table;
    if (table->start(table->ctx, thread, control_, &c, nullptr, &others_[r]) < 0)
      fail(Outcome::broken, take_error(thread), false);
  }
}

void Group::hear_others(plait_thread *thread) {
  for (uint32_t r = 0; r < size(); r++) {
    if (!others_[r] || left_[r] != 0) continue;
    int32_t done = 0;
    const plait_collectives *table = control_->table;
    if (table->query(table->ctx, thread, others_[r], &done) < 0)
      fail(Outcome::broken, take_error(thread), false);
    else if (done)
      left_[r] = now();
  }
  for (uint32_t r = 0; r < size(); r++)
    if (left_[r] != 0 && now() > left_[r] + kGrace)
      fail(Outcome::broken,
           {"rank " + std::to_string(r) + " left the group", {{int64_t(r), -1, 0}}}, false);
}

// `tell`: ends the group in the others, too.
void Group::fail(Outcome outcome, Explanation text, bool tell) {
  const std::string reason = text;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (failed_) return;
    failure_ = {outcome, std::move(text), now()};
    failed_ = true;
    changed_.notify_all();
  }
  if (tell) control_->table->abort(control_->table->ctx, control_, reason.c_str());
}

// Ends the work in flight. If the program lets a stream wait for it, the next wait of the host for
// the device raises the failure.
void Group::give_up() {
  const std::lock_guard<std::mutex> hold_launching(launching_);
  std::vector<OperationPtr> ended;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    remove_finished();
    for (const OperationPtr &o : running_) o->failed = true;
    ended.swap(running_);
  }
  const auto awaited = std::find_if(ended.begin(), ended.end(),
                                    [](const OperationPtr &o) { return o->awaited.load(); });
  if (awaited != ended.end() && !told_)
    note_failure((*awaited)->device,
                 [self = shared_from_this(), kind = (*awaited)->kind](plait_thread *thread) {
                   return self->raise_failure(thread, kind);
                 });
  free_channels();
  changed_.notify_all();
}

// `launching_` is held.
void Group::free_channels() {
  for (const auto &[route, channel] : channels_) {
    if (!use_quietly(channel.device)) continue;
    library()->abort(channel.comm);
    api.stream_destroy(channel.stream);
  }
  channels_.clear();
}

// Leaving -----------------------------------------------------------------------------------------

// What a member has sent may still be on its way when its own work is done, and ending NCCL's
// communicator would stop it: so members that leave wait for each other.
void Group::say_goodbye(plait_thread *thread) {
  listen_to_others(thread);
  const Tensor t = bytes_on_cpu(thread, 1);
  plait_tensor *const handle = t.get();
  const plait_collectives *table = control_->table;
  std::vector<plait_work *> sent(size(), nullptr);
  for (uint32_t r = 0; r < size(); r++) {
    if (r == rank()) continue;
    plait_collective c{};
    c.size = sizeof c, c.kind = PLAIT_SEND, c.peer = r, c.tag = kLeaveTag, c.timeout = kGoodbye;
    c.in = &handle, c.n_in = 1;
    if (table->start(table->ctx, thread, control_, &c, nullptr, &sent[r]) < 0)
      runtime->clear(thread);
  }
  const auto all_left = [&] {
    for (uint32_t r = 0; r < size(); r++) {
      int32_t done = 1, arrived = 1;
      if (others_[r] && left_[r] == 0 && !table->query(table->ctx, thread, others_[r], &done) &&
          !done)
        return false;
      if (sent[r] && !table->query(table->ctx, thread, sent[r], &arrived) && !arrived) return false;
    }
    return true;
  };
  const double until = now() + kGoodbye;
  while (!all_left() && now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  runtime->clear(thread);
  for (plait_work *w : sent) plait_release(w);
}

void Group::close() {
  plait_thread *const thread = runtime->thread();
  plait_error *const before = thread->error;
  thread->error = nullptr;
  {
    std::unique_lock<std::mutex> hold(mutex_);
    while (!running_.empty()) changed_.wait_for(hold, kPause);
    closed_ = true;
    changed_.notify_all();
    changed_.wait(hold, [&] { return !watching_; });
  }
  const std::lock_guard<std::mutex> hold(launching_);
  if (!channels_.empty() && !failed_)
    plait::border(thread, "close", [&] {
      say_goodbye(thread);
      return PLAIT_OK;
    });
  free_channels();
  for (plait_work *&w : others_) plait_release(std::exchange(w, nullptr));
  plait_release(std::exchange(control_, nullptr));
  runtime->clear(thread);
  thread->error = before;
}

}  // namespace plait::cuda::nccl
