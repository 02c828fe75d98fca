// One collective of all members of a group.
#pragma once
#include "group.hpp"

namespace plait::multiprocessing {

struct Collective {  // arguments that were checked
  uint32_t kind, reduction, root, n_in, n_out;
  plait_tensor *const *in, *const *out;  // of any strides
  DLDataType dtype;
  uint64_t elements;  // of one member, or of one member for one rank
  int64_t tag;        // no message's: members compare it
};

Outcome run(Group &, const Collective &, const Patience &, std::string &why);

}  // namespace plait::multiprocessing
