// The processes that one transport reaches, and the thread that communicates with them: how groups
// of them meet by a name, and how a process that is lost becomes known to all.
#ifndef PLAIT_COLLECTIVES_WORLD_HPP
#define PLAIT_COLLECTIVES_WORLD_HPP
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "group.hpp"
#include "subgroup.hpp"

namespace plait::collectives {

constexpr double beat_seconds = 0.5;     // between two signs of life
constexpr double silence_seconds = 3.5;  // without one, after which a process counts as lost
constexpr uint32_t watchers = 2;         // of each process: the next ones
// that a call of the transport may take; more than a silence, so that the others know before
inline double stuck_seconds = 10;
inline double telling_seconds = 1;  // that a program waits until an abort is told to the others

// A group that is being made, or the living processes that are being found.
struct Opening : Operation {
  std::shared_ptr<Group> group;
  std::vector<uint32_t> living;
};

// How long the thread that communicates has been in one call, as the threads see that wait for it.
// Time in which nobody asked counts as one beat at most: the process may have been stopped or
// slept.
class CallWatch {
 public:
  // `calls`: how many the thread has begun
  double silence(uint64_t calls, double t) {
    silence_ = calls == calls_ ? silence_ + std::min(t - asked_, beat_seconds) : 0;
    calls_ = calls;
    asked_ = t;
    return silence_;
  }

