// One member of a group of processes, as the communication thread sees it: the collectives that
// the program began, in order; the calls of the other members; and what breaks the group.
#ifndef PLAIT_COLLECTIVES_GROUP_HPP
#define PLAIT_COLLECTIVES_GROUP_HPP
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "hosts.hpp"
#include "letters.hpp"
#include "messages.hpp"
#include "operation.hpp"
#include "over_hosts.hpp"
#include "stage.hpp"

namespace plait::collectives {

struct Member {
  uint32_t peer = 0;
  uint64_t group = 0;  // the group's number in that process
  int64_t pid = 0;
  NameDigest host;
  bool joined = false, left = false, lost = false;
  uint64_t began = 0;  // when it has left: how many collectives it had begun
};

// Seconds after which a member that waits for others' calls in a large group tells so.
constexpr double most_patience = 1;

class Group : public Members {
 public:
  Group(Transport &transport, Schedules &lingering, const plait_runtime *runtime, uint64_t number,
        uint32_t channel, uint32_t rank, uint32_t size, double timeout, std::string name)
      : name_(std::move(name)),
        number_(number),
        channel_(channel),
        rank_(rank),
        size_(size),
        timeout_(timeout),
        transport_(transport),
        lingering_(lingering),
        runtime_(runtime),
        members_(size),
        routes_(size),
        messages_(*this, transport, lingering) {
    for (Turn &turn : turns_) turn.called.resize(size);
  }

  const std::string &name() const { return name_; }
  uint64_t number() const { return number_; }  // in this process
  uint32_t channel() const { return channel_; }
  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  double timeout() const { return timeout_; }
  bool busy() const { return run_ || !queue_.empty() || !messages_.idle(); }
  // whether others may wait for what it began
  bool owes() const { return run_ || !queue_.empty() || messages_.owe(); }
  bool broken() const { return broken_.has_value(); }
  // a program, or its user, ended the group in a member, which may leave then
  bool ended_by_member() const {
    return broken_ && (broken_->cause == CAUSE_ABORTED || broken_->cause == CAUSE_INTERRUPTED);
  }
  bool has_left(uint32_t rank) const { return members_[rank].left; }
  // Whether the communicator is gone, and all that others may wait for is done. Receives do not
  // keep a member: their results are not needed any more.
  bool ended() const { return closing_ && !owes(); }

  void join(uint32_t rank, const Member &m, uint32_t channel) {
    Member &member = members_[rank];
    const bool left = member.left;  // it may have, before this process heard of all members
    const uint64_t began = member.began;
    member = m;
    member.joined = true;
    member.left = left;
    member.began = began;
    routes_[rank] = {m.peer, channel};
  }
  // all have joined
  void complete() {
    std::vector<NameDigest> hosts(size_);
    for (uint32_t r = 0; r < size_; r++) hosts[r] = members_[r].host;
    hosts_ = Hosts(hosts);
    shares_ = fellows().size() == 1;
    for (const auto &[rank, address] : shown_) open_stage(rank, address);
  }
  const std::vector<Route> &routes() const override { return routes_; }
  uint32_t own_rank() const override { return rank_; }
  std::string name_of(uint32_t r) const override {
    if (r >= size_ || !members_[r].joined)
      return "rank " + std::to_string(r) + ", which has not joined";
    return "rank " + std::to_string(r) + " (pid " + std::to_string(members_[r].pid) + ")";
  }
  uint32_t peer_of(uint32_t rank) const { return members_[rank].peer; }
  uint64_t group_of(uint32_t rank) const { return members_[rank].group; }

  // The reason, and the members that were lost since if they may be a part of it: the others of a
  // host that is cut off, or the member that was waited for. Members that end after an abort or a
  // timeout are not the reason.
  Explanation broken_text() const {
    Explanation explanation = reason_text();
    for (uint32_t r = 0; r < size_; r++)
      if (members_[r].lost && ((broken_->cause == CAUSE_DIED && broken_->of != r) ||
                               (broken_->cause == CAUSE_TIMED_OUT && broken_->of == r))) {
        explanation += ", " + name_of(r) + " died";
        explanation.lost.push_back(lost_member(r));
      }
    return explanation;
  }

  // ---- what the program asks for

