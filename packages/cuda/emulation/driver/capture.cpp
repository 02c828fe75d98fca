// Captures and graphs. A graph is run by one thread, in the order in which its nodes were call:
// that keeps all their dependencies.
#include "emulation/driver/capture.h"

#include <algorithm>

namespace plait::cuda::driver {

struct GraphHandle {
  std::vector<Task> tasks;
};
struct GraphExecHandle {
  std::vector<Task> tasks;
};

namespace {

struct Captures {
  std::mutex lock;
  std::vector<CapturePtr> active;
  std::atomic<size_t> number{0};  // most calls find none and take no lock
};
Captures &captures() {
  static auto *one = new Captures();
  return *one;
}
Handles<GraphHandle> &graphs() {
  static auto *all = new Handles<GraphHandle>();
  return *all;
}
Handles<GraphExecHandle> &execs() {
  static auto *all = new Handles<GraphExecHandle>();
  return *all;
}

// Under the lock: the call is not allowed.
Result break_capture(Capture &capture, Result result) {
  capture.broken = true;
  return result;
}

// Under the lock.
void end(const CapturePtr &capture) {
  Captures &all = captures();
  capture->over = true;
  for (const StreamPtr &stream : capture->streams) {
    stream->capture = nullptr;
    stream->last_nodes.clear();
  }
  capture->streams.clear();
  all.active.erase(std::find(all.active.begin(), all.active.end(), capture));
  all.number = all.active.size();
}

// Under the lock: whether the work of all streams comes before the end of the origin's.
bool is_joined(const Capture &capture) {
  std::vector<bool> reached(capture.nodes.size());
  std::vector<size_t> open = capture.origin->last_nodes;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    for (const size_t before : capture.nodes[node].after) open.push_back(before);
  }
  for (const StreamPtr &stream : capture.streams)
    for (const size_t node : stream->last_nodes)
      if (!reached[node]) return false;
  return true;
}

// Under the lock: a call in the default stream would wait for streams that are captured.
Result check_implicit_waits(const StreamPtr &stream) {
  ContextHandle &context = *stream->context;
  {
    const std::lock_guard<std::mutex> hold(context.lock);
    if (stream != context.streams[0]) return kSuccess;
  }
  for (const CapturePtr &capture : captures().active)
    for (const StreamPtr &other : capture->streams)
      if (other->blocking && other->context == &context)
        return break_capture(*capture, kCaptureImplicit);
  return kSuccess;
}

}  // namespace

void end_captures() {
  Captures &all = captures();
  const std::lock_guard<std::mutex> hold(all.lock);
  while (!all.active.empty()) end(all.active.back());
}

Result submit(const StreamPtr &stream, Task task) {
  Captures &all = captures();
  if (all.number) {
    const std::lock_guard<std::mutex> hold(all.lock);
    if (const Result r = check_implicit_waits(stream)) return r;
    if (const CapturePtr capture = stream->capture) {
      if (capture->broken) return kCaptureInvalidated;
      capture->nodes.push_back({std::move(task), stream->last_nodes});
      stream->last_nodes = {capture->nodes.size() - 1};
      return kSuccess;
    }
  }
  enqueue(stream, std::move(task));
  return kSuccess;
}

Result check_capture(const StreamPtr &stream) {
  Captures &all = captures();
  if (!all.number) return kSuccess;
  const std::lock_guard<std::mutex> hold(all.lock);
  if (stream && stream->capture) return break_capture(*stream->capture, kCaptureUnsupported);
  if (stream)
    if (const Result r = check_implicit_waits(stream)) return r;
  for (const CapturePtr &capture : all.active)
    if (capture->mode == kCaptureGlobal ||
        (capture->mode == kCaptureThread && capture->thread == std::this_thread::get_id()))
      return break_capture(*capture, kCaptureUnsupported);
  return kSuccess;
}

Result check_default_stream(const StreamPtr &stream) {
  Captures &all = captures();
  if (!all.number) return kSuccess;
  const std::lock_guard<std::mutex> hold(all.lock);
  return check_implicit_waits(stream);
}

Result check_capture_of(ContextHandle &context) {
  Captures &all = captures();
  if (!all.number) return kSuccess;
  {
    const std::lock_guard<std::mutex> hold(all.lock);
    for (const CapturePtr &capture : all.active)
      if (capture->origin->context == &context) return break_capture(*capture, kCaptureUnsupported);
  }
  return check_capture();
}

