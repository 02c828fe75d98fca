#include "json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace plait::graph {
namespace {

#if defined(__cpp_lib_to_chars)
// False: the number is beyond those of float64, or too small for them.
bool read_float(const char *begin, const char *end, double *value) {
  return std::from_chars(begin, end, *value).ec == std::errc();
}
// The shortest text that is read as the same number.
std::string_view shortest_text(char (&text)[40], double value) {
  return {text, size_t(std::to_chars(text, text + sizeof text, value).ptr - text)};
}
#else  // a C++ library that has these functions for integers alone
bool read_float(const char *begin, const char *end, double *value) {
  *value = std::strtod(std::string(begin, end).c_str(), nullptr);
  return std::isfinite(*value);
}
std::string_view shortest_text(char (&text)[40], double value) {
  int n = 0;
  for (int digits = 15; digits <= 17; digits++) {
    n = std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return {text, size_t(n)};
}
#endif

}  // namespace

const char *Json::describe(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "a boolean";
    case Kind::integer: return "an integer";
    case Kind::number: return "a float";
    case Kind::string: return "a string";
    case Kind::array: return "a list";
    case Kind::object: return "an object";
  }
  return "?";
}

const Json::Node &Json::expect(Kind kind) const {
  if (node_->kind != kind)
    throw JsonError(std::string(describe(kind)) + " is expected, found " + describe());
  return *node_;
}

size_t Json::size() const {
  if (node_->kind < Kind::array)
    throw JsonError(std::string("a list or an object is expected, found ") + describe());
  return node_->size;
}

std::optional<Json> Json::find(std::string_view key) const {
  for (const JsonMember member : members())
    if (member.key == key) return member.value;
  return std::nullopt;
}

Json Json::at(std::string_view key) const {
  if (const auto value = find(key)) return *value;
  throw JsonError("the key " + quote(key) + " is missing");
}

