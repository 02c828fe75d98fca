#include "arrays.hpp"

namespace plait::optim {
namespace {

struct Operators {
  explicit Operators(const plait_runtime *r)
      : add(r, "add"),
        mul(r, "mul"),
        div(r, "div"),
        addcmul(r, "addcmul"),
        addcdiv(r, "addcdiv"),
        sqrt(r, "sqrt"),
        abs(r, "abs"),
        maximum(r, "maximum"),
        gt(r, "gt"),
        lt(r, "lt"),
        where(r, "where"),
        pow(r, "pow") {}
  Operator add, mul, div, addcmul, addcdiv, sqrt, abs, maximum, gt, lt, where, pow;
};

const Operators &operators(const plait_thread *thread) {
  static const Operators all(thread->runtime);
  return all;
}

}  // namespace

struct Array::Node {
  enum Form { elements, product, quotient };
  plait_thread *thread;
  Form form;
  Tensor value;                // of `elements`
  std::shared_ptr<Node> x, y;  // of the others

  const Tensor &evaluated() {
    if (form == elements) return value;
    const Operators &op = operators(thread);
    value = (form == product ? op.mul : op.div)(thread, x->evaluated(), y->evaluated());
    form = elements;
    x = y = nullptr;
    return value;
  }
};

Array::Array() = default;
Array::Array(const Array &) = default;
Array::Array(Array &&) noexcept = default;
Array &Array::operator=(const Array &) = default;
Array &Array::operator=(Array &&) noexcept = default;
Array::~Array() = default;

Array::Array(double number) : factor_(number) {}
Array::Array(plait_thread *thread, const Tensor &t)
    : factor_(1), node_(new Node{thread, Node::elements, t, nullptr, nullptr}) {}

// Whether it is a tensor without a factor, and nothing has to be computed.
bool Array::is_plain() const { return node_ && node_->form == Node::elements && factor_ == 1; }

// Whether its memory may take a result: nothing else names it, and no layer sees the calls, which
// might have kept it.
bool Array::is_spare() const {
  return node_.use_count() == 1 && node_->thread->excluded == ~uint64_t(0);
}

// A number, or a tensor whose elements are there, without a factor.
Array Array::plain() && {
  if (!node_) return *this;
  const Tensor t = node_->evaluated();
  if (factor_ == 1) return std::move(*this);
  plait_thread *thread = node_->thread;
  const Operator &mul = operators(thread).mul;
  return Array(thread, is_spare() ? mul.in_place(thread, t, factor_) : mul(thread, t, factor_));
}

Tensor Array::tensor() && { return std::move(*this).plain().node_->value; }

// A plain array or a number as an argument of an operator, while this lives.
plait_value Array::argument() const { return node_ ? value(node_->value) : value(factor_); }

// base + term, for a plain base.
Array Array::add(Array base, const Array &term) {
  plait_thread *thread = base.node_->thread;
  const Operators &op = operators(thread);
  const bool spare = base.is_spare();
  const Tensor t = base.node_->value;
  const auto run = [&](const Operator &f, const auto &...args) {
    return Array(thread, spare ? f.in_place(thread, t, args...) : f(thread, t, args...));
  };
  if (!term.node_) return run(op.add, term.factor_);
  const Node &node = *term.node_;
  if (node.form == Node::elements) return run(op.add, node.value, term.factor_);
  return run(node.form == Node::product ? op.addcmul : op.addcdiv, node.x->evaluated(),
             node.y->evaluated(), term.factor_);
}

Array operator+(Array a, Array b) {
  if (!a.node_ && !b.node_) return Array(a.factor_ + b.factor_);
  if (!a.node_ || (!a.is_plain() && b.is_plain())) std::swap(a, b);
  return Array::add(std::move(a).plain(), b);
}

Array operator-(Array a, Array b) { return std::move(a) + -b; }
Array Array::operator-() const { return Array(-factor_, node_); }

// The product or quotient of two tensors, to be computed.
Array Array::combine(const Array &a, const Array &b, int form) {
  const auto node = std::make_shared<Node>();
  node->thread = a.node_->thread;
  node->form = Node::Form(form);
  node->x = a.node_;
  node->y = b.node_;
  return Array(form == Node::product ? a.factor_ * b.factor_ : a.factor_ / b.factor_, node);
}

Array operator*(const Array &a, const Array &b) {
  if (a.node_ && b.node_) return Array::combine(a, b, Array::Node::product);
  return Array(a.factor_ * b.factor_, a.node_ ? a.node_ : b.node_);
}

Array operator/(const Array &a, const Array &b) {
  if (!b.node_) return Array(a.factor_ / b.factor_, a.node_);
  if (!a.node_) {
    plait_thread *thread = b.node_->thread;
    return Array(thread,
                 operators(thread).div(thread, a.factor_ / b.factor_, b.node_->evaluated()));
  }
  return Array::combine(a, b, Array::Node::quotient);
}

Array &Array::operator+=(Array other) { return *this = std::move(*this) + std::move(other); }
Array &Array::operator-=(Array other) { return *this = std::move(*this) - std::move(other); }

Array operator>(const Array &a, const Array &b) {
  const Array x = Array(a).plain(), y = Array(b).plain();
  plait_thread *thread = x.node_->thread;
  return Array(thread, operators(thread).gt(thread, x.argument(), y.argument()));
}

Array operator<(const Array &a, const Array &b) {
  const Array x = Array(a).plain(), y = Array(b).plain();
  plait_thread *thread = x.node_->thread;
  return Array(thread, operators(thread).lt(thread, x.argument(), y.argument()));
}

Array select(const Array &mask, const Array &a, const Array &b) {
  const Array x = Array(a).plain(), y = Array(b).plain();
  plait_thread *thread = y.node_->thread;
  return Array(
      thread, operators(thread).where(thread, mask.node_->evaluated(), x.argument(), y.argument()));
}

Array larger(const Array &a, const Array &b) {
  const Array x = Array(a).plain(), y = Array(b).plain();
  plait_thread *thread = x.node_->thread;
  return Array(thread, operators(thread).maximum(thread, x.argument(), y.argument()));
}

Array power(double base, const Array &a) {
  const Array x = Array(a).plain();
  plait_thread *thread = x.node_->thread;
  return Array(thread, operators(thread).pow(thread, base, x.argument()));
}

// f(a), in the memory of `a` if nothing else uses it.
Array Array::map(Array a, const Operator &f) {
  const Array x = std::move(a).plain();
  plait_thread *thread = x.node_->thread;
  const Tensor &t = x.node_->value;
  return Array(thread, x.is_spare() ? f.in_place(thread, t) : f(thread, t));
}

Array root(Array a) {
  const Operator &f = operators(a.node_->thread).sqrt;
  return Array::map(std::move(a), f);
}

Array magnitude(Array a) {
  const Operator &f = operators(a.node_->thread).abs;
  return Array::map(std::move(a), f);
}

}  // namespace plait::optim
