// What the files of libplait_graph share (docs/design/0051).
#pragma once
#include <plait/plait.hpp>

namespace plait::graph {

// Set by the extension of Python, or by `plait_run_open`.
extern const plait_runtime *runtime;
extern const plait_plugin *plugin;

// Whether the user wants to stop what runs, such as by Ctrl-C; NULL outside of Python.
extern bool (*is_interrupted)();

// No layer sees the calls of a thread while it lives.
class NoLayers {
 public:
  explicit NoLayers(plait_thread *t) : thread_(t), excluded_(t->excluded), included_(t->included) {
    t->excluded = ~uint64_t(0);
    t->included = 0;
  }
  NoLayers(const NoLayers &) = delete;
  NoLayers &operator=(const NoLayers &) = delete;
  ~NoLayers() {
    thread_->excluded = excluded_;
    thread_->included = included_;
  }

 private:
  plait_thread *thread_;
  uint64_t excluded_, included_;
};

}  // namespace plait::graph
