// How a call of an operator can be cut into calls on slices of its tensors: the definitions say it
// (`Operator.slices` of plait_ops), and plait_ops.emit.kernels writes the table.
#pragma once

namespace plait::core {

// A letter for each argument of the schema, `>`, and a letter for each result:
//   0 to 9  it is cut along this dimension; of a list of sizes that entry becomes the slice's
//   d       it is cut along a dimension that the argument `dim` does not name
//   .       every slice sees the whole argument
//   +       the result is the sum of those of the slices
// The first tensor with a digit or `d` decides how many slices there are.
struct SliceLetters {
  const char *op, *letters;
};
extern const SliceLetters kSliceLetters[];  // the last one has no name

}  // namespace plait::core