  void add(std::shared_ptr<Operation> op) {
    if (broken_) return op->finish(Outcome::broken, broken_text());
    if (!op->is_message()) {
      queue_.push_back(std::move(op));
      return;
    }
    const uint32_t r = op->call.root;
    messages_.add(std::move(op));
    if (members_[r].left) check_left(r);
  }
  void interrupt(const Operation *op) {
    if (messages_.interrupt(op)) return;
    const bool waits = std::any_of(queue_.begin(), queue_.end(),
                                   [&](const auto &each) { return each.get() == op; });
    if (!waits && !messages_.has(op)) return;
    give_up({rank_, rank_, CAUSE_INTERRUPTED}, Outcome::interrupted, "interrupted");
  }
  // `cause`: CAUSE_ABORTED with the reason, or CAUSE_INTERRUPTED with the function
  void abort(Cause cause, const std::string &text) {
    if (broken_) return;
    abort_text_ = text;
    give_up({rank_, rank_, cause}, Outcome::broken, "");
  }
  // Whether this process, another one, ended the group. If it is lost now, not all may know that.
  bool is_ended_by(uint32_t peer) const {
    return ended_by_other() && members_[broken_->by].peer == peer;
  }
  bool ended_by_other() const { return ended_by_member() && broken_->by != rank_; }
  void write_break() const { write_to_all(LETTER_BREAK, &*broken_, sizeof *broken_, abort_text_); }
  void close() { closing_ = true; }
  void say_goodbye(const Explanation &explanation) {
    if (owes() && !broken_)  // the others wait for what does not come any more
      give_up({rank_, rank_, CAUSE_LEFT}, Outcome::broken, explanation);
    else if (ended_by_other())  // whoever has not heard of that must not take this member for the
                                // cause
      write_break();
    else
      write_to_all(LETTER_LEFT, &began_, sizeof began_);
    messages_.fail_all(Outcome::broken, explanation);
  }
  void out_of_memory() {
    if (!broken_) give_up({rank_, rank_, CAUSE_INTERRUPTED}, Outcome::broken, "out of memory");
  }

  // ---- what others write

  // whether a LETTER_BREAK says that a member died or left
  static bool says_lost(Reading letter) {
    Reason reason{};
    return letter.take(reason) && (reason.cause == CAUSE_DIED || reason.cause == CAUSE_LEFT);
  }
  void read(const LetterHead &head, Reading letter) {
    const uint32_t from = head.from;
    if (from >= size_ || broken_) return;
    switch (head.kind) {
      case LETTER_CALL: return called(from, letter);
      case LETTER_CALLS: return handed_on(letter);
      case LETTER_HERE: return waits_here(from, letter);
      case LETTER_STAGE: return show_stage(from, letter);
      case LETTER_BREAK: return broken_by(from, letter);
      case LETTER_LEFT:
        members_[from].left = true;
        letter.take(members_[from].began);
        return check_left(from);
      case LETTER_OFFER: {
        Offer offer;
        if (letter.take(offer)) messages_.offered(from, offer, letter.data(), letter.left());
        return;
      }
      default: break;
    }
    Reply reply;
    if (!letter.take(reply)) return;
    if (head.kind == LETTER_REFUSE) return messages_.refused(from, reply);
    // one end gave a message up while the other one agreed to it: its channel is of no use
    if (head.kind == LETTER_TAKE_BACK && !messages_.taken_back(from, reply))
      give_up({from, rank_, CAUSE_TIMED_OUT}, Outcome::broken, "");
    if (head.kind == LETTER_ACCEPT && !messages_.accepted(from, reply))
      give_up({rank_, from, CAUSE_TIMED_OUT}, Outcome::broken, "");
  }

  void lost(uint32_t peer) {
    for (uint32_t r = 0; r < size_; r++) {
      if (members_[r].peer != peer || !members_[r].joined || r == rank_) continue;
      members_[r].lost = true;
      if (!members_[r].left && !broken_)
        give_up({rank_, r, CAUSE_DIED}, Outcome::broken, loss_of(r, " died"));
      else
        check_left(r);
    }
  }
  // a process left, whose number of the group is given
  void left(uint32_t peer, uint64_t number) {
    for (uint32_t r = 0; r < size_; r++)
      if (members_[r].joined && members_[r].peer == peer && members_[r].group == number) {
        members_[r].left = true;
        check_left(r);
      }
  }
  // the others count this process as lost
  void expelled(const std::string &explanation) {
    if (broken_) return;
    expelled_ = explanation;
    give_up({rank_, rank_, CAUSE_INTERRUPTED}, Outcome::broken, explanation);
  }

