// Operator calls that wait (docs/design/0054): while a compiled function runs, its calls are
// matched against a trie of earlier ones, and run together when somebody needs their elements.
#pragma once
#include <deque>
#include <memory>
#include <mutex>

#include "deferral/segment.hpp"

namespace plait::graph {

// The numbers of storages, by address.
class StorageNumbers {
 public:
  // -1: none
  int64_t find(const plait_storage *s) const {
    const Entry &e = entries_[slot(s)];
    return e.generation == generation_ && e.storage == s ? e.number : -1;
  }
  void set(const plait_storage *, int64_t number);
  void clear();

 private:
  struct Entry {
    const plait_storage *storage = nullptr;
    int64_t number = -1;
    uint64_t generation = 0;  // another one than the table's: the entry is free
  };
  // The index of the storage's entry, or of a free one.
  size_t slot(const plait_storage *s) const {
    size_t i = (reinterpret_cast<uintptr_t>(s) >> 4) * 0x9e3779b97f4a7c15u >> shift_;
    while (entries_[i].generation == generation_ && entries_[i].storage != s)
      i = (i + 1) & (entries_.size() - 1);
    return i;
  }
  uint64_t generation_ = 1;
  uint32_t shift_ = 64 - 6;
  size_t n_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(64);
};

class Deferral : private PlaceTensors {
 public:
  Deferral() = default;
  ~Deferral() override { truncate(0, 0); }
  Deferral(const Deferral &) = delete;
  Deferral &operator=(const Deferral &) = delete;

  // The calls of the thread are those of the function with this trie, until `end`. The lists keep
  // their memory for the next function.
  void begin(plait_thread *, Trie *);
  // Makes the calls that wait.
  plait_status end();

  // A call of the thread whose function runs.
  plait_status call(plait_call *);
  // Makes all calls that wait. Any thread.
  plait_status flush(plait_thread *);
  // Whether elements of the storage are those of a call that waits. Any thread.
  bool is_pending(const plait_storage *);
  // The next call is the first one of a path.
  void restart();

 private:
  struct Storage {
    void hold(plait_storage *);
    void let_go();
    const plait_storage *address;
    char *origin;  // the first element of its first place
    Ref<plait_storage> held;  // while a call that waits uses it
    bool is_written = false;  // by such a call
    bool is_made = false;
    uint64_t nbytes = 0;  // if it is made
  };
  struct PendingCall {
    CallNode *node;
    uint64_t seed, offset;  // of the default generator before the call, if it draws
  };
  class Lock;

  bool is_deferrable(const plait_call *) const;
  plait_status call_now(plait_call *);
  plait_status record(plait_call *);
  CallNode *find_child(const plait_call *);
  bool matches(const CallNode &, const plait_call *);
  bool matches_place(const CallNode &, int32_t place, plait_tensor *);
  void defer(const CallNode &, plait_call *);
  void make_results(const CallNode &, plait_call *);
  plait_value keep_number(plait_value);
  plait_tensor *make_place(const CallNode &, int32_t place, plait_thread *);

  void describe(plait_call *, CallNode *);
  int32_t place_of(plait_tensor *, CallNode *);
  bool take_results(const plait_call *, CallNode *);
  bool take_result(const plait_call *, plait_tensor *, CallNode *, Result *);
  void add_storage(plait_tensor *, bool is_made);
  int64_t number_of(const plait_storage *) const;  // -1: none
  void truncate(size_t places, size_t storages);

  void give_back_dead();
  std::vector<bool> find_alive() const;
  void run(plait_thread *);
  Segment *segment_of(const std::vector<bool> &alive, std::unique_ptr<Segment> *other);
  void run_segment(plait_thread *, Segment *, const std::vector<bool> &alive);
  void run_calls(plait_thread *, const std::vector<bool> &alive);
  void run_call(plait_thread *, const CallNode &, const plait_value *numbers);
  void finish(bool is_done);
  plait_tensor *at(int32_t place) override;
  const Place &place(int32_t i) const override { return *places_[size_t(i)]; }

  plait_thread *thread_ = nullptr, *runner_ = nullptr;
  Trie *trie_ = nullptr;
  CallNode *root_ = nullptr, *at_ = nullptr;  // NULL: the calls are not followed
  CallNode *begin_ = nullptr;  // the call before the first one that waits
  std::vector<const Place *> places_;
  std::vector<Storage> storages_;
  StorageNumbers numbers_of_storages_;
  std::vector<PendingCall> pending_;
  std::vector<plait_value> varying_;  // numbers of the calls that wait, which may vary
  std::deque<std::vector<int64_t>> lists_;  // of them
  uint64_t new_bytes_ = 0;  // of results, since the last look at which are dead
  std::vector<Tensor> tensors_;  // by place, during a run
  std::recursive_mutex mutex_;
};

// Begins to defer the calls of this thread; false if they are deferred or recorded already, or if
// another call of the function is deferred.
bool start_deferral(plait_thread *, Trie *);
// The bit of the layer that sees the calls; 0 before the first one began.
uint64_t layer_of_deferral();
// Makes the calls that wait.
plait_status stop_deferral(plait_thread *);
// Makes the calls that wait to write the elements of a tensor, of any thread.
plait_status flush_before_read(plait_thread *, const plait_tensor *);

}  // namespace plait::graph
