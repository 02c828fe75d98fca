// Tables of texts to which rows refer by a number: each text is stored once.
#ifndef PLAIT_PROFILER_INTERNING_HPP
#define PLAIT_PROFILER_INTERNING_HPP
#include <plait/fork.hpp>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "text.hpp"

namespace plait::profiler {

// One number for each hash. 64 bits of a good hash are taken for the thing itself.
class Table {
 public:
  explicit Table(char letter) : letter_(letter) {}

  // The number of this hash; `text` makes the text of a new one. 0 if the table is full.
  template <class F>
  uint32_t number(uint64_t hash, F &&text) {
    const std::lock_guard<ForkMutex> lock(mutex_);
    const auto [at, is_new] = numbers_.try_emplace(hash, uint32_t(texts_.size()));
    if (!is_new) return at->second;
    if (texts_.size() >= most) {
      numbers_.erase(at);
      return 0;
    }
    try {
      texts_.push_back(text());
    } catch (...) {
      numbers_.erase(hash);
      throw;
    }
    note(uint32_t(texts_.size() - 1));
    return uint32_t(texts_.size() - 1);
  }
  uint32_t find(uint64_t hash) const {
    const std::lock_guard<ForkMutex> lock(mutex_);
    const auto known = numbers_.find(hash);
    return known == numbers_.end() ? 0 : known->second;
  }
  std::vector<std::string> texts() const {
    const std::lock_guard<ForkMutex> lock(mutex_);
    return texts_;
  }

 private:
  static constexpr size_t most = 1 << 20;
  void note(uint32_t number) const;  // in the journal of a child process

  const char letter_;
  mutable ForkMutex mutex_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<std::string> texts_{""};  // 0 is nothing, or what found no room
};

// The numbers of a thread's last hashes, so that most calls take no lock.
class Recent {
 public:
  template <class F>
  uint32_t number(Table &table, uint64_t hash, F &&text) {
    hash += !hash;  // an empty slot has the hash 0
    Slot &slot = slots_[hash % count];
    if (slot.hash != hash) slot = {hash, table.number(hash, text)};
    return slot.number;
  }

 private:
  static constexpr size_t count = 1021;
  struct Slot {
    uint64_t hash;
    uint32_t number;
  };
  Slot slots_[count] = {};
};

extern Table &signatures, &contexts, &modules, &stacks;

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_INTERNING_HPP
