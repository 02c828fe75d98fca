// Files of tensors by name and of texts, in the layout of safetensors: the length of a header, the
// header in JSON, the bytes of the tensors without gaps.
#pragma once
#include <plait/plait.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/bytes.hpp"

namespace plait::graph {

using Texts = std::vector<std::pair<std::string, std::string>>;

// A tensor of a file. Its bytes begin at `begin`, counted from the first tensor.
struct FileEntry {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, nbytes;
};

class TensorFile {
 public:
  // Checks the header of a file against its size; reads no tensor. What it allocates is in
  // proportion to the header, which has at most kLargestHeader bytes.
  explicit TensorFile(std::unique_ptr<ByteSource>);
  TensorFile(const TensorFile &) = delete;
  TensorFile &operator=(const TensorFile &) = delete;
  ~TensorFile();

  static constexpr uint64_t kLargestHeader = 100'000'000;  // the layout's own limit

  const std::vector<FileEntry> &entries() const { return entries_; }  // sorted by name
  const FileEntry *find(std::string_view name) const;                 // or NULL
  const Texts &texts() const { return texts_; }  // in the order of the header
  const std::string *text(std::string_view key) const;  // or NULL

  // A tensor with the bytes of an entry, in memory of its own. Its dtype and shape must be those of
  // the entry; complex128, which the layout does not have, is stored as pairs of F64.
  Tensor read(plait_thread *, const FileEntry &, DType, const std::vector<int64_t> &shape) const;
  // The same in memory that is read from the file at the first use, and copied where it is written:
  // the file does not change. It must not be cut while the tensor lives; to replace it by a rename
  // is allowed. A tensor that is not aligned in the file, or of a source without mappings, is read.
  Tensor map(plait_thread *, const FileEntry &, DType, const std::vector<int64_t> &shape) const;

  // Names of dtypes in such files: "F32". NULL for a dtype that they do not have.
  static const char *dtype_name(DType);

 private:
  void read_header();
  void add_entry(std::string_view name, const class Json &);
  void check_cover();
  void check_type(const FileEntry &, DType, const std::vector<int64_t> &shape) const;
  void read_bytes(uint64_t offset, void *, uint64_t nbytes) const;
  [[noreturn]] void fail(const std::string &) const;

  std::unique_ptr<ByteSource> source_;
  uint64_t size_ = 0, data_ = 0;  // bytes of the file; the offset of the first tensor
  std::vector<FileEntry> entries_;
  Texts texts_;
  mutable std::shared_ptr<char> mapping_;  // made by the first `map`
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Writes such a file. complex128, which the layout does not have, is written as pairs of F64.
void write_tensors(plait_thread *, ByteSink *, const Texts &, const std::vector<NamedTensor> &);

}  // namespace plait::graph
