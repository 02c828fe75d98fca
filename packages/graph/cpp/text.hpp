// Parts of the text of a graph: values and arguments in JSON (docs/design/0051).
#pragma once
#include <string>

#include "graph.hpp"

namespace plait::graph {

std::string string_text(const std::string &);
std::string float_text(double);  // has a point or an exponent, or is an object
std::string ints_text(const int64_t *, int64_t n);
// An argument that is no tensor.
std::string scalar_text(const plait_value &);
// The entry of a tensor in `inputs`, `weights` or `values`.
std::string value_text(const std::string &name, const plait_tensor *);

}  // namespace plait::graph
