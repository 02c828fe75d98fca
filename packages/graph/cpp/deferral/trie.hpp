// The operator calls that a compiled function made so far, as a trie (docs/design/0054): a path
// from a root is a sequence of calls. Tensors are known by *places*, which are numbered along a
// path: a storage, also by its number, and where and how the tensor lies in it.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace plait::graph {

struct PlaceType {
  PlaceType() = default;
  explicit PlaceType(const plait_tensor *);
  bool fits(const plait_tensor *) const;
  int64_t numel() const;

  DLDataType dtype{};
  uint64_t flags = 0;  // of PLAIT_TENSOR_*, those that a call depends on
  int32_t ndim = 0;
  std::vector<int64_t> sizes;  // shape, then strides
};

struct Place {
  uint32_t storage;
  int64_t offset;  // in bytes, from the first element of the first place in the storage
  PlaceType type;
};

// An argument: places, or the value of another kind.
struct Argument {
  bool is_tensor() const { return value.tag == PLAIT_TENSOR || value.tag == PLAIT_TENSORS; }
  bool fits(const plait_value &) const;  // of a value that is no tensor

  plait_value value{};  // what it points to lies in `words`
  std::vector<uint64_t> words;
  std::vector<int32_t> places;  // -1: NULL
  bool may_vary = false;  // types of results do not depend on the number
  bool varies = false;  // calls passed several numbers
};

// A result: a new place, or an argument itself.
struct Result {
  int32_t place = -1;  // -1: none
  uint16_t argument = 0;
  int32_t item = -1;  // of that argument, if it is a list
  bool is_new = false, is_argument = false;
};

// A storage that a call makes.
struct NewStorage {
  uint64_t nbytes, version;
};

// A write to a place of before, and how much the version of its storage grows.
struct Write {
  int32_t place;
  uint64_t versions;
};

class Segment;

struct CallNode {
  CallNode();
  ~CallNode();
  CallNode(const CallNode &) = delete;
  CallNode &operator=(const CallNode &) = delete;

  const plait_op *op = nullptr;  // NULL: a root
  uint32_t form = PLAIT_FUNCTION;
  bool is_eager = false;  // such a call is never deferred
  bool is_identity = false;  // it gives its arguments back
  std::vector<Argument> in;
  std::vector<int32_t> targets;  // places of the results of the forms in place and out=
  std::vector<std::vector<Result>> results;  // of the function itself
  std::vector<bool> is_list;
  uint32_t first_place = 0, first_storage = 0;  // the numbers that were used before this call
  uint32_t first_result = 0, first_new_storage = 0;  // those before its results
  std::vector<Place> places;  // that are new: of arguments, then of results
  uint32_t end_storage = 0;
  std::vector<NewStorage> storages;  // of results
  std::vector<Write> writes;
  uint64_t draws = 0;  // how far it moves the default generator
  CallNode *parent = nullptr;
  std::vector<std::unique_ptr<CallNode>> children;
  std::vector<std::unique_ptr<Segment>> segments;  // that end with this call
};

class Trie {
 public:
  // The root of the calls in these modes of a thread.
  CallNode *root(const plait_thread *);
  // False: there are too many calls.
  bool add(CallNode *parent, std::unique_ptr<CallNode> child);
  // What was compiled for a number that varies now is of no use.
  void count_change() { generation_++; }
  uint64_t generation() const { return generation_; }
  size_t size() const { return n_nodes_; }
  // The texts of the programs.
  std::vector<std::string> graphs() const;

  std::string name;  // of the function, for messages

 private:
  struct Root {
    DLDataType default_dtype;
    DLDevice device;
    uint64_t settings;
    std::unique_ptr<CallNode> node;
  };
  std::vector<Root> roots_;
  size_t n_nodes_ = 0;
  uint64_t generation_ = 0;
};

// How a call is described; see `Argument`.
plait_value copy_scalar(const plait_value &, std::vector<uint64_t> *words);

}  // namespace plait::graph