  // Makes progress with all operations that can.
  void step(double t) {
    while (!broken_ && (run_ || !queue_.empty())) {
      if (!run_) begin(t);
      if (!move(t)) break;
    }
    if (broken_ || messages_.idle()) return;
    Outcome o = Outcome::done;
    std::string explanation;
    uint32_t r = 0;
    double waited = 0;
    if (!messages_.step(t, o, explanation, r, waited)) return;
    if (o == Outcome::timed_out)
      give_up({rank_, r, CAUSE_TIMED_OUT, 0, waited}, o, explanation);
    else
      give_up({rank_, r, CAUSE_DIED}, o, loss_of(r, " died"));
  }

 private:
  struct Called {  // by a member
    bool here = false, waits = false;  // waits: that it calls is known, not what
    Call call{};
    std::vector<char> bytes;
  };
  struct Turn {  // what is known of one collective
    std::vector<Called> called;  // by rank
    bool all_share = true;  // those that are here
    // where calls are handed on
    uint32_t round = 0, sent = 0;  // the next rounds to read, and to write
    std::map<uint32_t, std::vector<char>> rounds;  // letters that came, by round
    bool told = false, asked = false;  // that this member waits; that another one does
  };
  struct Run {
    std::shared_ptr<Operation> op;
    Call call;
    Algorithm algorithm;
    std::unique_ptr<OverHosts> over_hosts;  // where it pays
    std::shared_ptr<Schedule> schedule;
    double deadline = 0, patience = 0;
    uint64_t seen = 0;
    plait_event event{};
    uint64_t tokens[PLAIT_TOKENS];
    uint64_t n_tokens = 0;
    Run(std::shared_ptr<Operation> o, uint32_t rank, uint32_t size,
        const std::vector<Route> &routes)
        : op(std::move(o)), call(call_of(op->call)), algorithm(op->call, rank, size, routes) {}
  };
  Turn &turn() { return turns_[count_ & 1]; }
  std::vector<Called> &calls() { return turn().called; }

  void write(uint32_t rank, const Letter &letter) const {
    const Member &m = members_[rank];
    if (m.joined && !m.left && !m.lost) letter.send(transport_, m.peer);
  }
  Letter letter_to(uint32_t rank, uint32_t kind) const {
    return Letter(kind, rank_, members_[rank].group);
  }
  void write_to_all(uint32_t kind, const void *data, size_t n, const std::string &text = "") const {
    for (uint32_t i = 1; i < size_; i++) {
      const uint32_t r = (rank_ + i) % size_;
      write(r, letter_to(r, kind).add(data, n).add(text.data(), text.size()));
    }
  }
  void write_to(uint32_t rank, uint32_t kind, const Offer *offer, const Reply *reply,
                const std::vector<char> &bytes) override {
    Letter letter = letter_to(rank, kind);
    if (offer) letter.add(*offer);
    if (reply) letter.add(*reply);
    write(rank, letter.add(bytes.data(), bytes.size()));
  }

  // ---- collectives

  void begin(double t) {
    run_.emplace(queue_.front(), rank_, size_, routes_);
    began_ = count_ + 1;
    run_->deadline = t + run_->op->timeout;
    run_->patience = t + std::min(most_patience, run_->op->timeout / 3);
    observe();
    const bool is_short = run_->algorithm.is_short();
    if (!is_short) prepare_hosts();
    calls()[rank_].here = true;
    calls()[rank_].call = run_->call;
    turn().all_share = turn().all_share && shares_;
    if (is_direct()) {
      for (uint32_t i = 1; i < size_; i++) {
        const uint32_t r = (rank_ + i) % size_;
        Letter letter = letter_to(r, LETTER_CALL);
        letter.add(Calling{count_, run_->call, shares_});
        if (const uint64_t n = is_short ? run_->algorithm.short_bytes(r) : 0)
          run_->algorithm.pack_short(r, letter.room(n));
        write(r, letter);
      }
    } else {
      if (const uint64_t n = is_short ? run_->algorithm.short_bytes(run_->call.root) : 0) {
        calls()[rank_].bytes.resize(n);
        run_->algorithm.pack_short(run_->call.root, calls()[rank_].bytes.data());
      }
      hand_on();
    }
    for (uint32_t r = 0; r < size_ && !broken_; r++)
      if (members_[r].left) check_left(r);
  }