bool captured_point(const StreamPtr &stream, CapturedPoint *out) {
  Captures &all = captures();
  if (!all.number) return false;
  const std::lock_guard<std::mutex> hold(all.lock);
  if (!stream->capture) return false;
  *out = {stream->capture, stream->last_nodes};
  return true;
}

Result wait_in_capture(const StreamPtr &stream, const CapturedPoint &point, bool is_recorded,
                       bool *is_plain) {
  Captures &all = captures();
  *is_plain = false;
  const std::lock_guard<std::mutex> hold(all.lock);
  const CapturePtr own = stream->capture;
  if (!own && !point.capture) return *is_plain = true, kSuccess;
  if (own && own->broken) return kCaptureInvalidated;
  if (!point.capture)  // an event that was never recorded is waited for by nobody
    return is_recorded ? break_capture(*own, kCaptureIsolation) : kSuccess;
  if (point.capture->over) return kCapturedEvent;
  if (own && own != point.capture) return break_capture(*own, kCaptureIsolation);
  if (point.capture->broken) return kCaptureInvalidated;
  if (!own) {
    stream->capture = point.capture;
    point.capture->streams.push_back(stream);
  }
  auto &last = stream->last_nodes;
  for (const size_t node : point.nodes)
    if (std::find(last.begin(), last.end(), node) == last.end()) last.push_back(node);
  return kSuccess;
}

Result capture_begin(Stream handle, int mode) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (mode < kCaptureGlobal || mode > kCaptureRelaxed) return kInvalidValue;
  if (!handle) return kCaptureUnsupported;
  Captures &all = captures();
  const std::lock_guard<std::mutex> hold(all.lock);
  if (stream->capture) return kIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.push_back(stream);
  stream->capture = capture;
  all.active.push_back(std::move(capture));
  all.number = all.active.size();
  return kSuccess;
}

Result capture_end(Stream handle, Graph *out) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!out) return kInvalidValue;
  *out = nullptr;
  Captures &all = captures();
  const std::lock_guard<std::mutex> hold(all.lock);
  const CapturePtr capture = stream->capture;
  if (!capture) return kIllegalState;
  if (capture->origin != stream.get()) return break_capture(*capture, kCaptureUnmatched);
  if (capture->mode != kCaptureRelaxed && capture->thread != std::this_thread::get_id())
    return kCaptureWrongThread;
  const Result result = capture->broken        ? kCaptureInvalidated
                        : !is_joined(*capture) ? kCaptureUnjoined
                                               : kSuccess;
  end(capture);
  if (result) return result;
  auto graph = std::make_shared<GraphHandle>();
  for (Node &node : capture->nodes) graph->tasks.push_back(std::move(node.task));
  capture->nodes.clear();
  *out = graphs().add(std::move(graph));
  return kSuccess;
}

Result capture_status(Stream handle, int *status) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!status) return kInvalidValue;
  const std::lock_guard<std::mutex> hold(captures().lock);
  const CapturePtr capture = stream->capture;
  *status = !capture ? kNotCapturing : capture->broken ? kCaptureBroken : kCapturing;
  return kSuccess;
}

Result graph_instantiate(GraphExec *out, Graph handle, unsigned long long flags) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  const auto graph = graphs().find(handle);
  if (!graph) return kInvalidHandle;
  if (!out || flags > 15) return kInvalidValue;
  *out = execs().add(std::make_shared<GraphExecHandle>(GraphExecHandle{graph->tasks}));
  return kSuccess;
}

Result graph_launch(GraphExec handle, Stream to) {
  StreamPtr stream;
  if (const Result r = entered(to, &stream)) return r;
  const auto exec = execs().find(handle);
  if (!exec) return kInvalidHandle;
  count(kGraphLaunches);
  const TracedCall call = trace_call(emulation::TracedKind::kNone, nullptr, 0);
  return submit(stream, [exec, call] {
    call_of_graph() = call.number;
    for (const Task &task : exec->tasks) task();
    call_of_graph() = 0;
  });
}

Result graph_exec_destroy(GraphExec handle) {
  if (const Result r = entered()) return r;
  return execs().remove(handle) ? kSuccess : kInvalidHandle;
}
Result graph_destroy(Graph handle) {
  if (const Result r = entered()) return r;
  return graphs().remove(handle) ? kSuccess : kInvalidHandle;
}

}  // namespace plait::cuda::driver
