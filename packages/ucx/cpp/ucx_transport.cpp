#include "ucx_transport.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <plait/collectives/call.hpp>

namespace plait::ucx {
namespace {

// A tag has the kind, the channel and the sender's rank.
constexpr uint64_t letter_tag = uint64_t(1) << 63, letter_mask = letter_tag;
constexpr uint64_t whole_tag = ~uint64_t(0);
uint64_t tag_of(uint32_t sender, uint32_t channel) { return uint64_t(channel) << 32 | sender; }

std::atomic<size_t> transports{0};  // that exist

constexpr const char *tcp_part = "512k";
constexpr int most_rounds = 64;  // of UCX's progress before others are looked at

RequestParams host_memory() {
  RequestParams p{};
  p.mask = request_memory_type;  // 0, of the host: so UCX need not look what kind it is
  return p;
}

}  // namespace

std::unique_ptr<UcxTransport> UcxTransport::open(const std::string &devices, std::string &reason) {
  const Functions *f = library(reason);
  if (!f) return nullptr;
  std::unique_ptr<UcxTransport> result(new UcxTransport(*f));
  if (!result->start(devices, reason)) return nullptr;
  return result;
}

bool UcxTransport::start(const std::string &devices, std::string &reason) {
  const auto check = [&](Status s, const char *subject) {
    if (s != status_ok) reason = std::string("UCX: ") + subject + ": " + status_text(s);
    return s == status_ok;
  };
  void *config = nullptr;
  if (!check(ucp_.config_read(nullptr, nullptr, &config), "its settings cannot be read"))
    return false;
  const auto set = [&](const char *name, const std::string &value) {  // unless the user has
    if (!value.empty() && !std::getenv((std::string("UCX_") + name).c_str()))
      ucp_.config_modify(config, name, value.c_str());
  };
  set("NET_DEVICES", devices);
  // TCP moves long messages in parts of this size; UCX's own 8 KB cost twice the processor's time
  set("TCP_TX_SEG_SIZE", tcp_part);
  set("TCP_RX_SEG_SIZE", tcp_part);
  ContextParams context{};
  context.field_mask = context_features;
  context.features = feature_tag | feature_wakeup;
  const Status s = ucp_.init_version(ucp_.version[0], ucp_.version[1], &context, config, &context_);
  ucp_.config_release(config);
  if (!check(s, ("no transport on " + devices).c_str())) return false;
  WorkerParams worker{};
  worker.field_mask = worker_thread_mode;
  worker.thread_mode = threads_serialized;
  if (!check(ucp_.worker_create(context_, &worker, &worker_), "no worker could be made"))
    return false;
  void *address = nullptr;
  size_t bytes = 0;
  if (!check(ucp_.worker_get_address(worker_, &address, &bytes), "the worker has no address"))
    return false;
  address_.assign(static_cast<const char *>(address), bytes);
  ucp_.worker_release_address(worker_, address);
  if (!check(ucp_.worker_get_efd(worker_, &events_), "the worker cannot be waited for"))
    return false;
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) reason = "UCX: no more files can be opened";
  return wake_ >= 0;
}

UcxTransport::UcxTransport(const Functions &f) : ucp_(f) { transports++; }

size_t UcxTransport::alive() { return transports; }

UcxTransport::~UcxTransport() {
  for (auto &a : active_)
    if (a->request) ucp_.request_free(a->request);
  for (Peer &p : peers_)
    for (Letter &l : p.arriving)
      if (l.request) ucp_.request_free(l.request);
  for (Letter &l : leaving_)
    if (l.request) ucp_.request_free(l.request);
  for (void *request : closing_)
    if (request) ucp_.request_free(request);
  if (worker_) ucp_.worker_destroy(worker_);
  if (context_) ucp_.cleanup(context_);
  if (wake_ >= 0) ::close(wake_);
  transports--;
}

void UcxTransport::join(uint32_t rank, const std::vector<std::string> &addresses) {
  rank_ = rank;
  for (uint32_t r = 0; r < addresses.size(); r++) {
    Peer &p = peers_.emplace_back();
    p.owner = this;
    p.rank = r;
    p.address = addresses[r];
  }
}

void UcxTransport::on_error(void *peer, void *, Status s) {
  auto *p = static_cast<Peer *>(peer);
  p->owner->fail(*p, status_text(s));
}

void UcxTransport::fail(Peer &p, const std::string &explanation) {
  if (p.lost || p.failed) return;
  p.failed = true;
  p.explanation = explanation;
  any_failed_ = true;
}