  // true if the collective is over
  bool move(double t) {
    if (broken_) return true;
    if (!run_->schedule) {
      const auto &all = calls();
      const bool here = std::all_of(all.begin(), all.end(), [](auto &c) { return c.here; });
      if (here) return agree(t);
      if (!is_direct() && !turn().told && (t > run_->patience || turn().asked)) {
        turn().told = true;
        write_to_all(LETTER_HERE, &count_, sizeof count_);
      }
    } else if (run_->schedule->failed()) {
      const uint32_t r = run_->schedule->failed_rank();
      give_up({rank_, r, CAUSE_DIED}, Outcome::broken, loss_of(r, " died"));
      return true;
    } else {
      run_->schedule->pump();
      if (run_->schedule->done()) return finish(Outcome::done, "");
      if (run_->schedule->ended() != run_->seen) {
        run_->seen = run_->schedule->ended();
        run_->deadline = t + run_->op->timeout;
      }
    }
    if (t <= run_->deadline) return false;
    uint32_t first = rank_;
    const std::string names = missing(first);
    give_up({rank_, first, CAUSE_TIMED_OUT, 0, run_->op->timeout}, Outcome::timed_out,
            "waited " + seconds(run_->op->timeout) + " s for " + names);
    return true;
  }

  // All calls are here: they are compared.
  bool agree(double t) {
    const auto &all = calls();
    if (std::any_of(all.begin(), all.end(), [&](auto &c) { return c.call != run_->call; })) {
      std::string explanation = "the same call on all ranks is required;";
      for (uint32_t r = 0; r < size_; r++)
        explanation +=
            (r ? ", rank " : " rank ") + std::to_string(r) + " calls " + describe(all[r].call);
      return finish(Outcome::mismatch, explanation);
    }
    if (run_->algorithm.is_short()) {
      std::vector<const char *> bytes(size_);
      for (uint32_t r = 0; r < size_; r++) bytes[r] = all[r].bytes.data();
      run_->algorithm.finish_short(bytes);
      return finish(Outcome::done, "");
    }
    run_->deadline = t + run_->op->timeout;
    Algorithm *algorithm = &run_->algorithm;
    size_t chunks = Schedule::window;
    if (run_->over_hosts && turn().all_share) {
      algorithm = run_->over_hosts.get();
      chunks = run_->over_hosts->window();
      if (stage_) stage_->close_descriptor();
    }
    run_->schedule = std::make_shared<Schedule>(
        transport_, run_->op->tensors,
        [algorithm, kept = stage_](Chunk &c, uint64_t number) {
          return algorithm->fill(c, number);
        },
        chunks);
    return move(t);
  }

