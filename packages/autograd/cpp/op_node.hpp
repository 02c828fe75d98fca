// The node of an operator call: saving tensors while recording, and returning them to the
// derivative.
#pragma once
#include <vector>

#include "record.hpp"

namespace plait::autograd {

// The state of tensors that a call overwrites: their versions before the call, and copies of those
// that the derivative reads.
class Overwritten {
 public:
  void inspect(const plait_call *c, uint32_t written, uint64_t need, uint64_t saved);
  bool looked() const { return looked_; }
  void connect(Node *node);  // connects the node to the histories
  uint64_t version_of(const plait_tensor *) const;                         // before the call
  plait_tensor *instead(plait_tensor *t, uint32_t argument,
                        // the copy to be saved for an argument that is overwritten
                        uint32_t item) const;

 private:
  struct Copy {
    uint32_t argument, item;
    Tensor tensor;
  };
  std::vector<std::pair<const plait_storage *, uint64_t>> versions_;
  std::vector<Copy> copies_;
  std::vector<std::pair<uint32_t, GradientEdge>> edges_;  // by position
  bool looked_ = false;
  bool writes(const plait_storage *) const;
};

// Connects the edges of a node to the histories of the call's inputs.
void connect(const plait_call *c, Node *node, uint32_t positions, uint64_t need,
             Overwritten &before);

Ref<OpNode> op_node(const plait_call *c, uint32_t positions, uint64_t need,
                    const plait_needs &needs, Overwritten &before);

}  // namespace plait::autograd