void *UcxTransport::endpoint_of(Peer &p) {
  if (p.endpoint || p.lost || p.failed) return p.endpoint;
  EndpointParams params{};
  params.field_mask = endpoint_address | endpoint_error_mode | endpoint_handler;
  params.address = p.address.data();
  params.error_mode = errors_of_peers;
  params.error_handler = {on_error, &p};
  const Status s = ucp_.ep_create(worker_, &params, &p.endpoint);
  if (s != status_ok) {
    p.endpoint = nullptr;
    fail(p, status_text(s));
  }
  return p.endpoint;
}

bool UcxTransport::is_done(void *&request, Status &status) const {
  if (!request) return true;
  status = ucp_.request_check_status(request);
  if (status == status_in_progress) return false;
  ucp_.request_free(std::exchange(request, nullptr));
  return true;
}

// ---- letters -----------------------------------------------------------------------------------

void UcxTransport::post(uint32_t peer, const void *data, size_t bytes) {
  void *endpoint = endpoint_of(peers_[peer]);
  if (!endpoint) return;
  Letter letter;
  letter.data.reset(new char[std::max<size_t>(bytes, 1)]);
  letter.bytes = bytes;
  std::memcpy(letter.data.get(), data, bytes);
  const RequestParams params = host_memory();
  void *result = ucp_.tag_send_nbx(endpoint, letter.data.get(), bytes, letter_tag | rank_, &params);
  if (is_request(result)) {
    letter.request = result;
    leaving_.push_back(std::move(letter));
  } else if (status_of(result) != status_ok) {
    fail(peers_[peer], status_text(status_of(result)));
  }
}

bool UcxTransport::take_letters(collectives::Listener &listener) {
  bool any = false;
  MessageInfo info{};
  const RequestParams params = host_memory();
  while (void *message = ucp_.tag_probe_nb(worker_, letter_tag, letter_mask, 1, &info)) {
    any = true;
    Letter letter;
    letter.bytes = info.bytes;
    letter.data.reset(new char[std::max<size_t>(info.bytes, 1)]);
    void *result =
        ucp_.tag_msg_recv_nbx(worker_, letter.data.get(), letter.bytes, message, &params);
    const uint64_t from = info.tag & 0xffffffff;
    if (is_request(result)) letter.request = result;
    // of a sender that there is not: it is no member's
    if (from >= peers_.size() || from == rank_ || info.bytes > collectives::most_letter) {
      leaving_.push_back(std::move(letter));
      continue;
    }
    Peer &p = peers_[from];
    if (p.arriving.empty()) arriving_.push_back(uint32_t(from));
    p.arriving.push_back(std::move(letter));
  }
  for (size_t i = 0; i < arriving_.size();) {
    Peer &p = peers_[arriving_[i]];
    any = deliver(p, listener) || any;
    if (p.arriving.empty())
      arriving_.erase(arriving_.begin() + ptrdiff_t(i));
    else
      i++;
  }
  return any;
}

// Those of one sender in order: a long one may arrive behind a short one that was sent later.
bool UcxTransport::deliver(Peer &p, collectives::Listener &listener) {
  bool any = false;
  while (!p.arriving.empty()) {
    Status status = status_ok;
    if (!is_done(p.arriving.front().request, status)) break;
    const Letter letter = std::move(p.arriving.front());
    p.arriving.pop_front();
    any = true;
    if (status != status_ok)
      fail(p, status_text(status));
    else if (!p.lost)
      listener.letter(p.rank, letter.data.get(), letter.bytes);
  }
  return any;
}

bool UcxTransport::finish_letters() {
  bool any = false;
  for (size_t i = 0; i < leaving_.size();) {
    Status status = status_ok;
    if (!is_done(leaving_[i].request, status)) {
      i++;
      continue;
    }
    any = true;
    leaving_.erase(leaving_.begin() + ptrdiff_t(i));
  }
  return any;
}

// ---- transfers ---------------------------------------------------------------------------------

void UcxTransport::begin(uint32_t peer, collectives::Transfer *t, bool sends, void *result) {
  auto active = std::make_unique<Active>();
  active->transfer = t;
  active->peer = peer;
  active->sends = sends;
  active->request = is_request(result) ? result : nullptr;
  active->status = status_of(result);
  t->handle = active.get();
  active_.push_back(std::move(active));
}

void UcxTransport::send(uint32_t peer, uint32_t channel, collectives::Transfer *t) {
  void *endpoint = endpoint_of(peers_[peer]);
  const RequestParams params = host_memory();
  begin(peer, t, true,
        endpoint ? ucp_.tag_send_nbx(endpoint, t->data, t->bytes, tag_of(rank_, channel), &params)
                 : reinterpret_cast<void *>(intptr_t(status_canceled)));
}

