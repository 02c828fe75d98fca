// A graph that can run (docs/design/0051): its text, checked; the shapes of all values; one block
// of memory for values that nobody keeps, planned ahead; and calls of operators with fixed targets.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph.hpp"
#include "program/group.hpp"

namespace plait::graph {

class CallLimit;
class Json;

struct TensorType {
  DLDataType dtype{};
  DLDevice device{kDLCPU, 0};
  std::vector<int64_t> shape, strides;  // strides in elements
};

// The bytes of a tensor, from its first element: they begin at `below`, which is not positive, and
// end at `above`. False if there are more than 2^61.
bool extent(const TensorType &, int64_t *below, int64_t *above);

// A scalar that has a value of its own for each run, such as a learning rate or a step's number.
struct Number {
  std::string name;
  bool is_integer;
  int64_t integer, integer_step;
  double real, real_step;
};

class Program {
 public:
  // Checks the text of a graph and plans its runs; raises plait::Error. Nothing is computed, and
  // memory for values is allocated by the first run.
  static std::unique_ptr<Program> parse(plait_thread *, std::string_view text);

  // What lies at fixed places: `weights` in the order of the graph, which the program shares.
  void bind(plait_thread *, const std::vector<Tensor> &weights);
  // Computes the outputs. Any thread; one run waits for another. The observer is called behind each
  // node that ran, with its index.
  using Observer = std::function<void(size_t)>;
  void run(plait_thread *, plait_tensor *const *inputs, size_t n, std::vector<Tensor> *outputs,
           const Observer &observer = {});
  // Within an observer: the tensor of a value as it is now; none where it has not been computed.
  Tensor current(std::string_view name) const;
  // Computes the outputs into tensors, one for each output, which is a value of its own: it has the
  // type of the output, and begins where its storage does.
  void run_into(plait_thread *, plait_tensor *const *inputs, size_t n,
                plait_tensor *const *targets);

  const std::vector<std::string> &input_names() const { return input_names_; }
  const std::vector<std::string> &weight_names() const { return weight_names_; }
  const std::vector<std::string> &output_names() const { return output_names_; }
  const TensorType &input_type(size_t i) const { return values_[i].type; }
  const TensorType &weight_type(size_t i) const { return values_[n_inputs() + i].type; }
  // NULL where the shape depends on values of tensors
  const TensorType *output_type(size_t i) const;
  // The memory of an output that begins there and has no input or weight in it, or -1.
  int32_t output_memory(size_t i) const;
  size_t n_inputs() const { return input_names_.size(); }
  size_t n_weights() const { return weight_names_.size(); }
  const std::vector<Tensor> &weights() const { return weights_; }
  std::vector<Number> &numbers() { return numbers_; }
  // The names of all values, and a number that those in the same memory have in common; -1 for one
  // whose memory is known only when it runs.
  std::vector<std::pair<std::string, int32_t>> memories() const;
  // How it runs on a device that records graphs; empty where there is none, or before a run.
  std::string device_graph_text();
  // The names and shapes of all values whose shapes depend on no values.
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes() const;
  // The nodes of each group that runs together.
  std::vector<std::vector<int32_t>> groups() const;
  // The nodes of groups that run as register code, those that follow each other together.
  std::vector<std::vector<int32_t>> register_runs() const;
  // Whether the graph writes to a weight.
  bool writes_weight(size_t i) const { return is_written_[i]; }
  // Whether the graph writes to an input.
  bool writes_input(size_t i) const { return is_written_input_[i]; }
  // Bytes of the blocks of all devices, and of constants.
  uint64_t planned_bytes() const;
  // Bytes of all tensors during a run: planned ones, outputs, and with `all` inputs and weights.
  uint64_t tensor_bytes(bool all = true) const;
  bool has_run() const { return has_run_; }  // it has memory for its values
  // The most bytes that kernels allocate beside these; each is called with zeros, once after
  // `bind`. Values whose shapes depend on values are not in it.
  uint64_t kernel_bytes(plait_thread *);
  // Whether outputs are new tensors at each run, as they are at first; or the same ones, which the
  // next run writes to.
  void keep_outputs(bool keeps) { keeps_outputs_ = keeps, is_bound_ = false; }

