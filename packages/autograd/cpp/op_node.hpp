// The node of an operator call: what is saved while recording, what the derivative gets back.
#pragma once
#include <vector>

#include "record.hpp"

namespace plait::autograd {

// What a call that writes its arguments is about to destroy: versions from before, and copies of
// what will be read.
class Overwritten {
 public:
  void look(const plait_call *c, uint32_t written, uint64_t need, uint64_t saved);
  bool looked() const { return looked_; }
  void connect(Node *node);  // hands over the histories
  uint64_t version_of(const plait_storage *) const;                         // before the call
  plait_tensor *instead(plait_tensor *t, uint32_t argument,
                        uint32_t item) const;  // what to save for an argument that is overwritten

 private:
  struct Copy {
    uint32_t argument, item;
    Tensor tensor;
  };
  std::vector<std::pair<const plait_storage *, uint64_t>> versions_;
  std::vector<Copy> copies_;
  std::vector<std::pair<uint32_t, Place>> places_;  // by position
  bool looked_ = false;
  bool writes(const plait_storage *) const;
};

// Points the edges of a node at the histories of the call's inputs.
void connect(const plait_call *c, Node *node, uint32_t positions, uint64_t need,
             Overwritten &before);

Ref<OpNode> op_node(const plait_call *c, uint32_t positions, uint64_t need,
                    const plait_needs &needs, Overwritten &before);

}  // namespace plait::autograd