void UcxTransport::receive(uint32_t peer, uint32_t channel, collectives::Transfer *t) {
  const RequestParams params = host_memory();
  void *result =
      ucp_.tag_recv_nbx(worker_, t->data, t->bytes, tag_of(peer, channel), whole_tag, &params);
  // what a peer sent before it left is here already, and no more comes
  if (peers_[peer].lost && is_request(result)) ucp_.request_cancel(worker_, result);
  begin(peer, t, false, result);
}

void UcxTransport::cancel(collectives::Transfer *t) {
  const auto *active = static_cast<Active *>(t->handle);
  if (active && active->request) ucp_.request_cancel(worker_, active->request);
}

bool UcxTransport::finish_transfers() {
  std::vector<std::unique_ptr<Active>> done;
  for (auto &a : active_) {
    if (!is_done(a->request, a->status)) continue;
    done.push_back(std::move(a));
  }
  if (done.empty()) return false;
  active_.erase(std::remove(active_.begin(), active_.end(), nullptr), active_.end());
  for (const auto &a : done) {
    a->transfer->handle = nullptr;
    a->transfer->ended(a->status == status_ok);
  }
  return true;
}

// ---- peers that are lost -----------------------------------------------------------------------

void UcxTransport::lose(Peer &p) {
  p.lost = true;
  p.failed = false;
  if (p.endpoint) {
    RequestParams params{};
    params.mask = request_flags;
    params.flags = close_by_force;
    void *request = ucp_.ep_close_nbx(std::exchange(p.endpoint, nullptr), &params);
    if (is_request(request)) closing_.push_back(request);
  }
  for (const auto &a : active_)
    if (a->peer == p.rank && a->request) ucp_.request_cancel(worker_, a->request);
}

void UcxTransport::give_up(uint32_t peer) {
  if (!peers_[peer].lost) lose(peers_[peer]);
}

bool UcxTransport::tell_losses(collectives::Listener &listener) {
  if (!std::exchange(any_failed_, false)) return false;
  for (Peer &p : peers_) {
    if (!p.failed) continue;
    lose(p);
    listener.lost(p.rank, p.explanation);
  }
  return true;
}

bool UcxTransport::finish_closing() {
  const size_t before = closing_.size();
  for (void *&request : closing_) {
    Status status = status_ok;
    is_done(request, status);
  }
  closing_.erase(std::remove(closing_.begin(), closing_.end(), nullptr), closing_.end());
  return closing_.size() != before;
}

// ---- time --------------------------------------------------------------------------------------

bool UcxTransport::progress(collectives::Listener &listener) {
  bool any = false;
  for (int i = 0; i < most_rounds && ucp_.worker_progress(worker_); i++) any = true;
  any = take_letters(listener) || any;
  any = finish_letters() || any;
  any = finish_transfers() || any;
  any = finish_closing() || any;
  return tell_losses(listener) || any;
}

void UcxTransport::wait(double seconds, bool) {
  const bool ready = any_failed_ || std::any_of(active_.begin(), active_.end(),
                                                [](const auto &a) { return !a->request; });
  if (ready || ucp_.worker_arm(worker_) != status_ok) return;
  pollfd fds[2] = {{events_, POLLIN, 0}, {wake_, POLLIN, 0}};
  const timespec limit{time_t(seconds), long(std::fmod(seconds, 1.0) * 1e9)};
  ppoll(fds, 2, &limit, nullptr);
  if (fds[1].revents) {
    uint64_t count = 0;
    while (read(wake_, &count, sizeof count) > 0) {
    }
  }
}

void UcxTransport::wake() {
  const uint64_t one = 1;
  while (write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void UcxTransport::close(double seconds) {
  struct Nobody : collectives::Listener {
    void letter(uint32_t, const char *, size_t) override {}
    void lost(uint32_t, const std::string &) override {}
  } nobody;
  const double deadline = collectives::now() + seconds;
  const auto pass = [&](const auto &until) {
    while (!until() && collectives::now() < deadline)
      if (!progress(nobody))
        wait(std::min(0.02, std::max(0.0, deadline - collectives::now())), true);
  };
  pass([&] { return leaving_.empty(); });
  for (const auto &a : active_)
    if (a->request) ucp_.request_cancel(worker_, a->request);
  const RequestParams flush{};
  for (Peer &p : peers_) {
    if (!p.endpoint) continue;
    p.lost = true;
    void *request = ucp_.ep_close_nbx(std::exchange(p.endpoint, nullptr), &flush);
    if (is_request(request)) closing_.push_back(request);
  }
  pass([&] { return closing_.empty(); });
}

}  // namespace plait::ucx
