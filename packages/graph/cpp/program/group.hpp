// Nodes that run together (docs/design/0051): pointwise ones, block by block, or as one call.
#pragma once
#include <vector>

#include "graph.hpp"
#include "program/register_code.hpp"

namespace plait::graph {

// A block has at least so many elements, unless that is less than 64, which tests set: it has so
// many then.
extern int64_t fewest_elements;

// The kernel that runs first on the CPU, or NULL.
inline const plait_entry *kernel_of(const plait_op *op) {
  return op->n_backend > uint64_t(kDLCPU) ? __atomic_load_n(&op->backend, __ATOMIC_ACQUIRE)[kDLCPU]
                                          : nullptr;
}

// All its values have one shape, or are broadcast to it. A block is a part of that shape which is
// so small that its values stay in the cache from one call to the next. A value that no other node
// uses has memory for one block only, one for each thread.
struct Group {
  struct Operand {
    int32_t value;
    int32_t place = -1;  // in the memory of a thread; -1: the value has memory of its own
    int64_t itemsize = 0;
    std::vector<int64_t> strides;  // in elements, of `sizes`
  };
  struct Call {
    int32_t node;
    std::vector<std::pair<uint16_t, int32_t>> in;  // arguments that are tensors, and the operands
    int32_t out;  // operand
    const plait_op *op;
    uint32_t form;
    const plait_entry *kernel = nullptr;
  };
  // A part of register code: what an instruction does with an operand, or with a number.
  struct Part {
    Operation operation;
    Form form;
    int32_t operand;  // -1: the number, or none
    alignas(8) char number[8];  // an element
  };
  // Calls that follow each other and run as register code.
  struct Run {
    size_t begin, end;  // the calls
    bool is_double;
    std::vector<Part> parts;
    const StepTable *table;  // NULL: the kernels of other plug-ins run
  };
  struct alignas(64) Tail {
    char bytes[256];
  };
  // What a thread needs to call kernels: the operands of its block.
  struct Worker {
    std::vector<plait_tensor> tensors;  // by operand
    std::vector<int64_t> shape;  // of the block
    std::vector<std::vector<plait_value>> in;  // by call
    std::vector<plait_value> out;
    std::vector<std::vector<Instruction>> codes;  // by run
    std::vector<Tail> tails;  // by operand
  };

  int32_t first = 0, last = 0;  // its nodes lie between these
  int32_t joined = -1;  // the call that it is, of Program::joined_; then there are no blocks
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::vector<Run> runs;
  std::vector<int64_t> sizes;  // of the dimensions, the outermost first
  int64_t cut = 0;  // the dimension that blocks divide; those behind it are whole
  int64_t rows = 1;  // of a block, in that dimension
  int64_t pieces = 1, blocks = 1;  // into which `cut` is divided; of the whole
  int64_t block_elements = 0;
  int64_t place_bytes = 0;
  int32_t places = 0;
  std::vector<std::vector<int64_t>> block_strides;  // by operand
  std::vector<Worker> workers;
  std::vector<char *> bases;  // by operand: its first element in this run
  bool is_served = false;  // its kernels do not decline the calls

  uint64_t scratch_bytes() const { return uint64_t(places) * uint64_t(place_bytes); }
  // Divides the shape into blocks of at most so many elements; false if there is one alone.
  bool divide(int64_t most_elements);
  // Points the operands of a worker to a block.
  void seek(Worker *, int64_t block) const;
  // Chooses the instructions of the processor, once the calls have kernels and there are workers.
  void bind_runs();
  // Runs a block of the calls of a run.
  void run_code(size_t run, Worker *) const;

 private:
  void point(const Run &, Worker *, std::vector<Instruction> *, const int64_t *at) const;
  void run_tail(const Run &, Worker *, std::vector<Instruction> *, int64_t begin, int64_t n) const;
};

}  // namespace plait::graph
