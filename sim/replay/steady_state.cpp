// SPDX-License-Identifier: MIT
#include "sim/replay/steady_state.h"

#include <algorithm>

namespace convoy {

SteadyState::SteadyState(const Service& service, const Folding& folding)
    : service_(service), client_(folding.endpoints.size(), none) {
  for (const Service::Client& member : service.clients) {
    std::uint32_t& index = client_[folding.endpoint_class[member.device]];
    if (index == none) {
      index = static_cast<std::uint32_t>(clients_.size());
      Client client;
      client.images = member.images;
      clients_.push_back(client);
    }
    ++clients_[index].members;
  }
  starts_.resize(clients_.size());
  measuring_left_ = clients_.size();
  warm_left_ = service.warm_up_steps == 0 ? 0 : clients_.size();
}

void SteadyState::step_begins(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t version) {
  Client& client = clients_[client_[c]];
  if (client.measured || !is_warm()) return;
  clock.advance(now_s);
  client.measured = true;
  client.begin_s = now_s;
  client.first_version = version;
  starts_[client_[c]] = {clock.compute_s(), clock.exposed_comm_s()};
}

void SteadyState::step_ends(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t next_version) {
  Client& client = clients_[client_[c]];
  if (++client.steps_done == service_.warm_up_steps) --warm_left_;
  if (!client.measured) return;
  clock.advance(now_s);
  const Start& start = starts_[client_[c]];
  client.end_s = now_s;
  client.compute_s = clock.compute_s() - start.compute_s;
  client.exposed_comm_s = clock.exposed_comm_s() - start.exposed_comm_s;
  client.last_version = next_version;
  if (++client.steps == service_.measured_steps) --measuring_left_;
}

double SteadyState::step_time_s(double images) const {
  if (service_.quorum > 0) {
    // The fastest makes a push for every version; slower ones skip some, so that their ends say less.
    const Client& fastest =
        *std::min_element(clients_.begin(), clients_.end(),
                          [](const Client& a, const Client& b) { return a.mean_step_s() < b.mean_step_s(); });
    return (fastest.end_s - fastest.begin_s) /
           static_cast<double>(fastest.last_version - fastest.first_version);
  }
  double images_per_s = 0;
  for (const Client& client : clients_) {
    if (client.end_s == client.begin_s) return 0;
    images_per_s += client.members * client.images / client.mean_step_s();
  }
  return images / images_per_s;
}

}  // namespace convoy
