#include <cstring>

#include "run/bytes.hpp"

namespace plait::graph {
namespace {

class Memory : public ByteSource {
 public:
  Memory(const void *data, uint64_t nbytes)
      : ByteSource(""), data_(static_cast<const char *>(data)), nbytes_(nbytes) {}
  uint64_t size() const override { return nbytes_; }
  void read(uint64_t offset, void *data, uint64_t nbytes) const override {
    if (nbytes) std::memcpy(data, data_ + offset, size_t(nbytes));
  }

 private:
  const char *data_;
  uint64_t nbytes_;
};

}  // namespace

std::unique_ptr<ByteSource> open_memory(const void *data, uint64_t nbytes) {
  return std::make_unique<Memory>(data, nbytes);
}

void MemorySink::write(const void *data, uint64_t nbytes) {
  const char *from = static_cast<const char *>(data);
  if (nbytes) bytes.insert(bytes.end(), from, from + nbytes);
}

}  // namespace plait::graph