 private:
  uint64_t calls_ = 0;
  double asked_ = 0, silence_ = 0;
};

class World : private Listener {
 public:
  // Its thread runs until `stop`. `all_met`: the others have just started theirs, so that one of
  // which nothing is heard is lost; else it may do so at any later time.
  static std::shared_ptr<World> start(std::unique_ptr<Transport> transport,
                                      const plait_runtime *runtime, bool all_met = false) {
    std::shared_ptr<World> world(new World(std::move(transport), runtime));
    world->all_met_ = all_met;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
    try {
      std::thread([world] { world->run(); }).detach();
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return world;
  }
  World(const World &) = delete;

  uint32_t rank() const { return transport_->rank(); }
  uint32_t size() const { return transport_->size(); }
  int64_t pid() const { return pid_; }

  // ---- from any thread

  using Parent = Subgroup<std::shared_ptr<Group>>;

  // Joins the group of this name, when all have come.
  // `patience`: seconds that this may take; `timeout`: that of collectives; `parent`: the group of
  // whose members it is made, if the name does not say that
  std::shared_ptr<Opening> open(const std::string &name, uint32_t rank, uint32_t size,
                                double patience, double timeout, const Parent &parent = {}) {
    auto opening = std::make_shared<Opening>();
    opening->timeout = patience;
    opening->deadline = now() + patience;
    submit([=] { begin_open(opening, name, rank, size, timeout, parent); });
    return opening;
  }
  // Agrees with all processes that live on which ones these are.
  std::shared_ptr<Opening> find_living(const std::string &name, double timeout) {
    auto opening = std::make_shared<Opening>();
    opening->timeout = timeout;
    opening->deadline = now() + timeout;
    submit([=] {
      countings_.push_back({NameDigest(name), opening});
      tell_living(NameDigest(name));
      count_living();
    });
    return opening;
  }
  void withdraw(const std::shared_ptr<Opening> &opening) {
    submit([=] {
      for (const Pending &p : std::list<Pending>(pending_))
        if (p.opening == opening) fail(p, Outcome::interrupted, "interrupted");
      countings_.remove_if([&](const Counting &c) { return c.opening == opening; });
      if (!opening->done) opening->finish(Outcome::interrupted, "interrupted");
    });
  }
  void begin(const std::shared_ptr<Group> &group, const std::shared_ptr<Operation> &op) {
    submit([=] { group->add(op); });
  }
  void interrupt(const std::shared_ptr<Group> &group, const std::shared_ptr<Operation> &op) {
    submit([=] { group->interrupt(op.get()); });
  }
  // Ends the group in all members, and returns when the others have been told, so that they hear
  // of it though this process ends. A transport that does not return is not waited for.
  void abort(const std::shared_ptr<Group> &group, Cause cause, const std::string &text) {
    const auto telling = std::make_shared<Operation>();
    telling->deadline = now() + telling_seconds;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return;
    }
    submit([=] {
      group->abort(cause, text);
      tellings_.push_back(telling);
    });
    std::unique_lock<std::mutex> lock(telling->mutex);
    telling->changed.wait_for(lock, std::chrono::duration<double>(telling_seconds),
                              [&] { return telling->done; });
  }
  void close(const std::shared_ptr<Group> &group) {
    submit([=] { group->close(); });
  }
  // The lost processes, as far as this one knows.
  std::vector<uint32_t> lost_peers() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lost_;
  }
  // Why the thread ends nothing of what the program waits for: it is over, or the transport has not
  // returned for too long, as a foreign library may lock itself. '' as long as it moves. The groups
  // break when it moves again. From any thread that waits, again and again.
  std::string stuck() {
    std::vector<uint32_t> lost;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return "the thread that communicates has ended, as the process ends";
      if (watch_.silence(calls_, now()) < stuck_seconds) return "";
      given_up_ = true;
      lost = lost_;
    }
    return stuck_text(lost);
  }
  // Finishes what was begun, as far as there is time, tells the others, and ends the thread; false
  // if the thread does not end, as the transport does not return.
  bool stop(double timeout) {
    if (getpid() != pid_) return true;  // a forked child has no thread
    const bool is_stuck = !stuck().empty();
    std::unique_lock<std::mutex> lock(mutex_);
    for (const Stopping each : {stop_when_done, stop_at_once}) {
      if (ended_) break;
      stopping_ = each;
      if (is_stuck) continue;
      transport_->wake();
      stopped_.wait_for(lock, std::chrono::duration<double>(timeout), [&] { return ended_; });
    }
    return ended_;
  }

 private:
  enum Stopping { stop_when_done = 1, stop_at_once };
  struct Peer {
    bool known = false, gone = false, lost = false;
    int64_t pid = 0;
    std::string host, explanation;
    NameDigest place;
    double heard = 0;
  };
  struct Pending {  // a group that this process wants to join
    NameDigest name;
    std::shared_ptr<Opening> opening;
    std::shared_ptr<Group> group;
    Announce mine;
    Parent parent;
    std::vector<uint32_t> peers;  // its members, by rank; empty if they are not known
  };
  struct Counting {
    NameDigest name;
    std::shared_ptr<Opening> opening;
  };
  struct Entry {  // what a process announced
    uint32_t peer;
    Announce announce;
  };

  World(std::unique_ptr<Transport> transport, const plait_runtime *runtime)
      : transport_(std::move(transport)),
        runtime_(runtime),
        pid_(getpid()),
        peers_(transport_->size()) {}

  void submit(std::function<void()> f) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      todo_.push_back(std::move(f));
    }
    transport_->wake();
  }

  // ---- the thread

  void run() {
    pthread_setname_np(pthread_self(), "plait-messages");
    introduce();
    for (;;) {
      bool moved = false;
      try {
        moved = turn();
      } catch (const std::bad_alloc &) {
        for (auto &[number, group] : groups_) group->out_of_memory();
      }
      const bool busy = is_any(&Group::busy) || !tellings_.empty();
      const bool owes = is_any(&Group::owes);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (stopping_ == stop_at_once) break;
        if (!todo_.empty()) continue;
        if (stopping_ && !owes) break;
      }
      if (!moved) transport_->wait(beat_seconds / 2, busy);
    }
    for (auto &[number, group] : groups_) group->say_goodbye("interrupted, as the process ends");
    Letter bye(LETTER_BYE);  // with the groups that are not made; of others it was a member
    for (const Pending &p : pending_) bye.add(p.name);
    write_to_living(bye);
    transport_->close(1);
    end_tellings(true);
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    stopped_.notify_all();
  }

  bool turn() {
    std::deque<std::function<void()>> todo;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      todo.swap(todo_);
    }
    for (const auto &f : todo) {
      calls_++;
      f();
    }
    calls_++;
    const bool moved = transport_->progress(*this);
    for (const auto &f : std::exchange(later_, {})) f();
    end_tellings(transport_->has_sent());
    if (given_up_.exchange(false)) break_all();  // before anything is completed
    const double t = now();
    for (auto it = groups_.begin(); it != groups_.end();) {
      Group &group = *it->second;
      calls_++;
      if (group.busy()) group.step(t);
      it = group.ended() ? leave(it) : std::next(it);
    }
    lingering_.remove_if([](const auto &s) { return s->running() == 0; });
    if (t >= next_beat_) beat(t);
    give_up_late(t);
    return moved || !todo.empty();
  }

  void end_tellings(bool all) {
    const double t = now();
    tellings_.remove_if([&](const auto &telling) {
      const bool ends = all || t > telling->deadline;
      if (ends) telling->finish(Outcome::done, "");
      return ends;
    });
  }

  // whether groups are being made, or one of them is so
  bool is_any(bool (Group::*so)() const) const {
    if (!pending_.empty() || !countings_.empty()) return true;
    for (const auto &[number, group] : groups_)
      if ((*group.*so)()) return true;
    return false;
  }

  using Groups = std::map<uint64_t, std::shared_ptr<Group>>;
  Groups::iterator leave(Groups::iterator it) {
    Group &group = *it->second;
    group.say_goodbye("interrupted, as this process left the group");
    // bytes may be on their way in the channels of a broken group
    if (!group.broken()) free_channels_.push_back(group.channel());
    return groups_.erase(it);
  }

  // ---- a transport that did not return

  std::string stuck_text(const std::vector<uint32_t> &lost) const {
    std::string text = "the transport has not returned from " + std::string(transport_->call()) +
                       " for " + seconds(stuck_seconds) +
                       " s, so this process hears of no other one and its groups are broken;";
    for (const uint32_t p : lost)
      text += (p == lost[0] ? " known before: process " : ", process ") + std::to_string(p);
    return text + (lost.empty() ? " no process was known to be lost" : " of the job was lost");
  }
  // The program was told that it waits in vain, so nothing that it began may go on.
  void break_all() {
    const std::string explanation = "the transport did not return for some time";
    for (const Pending &p : std::list<Pending>(pending_)) fail(p, Outcome::broken, explanation);
    for (const Counting &c : std::exchange(countings_, {}))
      c.opening->finish(Outcome::broken, explanation);
    for (auto &[number, group] : groups_) group->expelled(explanation);
  }

  // ---- which processes live

  void introduce() {
    Hello hello{};
    hello.pid = pid_;
    gethostname(hello.host, sizeof hello.host - 1);
    hello.place = peers_[rank()].place = own_host(hello.host);
    write_to_living(Letter(LETTER_HELLO).add(hello));
  }
  bool lives(uint32_t p) const { return !peers_[p].lost && !peers_[p].gone; }
  void write_to_living(const Letter &letter) {
    for (uint32_t i = 1; i < size(); i++) {
      const uint32_t p = (rank() + i) % size();
      if (lives(p)) letter.send(*transport_, p);
    }
  }
  std::string name_of(uint32_t p) const {
    const Peer &peer = peers_[p];
    std::string text = "process " + std::to_string(p) + " of the job";
    if (peer.known) text += " (host " + peer.host + ", pid " + std::to_string(peer.pid) + ")";
    return text;
  }

  // A process writes to the next ones that live, and they expect that.
  void beat(double t) {
    const bool slept = t - last_beat_ > 2 * beat_seconds + 0.5;
    last_beat_ = t;
    next_beat_ = t + beat_seconds;
    uint32_t found = 0;
    for (uint32_t i = 1; i < size() && found < watchers; i++) {
      const uint32_t p = (rank() + i) % size();
      if (!lives(p)) continue;
      Letter(LETTER_BEAT).send(*transport_, p);
      found++;
    }
    std::set<uint32_t> watched;
    for (uint32_t i = 1; i < size() && watched.size() < watchers; i++) {
      const uint32_t p = (rank() + size() - i) % size();
      if (!lives(p)) continue;
      watched.insert(p);
      // whoever slept, or begins to watch, heard nothing meanwhile
      if (slept || !watched_.count(p)) peers_[p].heard = t;
    }
    watched_.swap(watched);
    for (const uint32_t p : std::set<uint32_t>(watched_))
      if ((peers_[p].known || all_met_) && t - peers_[p].heard > silence_seconds) {
        note_lost(p, "it was silent for " + seconds(silence_seconds) + " s");
        transport_->give_up(p);
      }
  }

  void lost(uint32_t p, const std::string &explanation) override {
    read_later([this, p, explanation] { note_lost(p, explanation); });
  }
  void note_lost(uint32_t p, const std::string &explanation) {
    Peer &peer = peers_[p];
    if (p == rank() || peer.lost || peer.gone) return;
    const std::string text = explanation.substr(0, 400);
    const Letter letter = Letter(LETTER_LOST).add(Lost{p}).add(text.data(), text.size());
    letter.send(*transport_, p);  // if it still runs
    for (auto &[number, group] : groups_)
      if (group->is_ended_by(p)) group->write_break();
    peer.lost = true;
    peer.explanation = text;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      lost_.push_back(p);
    }
    write_to_living(letter);
    for (auto &[number, group] : groups_) group->lost(p);
    forget_lost(p);
    for (const Counting &c : countings_) tell_living(c.name);
    count_living();
  }

  void read_lost(uint32_t from, Reading letter) {
    Lost l{};
    if (!letter.take(l) || l.peer >= size()) return;
    if (l.peer != rank())
      return read_later([this, l, explanation = letter.text()] {
        if (peers_[l.peer].lost) return;
        note_lost(l.peer, explanation);
        transport_->give_up(l.peer);
      });
    for (auto &[number, group] : groups_)
      group->expelled(name_of(from) + " gave this process up: " + letter.text());
  }

  // Losses count when all letters that have come are read, in the order in which they came: whoever
  // left, or is lost, may have said before why it would go, and who was lost first.
  void read_later(std::function<void()> read) { later_.push_back(std::move(read)); }

  // ---- letters

  void letter(uint32_t from, const char *data, size_t bytes) override {
    Reading letter(data, bytes);
    LetterHead head{};
    if (from >= size() || !letter.take(head)) return;
    Peer &peer = peers_[from];
    peer.heard = now();
    if (peer.lost && head.kind != LETTER_LOST) return;
    if (head.kind >= LETTER_CALL) {
      const auto read = [this, head](Reading reading) {
        const auto it = groups_.find(head.group);
        if (it != groups_.end()) it->second->read(head, reading);
      };
      const bool is_loss =
          head.kind == LETTER_LEFT || (head.kind == LETTER_BREAK && Group::says_lost(letter));
      if (!is_loss) return read(letter);
      return read_later(
          [read, copy = std::vector<char>(letter.data(), letter.data() + letter.left())] {
            read(Reading(copy.data(), copy.size()));
          });
    }
    switch (head.kind) {
      case LETTER_HELLO: {
        Hello hello{};
        if (!letter.take(hello)) return;
        hello.host[sizeof hello.host - 1] = 0;
        peer.known = true;
        peer.pid = hello.pid;
        peer.host = hello.host;
        peer.place = hello.place;
        return;
      }
      case LETTER_BYE: {
        std::vector<NameDigest> names;
        for (NameDigest name; letter.take(name);) names.push_back(name);
        return read_later([this, from, names] {
          peers_[from].gone = true;
          for (const NameDigest &name : names) forget_ended(from, name);
          count_living();
        });
      }
      case LETTER_LOST: return read_lost(from, letter);
      case LETTER_ANNOUNCE: {
        Announce a;
        if (!letter.take(a)) return;
        announced_[a.name].push_back({from, a});
        return meet(a.name);
      }
      case LETTER_WITHDRAW: {
        Withdraw w;
        if (!letter.take(w)) return;
        erase_entries(
            w.name, [&](const Entry &e) { return e.peer == from && e.announce.group == w.group; });
        // it met the others already
        return read_later([this, from, w] {
          for (auto &[number, group] : groups_) group->left(from, w.group);
        });
      }
      case LETTER_LIVING: {
        NameDigest name;
        uint32_t n = 0;
        if (!letter.take(name) || !letter.take(n)) return;
        std::set<uint32_t> dead;
        for (uint32_t i = 0, p = 0; i < n && letter.take(p); i++) dead.insert(p);
        told_living_[name][from] = dead;
        return count_living();
      }
      default: return;
    }
  }

  // ---- groups

  Parent parent_of(const std::string &name, uint32_t size) const {
    const auto find = [&](const std::string &of) -> std::shared_ptr<Group> {
      for (const auto &[number, group] : groups_)
        if (group->name() == of) return group;
      return nullptr;
    };
    return find_parent<std::shared_ptr<Group>>(name, size, find,
                                               [](const auto &group) { return group->size(); });
  }

  void begin_open(const std::shared_ptr<Opening> &opening, const std::string &text, uint32_t rank,
                  uint32_t size, double timeout, const Parent &outer) {
    if (opening->done) return;
    const Parent parent = outer.parent ? outer : parent_of(text, size);
    const NameDigest name(parent.name);
    for (const Pending &p : pending_)
      if (p.name == name)
        return opening->finish(Outcome::broken,
                               "this process joins the group of this name already; each member "
                               "must be a process of its own");
    if (stopping_) return opening->finish(Outcome::broken, "the process ends");
    uint32_t channel = next_channel_;
    if (!free_channels_.empty()) {
      channel = free_channels_.front();
      free_channels_.pop_front();
    } else if (channel + channels_of_group > most_channels) {
      return opening->finish(Outcome::broken, "there are too many groups in this process");
    } else {
      next_channel_ += channels_of_group;
    }
    const uint64_t number = ++last_group_;
    auto group = std::make_shared<Group>(*transport_, lingering_, runtime_, number, channel, rank,
                                         size, timeout, parent.name);
    Announce mine{};
    mine.name = name;
    mine.group = number;
    mine.pid = pid_;
    mine.rank = rank;
    mine.size = size;
    mine.channel = channel;
    groups_[number] = group;
    pending_.push_back({name, opening, group, mine, parent, {}});
    for (const uint32_t r : parent.ranks)
      pending_.back().peers.push_back(parent.parent->peer_of(r));
    if (size > 1) write_to_living(Letter(LETTER_ANNOUNCE).add(mine));
    meet(name);
  }

  // Of each process the first announcement that is left.
  std::vector<Entry> first_entries(const NameDigest &name) {
    std::vector<Entry> found;
    std::set<uint32_t> seen;
    const auto it = announced_.find(name);
    if (it == announced_.end()) return found;
    for (const Entry &e : it->second)
      if (seen.insert(e.peer).second) found.push_back(e);
    return found;
  }
  template <class F>
  void erase_entries(const NameDigest &name, F &&condition) {
    const auto it = announced_.find(name);
    if (it == announced_.end()) return;
    it->second.remove_if(condition);
    if (it->second.empty()) announced_.erase(it);
  }
  void erase_all(const NameDigest &name, const std::vector<Entry> &entries) {
    for (const Entry &e : entries)
      erase_entries(name, [&](const Entry &x) {
        return x.peer == e.peer && x.announce.group == e.announce.group;
      });
  }

  // Whether all members of a group have announced it.
  void meet(const NameDigest &name) {
    const auto mine = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const Pending &p) { return p.name == name; });
    std::vector<Entry> entries = first_entries(name);
    if (mine == pending_.end()) {
      // those of a group of others are forgotten when it is complete
      std::set<uint32_t> ranks;
      for (const Entry &e : entries) ranks.insert(e.announce.rank);
      if (!entries.empty() && ranks.size() == entries[0].announce.size) erase_all(name, entries);
      return;
    }
    const Pending p = *mine;
    entries.push_back({rank(), p.mine});
    std::map<uint32_t, const Entry *> by_rank;
    for (const Entry &e : entries) {
      if (e.announce.size != p.mine.size)
        return fail(p, Outcome::broken,
                    "the group has " + std::to_string(p.mine.size) + " members here, and " +
                        std::to_string(e.announce.size) + " in " + name_of(e.peer));
      if (!by_rank.emplace(e.announce.rank, &e).second)
        return fail(p, Outcome::broken,
                    "the rank must be free; several members want to be rank " +
                        std::to_string(e.announce.rank));
    }
    if (by_rank.size() < p.mine.size) return;
    for (const auto &[r, e] : by_rank) {
      Member m;
      m.peer = e->peer;
      m.group = e->announce.group;
      m.pid = e->announce.pid;
      m.host = peers_[e->peer].place;
      p.group->join(r, m, e->announce.channel);
    }
    p.group->complete();
    entries.pop_back();
    erase_all(name, entries);
    pending_.erase(mine);
    p.opening->group = p.group;
    p.opening->finish(Outcome::done, "");
  }

  void fail(const Pending &pending, Outcome o, Explanation explanation) {
    const Pending p = pending;
    // whoever ended the other group may have left behind that
    if (o == Outcome::broken && p.parent.by_all && p.parent.parent->ended_by_member())
      explanation = parent_text(p);
    pending_.remove_if([&](const Pending &x) { return x.opening == p.opening; });
    groups_.erase(p.group->number());
    free_channels_.push_back(p.group->channel());
    if (p.mine.size > 1)
      write_to_living(Letter(LETTER_WITHDRAW).add(Withdraw{p.name, p.mine.group}));
    p.opening->finish(o, explanation);
  }

  // What a process announced for a group that it did not join before it ended; groups that wait for
  // it are not made. Those that it joined are made here, too, when the others' letters have come.
  void forget_ended(uint32_t peer, const NameDigest &name) {
    fail_announced(peer, name, " ended");
    erase_entries(name, [&](const Entry &e) { return e.peer == peer; });
  }
  // A process that is lost and has not announced may be a member of any group.
  void forget_lost(uint32_t peer) {
    for (const Pending &p : std::list<Pending>(pending_)) fail_announced(peer, p.name, " died");
    for (const Pending &p : std::list<Pending>(pending_))
      if (p.mine.size > 1 && p.peers.empty())
        fail(p, Outcome::broken,
             {name_of(peer) + " died while the group was made: " + peers_[peer].explanation,
              {{-1, peer, peers_[peer].pid}}});
    for (auto it = announced_.begin(); it != announced_.end();) {
      it->second.remove_if([&](const Entry &e) { return e.peer == peer; });
      it = it->second.empty() ? announced_.erase(it) : std::next(it);
    }
  }
  void fail_announced(uint32_t peer, const NameDigest &name, const char *event) {
    for (const Pending &p : std::list<Pending>(pending_)) {
      if (p.mine.size == 1 || !(p.name == name)) continue;
      for (const Entry &e : first_entries(p.name))
        if (e.peer == peer) {
          fail(p, Outcome::broken, loss_of(e.announce.rank, peer, e.announce.pid, event));
          break;
        }
    }
  }

  static Explanation loss_of(uint32_t r, uint32_t peer, int64_t pid, const char *event) {
    return {"rank " + std::to_string(r) + " (pid " + std::to_string(pid) + ")" + event,
            {{r, peer, pid}}};
  }

  // Why a group that is being made waits for a member that does not come; '' if there is no reason.
  Explanation absence(const Pending &p) {
    std::set<uint32_t> here{rank()};
    for (const Entry &e : first_entries(p.name)) here.insert(e.peer);
    for (const bool died : {true, false})  // those that left may have done so because one has died
      for (uint32_t r = 0; r < p.peers.size(); r++) {
        const Peer &peer = peers_[p.peers[r]];
        const bool left = peer.gone || p.parent.parent->has_left(p.parent.ranks[r]);
        if (!here.count(p.peers[r]) && (died ? peer.lost : left))
          return loss_of(r, p.peers[r], peer.pid, died ? " died" : " left");
      }
    // some of its members may hear of that in the other group, and not come
    if (!p.parent.by_all || !p.parent.parent->broken()) return {};
    return parent_text(p);
  }
  // why the group is broken of whose members another one is made
  static Explanation parent_text(const Pending &p) {
    Explanation explanation = p.parent.parent->broken_text();
    explanation.lost = in_subgroup(explanation.lost, p.parent.ranks);
    return explanation;
  }

  void give_up_late(double t) {
    for (const Pending &p : std::list<Pending>(pending_))
      if (p.parent.parent)
        if (const Explanation explanation = absence(p); !explanation.empty())
          fail(p, Outcome::broken, explanation);
    for (const Pending &p : std::list<Pending>(pending_)) {
      if (t <= p.opening->deadline) continue;
      std::set<uint32_t> here{p.mine.rank};
      for (const Entry &e : first_entries(p.name)) here.insert(e.announce.rank);
      std::string names;
      for (uint32_t r = 0; r < p.mine.size; r++)
        if (!here.count(r)) names += (names.empty() ? "rank " : ", rank ") + std::to_string(r);
      fail(p, Outcome::timed_out, "waited " + seconds(p.opening->timeout) + " s for " + names);
    }
    for (const Counting &c : std::list<Counting>(countings_)) {
      if (t <= c.opening->deadline) continue;
      std::string names;
      for (uint32_t p = 0; p < size(); p++)
        if (p != rank() && lives(p) && !told_living_[c.name].count(p))
          names += (names.empty() ? "" : ", ") + name_of(p);
      countings_.remove_if([&](const Counting &x) { return x.opening == c.opening; });
      c.opening->finish(Outcome::timed_out,
                        "waited " + seconds(c.opening->timeout) + " s for " +
                            (names.empty() ? "agreement on the processes that live" : names));
    }
  }

  // ---- agreement on the processes that live

  std::set<uint32_t> dead() const {
    std::set<uint32_t> found;
    for (uint32_t p = 0; p < size(); p++)
      if (!lives(p)) found.insert(p);
    return found;
  }
  void tell_living(const NameDigest &name) {
    const std::set<uint32_t> mine = dead();
    Letter letter(LETTER_LIVING);
    letter.add(name).add(uint32_t(mine.size()));
    for (const uint32_t p : mine) letter.add(p);
    write_to_living(letter);
  }
  // done when all that live here have told the same
  void count_living() {
    const std::set<uint32_t> mine = dead();
    for (const Counting &c : std::list<Counting>(countings_)) {
      const auto &told = told_living_[c.name];
      std::vector<uint32_t> living;
      bool agreed = true;
      for (uint32_t p = 0; p < size() && agreed; p++) {
        if (mine.count(p)) continue;
        living.push_back(p);
        const auto it = told.find(p);
        agreed = p == rank() || (it != told.end() && it->second == mine);
      }
      if (!agreed) continue;
      told_living_.erase(c.name);
      countings_.remove_if([&](const Counting &x) { return x.opening == c.opening; });
      c.opening->living = living;
      c.opening->finish(Outcome::done, "");
    }
  }

  const std::unique_ptr<Transport> transport_;
  const plait_runtime *runtime_;
  const int64_t pid_;
  bool all_met_ = false;

  std::mutex mutex_;  // of the next six
  std::deque<std::function<void()>> todo_;
  std::vector<uint32_t> lost_;
  CallWatch watch_;
  std::condition_variable stopped_;
  bool ended_ = false;
  std::atomic<int> stopping_{0};

  std::atomic<uint64_t> calls_{0};  // that the thread has begun
  std::atomic<bool> given_up_{false};  // a thread of the program waits for it no longer

  // of the thread
  std::vector<Peer> peers_;
  std::set<uint32_t> watched_;
  double next_beat_ = 0, last_beat_ = 0;
  std::list<Pending> pending_;
  std::list<Counting> countings_;
  std::list<std::shared_ptr<Operation>> tellings_;  // aborts for which the program waits
  std::vector<std::function<void()>> later_;  // to be read in this turn, behind all letters
  std::map<NameDigest, std::list<Entry>> announced_;
  std::map<NameDigest, std::map<uint32_t, std::set<uint32_t>>> told_living_;
  Groups groups_;
  Schedules lingering_;
  std::deque<uint32_t> free_channels_;
  uint32_t next_channel_ = 0;
  uint64_t last_group_ = 0;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_WORLD_HPP
