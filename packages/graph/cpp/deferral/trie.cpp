#include "deferral/trie.hpp"

#include <algorithm>

#include "deferral/segment.hpp"

namespace plait::graph {
namespace {

constexpr uint64_t seen_flags = PLAIT_TENSOR_WRAPPED_NUMBER | PLAIT_TENSOR_DATA;
constexpr size_t most_children = 64, most_nodes = 50000, most_roots = 8;

size_t nbytes_behind(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_COMPLEX: return 16;
    case PLAIT_INTS:
    case PLAIT_FLOATS: return size_t(v.n) * 8;
    case PLAIT_STRING: return v.n;
    default: return 0;
  }
}

}  // namespace

PlaceType::PlaceType(const plait_tensor *t)
    : dtype(t->dl.dtype),
      flags(t->flags & seen_flags),
      ndim(t->dl.ndim),
      sizes(t->dl.shape, t->dl.shape + t->dl.ndim) {
  sizes.insert(sizes.end(), t->dl.strides, t->dl.strides + t->dl.ndim);
}

bool PlaceType::fits(const plait_tensor *t) const {
  const auto n = size_t(t->dl.ndim);
  return same(t->dl.dtype, dtype) && t->dl.ndim == ndim && (t->flags & seen_flags) == flags &&
         std::equal(t->dl.shape, t->dl.shape + n, sizes.begin()) &&
         std::equal(t->dl.strides, t->dl.strides + n, sizes.begin() + ptrdiff_t(n));
}

int64_t PlaceType::numel() const {
  int64_t n = 1;
  for (int32_t i = 0; i < ndim; i++) n *= sizes[size_t(i)];
  return n;
}

plait_value copy_scalar(const plait_value &v, std::vector<uint64_t> *words) {
  plait_value result = v;
  const size_t nbytes = nbytes_behind(v);
  if (v.tag != PLAIT_STRING && !nbytes) return result;
  words->assign(nbytes / 8 + 1, 0);  // a string has a NUL behind it
  if (nbytes) std::memcpy(words->data(), v.u.s, nbytes);
  result.u.s = reinterpret_cast<const char *>(words->data());
  return result;
}

bool Argument::fits(const plait_value &v) const {
  if (v.tag != value.tag) return false;
  switch (v.tag) {
    case PLAIT_NONE: return true;
    case PLAIT_BOOL: return (v.u.i != 0) == (value.u.i != 0);
    case PLAIT_INT:
    case PLAIT_FLOAT: return varies || v.u.i == value.u.i;  // the bits of a float
    case PLAIT_DTYPE: return same(v.u.dtype, value.u.dtype);
    case PLAIT_DEVICE: return same(v.u.device, value.u.device);
    case PLAIT_INTS:
      if (varies) return v.n == value.n;
      [[fallthrough]];
    default: {
      const size_t nbytes = nbytes_behind(v);
      return v.n == value.n && (!nbytes || std::memcmp(v.u.s, value.u.s, nbytes) == 0);
    }
  }
}

CallNode::CallNode() = default;
CallNode::~CallNode() {
  // without recursion: a path can have thousands of calls
  while (!children.empty()) {
    std::unique_ptr<CallNode> child = std::move(children.back());
    children.pop_back();
    for (auto &each : child->children) children.push_back(std::move(each));
    child->children.clear();
  }
}

CallNode *Trie::root(const plait_thread *thread) {
  const DLDataType default_dtype = *runtime->default_dtype;
  const uint64_t settings = __atomic_load_n(runtime->settings, __ATOMIC_RELAXED);
  for (const Root &each : roots_)
    if (same(each.default_dtype, default_dtype) && same(each.device, thread->device) &&
        each.settings == settings)
      return each.node.get();
  if (roots_.size() >= most_roots) return nullptr;
  roots_.push_back({default_dtype, thread->device, settings, std::make_unique<CallNode>()});
  return roots_.back().node.get();
}

bool Trie::add(CallNode *parent, std::unique_ptr<CallNode> child) {
  if (parent->children.size() >= most_children || n_nodes_ >= most_nodes) return false;
  child->parent = parent;
  parent->children.push_back(std::move(child));
  n_nodes_++;
  return true;
}

std::vector<std::string> Trie::graphs() const {
  std::vector<std::string> result;
  std::vector<const CallNode *> rest;
  for (const Root &each : roots_) rest.push_back(each.node.get());
  while (!rest.empty()) {
    const CallNode *node = rest.back();
    rest.pop_back();
    for (const auto &segment : node->segments)
      if (segment->program()) result.push_back(segment->text());
    for (auto each = node->children.rbegin(); each != node->children.rend(); ++each)
      rest.push_back(each->get());
  }
  return result;
}

}  // namespace plait::graph
