// SPDX-License-Identifier: MIT
#include "sim/replay/steady_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace convoy::inline replays {
namespace {

constexpr std::size_t batches = 8, most_blocks = 8192;
/// Number of messages of all clients together, in either direction: a fraction of a second of simulation.
constexpr double affordable_messages = 1 << 16;
/// At most this many before the first check: a second or two.
constexpr double first_messages = 2 << 20;
constexpr double student_t = 2.447;  // 97.5 %, 8 batches less mean and slope
constexpr double wanted_precision = 0.01;
constexpr double wanted_precision_of_updates = 0.002;

/// splitmix64 (Steele, Lea & Flood, OOPSLA 2014) of a seed and a counter.
double uniform(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

/// Box and Muller, Ann. Math. Stat. 29(2), 1958.
double normal(std::uint64_t seed, std::uint64_t counter) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, 2 * counter)));
  return radius * std::cos(2 * std::numbers::pi * uniform(seed, 2 * counter + 1));
}

/// Half of the 95 % interval of the mean of values that have been measured in batches.
double half_width(const std::vector<double>& of_batch, double mean) {
  double variance = 0;
  for (const double value : of_batch) variance += (value - mean) * (value - mean) / (batches - 2);
  return student_t * std::sqrt(variance / batches);
}

/// Mean steps of a client's batches, each without the part that its compute time accounts for.
struct Batches {
  std::vector<double> step_s;
  double mean_s = 0;
};

Batches batch_means(const SteadyState::Client& client, std::size_t blocks, double steps_a_block) {
  const std::size_t size = blocks / batches;
  const double steps = steps_a_block * static_cast<double>(size);
  Batches result;
  std::vector<double> stretch;
  double last_s = client.begin_s, last_stretch = 0, mean_s = 0, mean_stretch = 0;
  for (std::size_t b = 0; b < batches; ++b) {
    const std::size_t end = (b + 1) * size - 1;
    result.step_s.push_back((client.block_end_s[end] - last_s) / steps);
    stretch.push_back((client.block_stretch[end] - last_stretch) / steps - 1);
    last_s = client.block_end_s[end];
    last_stretch = client.block_stretch[end];
    mean_s += result.step_s.back() / batches;
    mean_stretch += stretch.back() / batches;
  }
  double covariance = 0, variance = 0;
  for (std::size_t b = 0; b < batches; ++b) {
    covariance += (stretch[b] - mean_stretch) * (result.step_s[b] - mean_s);
    variance += (stretch[b] - mean_stretch) * (stretch[b] - mean_stretch);
  }
  const double slope_s = variance > 0 ? covariance / variance : 0;
  for (std::size_t b = 0; b < batches; ++b) result.step_s[b] -= slope_s * stretch[b];
  result.mean_s = mean_s - slope_s * mean_stretch;
  return result;
}

}  // namespace

SteadyState::SteadyState(const Service& service, const Folding& folding, bool undisturbed,
                         const Measurement& measurement)
    : service_(service),
      warm_up_steps_(service.warm_up_steps * measurement.longer),
      client_(folding.endpoints.size(), none),
      steps_a_block_(service.measured_steps * measurement.longer),
      blocks_wanted_(batches) {
  if (service.is_measured_until_known()) {
    const double messages = static_cast<double>(service.clients.size() * service.exchanges.size() * batches);
    steps_a_block_ = static_cast<std::uint32_t>(
        std::clamp(std::floor(first_messages / messages), 1.0, static_cast<double>(steps_a_block_)));
  }
  for (const Service::Client& member : service.clients) {
    std::uint32_t& index = client_[folding.endpoint_class[member.device]];
    if (index == none) {
      index = static_cast<std::uint32_t>(clients_.size());
      Client client;
      client.images = member.images;
      clients_.push_back(client);
      // Nothing of the run: experiments that differ a little draw the same numbers, and differ by the change alone.
      seeds_.push_back(member.sequence * 0xd1342543de82ef95u + measurement.number * 0xaf251af3b0f025b5u);
    }
    ++clients_[index].members;
  }
  starts_.resize(clients_.size());
  measuring_left_ = clients_.size();
  warm_left_ = warm_up_steps_ == 0 ? 0 : clients_.size();
  if (undisturbed && service.drifts && !service.is_random()) equal_.emplace(clients_.size());
}

double SteadyState::next_stretch(std::uint32_t c) const {
  if (!service_.is_random()) return 1;
  const std::uint64_t seed = seeds_[client_[c]], step = clients_[client_[c]].steps_done;
  if (service_.step_jitter > 0) return std::max(0.0, 1 + service_.step_jitter * normal(seed, step));
  const double draw = uniform(seed, step);
  return 1 + service_.compute_spread * (2 * draw - 1);
}

double SteadyState::phase(std::uint32_t c) const {
  return uniform(seeds_[client_[c]], std::numeric_limits<std::uint64_t>::max() - 1);
}

