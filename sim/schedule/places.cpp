// SPDX-License-Identifier: MIT
#include "sim/schedule/places.h"

#include <algorithm>

namespace convoy::inline schedule {

Places::Places(const std::vector<GpuPool>& pools) {
  for (const GpuPool& pool : pools) {
    Hosts& hosts = pools_.emplace_back();
    hosts.size = pool.gpus_per_host;
    if (hosts.size > 0) hosts.free.assign(pool.gpus / hosts.size, hosts.size);
  }
}

void Places::release(const Place& place) {
  for (const auto& [host, gpus] : place.on) pools_[place.kind].free[host] += gpus;
}

Places::Place Places::take(const Allocation& allocation) {
  Hosts& hosts = pools_[allocation.kind];
  Place place{allocation.kind, {}};
  if (hosts.size == 0) return place;
  std::uint32_t left = allocation.gpus;
  const auto put = [&](std::size_t host, std::uint32_t gpus) {
    place.on.emplace_back(host, gpus);
    hosts.free[host] -= gpus;
    left -= gpus;
  };
  for (std::size_t host = 0; host < hosts.free.size() && left >= hosts.size; ++host)
    if (hosts.free[host] == hosts.size) put(host, hosts.size);
  while (left > 0) {
    std::size_t best = hosts.free.size(), most = 0;
    for (std::size_t host = 0; host < hosts.free.size(); ++host) {
      if (hosts.free[host] >= left && (best == hosts.free.size() || hosts.free[host] < hosts.free[best]))
        best = host;
      if (hosts.free[host] > hosts.free[most]) most = host;
    }
    if (best == hosts.free.size()) best = most;
    put(best, std::min(left, hosts.free[best]));
  }
  return place;
}

}  // namespace convoy::schedule
