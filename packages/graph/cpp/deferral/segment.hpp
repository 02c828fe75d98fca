// The deferred calls between two calls of a trie, as a program.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "deferral/trie.hpp"

namespace plait::graph {

// Finds the tensor of a place.
class PlaceTensors {
 public:
  virtual ~PlaceTensors() = default;
  virtual plait_tensor *at(int32_t place) = 0;
  virtual const Place &place(int32_t) const = 0;
};

class Segment {
 public:
  // `alive` tells of each storage that the calls make whether somebody keeps it.
  Segment(const CallNode *begin, std::vector<bool> alive, uint64_t generation)
      : begin_(begin), alive_(std::move(alive)), generation_(generation) {}
  bool fits(const CallNode *begin, const std::vector<bool> &alive) const {
    return begin == begin_ && alive == alive_;
  }
  uint64_t generation() const { return generation_; }
  // By how much a run raises the versions of storages, by their numbers, and whether it draws.
  void count_writes(const std::vector<CallNode *> &calls, const PlaceTensors &);
  const std::vector<std::pair<uint32_t, uint64_t>> &counts() const { return counts_; }
  bool draws() const { return draws_; }

  // Makes the program of the calls; without one, they run one by one.
  void compile(plait_thread *, const std::vector<CallNode *> &calls, PlaceTensors *);
  Program *program() const { return program_.get(); }
  // `numbers` are those that vary, in the order of the calls and of their arguments.
  void run(plait_thread *, const std::vector<plait_value> &numbers, PlaceTensors *);
  const std::string &text() const { return text_; }

  uint32_t runs = 0;  // so far

 private:
  class Writer;
  const CallNode *begin_;
  std::vector<bool> alive_;
  uint64_t generation_;
  std::vector<std::pair<uint32_t, uint64_t>> counts_;
  bool draws_ = false;
  std::string text_;
  std::unique_ptr<Program> program_;
  std::vector<int32_t> inputs_, outputs_;  // places
};

}  // namespace plait::graph
