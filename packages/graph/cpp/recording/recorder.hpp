// Records the operator calls of one thread, as the text of a graph (docs/design/0051).
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph.hpp"

namespace plait::graph {

class Recorder {
 public:
  // `is_region`: it records a function of `cond` or `while_loop`, which must not write to memory
  // from outside, other than that of its arguments after `end_arguments`.
  explicit Recorder(bool is_region = false);

  // Records a call and makes it. It fails a call only for a region's write to other memory: what
  // cannot be recorded otherwise is told by `problem`.
  plait_status record(plait_call *c);
  // The name of a tensor that a recorded call made or got, or a new name for one from elsewhere.
  std::string name_of(plait_tensor *t);
  // The name of a tensor that it knows, or "".
  std::string find(const plait_tensor *t) const;

  // Forgets values that nobody else holds: no call can get them any more. A recording so needs
  // the memory that the function needs.
  void forget_dead();

  // What has a name so far are the arguments of the function.
  void end_arguments();
  // Records a node with regions, whose results were computed elsewhere; the first two are JSON.
  void add_regions(const std::string &begin, const std::string &regions,
                   const std::vector<Tensor> &results);

  // Notes memory of a region that is still in use, and must not be used behind it: that of a
  // tensor, or all that a region's recorder saw, without that of the region's results.
  void note_inner(const plait_tensor *t);
  void note_region(const Recorder &region, const std::vector<Tensor> &results);

  // The elements of the lists `nodes` and `values` of the graph, in JSON.
  const std::string &nodes() const { return nodes_; }
  const std::string &values() const { return values_; }
  uint64_t size() const { return n_nodes_; }
  // Whether an operator was called whose offsets count from the start of memory.
  bool reads_offsets() const { return reads_offsets_; }
  // A tensor that no recorded call made, and what it was when it was first seen.
  struct Outside {
    std::string name;
    Tensor tensor;
    std::string description;  // JSON
  };
  const std::vector<Outside> &outside() const { return outside_; }
  // Keeps a copy of each value that a node makes or writes to, as it is behind the node.
  void keep_copies() { keeps_copies_ = true; }
  struct Copy {
    uint64_t node;
    std::string name;
    Tensor tensor;
  };
  const std::vector<Copy> &copies() const { return copies_; }
  // Calls of the operators `apart` run their decompositions, whose calls are recorded in their
  // place; those of the operators `refused` are errors.
  void select(std::unordered_set<std::string> apart, std::unordered_set<std::string> refused) {
    apart_ = std::move(apart), refused_ = std::move(refused);
  }
  // Is told that Python reads the elements of a tensor.
  void note_read(const plait_tensor *t);
  // A comparison of sizes in a decomposition or derivative, between calls that are recorded: 0 to 5
  // for a == b, !=, <, <=, > and >=; 6 and 7 for a % b and a / b, which are compared.
  struct Comparison {
    int32_t relation;
    int64_t a, b;
  };
  void follow_sizes() { follows_sizes_ = true; }
  void note_comparison(const Comparison &);
  const std::vector<Comparison> &comparisons() const { return comparisons_; }
  // Why the calls are no graph; empty if they are one.
  const std::string &problem() const { return problem_; }

 private:
  struct Memory {
    Ref<plait_storage>
        storage;  // retained, so that its address is not used again while it is known
    bool is_outside, is_argument;
    std::string first;         // a value that lies at its start, or empty
    DLDataType first_dtype{};  // of that value
  };
  void refuse(const plait_call *c, const std::string &why);
  std::string add_value(plait_tensor *t);
  std::string argument(const plait_call *c, uint16_t i);
  void make_target(plait_tensor *t);
  std::string result(const plait_call *c, const plait_value &v, bool *is_new);
  std::string as_strided(plait_tensor *t, const Memory &memory);
  void copy_results(const plait_call *c);
  // Where a generator was behind the last call that drew from it.
  struct Drawn {
    const plait_generator *generator;
    uint64_t seed, offset;
  };
  Drawn &drawn_from(const plait_generator *);
  // The tensor from outside that a call would write to, or NULL.
  const plait_tensor *written_outside(const plait_call *c) const;

  std::string nodes_, values_, problem_;
  std::vector<Outside> outside_;
  // by the storage, and by what `key` gives
  std::unordered_map<const plait_storage *, std::unordered_map<std::string, std::string>> names_;
  std::unordered_map<plait_storage *, Memory> memories_;
  std::unordered_map<const plait_storage *, Ref<plait_storage>> inner_;  // of regions
  void add_node(const std::string &);

  const bool is_region_;
  uint64_t n_values_ = 0, n_nodes_ = 0;
  uint64_t new_bytes_ = 0;  // of values, since `forget_dead`
  bool keeps_copies_ = false;
  std::vector<Copy> copies_;
  std::vector<Drawn> drawn_;
  std::vector<Comparison> comparisons_;
  bool follows_sizes_ = false;
  std::unordered_set<std::string> apart_, refused_;
  bool reads_offsets_ = false;
  bool is_within_call_ = false;  // of an operator, whose kernel may be in Python
};

// Begins to record the calls of this thread. Another recorder of it gets no calls until this one
// stops: `before` is set to it, or to NULL.
plait_status start_recording(plait_thread *, Recorder *, Recorder **before);
// Goes on with the recorder `before`, if it is not NULL.
void stop_recording(plait_thread *, Recorder *before);
// Tells the recorder of this thread, if there is one, that Python reads the elements of a tensor.
void note_read(const plait_tensor *);
// Lets libplait_ops, a library that is loaded, tell the recorder of comparisons. False without it.
bool observe_comparisons(const char *library);

}  // namespace plait::graph
