// Code of pointwise calls whose values stay in vector registers (docs/design/0051). A piece of code
// is a list of instructions. Each has a function that changes eight registers, the accumulator, and
// jumps to the function of the next instruction: compilers make a jump of a call in the last line.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

// A build for one program (`plait_graph.bundle`) has a header with what it needs.
#ifdef PLAIT_REGISTER_CODE
#include PLAIT_REGISTER_CODE
#else
namespace plait::graph {
constexpr bool selects(const char *) { return true; }  // an operator
constexpr bool kSelectsFloats = true, kSelectsDoubles = true;
constexpr bool kSelectsSizes = true;                      // graphs with free sizes
constexpr bool kSelectsBase = true, kSelectsAvx2 = true;  // which functions of both
}  // namespace plait::graph
#endif

namespace plait::graph {

// What an instruction does with the accumulator x and the operand y. The results have the bits of
// the kernels' results, as each operation is exact or rounds once.
enum class Operation : uint8_t {
  load,  // y
  store,
  stream,  // stores without the cache
  neg,
  abs,
  sqrt,
  rsqrt,
  reciprocal,
  square,
  relu,
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  fmax,
  fmin,
  clamp_min,
  clamp_max,
  lower_bound,  // x < y ? y : x
  upper_bound,  // x > y ? y : x
  relu_backward,
  leaky_relu,
  count
};

// The operator that is the operation; NULL: the operation is a part of others, or moves elements.
constexpr const char *operator_of(Operation o) {
  constexpr const char *names[] = {nullptr,   nullptr, nullptr,         "neg",         "abs",
                                   "sqrt",    "rsqrt", "reciprocal",    "square",      "relu",
                                   "add",     "sub",   "mul",           "true_divide", "maximum",
                                   "minimum", "fmax",  "fmin",          "clamp_min",   "clamp_max",
                                   nullptr,   nullptr, "relu_backward", "leaky_relu"};
  static_assert(sizeof names / sizeof *names == std::size_t(Operation::count));
  return names[std::size_t(o)];
}

// Where the operand is: in memory, as many elements as the accumulator has; or one element that is
// repeated. In the last two forms the accumulator is y, and the operand is x.
enum class Form : uint8_t { elements, one, elements_first, one_first, count };

struct Instruction;
using Step = void (*)();  // of the type that `register_steps.hpp` has

struct Instruction {
  Step step;
  char *data;
  int64_t advance;  // -1: `data` moves on with the elements; 0: it stays
};

struct StepTable {
  int64_t elements;  // of the accumulator
  std::array<std::array<Step, std::size_t(Form::count)>, std::size_t(Operation::count)> steps;
  Step end;  // of the last instruction
  // Runs code on elements that begin at byte `begin` of what moves on, up to byte `end`.
  void (*run)(const Instruction *, int64_t begin, int64_t end);
  // Behind stores without the cache, before other threads read.
  void (*fence)();
};

struct StepTables {  // the steps of operations that the build does not need are NULL
  StepTable floats, doubles;
};
const StepTables &base_steps();
#if defined(__x86_64__)
const StepTables &avx2_steps();  // for processors that have AVX2
#endif

}  // namespace plait::graph