void SteadyState::step_begins(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t version) {
  Client& client = clients_[client_[c]];
  if (client.measured || !is_warm()) return;
  clock.advance(now_s);
  client.measured = true;
  client.begin_s = now_s;
  client.first_version = version;
  starts_[client_[c]] = clock.times();
}

void SteadyState::step_ends(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t next_version) {
  Client& client = clients_[client_[c]];
  const double stretch = next_stretch(c);
  if (equal_) equal_->step_ends(client_[c], now_s);
  if (++client.steps_done == warm_up_steps_ && !is_warm()) --warm_left_;
  if (!is_warm() && equal_ && equal_->are_equal()) {
    warm_left_ = 0;
    steps_a_block_ = 1;
    blocks_wanted_ = 1;
  }
  if (!client.measured) return;
  clock.advance(now_s);
  client.end_s = now_s;
  client.times = clock.times() - starts_[client_[c]];
  client.stretch += stretch;
  client.last_version = next_version;
  if (++client.steps % steps_a_block_ == 0) end_block(client);
}

void SteadyState::end_block(Client& client) {
  if (!service_.is_measured_until_known()) {
    if (client.steps == service_.measured_steps) --measuring_left_;
    return;
  }
  client.block_end_s.push_back(client.end_s);
  client.block_stretch.push_back(client.stretch);
  client.block_version.push_back(client.last_version);
  if (client.block_end_s.size() != blocks_wanted_ || --measuring_left_ > 0 || is_known()) return;
  while (measuring_left_ == 0) {
    blocks_wanted_ *= 2;
    for (const Client& other : clients_) measuring_left_ += other.block_end_s.size() < blocks_wanted_ ? 1 : 0;
    if (measuring_left_ == 0 && is_known()) return;
  }
}

/// Or whether it cannot become known with an affordable simulation.
bool SteadyState::is_known() {
  if (blocks_wanted_ < batches) return equal_->are_equal();  // begun when steps were, and not before
  if (service_.quorum > 0 ? are_updates_known() : are_steps_known()) return true;
  if (is_measured_repeatedly(service_)) return true;
  // Blocks wait for the slowest client; one beside its server may have done a thousand times as many steps.
  double steps = 0;
  for (const Client& client : clients_) steps += static_cast<double>(client.steps);
  return blocks_wanted_ >= most_blocks || 2 * steps > affordable_steps();
}

bool SteadyState::are_steps_known() {
  double images_per_s = 0;
  std::vector<double> of_batch(batches, 0.0);
  for (Client& client : clients_) {
    const Batches steps = batch_means(client, blocks_wanted_, steps_a_block_);
    client.corrected_step_s = steps.mean_s;
    if (steps.mean_s <= 0) return true;
    images_per_s += client.members * client.images / steps.mean_s;
    for (std::size_t b = 0; b < batches; ++b) of_batch[b] += client.members * client.images / steps.step_s[b];
  }
  doubt_ = half_width(of_batch, images_per_s) / images_per_s;
  return doubt_ <= wanted_precision;
}

bool SteadyState::are_updates_known() {
  const Client& client = fastest();
  std::vector<double> per_s;
  double mean_per_s = 0, last_s = client.begin_s;
  std::uint64_t last_version = client.first_version;
  for (std::size_t b = 0; b < batches; ++b) {
    const std::size_t end = (b + 1) * (blocks_wanted_ / batches) - 1;
    if (client.block_end_s[end] <= last_s) return true;  // nothing takes time
    per_s.push_back(static_cast<double>(client.block_version[end] - last_version) /
                    (client.block_end_s[end] - last_s));
    mean_per_s += per_s.back() / batches;
    last_s = client.block_end_s[end];
    last_version = client.block_version[end];
  }
  doubt_ = half_width(per_s, mean_per_s) / mean_per_s;
  return doubt_ <= wanted_precision_of_updates;
}

/// It makes a push for nearly every version; slower clients skip some, so that their ends say less.
const SteadyState::Client& SteadyState::fastest() const {
  return *std::min_element(clients_.begin(), clients_.end(), [](const Client& a, const Client& b) {
    return a.mean_step_s() < b.mean_step_s();
  });
}

/// For all clients together.
double SteadyState::affordable_steps() const {
  return affordable_messages / static_cast<double>(std::max<std::size_t>(1, service_.exchanges.size()));
}

double SteadyState::step_time_s(double images) const {
  if (service_.quorum > 0) {
    const Client& client = fastest();
    return (client.end_s - client.begin_s) / static_cast<double>(client.last_version - client.first_version);
  }
  double images_per_s = 0;
  for (const Client& client : clients_) {
    if (client.end_s == client.begin_s) return 0;
    images_per_s += client.members * client.images / client.mean_step_s();
  }
  return images / images_per_s;
}

}  // namespace convoy::replays
