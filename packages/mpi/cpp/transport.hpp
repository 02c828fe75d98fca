// Letters and transfers as messages of MPI, in a copy of MPI_COMM_WORLD.
#pragma once
#include <plait/collectives/transport.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "functions.hpp"
#include "waiting.hpp"

namespace plait::mpi {

using collectives::Listener;
using collectives::Transfer;

template <class Handle>
class Transport : public collectives::Transport {
 public:
  Transport(const plait_mpi_facts &facts, const Functions<Handle> &mpi)
      : facts_(facts),
        mpi_(mpi),
        byte_(handle<Handle>(facts.byte)),
        null_(handle<Handle>(facts.request_null)),
        lost_(size_t(facts.size)) {}

  uint32_t rank() const override { return uint32_t(facts_.rank); }
  uint32_t size() const override { return uint32_t(facts_.size); }

  void post(uint32_t peer, const void *data, size_t bytes) override {
    if (lost_[peer]) return;
    const auto *from = static_cast<const char *>(data);
    std::vector<char> copy(from, from + bytes);
    if (ready_)
      send_letter(peer, std::move(copy));
    else
      held_.push_back({peer, std::move(copy)});
  }

  void send(uint32_t peer, uint32_t channel, Transfer *t) override {
    Handle request = null_;
    const int e = lost_[peer] ? 1
                              : mpi_.isend(t->data, int(t->bytes), byte_, int(peer),
                                           tag_of(channel), comm_, &request);
    add(t, peer, request, e);
  }
  void receive(uint32_t peer, uint32_t channel, Transfer *t) override {
    Handle request = null_;
    const int e = lost_[peer] ? 1
                              : mpi_.irecv(t->data, int(t->bytes), byte_, int(peer),
                                           tag_of(channel), comm_, &request);
    add(t, peer, request, e);
  }
  void cancel(Transfer *t) override {
    for (size_t i = 0; i < flights_.size(); i++)
      if (flights_[i].transfer == t) mpi_.cancel(&requests_[i]);
  }

  bool has_sent() const override {
    return held_.empty() && std::all_of(flights_.begin(), flights_.end(),
                                        [](const Flight &f) { return f.transfer; });
  }
  bool progress(Listener &listener) override {
    if (!ready_ && !make_ready()) return false;
    bool moved = end_failed();
    moved |= read_letters(listener);
    moved |= end_flights();
    for (const uint32_t peer : std::exchange(newly_lost_, {}))
      listener.lost(peer, "MPI reports that the process failed");
    if (moved) waiting_.something_came();
    return moved;
  }
  void wait(double seconds, bool busy) override { waiting_.wait(seconds, busy || !ready_); }
  void wake() override { waiting_.wake(); }
  const char *call() const override { return last_call; }

  void give_up(uint32_t peer) override {
    lost_[peer] = true;
    // transfers to or from it are cancelled, if MPI can
    for (size_t i = 0; i < flights_.size(); i++)
      if (flights_[i].peer == peer) mpi_.cancel(&requests_[i]);
  }

  void close(double seconds) override {
    const double until = collectives::now() + seconds;
    for (bool letters = true; letters && collectives::now() < until;) {
      end_flights();
      letters = !held_.empty() && !ready_;
      for (const Flight &f : flights_) letters |= !f.transfer;
      if (letters) waiting_.wait(0.001, true);
    }
    for (Box &box : boxes_) {
      if (box.request == null_) continue;
      mpi_.cancel(&box.request);
      int done = 0;
      while (!done && collectives::now() < until) mpi_.test(&box.request, &done, status(0));
    }
  }

 private:
  static constexpr int letter_tag = 0;
  static constexpr size_t boxes = 8;  // letters that MPI can deliver before they are read
  struct Flight {                     // a request that runs
    Transfer *transfer;               // nullptr: a letter
    uint32_t peer;
    std::vector<char> letter;
  };
  struct Held {
    uint32_t peer;
    std::vector<char> letter;
  };
  struct Box {  // where a letter arrives
    Handle request;
    std::vector<char> bytes;
  };

  static int tag_of(uint32_t channel) { return int(channel) + 1; }
  char *status(size_t i) {
    const size_t need = (i + 1) * size_t(facts_.status_bytes);
    if (statuses_.size() < need) statuses_.resize(need);
    return statuses_.data() + i * size_t(facts_.status_bytes);
  }
  int field(const char *status, int32_t at) const {
    int x;
    std::memcpy(&x, status + at, sizeof x);
    return x;
  }
  int class_of(int error) const {
    int found = 0;
    if (error) mpi_.error_class(error, &found);
    return found;
  }
  bool is_failure(int c) const {
    return c && (c == facts_.proc_failed || c == facts_.proc_failed_pending || c == facts_.revoked);
  }

  // The copy of the world's communicator is made without waiting: another process may come late.
  bool make_ready() {
    if (!begun_) {
      begun_ = true;
      Waiting::prepare_thread();
      mpi_.comm_idup(handle<Handle>(facts_.comm_world), &comm_, &duplicating_);
    }
    int done = 0;
    if (mpi_.test(&duplicating_, &done, status(0)) || !done) return false;
    ready_ = true;
    mpi_.comm_set_errhandler(comm_, handle<Handle>(facts_.errors_return));
    boxes_.resize(boxes);
    for (Box &box : boxes_) {
      box.request = null_;
      box.bytes.resize(collectives::most_letter);
      listen(box);
    }
    for (Held &h : std::exchange(held_, {})) send_letter(h.peer, std::move(h.letter));
    return true;
  }

