// The schema grammar of docs/design/0003, parsed once for each operator.
#include <cctype>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "runtime.hpp"

namespace plait::abi {
namespace {

class Parser {
 public:
  Parser(const char *text, Schema &out) : start_(text), at_(text), out_(out) {}

  void run() {
    out_.name = dotted_name();
    out_.base = out_.name.substr(0, out_.name.find('.'));
    expect("(");
    bool keyword_only = false;
    if (!accept(")")) {
      do {
        space();
        if (*at_ == '*' && (at_[1] == ',' || at_[1] == ' ')) {
          at_++;
          keyword_only = true;
          continue;
        }
        out_.args.push_back(argument(keyword_only));
      } while (accept(","));
      expect(")");
    }
    expect("->");
    results();
    space();
    if (*at_) error("unexpected text after the results");
    if (out_.args.size() > PLAIT_MAX_ARGS) error("more than 32 arguments");
    if (out_.results.size() > PLAIT_MAX_RESULTS) error("more than 8 results");
  }

 private:
  [[noreturn]] void error(const std::string &reason) const {
    throw std::runtime_error("schema `" + std::string(start_) + "`, position " +
                             std::to_string(at_ - start_) + ": " + reason);
  }
  void space() {
    while (*at_ == ' ') at_++;
  }
  bool accept(const char *token) {
    space();
    const size_t n = std::strlen(token);
    if (std::strncmp(at_, token, n) != 0) return false;
    at_ += n;
    return true;
  }
  void expect(const char *token) {
    if (!accept(token)) error(std::string("expected `") + token + "`");
  }
  std::string word() {
    space();
    const char *begin = at_;
    while (std::isalnum(static_cast<unsigned char>(*at_)) || *at_ == '_') at_++;
    if (begin == at_) error("expected a name");
    return {begin, at_};
  }
  std::string dotted_name() {
    std::string s = word();
    if (*at_ == '.') {
      at_++;
      s += "." + word();
    }
    return s;
  }
  const char *keep(std::string s) { return out_.strings.emplace_back(std::move(s)).c_str(); }

  // base type with its marks; the kind does not have its `[]` yet
  plait_arg type() {
    plait_arg a{};
    a.alias_arg = -1;
    const std::string base = word();
    bool tensor = base == "Tensor", list = false;
    if (tensor && accept("|")) {
      if (word() != "Scalar") error("only Tensor|Scalar is an operand");
      a.kind = PLAIT_KIND_OPERAND;
    } else if (tensor) {
      a.kind = PLAIT_KIND_TENSOR;
    } else {
      a.kind = plain_kind(base);
    }
    if (*at_ == '(') {
      a.alias = at_[1];
      if (!std::islower(static_cast<unsigned char>(a.alias)) || at_[2] != ')')
        error("expected an alias like (a)");
      a.flags |= PLAIT_ARG_ALIASES;
      at_ += 3;
    }
    bool more = true;
    while (more) {
      if (*at_ == '!') {
        a.flags |= PLAIT_ARG_WRITES;
        at_++;
      } else if (*at_ == '?') {
        a.flags |= PLAIT_ARG_OPTIONAL;
        at_++;
      } else if (*at_ == '[') {
        list = true;
        a.length = uint8_t(std::strtol(at_ + 1, const_cast<char **>(&at_), 10));
        if (*at_ != ']') error("expected `]`");
        at_++;
      } else if (*at_ == '*' && list) {
        a.flags |= PLAIT_ARG_VARARGS;
        at_++;
      } else {
        more = false;
      }
    }
    if (list) a.kind = list_kind(a.kind);
    if ((a.flags & PLAIT_ARG_WRITES) && !tensor) error("only tensors can be written");
    return a;
  }
  uint8_t plain_kind(const std::string &base) const {
    static const std::unordered_map<std::string, uint8_t> kinds{
        {"Scalar", PLAIT_KIND_SCALAR}, {"int", PLAIT_KIND_INT},
        {"float", PLAIT_KIND_FLOAT},   {"bool", PLAIT_KIND_BOOL},
        {"str", PLAIT_KIND_STRING},    {"dtype", PLAIT_KIND_DTYPE},
        {"device", PLAIT_KIND_DEVICE}, {"Generator", PLAIT_KIND_GENERATOR}};
    const auto it = kinds.find(base);
    if (it == kinds.end()) error("unknown type `" + base + "`");
    return it->second;
  }
  uint8_t list_kind(uint8_t kind) const {
    if (kind == PLAIT_KIND_TENSOR) return PLAIT_KIND_TENSORS;
    if (kind == PLAIT_KIND_INT) return PLAIT_KIND_INTS;
    if (kind == PLAIT_KIND_FLOAT) return PLAIT_KIND_FLOATS;
    error("only Tensor, int and float make lists");
  }

