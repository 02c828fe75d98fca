// Where the bytes of a file come from and go to: the disk, or memory of the program.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace plait::graph {

// A file cannot be opened, read or written, or is damaged; the text begins with its path if it has
// one.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What errors of a file begin with.
class FileName {
 public:
  explicit FileName(const std::string &path) : start_(path.empty() ? path : path + ": ") {}
  [[noreturn]] void fail(const std::string &text) const { throw FileError(start_ + text); }

 private:
  std::string start_;
};

class ByteSource : public FileName {
 public:
  using FileName::FileName;
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Copies bytes that the source has.
  virtual void read(uint64_t offset, void *data, uint64_t nbytes) const = 0;
  // All bytes, which are read when they are first used, and copied where they are written. NULL
  // where that is not possible.
  virtual std::shared_ptr<char> map() const { return nullptr; }
};

class ByteSink : public FileName {
 public:
  using FileName::FileName;
  virtual ~ByteSink() = default;
  virtual void write(const void *data, uint64_t nbytes) = 0;
};

// A regular file of the disk.
std::unique_ptr<ByteSource> open_file(const std::string &path);

// Memory that stays valid while the source lives.
std::unique_ptr<ByteSource> open_memory(const void *data, uint64_t nbytes);

// A file of the disk. It is written beside `path` and renamed by `finish`: at `path` there is the
// whole new file or what was there.
class NewFile : public ByteSink {
 public:
  using ByteSink::ByteSink;
  virtual void finish() = 0;
};
std::unique_ptr<NewFile> create_file(const std::string &path);

// Appends to memory.
class MemorySink : public ByteSink {
 public:
  MemorySink() : ByteSink("") {}
  void write(const void *data, uint64_t nbytes) override;
  std::vector<char> bytes;
};

}  // namespace plait::graph
