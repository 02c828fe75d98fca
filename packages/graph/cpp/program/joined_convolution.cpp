// A convolution, the addition of a shortcut behind it and an activation become one call, whose
// kernel does all of them as it stores results: the same bits in one pass over memory. The nodes
// are a group, so that they run one by one where somebody watches.
#include <algorithm>
#include <cstring>

#include "program/program.hpp"

namespace plait::graph {

namespace {

// The operators that the kernels apply behind a sum; relu6 is hardtanh with its own numbers. Their
// other arguments have the names of the kernels' ones.
constexpr const char *activations[] = {"relu", "hardtanh", "leaky_relu", "silu", "hardswish"};

bool real_of(const plait_value &v, double *x) {
  if (v.tag == PLAIT_FLOAT) *x = v.u.f;
  if (v.tag == PLAIT_INT) *x = double(v.u.i);
  return v.tag == PLAIT_FLOAT || v.tag == PLAIT_INT;
}

bool is_like(const TensorType &a, const TensorType &b) {
  return same(a.dtype, b.dtype) && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace

class Program::ConvolutionJoiner {
 public:
  ConvolutionJoiner(Program *program, size_t first) : p_(*program), first_(first) {}

  bool join(Group *g) {
    const Node &conv = p_.nodes_[first_];
    if (conv.op != runtime->op("conv2d") || conv.form != PLAIT_FUNCTION || !may_run(first_))
      return false;
    const DLDataType dtype = p_.values_[size_t(conv.results[0][0])].type.dtype;
    if (!same(dtype, dtype::float32) && !same(dtype, dtype::float64)) return false;
    take(first_);
    if (const size_t at = next(); at < p_.nodes_.size() && is_addition(p_.nodes_[at], at)) take(at);
    if (const size_t at = next(); at < p_.nodes_.size() && is_activation(p_.nodes_[at], at))
      take(at);
    return nodes_.size() > 1 && make_node() && make_group(g);
  }

 private:
  const Memory &memory_of(int32_t value) const {
    return p_.memories_[size_t(p_.values_[size_t(value)].memory)];
  }
  // The tensor that is argument a of a node, or -1.
  static int32_t operand(const Node &n, size_t a) {
    for (const Slot &slot : n.slots)
      if (slot.at == &n.in[a].u.t) return slot.value;
    return -1;
  }
  bool may_run(size_t i) const {
    const Node &n = p_.nodes_[i];
    return n.is_prepared && !n.is_constant && n.results.size() == 1 && kernel_of(n.op);
  }
  size_t next() const {
    size_t i = nodes_.back() + 1;
    while (i < p_.nodes_.size() && (!p_.nodes_[i].runs || p_.nodes_[i].is_constant)) i++;
    return i;
  }
  void take(size_t i) {
    const Node &n = p_.nodes_[i];
    nodes_.push_back(i);
    value_ = n.form == PLAIT_INPLACE ? n.slots[0].value : n.results[0][0];
  }

  // Whether node i takes the value so far as it is and nobody else does, or writes to it.
  bool continues(const Node &n, size_t i) const {
    if (!may_run(i)) return false;
    if (n.form == PLAIT_INPLACE) return n.slots[0].value == value_;
    const Memory &m = memory_of(value_);
    const bool is_internal =
        m.where == Where::block && m.first >= int32_t(first_) && m.last <= int32_t(i);
    return is_internal &&
           is_like(p_.values_[size_t(n.results[0][0])].type, p_.values_[size_t(value_)].type);
  }

  bool is_addition(const Node &n, size_t i) {
    if (n.op != runtime->op("add") || !continues(n, i)) return false;
    double factor = 0;
    if (!real_of(n.in[2], &factor) || factor != 1) return false;
    const int32_t a = operand(n, 0), b = operand(n, 1);
    if (a < 0 || b < 0 || a == b || (a != value_ && b != value_)) return false;
    const int32_t other = a == value_ ? b : a;
    const Memory &m = memory_of(other);
    const bool is_given = m.where == Where::input || m.where == Where::weight;
    if (!is_given && m.first >= int32_t(first_)) return false;
    if (!is_like(p_.values_[size_t(other)].type, p_.values_[size_t(value_)].type)) return false;
    residual_ = other;
    return true;
  }

  bool is_activation(const Node &n, size_t i) {
    const bool is_relu6 = std::strcmp(n.op->name, "relu6") == 0;
    const char *name = is_relu6 ? "hardtanh" : n.op->name;
    if (!continues(n, i) || operand(n, 0) != value_) return false;
    for (const char *known : activations)
      if (std::strcmp(name, known) == 0) activation_ = known, at_activation_ = i;
    return activation_ != nullptr;
  }

  // The number that the activation has for an argument of the kernel.
  double number(const char *argument) const {
    const Node &n = p_.nodes_[at_activation_];
    double x = std::strcmp(argument, "max_val") ? 0 : 6;  // of relu6
    for (uint16_t a = 1; activation_ && a < n.op->n_args; a++)
      if (std::strcmp(plait_arg_at(n.op, a)->name, argument) == 0) real_of(n.in[a], &x);
    return x;
  }

  bool make_node() {
    const Node &conv = p_.nodes_[first_];
    const plait_op *op = runtime->op(residual_ < 0 ? "conv2d_activation" : "conv2d_add_activation");
    const plait_entry *kernel = op ? kernel_of(op) : nullptr;
    if (!kernel) return false;
    for (const size_t i : nodes_)  // whoever replaces one of the kernels wants it to run
      if (kernel_of(p_.nodes_[i].op)->who != kernel->who) return false;
    Node n{};
    n.op = op;
    n.form = PLAIT_FUNCTION;
    n.is_prepared = true;
    n.in.resize(op->n_args, none());
    n.out.resize(1);
    n.results = {{value_}};
    n.is_list = {false};
    const size_t n_conv = conv.in.size();
    std::copy(conv.in.begin(), conv.in.end(), n.in.begin());
    for (size_t a = 0; a < n_conv; a++)
      if (const int32_t v = operand(conv, a); v >= 0) n.slots.push_back({&n.in[a].u.t, v});
    size_t at = n_conv;
    if (residual_ >= 0) {
      n.in[at].tag = PLAIT_TENSOR;
      n.slots.push_back({&n.in[at].u.t, residual_});
      at++;
    }
    if (activation_) n.in[at] = value(activation_);
    while (++at < n.in.size()) n.in[at] = value(number(plait_arg_at(op, uint16_t(at))->name));
    p_.joined_.push_back(std::move(n));
    return true;
  }

  // What the call reads is there until its end, and its result from the begin on. Values between
  // have no memory.
  bool make_group(Group *g) {
    g->joined = int32_t(p_.joined_.size()) - 1;
    g->first = int32_t(first_);
    g->last = int32_t(nodes_.back());
    const int32_t result = p_.values_[size_t(value_)].memory;
    for (const size_t i : nodes_) {
      const Node &n = p_.nodes_[i];
      Group::Call call{};
      call.node = int32_t(i);
      call.out = -1;
      call.op = n.op;
      call.form = n.form == PLAIT_FUNCTION ? uint32_t(PLAIT_OUT) : n.form;
      g->calls.push_back(std::move(call));
      for (const Slot &slot : n.slots) extend(p_.values_[size_t(slot.value)].memory, *g);
      for (const auto &values : n.results) {
        const int32_t m = p_.values_[size_t(values[0])].memory;
        extend(m, *g);
        if (m != result) p_.memories_[size_t(m)].where = Where::scratch;
      }
    }
    return true;
  }
  void extend(int32_t memory, const Group &g) {
    Memory &m = p_.memories_[size_t(memory)];
    if (m.first > g.first) m.first = g.first;
    m.last = std::max(m.last, g.last);
  }

  Program &p_;
  size_t first_;
  std::vector<size_t> nodes_;
  int32_t value_ = -1, residual_ = -1;  // the result of the last node; what is added to it
  const char *activation_ = nullptr;
  size_t at_activation_ = 0;  // its node
};

bool Program::join_convolution(size_t first, Group *g) {
  return ConvolutionJoiner(this, first).join(g);
}

}  // namespace plait::graph
