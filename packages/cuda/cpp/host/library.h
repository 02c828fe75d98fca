// Libraries of NVIDIA beside the driver, which are used where they are installed.
#pragma once
#include <initializer_list>

namespace plait::cuda {

// A version of a library: its folder within "nvidia", where packages of PyPI put it, and its name.
struct LibraryFile {
  const char *folder, *name;
};

// Opens the first version that there is: those of packages beside this one come first, then those
// of the system. A library of the same name that the process has open already, such as PyTorch's,
// serves instead: parts of a second copy would find parts of the first one by their names. The
// emulation has a stand-in for the first version instead. NULL: none is
// installed, or `choice`, the value of an environment variable, is 0.
void *open_library(std::initializer_list<LibraryFile> versions, const char *choice = nullptr);

struct LibraryFunction {
  void *to;  // a pointer to a function
  const char *name;
};
// False: the library lacks a function.
bool look_up(void *library, std::initializer_list<LibraryFunction> functions);

}  // namespace plait::cuda
