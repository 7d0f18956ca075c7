// SPDX-License-Identifier: MIT
#include "sim/lowering/push_messages.h"

#include <algorithm>

#include "sim/lowering/buckets.h"

namespace convoy::inline lowering {
namespace {

std::vector<std::uint32_t> place_tensors(const TrainingGraph& graph, std::uint32_t servers) {
  std::vector<std::int64_t> load(servers, 0);
  std::vector<std::uint32_t> server_of;
  for (const Parameter& parameter : graph.parameters) {
    const auto lightest = std::min_element(load.begin(), load.end());
    *lightest += parameter.elements;
    server_of.push_back(static_cast<std::uint32_t>(lightest - load.begin()));
  }
  return server_of;
}

OpId first_use(const TrainingGraph& graph, const Bucket& bucket) {
  OpId first = graph.parameters[bucket.parameters[0]].first_use;
  for (const auto parameter : bucket.parameters)
    first = std::min(first, graph.parameters[parameter].first_use);
  return first;
}

}  // namespace

std::vector<PushMessage> shard(const TrainingGraph& graph, ServerSharding sharding, std::uint32_t servers,
                               bool one_by_one, double bucket_bytes) {
  std::vector<PushMessage> messages;
  if (sharding == ServerSharding::even) {
    for (const Bucket& bucket : fill_buckets(graph, bucket_bytes))
      messages.push_back({bucket.bytes, bucket.ready, first_use(graph, bucket), PushMessage::every_server,
                          bucket.parameters});
    return messages;
  }
  const std::vector<std::uint32_t> server_of = place_tensors(graph, servers);
  std::vector<PushMessage> by_server(servers);
  for (const Bucket& tensor : bucket_per_tensor(graph)) {
    const std::uint32_t server = server_of[tensor.parameters[0]];
    if (one_by_one) {
      messages.push_back({tensor.bytes, tensor.ready, first_use(graph, tensor), server, tensor.parameters});
      continue;
    }
    const bool fresh = by_server[server].bytes == 0;
    const OpId used = first_use(graph, tensor);
    by_server[server].server = server;
    by_server[server].first_use = fresh ? used : std::min(by_server[server].first_use, used);
    by_server[server].bytes += tensor.bytes;
    by_server[server].ready = std::max(by_server[server].ready, tensor.ready);
    by_server[server].parameters.push_back(tensor.parameters[0]);
  }
  for (const PushMessage& message : by_server)
    if (message.bytes > 0) messages.push_back(message);
  return messages;
}

}  // namespace convoy::lowering