  plait_arg argument(bool keyword_only) {
    plait_arg a = type();
    a.name = keep(word());
    if (accept("|")) a.second = keep(word());
    if (keyword_only) a.flags |= PLAIT_ARG_KEYWORD_ONLY;
    if (accept("=")) {
      a.flags |= PLAIT_ARG_DEFAULT;
      a.value = literal(a);
    }
    return a;
  }
  plait_value number() {
    space();
    char *end = nullptr;
    for (const auto &[spelling, x] :
         {std::pair<const char *, double>{"inf", std::numeric_limits<double>::infinity()},
          {"-inf", -std::numeric_limits<double>::infinity()}})
      if (accept(spelling)) return value(x);
    const long long i = std::strtoll(at_, &end, 10);
    if (end == at_) error("expected a number");
    if (*end != '.' && *end != 'e' && *end != 'E') {
      at_ = end;
      return value(int64_t(i));
    }
    const double f = std::strtod(at_, &end);
    at_ = end;
    return value(f);
  }
  plait_value literal(const plait_arg &a) {
    if (accept("None")) return none();
    if (accept("True")) return value(true);
    if (accept("False")) return value(false);
    if (accept("\"")) {
      const char *begin = at_;
      while (*at_ && *at_ != '"') at_++;
      const std::string s(begin, at_);
      expect("\"");
      return value(keep(s));
    }
    if (a.kind == PLAIT_KIND_INTS) {
      std::vector<int64_t> &list = out_.int_lists.emplace_back();
      if (accept("(")) {
        while (!accept(")")) {
          list.push_back(number().u.i);
          accept(",");
        }
      } else {  // int[2] x=1
        list.assign(a.length ? a.length : 1, number().u.i);
      }
      return ints(list.data(), list.size());
    }
    if (a.kind == PLAIT_KIND_DTYPE) {
      const std::string s = word();
      for (DType d :
           {dtype::bool_, dtype::uint8, dtype::int32, dtype::int64, dtype::float32, dtype::float64})
        if (s == plait::name(d)) return value(d);
      error("unknown dtype `" + s + "`");
    }
    plait_value v = number();
    if (a.kind == PLAIT_KIND_FLOAT && v.tag == PLAIT_INT) return value(double(v.u.i));
    return v;
  }

  void result_one() {
    plait_arg r = type();
    if (r.kind != PLAIT_KIND_TENSOR && r.kind != PLAIT_KIND_TENSORS) error("results are tensors");
    r.name = "";
    if (std::isalpha(static_cast<unsigned char>(*at_ == ' ' ? at_[1] : *at_)))
      r.name = keep(word());
    for (size_t i = 0; r.alias && i < out_.args.size(); i++)
      if (out_.args[i].alias == r.alias) r.alias_arg = int32_t(i);
    if (r.alias && r.alias_arg < 0) error("the result aliases no argument");
    out_.results.push_back(r);
  }
  void results() {
    if (!accept("(")) return result_one();
    if (accept(")")) return;
    do result_one();
    while (accept(","));
    expect(")");
  }

  const char *start_, *at_;
  Schema &out_;
};

}  // namespace

void parse_schema(const char *text, Schema &out) { Parser(text, out).run(); }

}  // namespace plait::abi
