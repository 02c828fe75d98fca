// Streams: a thread and its queue, and the order that the default stream keeps with others.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "emulation/driver/capture.h"

namespace plait::cuda::driver {
namespace {

Handles<StreamHandle> &handles() {
  static auto *all = new Handles<StreamHandle>();
  return *all;
}

void *serve(void *argument) {
  const StreamPtr stream = *static_cast<StreamPtr *>(argument);
  delete static_cast<StreamPtr *>(argument);
  std::unique_lock<std::mutex> hold(stream->lock);
  for (;;) {
    while ((stream->queue.empty() && !stream->closed) || is_ending()) stream->changed.wait(hold);
    if (stream->queue.empty()) break;
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->busy = true;
    hold.unlock();
    if (work.run) work.run();
    work.run = nullptr;  // what it holds is given up before others see that it is done
    hold.lock();
    stream->busy = false;
    stream->done++;
    if (work.finish) work.finish();
    stream->changed.notify_all();
  }
  return nullptr;
}

// Under the stream's lock.
bool start(const StreamPtr &stream) {
  if (stream->started) return true;
  pthread_t thread;
  auto *own = new StreamPtr(stream);
  if (pthread_create(&thread, nullptr, serve, own)) {
    delete own;
    return false;
  }
  pthread_detach(thread);
  count(kThreads);
  return stream->started = true;
}

void append(const StreamPtr &stream, Work work) {
  const std::lock_guard<std::mutex> hold(stream->lock);
  if (!start(stream)) {
    set_fault(*stream->context, kUnknown, "no thread for a stream");
    if (work.finish) work.finish();
    return;
  }
  stream->queue.push_back(std::move(work));
  stream->put++;
  stream->changed.notify_all();
}

void wait_until(const StreamPtr &stream, uint64_t number) {
  std::unique_lock<std::mutex> hold(stream->lock);
  while (stream->done < number && !is_ending()) stream->changed.wait(hold);
}

// Makes `stream` wait for what is in `other` now.
void wait_for(const StreamPtr &stream, const StreamPtr &other) {
  uint64_t number;
  {
    const std::lock_guard<std::mutex> hold(other->lock);
    if (other->done == other->put) return;
    number = other->put;
  }
  append(stream, {[other, number] { wait_until(other, number); }, nullptr});
}

std::vector<StreamPtr> streams_of(ContextHandle &context) {
  const std::lock_guard<std::mutex> hold(context.lock);
  return context.streams;
}

// Streams that were destroyed are still waited for until their work is done.
void forget_closed(ContextHandle &context) {
  const std::lock_guard<std::mutex> hold(context.lock);
  const auto is_over = [](const StreamPtr &stream) {
    const std::lock_guard<std::mutex> hold_stream(stream->lock);
    return stream->closed && stream->done == stream->put;
  };
  auto &all = context.streams;
  all.erase(std::remove_if(all.begin(), all.end(), is_over), all.end());
}

}  // namespace

Result entered(Stream handle, StreamPtr *stream) {
  ContextHandle *context = nullptr;
  // 1 and 2 name the default stream, of all threads and of this one: here they are one
  if (reinterpret_cast<uintptr_t>(handle) <= 2) {
    if (const Result r = entered(&context)) return r;
    const std::lock_guard<std::mutex> hold(context->lock);
    *stream = context->streams[0];
    return kSuccess;
  }
  if (const Result r = entered()) return r;
  if (!(*stream = handles().find(handle))) return kInvalidHandle;
  return Result((*stream)->context->fault.load(std::memory_order_acquire));
}

void enqueue(const StreamPtr &stream, Task run, Task finish) {
  ContextHandle &context = *stream->context;
  if (stream->blocking) {
    StreamPtr first;
    {
      const std::lock_guard<std::mutex> hold(context.lock);
      first = context.streams[0];
    }
    wait_for(stream, first);
  } else {
    const std::vector<StreamPtr> all = streams_of(context);
    if (stream == all[0])
      for (const StreamPtr &other : all)
        if (other->blocking) wait_for(stream, other);
  }
  append(stream, {std::move(run), std::move(finish)});
}

void drain(const StreamPtr &stream) {
  uint64_t number;
  {
    const std::lock_guard<std::mutex> hold(stream->lock);
    number = stream->put;
  }
  wait_until(stream, number);
}
void drain_device(ContextHandle &context) {
  for (const StreamPtr &stream : streams_of(context)) drain(stream);
}

Result stream_priorities(int *least, int *greatest) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return kSuccess;
}

Result stream_create(Stream *out, unsigned flags, int priority) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || flags > kStreamNonBlocking) return kInvalidValue;
  auto stream = std::make_shared<StreamHandle>();
  stream->context = context;
  stream->blocking = !(flags & kStreamNonBlocking);
  stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
  forget_closed(*context);
  {
    const std::lock_guard<std::mutex> hold(context->lock);
    context->streams.push_back(stream);
  }
  *out = handles().add(stream);
  return kSuccess;
}

// The work that is in the stream is still done.
Result stream_destroy(Stream handle) {
  if (const Result r = entered()) return r;
  const StreamPtr stream = handles().find(handle);
  if (!stream) return kInvalidHandle;
  if (const Result r = check_capture(stream)) return r;
  handles().remove(handle);
  {
    const std::lock_guard<std::mutex> hold(stream->lock);
    stream->closed = true;
    stream->changed.notify_all();
  }
  forget_closed(*stream->context);
  return kSuccess;
}

Result stream_query(Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (const Result r = check_capture(stream)) return r;
  const std::lock_guard<std::mutex> hold(stream->lock);
  return stream->done == stream->put ? kSuccess : kNotReady;
}

Result stream_synchronize(Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (const Result r = check_capture(stream)) return r;
  count(kWaits);
  drain(stream);
  return Result(stream->context->fault.load());
}

Result context_synchronize() {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (const Result r = check_capture_of(*context)) return r;
  count(kWaits);
  drain_device(*context);
  return Result(context->fault.load());
}

namespace {

Result launch_function(Stream handle, const TracedCall &call, void (*function)(void *),
                       void *argument) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!function) return kInvalidValue;
  return submit(stream, [stream, call, function, argument] {
    work(stream, call, [&] {
      runs_host_function() = true;
      function(argument);
      runs_host_function() = false;
    });
  });
}

}  // namespace

Result launch_host(Stream handle, void (*function)(void *), void *argument) {
  return launch_function(handle, {}, function, argument);
}

}  // namespace plait::cuda::driver

// What a stand-in for a library puts into a stream: a function of the host that tools see as a
// kernel of this name.
extern "C" __attribute__((visibility("default"))) plait::cuda::driver::Result
plait_emulation_launch(plait::cuda::driver::Stream stream, const char *name,
                       void (*function)(void *), void *argument) {
  using namespace plait::cuda::driver;
  const TracedCall call = trace_call(plait::cuda::emulation::TracedKind::kKernel, name, 0);
  return launch_function(stream, call, function, argument);
}
