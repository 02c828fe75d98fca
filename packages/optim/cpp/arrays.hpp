// The type with which a rule becomes a decomposition: arithmetic on it calls operators, so that a
// step runs on every device that has the ordinary ones.
#ifndef PLAIT_OPTIM_ARRAYS_HPP
#define PLAIT_OPTIM_ARRAYS_HPP
#include <memory>

#include <plait/plait.hpp>

namespace plait::optim {

// A number, or a number times a tensor. A product or quotient of two tensors is computed when its
// elements are needed, at most once, so that adding it takes one call (addcmul, addcdiv). A result
// goes into the memory of an operand that no variable names any more, and of `a` in a += b.
class Array {
 public:
  // out of line, as rules have many of them
  Array();
  Array(const Array &);
  Array(Array &&) noexcept;
  Array &operator=(const Array &);
  Array &operator=(Array &&) noexcept;
  ~Array();

  explicit Array(double number);
  // No other array must have the same tensor.
  Array(plait_thread *thread, const Tensor &t);

  // The elements, with the factor multiplied in; not for a number.
  Tensor tensor() &&;

  Array operator-() const;
  Array &operator+=(Array other);
  Array &operator-=(Array other);
  Array &operator*=(Array other);
  friend Array operator+(Array a, Array b);
  friend Array operator-(Array a, Array b);
  friend Array operator*(const Array &a, const Array &b);
  friend Array operator/(const Array &a, const Array &b);
  // Masks, for `select`; here and in what follows `a` is a tensor.
  friend Array operator>(const Array &a, const Array &b);
  friend Array operator<(const Array &a, const Array &b);
  friend Array select(const Array &mask, const Array &a, const Array &b);  // b is a tensor
  friend Array root(Array a);
  friend Array magnitude(Array a);
  friend Array larger(const Array &a, const Array &b);
  friend Array power(double base, const Array &a);

  struct Node;

 private:
  Array(double factor, std::shared_ptr<Node> node) : factor_(factor), node_(std::move(node)) {}
  bool is_plain() const;
  bool is_spare() const;
  Array plain() &&;
  plait_value argument() const;
  static Array combine(const Array &a, const Array &b, int form);
  static Array add(Array base, const Array &term);
  static Array map(Array a, const Operator &f);

  double factor_ = 0;
  std::shared_ptr<Node> node_;  // NULL: a number
};

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_ARRAYS_HPP
