// Whether a call may run the program that another call was recorded for.
#pragma once
#include <plait/python.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "graph.hpp"

namespace plait::graph {

// Keeps what the recorded call got and could see.
class Guard {
 public:
  // `kept` are the tensors that the program reads besides its arguments; `grads` are tensors of
  // which it matters whether they have a gradient. `entries` are tuples: a dict or list, a key or
  // index and the value that it must have there; a cell and its value; a list or dict and its size.
  Guard(const plait_python *python, const pybind11::tuple &args, const pybind11::list &kept,
        const pybind11::list &grads, const pybind11::list &entries);
  // Whether the arguments are tensors of the same types that share memory in the same way, and all
  // else is as it was.
  bool holds(const pybind11::tuple &args) const;

 private:
  bool rest_holds() const;  // all but the arguments is as it was
  bool containers_hold() const;
  // Entries of one container that follow each other. A dict whose version is that with which they
  // held last is not read again: a model has thousands of entries, far apart in memory.
  struct Container {
    PyObject *of;
    mutable uint64_t version;
    std::vector<PyObject *> entries;  // of `entries_`, which owns them
  };
  struct Type {
    DLDataType dtype;
    DLDevice device;
    uint64_t layers;
    bool begins;                 // it lies at the start of its memory, where offsets count from
    std::vector<int64_t> sizes;  // shape, then strides
    explicit Type(const plait_tensor *);
    bool fits(const plait_tensor *) const;
  };
  struct Argument {
    Type type;
    size_t first;  // the first argument with the same storage
    ptrdiff_t distance;  // in bytes from that one
  };
  const plait_python *python_;
  std::vector<Argument> arguments_;
  std::vector<std::pair<Tensor, Type>> kept_;
  std::vector<std::pair<Tensor, bool>> grads_;
  pybind11::tuple entries_;
  std::vector<Container> containers_;
  uint64_t excluded_, included_;
  DLDevice device_;
  DLDataType default_dtype_;
};

}  // namespace plait::graph
