// Files of NumPy (.npy, versions 1 to 3) for the command line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

// A dense array in C order; dtype as in plait/run.h.
struct Array {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Raise std::runtime_error, with the path.
Array read_npy(const std::string &path);
void write_npy(const std::string &path, const std::string &dtype, const std::vector<int64_t> &shape,
               const std::string &bytes);
