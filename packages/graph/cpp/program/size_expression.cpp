#include "program/size_expression.hpp"

#include <algorithm>
#include <charconv>

#include "json.hpp"

namespace plait::graph {

namespace {

constexpr size_t longest = 1000;
constexpr int deepest = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int64_t floor_division(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace

bool is_size_name(std::string_view text) {
  const auto fits = [](char c) { return is_letter(c) || is_digit(c); };
  return !text.empty() && is_letter(text[0]) && text != "min" && text != "max" &&
         std::all_of(text.begin(), text.end(), fits);
}

class SizeExpressionParser {
 public:
  using Kind = SizeExpression::Step::Kind;

  SizeExpressionParser(std::string_view text, const SizeNames &names) : text_(text), names_(names) {
    if (text.size() > longest)
      throw JsonError("an expression of sizes has more than " + std::to_string(longest) +
                      " characters");
  }

  SizeExpression expression() {
    steps_.clear();
    sum();
    SizeExpression result;
    result.text_ = std::string(text_);
    result.steps_ = std::move(steps_);
    return result;
  }
  std::string relation() {
    for (const char *const op : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(op)) return op;
    fail();
  }
  void end() {
    skip_space();
    if (at_ < text_.size()) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw JsonError(quote(text_) + " is no expression of the sizes of the graph");
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void require(std::string_view token) {
    if (!take(token)) fail();
  }
  void push(Kind kind, int64_t number = 0) { steps_.push_back({kind, number}); }
  void deeper() {
    if (++depth_ > deepest)
      throw JsonError("an expression of sizes has more than " + std::to_string(deepest) +
                      " levels");
  }

  void sum() {
    const int before = depth_;
    product();
    for (;;) {
      const bool adds = take("+");
      if (!adds && !take("-")) break;
      deeper();
      product();
      push(adds ? Kind::add : Kind::subtract);
    }
    depth_ = before;
  }

  void product() {
    const int before = depth_;
    factor();
    for (;;) {
      const Kind kind = take("*")    ? Kind::multiply
                        : take("//") ? Kind::divide
                        : take("%")  ? Kind::modulo
                                     : Kind::number;
      if (kind == Kind::number) break;
      deeper();
      factor();
      push(kind);
    }
    depth_ = before;
  }

  void factor() {
    skip_space();
    if (at_ == text_.size()) fail();
    if (is_digit(text_[at_])) return number();
    if (is_letter(text_[at_])) return name();
    deeper();
    if (take("-")) {
      push(Kind::number, 0);
      factor();
      push(Kind::subtract);
    } else {
      require("(");
      sum();
      require(")");
    }
    depth_--;
  }

  void number() {
    int64_t value = 0;
    const char *const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    at_ += size_t(end - begin);
    push(Kind::number, value);
  }

  void name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) at_++;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "min" || word == "max") {
      deeper();
      require("(");
      sum();
      require(",");
      sum();
      require(")");
      depth_--;
      return push(word == "min" ? Kind::min : Kind::max);
    }
    const auto known = std::find(names_.begin(), names_.end(), word);
    if (known == names_.end()) throw JsonError("there is no size " + quote(word));
    push(Kind::size, known - names_.begin());
  }

  std::string_view text_;
  const SizeNames &names_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<SizeExpression::Step> steps_;
};

SizeExpression SizeExpression::parse(std::string_view text, const SizeNames &names) {
  SizeExpressionParser parser(text, names);
  SizeExpression result = parser.expression();
  parser.end();
  return result;
}

int64_t SizeExpression::evaluate(const std::vector<int64_t> &sizes) const {
  using Kind = Step::Kind;
  std::vector<int64_t> stack;
  for (const Step &step : steps_) {
    if (step.kind == Kind::number || step.kind == Kind::size) {
      stack.push_back(step.kind == Kind::number ? step.number : sizes[size_t(step.number)]);
      continue;
    }
    const int64_t b = stack.back();
    stack.pop_back();
    int64_t &a = stack.back();
    bool overflows = false;
    const bool divides = step.kind == Kind::divide || step.kind == Kind::modulo;
    if (divides && b == 0) throw JsonError(quote(text_) + " divides by zero");
    if (divides && b == -1) {  // the quotient of -2^63 does not fit
      overflows = __builtin_sub_overflow(int64_t(0), a, &a);
      if (step.kind == Kind::modulo) a = 0, overflows = false;
    } else {
      switch (step.kind) {
        case Kind::add: overflows = __builtin_add_overflow(a, b, &a); break;
        case Kind::subtract: overflows = __builtin_sub_overflow(a, b, &a); break;
        case Kind::multiply: overflows = __builtin_mul_overflow(a, b, &a); break;
        case Kind::divide: a = floor_division(a, b); break;
        case Kind::modulo: a -= floor_division(a, b) * b; break;
        case Kind::min: a = std::min(a, b); break;
        default: a = std::max(a, b);
      }
    }
    if (overflows) throw JsonError(quote(text_) + " is beyond 64 bits");
  }
  return stack.back();
}

int32_t SizeExpression::single_name() const {
  const bool is_name = steps_.size() == 1 && steps_[0].kind == Step::Kind::size;
  return is_name ? int32_t(steps_[0].number) : -1;
}

SizeRelation SizeRelation::parse(std::string_view text, const SizeNames &names) {
  SizeExpressionParser parser(text, names);
  SizeRelation result;
  result.text_ = std::string(text);
  result.left_ = parser.expression();
  result.op_ = parser.relation();
  result.right_ = parser.expression();
  parser.end();
  return result;
}

bool SizeRelation::holds(const std::vector<int64_t> &sizes) const {
  const int64_t a = left_.evaluate(sizes), b = right_.evaluate(sizes);
  if (op_ == "==") return a == b;
  if (op_ == "!=") return a != b;
  if (op_[0] == '<') return op_ == "<" ? a < b : a <= b;
  return op_ == ">" ? a > b : a >= b;
}

}  // namespace plait::graph
