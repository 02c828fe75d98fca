// Expressions of sizes, such as "(h + 1) // 2 * n" and "n % 2 == 0" (docs/design/0055).
//
// The texts come from files that nobody vouches for: their length, their depth, divisions by zero
// and values beyond 64 bits are checked, and raise JsonError.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait::graph {

// The names of the sizes that a graph has free; an expression refers to them by their index.
using SizeNames = std::vector<std::string>;

class SizeExpression {
 public:
  static SizeExpression parse(std::string_view text, const SizeNames &);
  // The value for sizes in the order of the names.
  int64_t evaluate(const std::vector<int64_t> &sizes) const;
  // The index of the name that the expression is; -1 if it is more than a name.
  int32_t single_name() const;
  const std::string &text() const { return text_; }

 private:
  friend class SizeExpressionParser;
  struct Step {  // of a computation on a stack
    enum class Kind : uint8_t { number, size, add, subtract, multiply, divide, modulo, min, max };
    Kind kind;
    int64_t number;  // or the index of a size
  };
  std::string text_;
  std::vector<Step> steps_;
};

// Two expressions and ==, !=, <, <=, > or >= between them.
class SizeRelation {
 public:
  static SizeRelation parse(std::string_view text, const SizeNames &);
  bool holds(const std::vector<int64_t> &sizes) const;
  const std::string &text() const { return text_; }

 private:
  friend class SizeExpressionParser;
  std::string text_, op_;
  SizeExpression left_, right_;
};

// Whether a text can be the name of a size.
bool is_size_name(std::string_view);

}  // namespace plait::graph