  bool finish(Outcome o, const Explanation &explanation) {
    for (Called &c : calls()) c = {};
    turn().all_share = true;
    turn().round = turn().sent = 0;
    turn().rounds.clear();
    turn().told = turn().asked = false;
    count_++;
    end_run(o, explanation);
    return true;
  }
  void end_run(Outcome o, const Explanation &explanation) {
    const std::shared_ptr<Operation> op = run_->op;
    if (run_->schedule && run_->schedule->running()) {
      run_->schedule->abandon();
      lingering_.push_back(run_->schedule);
    }
    if (run_->n_tokens)
      runtime_->end(&run_->event, run_->tokens, run_->n_tokens,
                    o == Outcome::done ? PLAIT_OK : PLAIT_ERROR);
    run_.reset();
    queue_.pop_front();
    op->finish(o, explanation);
  }
  void observe() {
    if (!(__atomic_load_n(runtime_->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_COLLECTIVE)) return;
    plait_event &e = run_->event;
    e.size = sizeof e;
    e.kind = PLAIT_EVENT_COLLECTIVE;
    e.name = kind_name(run_->call.kind);
    e.a = run_->op->call.elements * uint64_t(itemsize(run_->op->call.dtype));
    e.device = {kDLCPU, 0};
    run_->n_tokens = runtime_->begin(&e, run_->tokens, PLAIT_TOKENS);
  }

  // ranks that a collective waits for
  std::string missing(uint32_t &first) {
    std::vector<bool> absent(size_);
    if (run_->schedule)
      run_->schedule->each_running([&](const Action &a) { absent[a.rank] = true; });
    else
      for (uint32_t r = 0; r < size_; r++) absent[r] = !calls()[r].here && !calls()[r].waits;
    std::string names;
    for (uint32_t r = 0; r < size_; r++) {
      if (!absent[r]) continue;
      if (names.empty()) first = r;
      names += (names.empty() ? "" : ", ") + name_of(r);
    }
    return names;
  }

  void called(uint32_t from, Reading letter) {
    Calling calling;
    if (!letter.take(calling) || calling.number - count_ > 1) return;
    Turn &turn = turns_[calling.number & 1];
    Called &c = turn.called[from];
    c.here = true;
    c.call = calling.call;
    c.bytes.assign(letter.data(), letter.data() + letter.left());
    turn.all_share = turn.all_share && calling.shares;
    if (run_) run_->deadline = now() + run_->op->timeout;
  }

  // In large groups each member hands on, in round k, what it knows of itself and the 2^k - 1 ranks
  // behind it to the one that is 2^k before it: so all know all calls after log2 n letters.

  bool is_direct() const { return size_ <= most_direct; }

  void hand_on() {
    Turn &here = turn();
    for (; uint64_t(1) << here.round < size_; here.round++) {
      const uint32_t step = 1u << here.round, many = std::min(step, size_ - step);
      const auto came = here.rounds.find(here.round);
      if (here.sent == here.round) write_calls(here.sent++, (rank_ + size_ - step) % size_, many);
      if (came == here.rounds.end()) return;
      read_calls(Reading(came->second.data(), came->second.size()), (rank_ + step) % size_, many);
    }
  }
  const Called &called_behind(uint32_t i) { return calls()[(rank_ + i) % size_]; }
  void write_calls(uint32_t round, uint32_t to, uint32_t many) {
    std::vector<CallRun> runs;
    for (uint32_t i = 0; i < many; i++) {
      const Call &call = called_behind(i).call;
      if (runs.empty() || runs.back().call != call) runs.push_back({0, call});
      runs.back().count++;
    }
    Letter letter = letter_to(to, LETTER_CALLS);
    letter.add(Calls{count_, round, uint32_t(runs.size()), turn().all_share});
    for (const CallRun &run : runs) letter.add(run);
    if (runs.size() == 1)
      for (uint32_t i = 0; i < many; i++)
        letter.add(called_behind(i).bytes.data(), called_behind(i).bytes.size());
    write(to, letter);
  }
  // calls of some ranks, beginning with one
  void read_calls(Reading letter, uint32_t first, uint32_t many) {
    Calls head{};
    letter.take(head);
    turn().all_share = turn().all_share && head.shares;
    CallRun run{};
    uint32_t at = 0;
    for (uint32_t i = 0; i < head.runs && letter.take(run); i++)
      for (uint64_t k = 0; k < run.count && at < many; k++, at++) {
        Called &c = calls()[(first + at) % size_];
        c.here = true;
        c.call = run.call;
      }
    if (head.runs != 1 || run.call != run_->call || !run_->algorithm.is_short()) return;
    for (uint32_t i = 0; i < many; i++) {
      const uint32_t r = (first + i) % size_;
      const uint64_t n = run_->algorithm.handed_on_bytes(r);
      if (letter.left() < n) return;
      calls()[r].bytes.assign(letter.data(), letter.data() + n);
      letter.skip(n);
    }
  }
  void handed_on(Reading letter) {
    Calls head{};
    const Reading whole = letter;
    if (!letter.take(head) || head.number - count_ > 1) return;
    Turn &of = turns_[head.number & 1];
    of.rounds[head.round].assign(whole.data(), whole.data() + whole.left());
    if (!run_) return;
    run_->deadline = now() + run_->op->timeout;
    if (head.number == count_ && !run_->schedule) hand_on();
  }
  // a member has begun a collective, and does not know whether all have
  void waits_here(uint32_t from, Reading letter) {
    uint64_t number = 0;
    if (!letter.take(number) || number - count_ > 1) return;
    Turn &of = turns_[number & 1];
    of.called[from].waits = true;
    of.asked = true;
  }

  // ---- members of one host

  const std::vector<uint32_t> &fellows() const { return hosts_.ranks[hosts_.host_of[rank_]]; }
  // Shares memory with the others of the host, if a collective of this kind uses it. Whether all
  // do is known to all with the calls of the next one.
  void prepare_hosts() {
    run_->over_hosts = std::make_unique<OverHosts>(run_->algorithm, hosts_, stage_);
    if (!run_->over_hosts->pays()) {
      run_->over_hosts.reset();
      return;
    }
    if (made_stage_ || fellows().size() == 1) return;
    made_stage_ = true;
    if (!stage().make()) return;
    for (const uint32_t r : fellows())
      if (r != rank_) write(r, letter_to(r, LETTER_STAGE).add(stage().address()));
    shares_ = stage().whole();
  }
  Stage &stage() {
    if (!stage_)
      stage_ = std::make_shared<Stage>(uint32_t(fellows().size()), hosts_.place_of[rank_]);
    return *stage_;
  }
  void show_stage(uint32_t from, Reading letter) {
    Stage::Address address{};
    if (!letter.take(address)) return;
    if (hosts_.count())
      open_stage(from, address);
    else
      shown_[from] = address;  // of a member that has heard of all members, which this one has not
  }
  void open_stage(uint32_t of, const Stage::Address &address) {
    if (hosts_.host_of[of] != hosts_.host_of[rank_]) return;
    stage().open(hosts_.place_of[of], members_[of].pid, address);
    shares_ = stage().whole();
  }

  // ---- what breaks the group

  // A member that left, or died behind that, does nothing more. A collective needs it and breaks
  // the group; of messages only its own fail.
  void check_left(uint32_t rank) {
    if (broken_) return;
    const Explanation explanation = loss_of(rank, " left the group");
    if (run_ && !run_->schedule && !calls()[rank].here && members_[rank].began <= count_)
      give_up({rank_, rank, CAUSE_LEFT}, Outcome::broken, explanation);
    else
      messages_.fail_those_of(rank, explanation);
  }

  // This member breaks the group: its operations fail with the text, and the others get a message.
  void give_up(const Reason &reason, Outcome o, const Explanation &text) {
    broken_ = reason;
    write_break();
    fail_all(o, text.empty() ? broken_text() : text);
  }
  void broken_by(uint32_t, Reading letter) {
    Reason reason{};
    if (!letter.take(reason)) return;
    broken_ = reason;
    abort_text_ = letter.text();
    fail_all(Outcome::broken, broken_text());
  }
  void fail_all(Outcome o, const Explanation &explanation) {
    if (run_) end_run(o, explanation);
    while (!queue_.empty()) {
      const auto op = queue_.front();
      queue_.pop_front();
      op->finish(Outcome::broken, broken_text());
    }
    messages_.fail_all(o, explanation);
  }

  LostRank lost_member(uint32_t r) const {
    const Member &m = members_[r];
    if (!m.joined) return {r, -1, 0};
    return {r, m.peer, m.pid};
  }
  Explanation loss_of(uint32_t r, const char *event) const {
    return {name_of(r) + event, {lost_member(r)}};
  }

  Explanation reason_text() const {
    const Reason &reason = *broken_;
    const std::string text = "the group is broken: ";
    const auto loss = [&](uint32_t r, const char *event) -> Explanation {
      return {text + name_of(r) + event, {lost_member(r)}};
    };
    switch (reason.cause) {
      case CAUSE_LEFT: return loss(reason.of, " left it");
      case CAUSE_DIED: return loss(reason.of, " died");
      case CAUSE_INTERRUPTED:
        if (!expelled_.empty()) return {text + expelled_, FAILURE_LOST};
        return loss(reason.by, (" was interrupted" + during(abort_text_)).c_str());
      case CAUSE_ABORTED:
        return {name_of(reason.by) + " aborted the group: " + abort_text_, FAILURE_ABORTED};
      case CAUSE_TIMED_OUT: break;
    }
    return {text + name_of(reason.by) + " waited " + seconds(reason.waited) + " s for " +
                name_of(reason.of),
            FAILURE_TIMED_OUT};
  }

  const std::string name_;
  const uint64_t number_;
  const uint32_t channel_, rank_, size_;
  const double timeout_;
  Transport &transport_;
  Schedules &lingering_;
  const plait_runtime *runtime_;
  std::vector<Member> members_;
  std::vector<Route> routes_;
  std::deque<std::shared_ptr<Operation>> queue_;  // the first one is that of `run_`
  std::optional<Run> run_;
  std::array<Turn, 2> turns_;  // no member is two collectives ahead
  uint64_t count_ = 0;  // of collectives that are over
  uint64_t began_ = 0;  // of those that this member has begun
  Hosts hosts_;
  std::shared_ptr<Stage> stage_;
  std::map<uint32_t, Stage::Address> shown_;  // by rank
  bool made_stage_ = false;
  bool shares_ = false;  // all memory of its host
  Messages messages_;
  std::optional<Reason> broken_;
  std::string abort_text_, expelled_;
  bool closing_ = false;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_GROUP_HPP
