// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_shares.h"

#include <algorithm>
#include <map>

namespace convoy::inline strategies {

NodeShares::NodeShares(const TrainingGraph& graph, const NodeHypergraph& nodes, const Parts& parts,
                       std::uint32_t count, double images)
    : graph_(graph),
      tensor_bytes_(graph),
      layers_(nodes.layers),
      parts_(parts),
      count_(count),
      images_(images),
      share_(layers_.size(), std::vector<double>(count, 0.0)),
      input_share_(share_) {
  for (std::uint32_t i = 0; i < layers_.size(); ++i) measure(i);
  find_messages();
}

bool NodeShares::reads(std::uint32_t p, const NodeBlock& block) const {
  return !owns(p, block) && std::any_of(block.readers.begin(), block.readers.end(),
                                        [&](std::uint32_t reader) { return parts_[reader] == p; });
}

void NodeShares::measure(std::uint32_t i) {
  const NodeLayer& node = layers_[i];
  const double image_bytes = node.reads_image ? tensor_bytes_(image_input) : 0;
  std::vector<std::int64_t> own(count_, 0);
  for (const NodeBlock& block : node.blocks) own[parts_[block.vertex]] += block.end - block.begin;
  double all_bytes = image_bytes;
  for (const NodeLayer::Input& input : node.inputs)
    all_bytes += layers_[input.layer].bytes * read_share(i, input);
  for (std::uint32_t p = 0; p < count_; ++p) {
    if (own[p] == 0) continue;
    share_[i][p] = static_cast<double>(own[p]) / static_cast<double>(node.channels);
    double bytes = image_bytes;
    for (const NodeLayer::Input& input : node.inputs)
      bytes += layers_[input.layer].bytes * read_share(i, input, p);
    input_share_[i][p] = all_bytes > 0 ? bytes / all_bytes : 1;
  }
}

std::vector<char> NodeShares::blocks_read(std::uint32_t i, const NodeLayer::Input& input,
                                          std::optional<std::uint32_t> p) const {
  std::vector<std::int32_t> begun(layers_[input.layer].blocks.size() +
                                  1);  // ranges that begin here, less those that end
  for (std::size_t b = 0; b < layers_[i].blocks.size(); ++b) {
    if (p && !owns(*p, layers_[i].blocks[b])) continue;
    ++begun[input.reads[b].first];
    --begun[input.reads[b].second];
  }
  std::vector<char> read(begun.size() - 1);
  std::int32_t open = 0;
  for (std::size_t r = 0; r < read.size(); ++r) read[r] = (open += begun[r]) > 0;
  return read;
}

double NodeShares::read_share(std::uint32_t i, const NodeLayer::Input& input,
                              std::optional<std::uint32_t> p) const {
  const NodeLayer& from = layers_[input.layer];
  const std::vector<char> read = blocks_read(i, input, p);
  std::int64_t channels = 0;
  for (std::size_t r = 0; r < read.size(); ++r)
    if (read[r]) channels += from.blocks[r].end - from.blocks[r].begin;
  return static_cast<double>(channels) / static_cast<double>(from.channels);
}

std::vector<std::uint32_t> NodeShares::readers_of(const NodeBlock& block) const {
  std::vector<std::uint32_t> readers;
  for (const std::uint32_t reader : block.readers)
    if (!owns(parts_[reader], block)) readers.push_back(parts_[reader]);
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

void NodeShares::find_messages() {
  for (const NodeLayer& node : layers_) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> bytes;
    for (const NodeBlock& block : node.blocks)
      for (const std::uint32_t reader : readers_of(block))
        bytes[{parts_[block.vertex], reader}] += node.bytes * node.share(block);
    std::vector<NodeMessage>& messages = messages_.emplace_back();
    for (const auto& [pair, size] : bytes) messages.push_back({pair.first, pair.second, size * images_});
  }
}

double NodeShares::sent_bytes(std::uint32_t j, std::uint32_t p) const {
  double bytes = 0;
  for (const NodeMessage& message : messages_[j])
    if (message.owner == p) bytes += message.bytes;
  return bytes;
}

double NodeShares::foreign_bytes(std::uint32_t j, std::uint32_t p) const {
  double bytes = 0;
  for (const NodeMessage& message : messages_[j])
    if (message.reader == p) bytes += message.bytes;
  return bytes;
}

std::vector<std::uint32_t> NodeShares::foreign_readers(std::uint32_t j, std::uint32_t p) const {
  const auto reads_foreign = [&](std::uint32_t i, const NodeLayer::Input& input) {
    for (std::size_t b = 0; b < layers_[i].blocks.size(); ++b)
      if (owns(p, layers_[i].blocks[b]))
        for (std::uint32_t r = input.reads[b].first; r < input.reads[b].second; ++r)
          if (!owns(p, layers_[j].blocks[r])) return true;
    return false;
  };
  std::vector<std::uint32_t> readers;
  for (std::uint32_t i = j + 1; i < layers_.size(); ++i)
    for (const NodeLayer::Input& input : layers_[i].inputs)
      if (input.layer == j && reads_foreign(i, input)) readers.push_back(i);
  return readers;
}

std::vector<OpId> NodeShares::sums_of(std::uint32_t i) const {
  std::vector<OpId> sums;
  for (const OpId id : layers_[i].backward)
    if (is_sum(id)) sums.push_back(id);
  return sums;
}

std::vector<std::uint32_t> NodeShares::gradients_in(std::uint32_t j, std::uint32_t p) const {
  std::vector<std::uint32_t> gradients(layers_[j].blocks.size());
  for (std::uint32_t i = j + 1; i < layers_.size(); ++i)
    for (const NodeLayer::Input& input : layers_[i].inputs) {
      if (input.layer != j || !layers_[i].gradient) continue;
      const std::vector<char> reads = blocks_read(i, input, p), any = blocks_read(i, input, {});
      for (std::size_t r = 0; r < gradients.size(); ++r)
        gradients[r] += reads[r] || (!any[r] && owns(p, layers_[j].blocks[r])) ? 1 : 0;
    }
  return gradients;
}

double NodeShares::added_bytes(std::uint32_t j, std::uint32_t p) const {
  const std::vector<std::uint32_t> own = gradients_in(j, p);
  double additions = 0;  // channels
  for (std::size_t b = 0; b < own.size(); ++b) {
    const NodeBlock& block = layers_[j].blocks[b];
    if (!owns(p, block)) continue;
    const auto others = static_cast<std::int64_t>(readers_of(block).size());
    additions += static_cast<double>((block.end - block.begin) *
                                     (own[b] > 0 ? others : std::max<std::int64_t>(0, others - 1)));
  }
  return layers_[j].bytes * additions / static_cast<double>(layers_[j].channels);
}

}  // namespace convoy::strategies
