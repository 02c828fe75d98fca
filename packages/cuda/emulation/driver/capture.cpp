#include "emulation/driver/state.h"

namespace plait::cuda::driver {

Result submit(const StreamPtr &stream, Task task) {
  enqueue(stream, std::move(task));
  return kSuccess;
}
Result check_no_capture() { return kSuccess; }
Result check_not_capturing(const StreamPtr &) { return kSuccess; }

Result capture_begin(Stream, int) { return kNotSupported; }
Result capture_end(Stream, Graph *) { return kNotSupported; }
Result capture_status(Stream, int *status) { return *status = kNotCapturing, kSuccess; }
Result graph_instantiate(GraphExec *, Graph, unsigned long long) { return kNotSupported; }
Result graph_launch(GraphExec, Stream) { return kNotSupported; }
Result graph_exec_destroy(GraphExec) { return kNotSupported; }
Result graph_destroy(Graph) { return kNotSupported; }

}  // namespace plait::cuda::driver
