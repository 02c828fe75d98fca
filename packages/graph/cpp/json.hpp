// JSON (RFC 8259): a reader for texts that nobody vouches for, and a writer.
//
// The reader is strict. Objects with two equal keys, invalid UTF-8, integers beyond 64 bits, floats
// beyond float64 and text behind the value are errors, which name the byte. It is not recursive,
// and allocates at most nine bytes for each byte of the text, and 16 for each key of an object
// that it closes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plait::graph {

// A text is not JSON, or a value has another kind than its reader expects.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct JsonMember;

// A value of a JsonDocument: a pointer into it, valid while the document lives.
class Json {
 public:
  enum class Kind : uint32_t { null, boolean, integer, number, string, array, object };

  // How the document stores a value. Those of a list or an object follow it, in order; a member of
  // an object is a string and a value.
  struct Node {
    Kind kind;
    uint32_t size;  // bytes of a string; values of an array; members of an object
    union {
      int64_t integer;  // also of a boolean
      double number;
      const char *string;
      uint64_t nodes;  // of an array or object: the number of nodes, with this one
    };
    const Node *next() const { return this + (kind >= Kind::array ? nodes : 1); }
  };

  explicit Json(const Node *node) : node_(node) {}

  Kind kind() const { return node_->kind; }
  bool is(Kind kind) const { return node_->kind == kind; }
  bool is_null() const { return is(Kind::null); }

  // Each raises JsonError if the value is of another kind. An integer is not a number: a number has
  // a point or an exponent.
  bool boolean() const { return expect(Kind::boolean).integer != 0; }
  int64_t integer() const { return expect(Kind::integer).integer; }
  double number() const { return expect(Kind::number).number; }
  std::string_view string() const {
    const Node &node = expect(Kind::string);
    return {node.string, node.size};
  }

  // The number of values of an array, or of members of an object.
  size_t size() const;

  // The values of an array, in order: `for (Json item : json.items())`.
  class Items;
  Items items() const;

  // The members of an object, in order: `for (JsonMember m : json.members())`.
  class Members;
  Members members() const;

  // A member of an object; the time is that for all of its members. `at` raises if there is none.
  std::optional<Json> find(std::string_view key) const;
  Json at(std::string_view key) const;

  // "a string", for messages
  static const char *describe(Kind);
  const char *describe() const { return describe(kind()); }

 private:
  const Node &expect(Kind) const;
  const Node *node_;
};

struct JsonMember {
  std::string_view key;
  Json value;
};

class Json::Items {
 public:
  class iterator {
   public:
    explicit iterator(const Node *at) : at_(at) {}
    Json operator*() const { return Json(at_); }
    iterator &operator++() {
      at_ = at_->next();
      return *this;
    }
    bool operator!=(iterator other) const { return at_ != other.at_; }

   private:
    const Node *at_;
  };
  Items(const Node *begin, const Node *end) : begin_(begin), end_(end) {}
  iterator begin() const { return iterator(begin_); }
  iterator end() const { return iterator(end_); }

 private:
  const Node *begin_, *end_;
};

class Json::Members {
 public:
  class iterator {
   public:
    explicit iterator(const Node *at) : at_(at) {}
    JsonMember operator*() const { return {{at_->string, at_->size}, Json(at_ + 1)}; }
    iterator &operator++() {
      at_ = (at_ + 1)->next();
      return *this;
    }
    bool operator!=(iterator other) const { return at_ != other.at_; }

   private:
    const Node *at_;
  };
  Members(const Node *begin, const Node *end) : begin_(begin), end_(end) {}
  iterator begin() const { return iterator(begin_); }
  iterator end() const { return iterator(end_); }

 private:
  const Node *begin_, *end_;
};

inline Json::Items Json::items() const {
  const Node *array = &expect(Kind::array);
  return {array + 1, array->next()};
}
inline Json::Members Json::members() const {
  const Node *object = &expect(Kind::object);
  return {object + 1, object->next()};
}

// A text and its values.
class JsonDocument {
 public:
  // How deep arrays and objects may be nested.
  static constexpr uint32_t kMaxDepth = 64;

  // Reads a copy of the text. JsonError: "byte 12: a value is expected, found ']'".
  static JsonDocument parse(std::string_view text);

  Json root() const { return Json(nodes_.data()); }

 private:
  friend class JsonParser;
  std::unique_ptr<char[]> text_;  // strings are decoded in place
  std::vector<Json::Node> nodes_;
};

// Append a value to a text. A number has a point or an exponent, and is the shortest text that is
// read as the same number; one that is not finite is a JsonError. A string must be valid UTF-8.
void write_json(std::string &out, int64_t);
void write_json(std::string &out, double);
void write_json(std::string &out, std::string_view);
void write_json(std::string &out, Json);

// A string in quotes for messages: its beginning if it is long, with escapes.
std::string quote(std::string_view);

}  // namespace plait::graph
