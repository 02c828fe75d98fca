// Runs of a program on a device that records work (plait_device::capture_begin): after a few calls
// of its operators they are recorded, and then done again at a cost of one launch.
#pragma once
#include "program/program.hpp"

namespace plait::graph {

class Program::DeviceGraph {
 public:
  // NULL where no memory of the program lies on a device that records.
  static std::shared_ptr<DeviceGraph> make(Program &);

  DeviceGraph(Program &, DLDevice, const plait_device *, const plait_allocator *);
  DeviceGraph(const DeviceGraph &) = delete;
  DeviceGraph &operator=(const DeviceGraph &) = delete;
  ~DeviceGraph();

  // Before a run: its work follows that of the run before, which may be in another stream.
  void begin(plait_thread *);
  // Does a run whose inputs, new outputs and numbers are set. False: the caller calls the nodes.
  bool run(plait_thread *);
  // What was recorded, and which operators were not, with the reason.
  std::string text() const;

 private:
  // Nodes that are recorded as one graph of the device; those between two parts are called.
  struct Part {
    size_t begin, end;  // indices of nodes
    size_t n_nodes;
    void *graph;
  };
  // A value that has another tensor in each run, and the tensor that the graphs use instead.
  struct Static {
    int32_t value;
    bool is_first;  // of its memory
    Tensor tensor;
  };
  class Exchange;

  bool runs_in_order(const Node &n) const {
    return n.runs && (!n.is_constant || p_.constants_in_order_);
  }
  bool is_far_apart(const Memory &) const;
  void find_inputs();
  std::string reason_of(const Node &) const;
  std::string reason_of(const Value &) const;
  bool has_shared_inputs() const;
  bool find_changed_numbers();
  uint64_t copied_bytes() const;
  void make_statics(plait_thread *);
  void find_parts();
  bool try_to_record(plait_thread *);
  void record_parts(plait_thread *);
  void record(plait_thread *, Part *);
  void drop_parts();
  void give_up();
  void copy_memories(plait_thread *, Where, plait_stream *) const;

  Program &p_;
  const DLDevice device_;
  const plait_device *const table_;
  const plait_allocator *const allocator_;
  int runs_ = 0;
  std::string refusal_;                // why nothing is recorded; or empty
  std::vector<std::string> failures_;  // by node: why it cannot be recorded
  std::vector<bool> changes_;          // by number: whether it has changed since a recording
  std::vector<Number> numbers_;        // that were recorded
  std::vector<bool> is_direct_;        // by input: whether nodes use it where it is
  std::vector<int32_t> copied_inputs_, written_;  // memories: of other inputs; that nodes write to
  std::vector<Part> parts_;
  std::vector<Static> statics_;
  std::vector<Ref<plait_storage>> storages_;  // of statics, by memory
  Ref<plait_stream> stream_;  // in which work is recorded
  void *pool_ = nullptr;  // for memory that kernels take meanwhile
  Ref<plait_stream> latest_;  // the stream of the latest run, NULL: the default one
  bool has_run_ = false;
};

}  // namespace plait::graph