 private:
  struct Value {
    std::string name;
    TensorType type;
    int32_t memory = -1;  // index of its Memory; -1: known only when it runs
    int64_t offset = 0;  // in bytes from its begin
  };
  // A constant is computed from weights alone, which the graph does not write to.
  // What is `scratch` is used within one group alone.
  enum class Where : uint8_t { input, weight, block, output, constant, scratch };
  struct Memory {
    Where where;
    int32_t value;  // of an input or weight, whose first element is offset 0
    DLDevice device;
    uint64_t nbytes;
    int64_t begin = 0;  // of its bytes, from the first element of an input or weight
    uint64_t offset = 0;  // in the block of the device
    int32_t first = -1, last = -1;  // the nodes that use it
    bool is_written = false;  // by a node, other than the one that makes it
  };
  struct Block {
    DLDevice device;
    uint64_t nbytes = 0;
    Ref<plait_storage> storage;
    uint64_t begin = 0;  // in the storage; that of a region is a part of the block around it
  };
  struct Slot {  // where a call finds a tensor
    plait_tensor **at;
    int32_t value;
  };
  struct NumberSlot {
    plait_value *value;  // of an argument; or
    int64_t *integer;  // an element of a list of integers; or
    double *real;  // of floats
    int32_t number;
  };
  // Of a node `cond`: its branches; of a node `while_loop`: its condition and its body.
  struct Regions {
    bool is_loop;
    std::unique_ptr<Program> first, second;
    std::vector<plait_tensor *> results;  // where they are to lie
    std::vector<plait_tensor *> inputs;  // of a loop
    std::vector<int32_t> blocks;  // memories for the blocks of both, one for each device
  };
  struct Node {
    const plait_op *op;
    uint32_t form;
    bool runs = true;  // false: its results are views, which are made ahead
    bool allocates = false;  // its results are new tensors at each run
    bool is_constant = false;  // it runs when weights have changed since
    bool is_prepared = false;  // a run may call its kernel without the dispatcher
    int32_t group = -1;  // that it runs with
    std::vector<plait_value> in, out;
    std::vector<Slot> slots;
    std::vector<NumberSlot> numbers;
    // The values of each result: one, or those of a result Tensor[]. -1: none; -2 - i: value i of
    // before, which the operator wrote to and gives back.
    std::vector<std::vector<int32_t>> results;
    std::vector<bool> is_list;
    std::unique_ptr<Regions> regions;
  };
  class Parser;
  class Planner;
  class RegionRun;
  class DeviceGraph;
  class KernelMeasure;

