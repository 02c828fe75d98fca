// A graph of which some sizes are free (docs/design/0055): a program for each set of sizes that
// runs ask for.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "program/program.hpp"
#include "program/size_expression.hpp"

namespace plait::graph {

struct Size {
  std::string name;
  int64_t min, max;
  int64_t value;  // for programs that are described before there are inputs
};

// Whether a text is a graph with free sizes; false for a text that is none.
bool has_free_sizes(const std::string &text);

class SizedProgram {
 public:
  // Checks the text of a graph, with or without free sizes; raises plait::Error.
  static std::unique_ptr<SizedProgram> parse(plait_thread *, std::string_view text);

  const std::vector<Size> &sizes() const { return sizes_; }
  // Sets a size for `program`. One that is out of range is an error.
  void set_size(plait_thread *, size_t i, int64_t value);
  // Sets the size that fits the bytes of an input, if one is free there, once. Whether it did.
  bool fit_input(plait_thread *, size_t i, uint64_t nbytes);
  // The program for the sizes that are set. It stays until another one is asked for.
  Program &program(plait_thread *);

  // What `Program::bind` and `Program::keep_outputs` do, for all sizes.
  void bind(plait_thread *, const std::vector<Tensor> &weights);
  void keep_outputs(bool keeps);
  // Bytes of the tensors of a run for the sizes that are set, and of what others have that ran.
  uint64_t tensor_bytes();
  // Computes the outputs for inputs of any sizes that the graph has. Any thread.
  void run(plait_thread *, plait_tensor *const *inputs, size_t n, std::vector<Tensor> *outputs);

 private:
  struct Input {  // a name and a shape with free sizes
    std::string name;
    std::vector<std::optional<SizeExpression>> shape;  // none: a number
    std::vector<int64_t> numbers;
    std::string text() const;
  };
  struct Instance {
    std::vector<int64_t> sizes;
    std::shared_ptr<Program> program;
  };
  class Writer;

  SizedProgram() = default;
  bool has_sizes() const { return kSelectsSizes && !sizes_.empty(); }
  void read_sizes(Json graph);
  void read_input(Json input);
  std::vector<int64_t> values() const;
  void check_sizes(const std::vector<int64_t> &) const;
  std::vector<int64_t> sizes_of(plait_thread *, plait_tensor *const *inputs, size_t n) const;
  std::shared_ptr<Program> instance(plait_thread *, const std::vector<int64_t> &sizes);
  std::unique_ptr<Program> make(plait_thread *, const std::vector<int64_t> &sizes) const;
  void check_shapes(const Program &, const std::vector<int64_t> &sizes) const;

  std::optional<JsonDocument> document_;  // of a graph with free sizes
  std::vector<Size> sizes_;
  SizeNames names_;
  std::vector<SizeRelation> guards_;
  std::vector<Input> inputs_;
  std::vector<Instance> instances_;  // the one that was asked for last is the last
  std::vector<Tensor> weights_;
  bool is_bound_ = false, keeps_outputs_ = true;
  std::mutex mutex_;
};

}  // namespace plait::graph
