// Captures: the work of streams becomes a graph.
#pragma once
#include <thread>

#include "emulation/driver/state.h"

namespace plait::cuda::driver {

struct Node {
  Task task;
  std::vector<size_t> after;  // nodes before it
};

// Begun in one stream; others join when they wait for an event of it.
struct Capture {
  StreamHandle *origin;
  int mode;
  std::thread::id thread;
  bool broken = false, over = false;
  std::vector<StreamPtr> streams;
  std::vector<Node> nodes;
};
using CapturePtr = std::shared_ptr<Capture>;

// Where an event was recorded in a capture.
struct CapturedPoint {
  CapturePtr capture;
  std::vector<size_t> nodes;
};

// A wait for all work of a context, which no capture in it allows.
Result check_capture_of(ContextHandle &context);
// Whether work in the stream, if it is the default stream, would wait for one that is captured.
Result check_default_stream(const StreamPtr &stream);
// True if the stream is being captured: *out is where it is now.
bool captured_point(const StreamPtr &stream, CapturedPoint *out);
// A wait of a stream that is captured, or for an event that was recorded in a capture, or neither:
// then *is_plain says so and nothing else is done.
Result wait_in_capture(const StreamPtr &stream, const CapturedPoint &point, bool is_recorded,
                       bool *is_plain);

}  // namespace plait::cuda::driver
