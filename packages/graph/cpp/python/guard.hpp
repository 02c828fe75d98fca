// Whether a call may run the program that another call was recorded for.
#pragma once
#include <plait/python.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "graph.hpp"

namespace plait::graph {

// Keeps what the recorded call got and could see: its tensors' types, the modes of the thread, and
// values in dictionaries, such as parameters of modules.
class Guard {
 public:
  // `entries` are tuples of a dict, a key and the value that it must have there.
  Guard(const plait_python *python, const pybind11::tuple &tensors,
        const pybind11::list &entries);
  // Whether the arguments are tensors of the same types, and all else is as it was.
  bool holds(const pybind11::tuple &args) const;
  // Whether the values in the dictionaries are those of before.
  bool entries_hold() const;

 private:
  struct Argument {
    DLDataType dtype;
    DLDevice device;
    uint64_t layers;
    size_t first;  // the first argument that is the same tensor
    std::vector<int64_t> sizes;  // shape, then strides
  };
  const plait_python *python_;
  std::vector<Argument> arguments_;
  pybind11::list entries_;
  uint64_t excluded_, included_;
  DLDataType default_dtype_;
};

}  // namespace plait::graph