  void listen(Box &box) {
    mpi_.irecv(box.bytes.data(), int(box.bytes.size()), byte_, facts_.any_source, letter_tag, comm_,
               &box.request);
  }
  void send_letter(uint32_t peer, std::vector<char> letter) {
    Handle request = null_;
    const int e = mpi_.isend(letter.data(), int(letter.size()), byte_, int(peer), letter_tag, comm_,
                             &request);
    if (e) return failed(peer, e);
    flights_.push_back({nullptr, peer, std::move(letter)});
    requests_.push_back(request);
  }
  void add(Transfer *t, uint32_t peer, Handle request, int error) {
    if (error) {
      failures_.push_back(t);
      if (!lost_[peer]) failed(peer, error);
      return;
    }
    flights_.push_back({t, peer, {}});
    requests_.push_back(request);
  }
  bool end_failed() {
    const auto failures = std::exchange(failures_, {});
    for (Transfer *t : failures) t->ended(false);
    return !failures.empty();
  }

  // Letters are read in the order of their boxes, which is that of their arrival.
  bool read_letters(Listener &listener) {
    bool moved = false;
    for (;;) {
      Box &box = boxes_[next_box_];
      int done = 0;
      const int e = mpi_.test(&box.request, &done, status(0));
      if (e) {
        if (class_of(e) != facts_.proc_failed_pending) listen_again(box);
        acknowledge();
        return moved;
      }
      if (!done) return moved;
      moved = true;
      const char *s = status(0);
      const auto from = uint32_t(field(s, facts_.source_at));
      int bytes = 0;
      mpi_.get_count(s, byte_, &bytes);
      next_box_ = (next_box_ + 1) % boxes_.size();
      if (from < size() && bytes > 0) listener.letter(from, box.bytes.data(), size_t(bytes));
      listen(box);
    }
  }
  void listen_again(Box &box) {
    if (box.request == null_) listen(box);
  }

  bool end_flights() {
    if (requests_.empty()) return false;
    const auto n = int(requests_.size());
    indices_.resize(size_t(n));
    status(size_t(n));
    int ended = 0;
    const int e = mpi_.testsome(n, requests_.data(), &ended, indices_.data(), status(0));
    if (ended <= 0 || ended > n) {  // MPI_UNDEFINED: none runs
      if (e) acknowledge();
      return false;
    }
    std::vector<std::pair<Transfer *, bool>> over;
    for (int i = 0; i < ended; i++) {
      const auto at = size_t(indices_[size_t(i)]);
      const char *s = status(size_t(i));
      const int error = e ? field(s, facts_.error_at) : 0;
      int cancelled = 0;
      if (!error) mpi_.test_cancelled(s, &cancelled);
      Flight &f = flights_[at];
      if (error) failed(f.peer, error);
      if (f.transfer) over.push_back({f.transfer, !error && !cancelled});
      f.transfer = nullptr;
      f.peer = UINT32_MAX;
    }
    size_t to = 0;
    for (size_t i = 0; i < flights_.size(); i++) {
      if (flights_[i].peer == UINT32_MAX) continue;
      if (to != i) {
        flights_[to] = std::move(flights_[i]);
        requests_[to] = requests_[i];
      }
      to++;
    }
    flights_.resize(to);
    requests_.resize(to);
    for (const auto &[transfer, whole] : over) transfer->ended(whole);
    return true;
  }

  // A call about a peer failed: without fault tolerance this is all that is known.
  void failed(uint32_t peer, int error) {
    if (is_failure(class_of(error)) && mpi_.failure_ack) acknowledge();
    if (!lost_[peer]) {
      lost_[peer] = true;
      newly_lost_.push_back(peer);
    }
  }
  // Learns which processes failed; receives from any process go on behind this.
  void acknowledge() {
    if (!mpi_.failure_ack || !mpi_.failure_get_acked) return;
    Handle failed, all;
    if (mpi_.failure_ack(comm_) || mpi_.failure_get_acked(comm_, &failed)) return;
    mpi_.comm_group(comm_, &all);
    int n = 0;
    mpi_.group_size(failed, &n);
    std::vector<int> theirs(static_cast<size_t>(n)), ours(static_cast<size_t>(n));
    for (int i = 0; i < n; i++) theirs[size_t(i)] = i;
    mpi_.group_translate_ranks(failed, n, theirs.data(), all, ours.data());
    mpi_.group_free(&failed);
    mpi_.group_free(&all);
    for (const int r : ours)
      if (r >= 0 && r < facts_.size && !lost_[size_t(r)]) {
        lost_[size_t(r)] = true;
        newly_lost_.push_back(uint32_t(r));
      }
  }

  const plait_mpi_facts facts_;
  const Functions<Handle> mpi_;
  const Handle byte_, null_;
  Handle comm_{}, duplicating_{};
  bool begun_ = false, ready_ = false;
  std::vector<Held> held_;
  std::vector<Box> boxes_;
  size_t next_box_ = 0;
  std::vector<Flight> flights_;
  std::vector<Handle> requests_;  // of the flights
  std::vector<int> indices_;
  std::vector<char> statuses_;
  std::vector<Transfer *> failures_;
  std::vector<bool> lost_;
  std::vector<uint32_t> newly_lost_;
  Waiting waiting_;
};

}  // namespace plait::mpi