namespace {

// The length of the character of UTF-8 at `p`, or 0 if there is none (RFC 3629: no surrogates, no
// longer form than necessary, nothing above U+10FFFF).
size_t utf8_length(const char *p, const char *end) {
  const auto byte = [p](int i) { return uint8_t(p[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || size_t(end - p) < n) return 0;
  for (size_t i = 1; i < n; i++)
    if ((byte(int(i)) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return n;
}

char *encode_utf8(uint32_t code, char *to) {
  if (code < 0x80) {
    *to++ = char(code);
  } else if (code < 0x800) {
    *to++ = char(0xc0 | code >> 6);
    *to++ = char(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *to++ = char(0xe0 | code >> 12);
    *to++ = char(0x80 | (code >> 6 & 0x3f));
    *to++ = char(0x80 | (code & 0x3f));
  } else {
    *to++ = char(0xf0 | code >> 18);
    *to++ = char(0x80 | (code >> 12 & 0x3f));
    *to++ = char(0x80 | (code >> 6 & 0x3f));
    *to++ = char(0x80 | (code & 0x3f));
  }
  return to;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether a number that float64 does not hold is too large, not too small: the position of its
// first digit other than 0, with the exponent.
bool is_large(const char *p, const char *end) {
  int64_t position = 0, exponent = 0;
  bool started = false, fraction = false;
  for (; p < end && *p != 'e' && *p != 'E'; p++) {
    if (*p == '.') fraction = true;
    if (!is_digit(*p)) continue;
    started = started || *p != '0';
    if (started && !fraction) position++;
    if (!started && fraction) position--;
  }
  if (p < end) {
    const bool negative = p[1] == '-';
    for (p += 1 + !is_digit(p[1]); p < end; p++)
      exponent = std::min<int64_t>(exponent * 10 + (*p - '0'), int64_t(1) << 40);
    if (negative) exponent = -exponent;
  }
  return position + exponent > 0;
}

}  // namespace

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) {
    if (text.size() >= uint64_t(1) << 31)
      throw JsonError("the text has " + std::to_string(text.size()) +
                      " bytes; at most 2147483647 are read");
    document_.text_.reset(new char[text.size() + 1]);
    begin_ = document_.text_.get();
    end_ = begin_ + text.size();
    at_ = begin_;
    std::memcpy(begin_, text.data(), text.size());
    *end_ = 0;  // so that at_ may be read at the end
    document_.nodes_.reserve(count_nodes());
  }

  JsonDocument parse() {
    skip_space();
    value();
    while (depth_) {
      skip_space();
      const Json::Kind kind = container().kind;
      const char close = kind == Json::Kind::array ? ']' : '}';
      if (at_ < end_ && *at_ == close) {
        if (after_comma_) expected("a value behind the comma");
        at_++;
        finish();
        continue;
      }
      if (container().size && !after_comma_) {
        if (at_ == end_ || *at_ != ',')
          expected(kind == Json::Kind::array ? "',' or ']'" : "',' or '}'");
        at_++;
        after_comma_ = true;
        continue;
      }
      after_comma_ = false;
      container().size++;
      if (kind == Json::Kind::object) key();
      value();
    }
    skip_space();
    if (at_ < end_) expected("the end of the text");
    return std::move(document_);
  }

 private:
  // An upper bound of the number of values.
  size_t count_nodes() const {
    size_t n = 1;
    bool quoted = false;
    for (const char *p = begin_; p < end_; p++) {
      if (*p == '"') quoted = !quoted;
      if (quoted && *p == '\\') p++;
      if (!quoted && (*p == ',' || *p == ':' || *p == '[' || *p == '{')) n++;
    }
    return n;
  }

  [[noreturn]] void fail(const char *at, const std::string &text) const {
    throw JsonError("byte " + std::to_string(at - begin_) + ": " + text);
  }
  [[noreturn]] void expected(const char *what) const {
    std::string found = "the end of the text";
    if (at_ < end_) {
      const auto c = uint8_t(*at_);
      char code[8];
      std::snprintf(code, sizeof code, "0x%02x", c);
      found = c > 0x20 && c < 0x7f ? "'" + std::string(1, char(c)) + "'" : code;
    }
    fail(at_, std::string(what) + " is expected, found " + found);
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) at_++;
  }

  Json::Node &push(Json::Kind kind) {
    Json::Node node{};
    node.kind = kind;
    document_.nodes_.push_back(node);
    return document_.nodes_.back();
  }
  Json::Node &container() { return document_.nodes_[open_[depth_ - 1]]; }

  void value() {
    switch (*at_) {
      case '{': return start(Json::Kind::object);
      case '[': return start(Json::Kind::array);
      case '"': return string();
      case 'n': return word("null", Json::Kind::null, 0);
      case 't': return word("true", Json::Kind::boolean, 1);
      case 'f': return word("false", Json::Kind::boolean, 0);
      default: return number();
    }
  }

  void start(Json::Kind kind) {
    if (depth_ == JsonDocument::kMaxDepth)
      fail(at_, "lists and objects are nested deeper than " +
                    std::to_string(JsonDocument::kMaxDepth) + " levels");
    open_[depth_++] = document_.nodes_.size();
    push(kind);
    at_++;
  }

  void finish() {
    Json::Node &node = container();
    node.nodes = document_.nodes_.size() - open_[depth_ - 1];
    if (node.kind == Json::Kind::object) refuse_equal_keys(Json(&node));
    depth_--;
  }

  void refuse_equal_keys(Json object) {
    if (object.size() < 2) return;
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (const JsonMember member : object.members()) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto equal = std::adjacent_find(keys.begin(), keys.end());
    if (equal != keys.end())
      fail(at_ - 1, "the object that ends here has the key " + quote(*equal) + " twice");
  }

  void key() {
    if (*at_ != '"') expected("a key");
    string();
    skip_space();
    if (*at_ != ':') expected("':'");
    at_++;
    skip_space();
  }

  void word(const char *text, Json::Kind kind, int64_t value) {
    const size_t n = std::strlen(text);
    if (size_t(end_ - at_) < n || std::memcmp(at_, text, n)) expected("a value");
    push(kind).integer = value;
    at_ += n;
  }

  void string() {
    char *const start = ++at_;
    char *to = start;
    for (;;) {
      if (at_ == end_) fail(start - 1, "the string that begins here does not end");
      const char c = *at_;
      if (c == '"') break;
      if (uint8_t(c) < 0x20) fail(at_, "a control character in a string");
      if (c == '\\') {
        to = escape(to);
        continue;
      }
      const size_t n = utf8_length(at_, end_);
      if (!n) fail(at_, "a string that is not valid UTF-8");
      std::memmove(to, at_, n);
      to += n;
      at_ += n;
    }
    at_++;
    Json::Node &node = push(Json::Kind::string);
    node.string = start;
    node.size = uint32_t(to - start);
  }

  char *escape(char *to) {
    const char *const start = at_;
    static constexpr char kNames[] = "\"\\/bfnrt", kCodes[] = "\"\\/\b\f\n\r\t";
    const char c = at_[1];
    at_ += 2;
    if (c == 'u') {
      uint32_t code = hex(start);
      if (code >= 0xdc00 && code < 0xe000) fail(start, "half of a surrogate pair");
      if (code >= 0xd800 && code < 0xdc00) {
        if (at_[0] != '\\' || at_[1] != 'u') fail(start, "half of a surrogate pair");
        at_ += 2;
        const uint32_t low = hex(start);
        if (low < 0xdc00 || low >= 0xe000) fail(start, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      return encode_utf8(code, to);
    }
    const char *const name = c ? std::strchr(kNames, c) : nullptr;
    if (!name) fail(start, "an unknown escape sequence");
    *to = kCodes[name - kNames];
    return to + 1;
  }

  // Four digits. The text ends with NUL, so nothing is read behind it.
  uint32_t hex(const char *start) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, at_++) {
      const char c = *at_;
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail(start, "four hexadecimal digits are expected behind \\u");
      code = code << 4 | uint32_t(digit);
    }
    return code;
  }

  void digits() {
    if (!is_digit(*at_)) expected("a digit");
    while (is_digit(*at_)) at_++;
  }

  void number() {
    const char *const start = at_;
    bool is_float = false;
    if (*at_ == '-')
      at_++;
    else if (!is_digit(*at_))
      expected("a value");
    if (*at_ == '0' && is_digit(at_[1])) fail(at_, "a number that begins with 0");
    digits();
    if (*at_ == '.') {
      is_float = true;
      at_++;
      digits();
    }
    if (*at_ == 'e' || *at_ == 'E') {
      is_float = true;
      at_++;
      if (*at_ == '+' || *at_ == '-') at_++;
      digits();
    }
    if (is_float) return push_float(start);
    int64_t result = 0;
    if (std::from_chars(start, at_, result).ec != std::errc())
      fail(start, "an integer beyond 64 bits");
    push(Json::Kind::integer).integer = result;
  }

  void push_float(const char *start) {
    double result = 0;
    if (!read_float(start, at_, &result)) {
      if (is_large(start, at_)) fail(start, "a float beyond float64");
      result = *start == '-' ? -0.0 : 0.0;
    }
    push(Json::Kind::number).number = result;
  }

  JsonDocument document_;
  char *begin_, *end_, *at_;
  size_t open_[JsonDocument::kMaxDepth];  // nodes of the containers that are not closed
  uint32_t depth_ = 0;
  bool after_comma_ = false;
};

JsonDocument JsonDocument::parse(std::string_view text) { return JsonParser(text).parse(); }

void write_json(std::string &out, int64_t value) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void write_json(std::string &out, double value) {
  if (!std::isfinite(value)) throw JsonError("a float of JSON must be finite");
  char text[40];
  const std::string_view shortest = shortest_text(text, value);
  out += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void write_json(std::string &out, std::string_view value) {
  const char *const end = value.data() + value.size();
  out += '"';
  for (const char *p = value.data(); p < end;) {
    const size_t n = utf8_length(p, end);
    if (!n) throw JsonError("a string of JSON must be valid UTF-8");
    if (*p == '"' || *p == '\\') {
      out += '\\';
      out += *p;
    } else if (uint8_t(*p) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(uint8_t(*p)));
      out += code;
    } else {
      out.append(p, n);
    }
    p += n;
  }
  out += '"';
}

void write_json(std::string &out, Json value) {  // recursive: a document has kMaxDepth levels
  const char *separator = "";
  switch (value.kind()) {
    case Json::Kind::null: out += "null"; return;
    case Json::Kind::boolean: out += value.boolean() ? "true" : "false"; return;
    case Json::Kind::integer: return write_json(out, value.integer());
    case Json::Kind::number: return write_json(out, value.number());
    case Json::Kind::string: return write_json(out, value.string());
    case Json::Kind::array:
      out += '[';
      for (const Json item : value.items()) {
        out += separator;
        write_json(out, item);
        separator = ", ";
      }
      out += ']';
      return;
    case Json::Kind::object:
      out += '{';
      for (const JsonMember member : value.members()) {
        out += separator;
        write_json(out, member.key);
        out += ": ";
        write_json(out, member.value);
        separator = ", ";
      }
      out += '}';
      return;
  }
}

std::string quote(std::string_view value) {
  constexpr size_t kLongest = 100;
  std::string text;
  if (value.size() <= kLongest) {
    write_json(text, value);
    return text;
  }
  size_t n = kLongest;
  while (n && (uint8_t(value[n]) & 0xc0) == 0x80) n--;  // not within a character
  write_json(text, value.substr(0, n));
  return text + "...";
}

}  // namespace plait::graph