  Program() = default;
  void plan(plait_thread *);
  // As a region of a loop, which carries the first inputs; the others are the same in all rounds.
  void plan_round(plait_thread *, CallLimit *, size_t n_carried, bool is_body);
  void plan_region(plait_thread *, CallLimit *);
  // How many operator calls may find the shapes, also in regions.
  uint64_t most_calls() const;
  void check_type(plait_thread *, const plait_tensor *, const TensorType &, const char *what,
                  const std::string &name) const;
  void make_fixed(plait_thread *);
  void bind_node(Node &);
  void bind_blocks(Node &);
  const Block &block_of(DLDevice) const;
  uint64_t constant_bytes() const;
  Tensor tensor_at(plait_thread *, const Value &, plait_storage *, char *begin) const;
  void begin_run(plait_thread *, plait_tensor *const *inputs, size_t n,
                 plait_tensor *const *targets = nullptr);
  void compute(plait_thread *, plait_tensor *const *inputs, size_t n, plait_tensor *const *targets,
               std::vector<Tensor> *outputs, const Observer &);
  void set_numbers(Node &) const;
  void set_version(const Value &, plait_tensor *, uint64_t version) const;
  void take_outputs(plait_thread *, std::vector<Tensor> *outputs);
  void compute_constants(plait_thread *);
  void call_constants(plait_thread *);
  void call_nodes(plait_thread *, const Observer &observer = {});
  void call_node(plait_thread *, Node &);
  void run_regions(plait_thread *, Node &);
  void run_branch(plait_thread *, Node &);
  void run_loop(plait_thread *, Node &);
  // copies.cpp: calls f with the index of each memory that a node writes to, other than that of
  // new results
  void each_written(const Node &, const std::function<void(int32_t)> &f) const;
  void elide_copies();
  // prepared.cpp
  bool is_preparable(plait_thread *, const Node &, const std::vector<plait_value> &in) const;
  bool may_skip_dispatcher() const;
  void call_prepared(plait_thread *, Node &);
  // fusion.cpp
  class Fuser;
  void fuse();
  class ConvolutionJoiner;
  // Makes a group of a convolution and what its kernel can do behind it, if there is such.
  bool join_convolution(size_t first, Group *);  // joined_convolution.cpp
  class RegisterCoder;
  void code_group(Group *) const;  // register_code.cpp
  int32_t overwritten_by(const Group &, int32_t memory) const;
  void bind_groups(plait_thread *);
  void run_group(plait_thread *, Group &, bool is_prepared, const Observer &);
  void run_blocks(plait_thread *, Group &);
  void run_by_nodes(plait_thread *, Group &, bool is_prepared, const Observer &);
  void forget_scratch(int32_t value);
  bool is_scratch(int32_t value) const;
  void end_run();
  bool is_fixed(const Value &) const;

  std::vector<Value> values_;  // inputs, weights, results
  std::vector<Memory> memories_;
  std::vector<Node> nodes_;
  std::vector<Group> groups_;
  std::vector<Node> joined_;  // calls that groups are
  std::vector<Number> numbers_;
  std::vector<int32_t> outputs_;
  std::vector<uint64_t> output_versions_;  // by output: writes to its memory after it was made
  std::vector<bool> is_alias_;  // by output: of an input, a weight or an earlier output
  std::vector<std::string> input_names_, weight_names_, output_names_;
  std::vector<Block> blocks_;
  Ref<plait_storage> scratch_;  // of the workers of groups, one after the other
  uint64_t worker_bytes_ = 0;
  std::vector<Tensor> weights_;
  std::vector<void *> weight_data_;  // where they were when the fixed tensors were made
  bool has_constants_ = false;
  bool is_region_ = false;  // then its outputs lie in its block
  // Whether it is a region of a loop, whose constants also depend on inputs that are not carried.
  bool is_round_ = false;
  // Whether constants are computed in their places at each run, as other nodes: the graph writes to
  // memory that a weight may share.
  bool constants_in_order_ = false;
  bool writes_inputs_ = false;
  std::vector<bool> is_written_, is_written_input_;  // by weight; by input
  std::vector<uint64_t> weight_versions_;  // with which the constants were computed; or empty
  std::vector<Tensor> tensors_;  // by value
  std::vector<int32_t> moving_;  // values that each run makes anew
  std::vector<Slot> moving_slots_;
  // what arguments point to
  std::list<std::vector<plait_tensor *>> tensor_lists_;
  std::list<std::vector<int64_t>> integer_lists_;
  std::list<std::vector<double>> real_lists_;
  std::list<std::string> strings_;
  bool keeps_outputs_ = true, is_bound_ = false;
  bool has_run_ = false, has_kernel_bytes_ = false;
  uint64_t kernel_bytes_ = 0;
  std::shared_ptr<DeviceGraph> device_graph_;  // or NULL
  std::mutex runs_;
};

}  // namespace plait::graph
