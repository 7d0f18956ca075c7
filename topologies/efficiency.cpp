// SPDX-License-Identifier: MIT
#include "topologies/efficiency.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <vector>

#include "sim/base/key_parts.h"
#include "sim/base/unexpected_value.h"
#include "topologies/cluster_keys.h"

namespace convoy::inline topologies {
namespace {

constexpr double min_share = Efficiency::min_share;
constexpr double max_share = Efficiency::max_share;

constexpr std::size_t index(KernelClass c) { return static_cast<std::size_t>(c); }
constexpr bool computes(std::size_t c) { return c <= index(KernelClass::matmul); }

// What is not named stays as it is in the options: the whole mapping starts from `default`, a precision's
// part from the whole.

template <class Field>
Key<Efficiency> efficiency_share(std::string name, std::string otherwise, std::string meaning, Field field) {
  return optional_number_key<Efficiency>(std::move(name), std::move(otherwise), min_share, max_share,
                                         std::move(meaning), field);
}

template <class Field>
Key<Efficiency> half_length(std::string name, std::string otherwise, std::string meaning, Field field) {
  return optional_number_key<Efficiency>(std::move(name), std::move(otherwise), 0,
                                         std::numeric_limits<double>::max(), std::move(meaning), field);
}

/// The same of a length that others follow until they are given themselves.
Key<Efficiency> followed_half_length(std::string name, std::string meaning, double Efficiency::*field,
                                     std::vector<double Efficiency::*> followers) {
  Key<Efficiency> key = half_length(name, "0", std::move(meaning), field);
  key.read = [inner = std::move(key.read), field, followers = std::move(followers)](YamlMap& map,
                                                                                    Efficiency& e) {
    const double before = e.*field;
    inner(map, e);
    for (double Efficiency::*const follower : followers)
      if (e.*follower == before) e.*follower = e.*field;
  };
  return key;
}

Keys<Efficiency> class_keys() {
  Keys<Efficiency> keys;
  for (std::size_t c = 0; c < index(KernelClass::custom); ++c)
    keys.push_back(efficiency_share(
        std::string(kernel_class_names[c]), "as default",
        computes(c) ? "share of peak of these kernels" : "share of bandwidth of these kernels",
        [c](Efficiency& e) -> double& { return computes(c) ? e.compute[c] : e.bandwidth[c]; }));
  Key<Efficiency> streaming =
      efficiency_share("bandwidth", "as default", "share of bandwidth of convolutions' and products' bytes",
                       [](Efficiency& e) -> double& { return e.bandwidth[index(KernelClass::matmul)]; });
  streaming.read = [inner = std::move(streaming.read)](YamlMap& map, Efficiency& e) {
    inner(map, e);
    for (std::size_t c = 0; computes(c); ++c) e.bandwidth[c] = e.bandwidth[index(KernelClass::matmul)];
  };
  keys.push_back(std::move(streaming));
  Key<Efficiency> custom =
      efficiency_share("custom", "1", "share of peak and of bandwidth of layers of kind custom",
                       [](Efficiency& e) -> double& { return e.compute[index(KernelClass::custom)]; });
  custom.read = [inner = std::move(custom.read)](YamlMap& map, Efficiency& e) {
    inner(map, e);
    e.bandwidth[index(KernelClass::custom)] = e.compute[index(KernelClass::custom)];
  };
  keys.push_back(std::move(custom));
  return keys;
}

Keys<Efficiency> make_share_keys() {
  using E = Efficiency;
  Keys<Efficiency> keys = class_keys();
  append_keys(
      keys,
      Keys<Efficiency>{
          efficiency_share("data_gradient", "1", "factor on the share of peak of data gradients",
                           &E::data_gradient),
          efficiency_share("weight_gradient", "1", "the same of weight gradients", &E::weight_gradient),
          followed_half_length("half_outputs", "output channels at which half the peak is reached",
                               &E::half_outputs, {&E::half_weight_outputs}),
          half_length("half_weight_outputs", "as half_outputs", "the same of weight gradients",
                      &E::half_weight_outputs),
          followed_half_length("half_reduction",
                               "length of the dot products at which half the peak is reached",
                               &E::half_reduction, {&E::half_weight_reduction}),
          half_length("half_weight_reduction", "as half_reduction", "the same of weight gradients",
                      &E::half_weight_reduction),
          followed_half_length("half_rows",
                               "pixels of all images times tiles of channels at which half the peak is "
                               "reached",
                               &E::half_rows, {&E::half_weight_rows, &E::half_matmul_rows}),
          half_length("half_weight_rows", "as half_rows", "the same of weight gradients",
                      &E::half_weight_rows),
          half_length("half_matmul_rows", "as half_rows", "the same of plain products, in every phase",
                      &E::half_matmul_rows),
          efficiency_share("strided_data_gradient", "1",
                           "factor on the share of peak of data gradients of strided convolutions",
                           &E::strided_data_gradient),
          half_length("half_winograd", "0",
                      "channels at which Winograd's algorithm reaches half of convolution_3x3; 0: that share "
                      "is of whatever algorithm runs",
                      &E::half_winograd),
          efficiency_share("unaligned", "1",
                           "factor on the share of peak of products that do not fit the tensor cores",
                           &E::unaligned),
          half_length("half_group", "0",
                      "channels of a group at which grouped convolutions are halfway from "
                      "convolution_grouped to convolution_other",
                      &E::half_group),
          efficiency_share("depthwise_data_gradient", "1",
                           "factor on the share of the depthwise kernels' data gradients",
                           &E::depthwise_data_gradient),
          efficiency_share("depthwise_weight_gradient", "1", "the same of their weight gradients",
                           &E::depthwise_weight_gradient),
          efficiency_share("wide_groups_nhwc", "1",
                           "share of peak of groups that have no channels-last kernels on tensor cores",
                           &E::wide_groups_nhwc),
          optional_number_key<E>("transpose_passes", "0", 0, Efficiency::max_passes,
                                 "passes over input and output of a convolution on tensor cores, or of "
                                 "PyTorch's on a CPU, where channels are not last",
                                 &E::transpose_passes),
          efficiency_share("filter_order", "1",
                           "share of bandwidth at which TensorFlow, and PyTorch on a CPU, put filters in "
                           "another order",
                           &E::filter_order),
          efficiency_share("first_touch", "1",
                           "share of bandwidth at which a CPU first writes memory that was just allocated",
                           &E::first_touch),
          efficiency_share("pooling_windows", "1",
                           "share of peak at which PyTorch on a CPU compares the values of pooling's windows",
                           &E::pooling_windows)});
  return keys;
}

const Keys<Efficiency>& share_keys() {
  static const Keys<Efficiency> keys = make_share_keys();
  return keys;
}

/// A device's efficiencies while they are read.
struct EfficiencyDraft {
  Efficiency common;
  std::array<std::optional<YamlNode>, 4> different;  ///< by Precision: what its part says
};

constexpr std::array<Precision, 3> precisions_apart{Precision::tf32, Precision::fp16, Precision::bf16};

Keys<EfficiencyDraft> make_efficiency_keys() {
  Keys<EfficiencyDraft> keys{
      custom_key<EfficiencyDraft>("default", "", forms::number(min_share, max_share),
                                  "share of the kinds of kernels that are not named",
                                  [](YamlMap& map, EfficiencyDraft& draft) {
                                    const double share = map.number("default", min_share, max_share);
                                    for (std::size_t c = 0; c < index(KernelClass::custom); ++c) {
                                      if (computes(c)) draft.common.compute[c] = share;
                                      draft.common.bandwidth[c] = share;
                                    }
                                  })
          .told_required()};
  append_keys(keys, keys_of_part<EfficiencyDraft>(share_keys(), &EfficiencyDraft::common));
  for (const Precision p : precisions_apart) {
    const std::string name{to_string(p)};
    KeyText text =
        key_text(name, "none", forms::before("a mapping of the keys before"), "what differs in " + name);
    keys.push_back({std::move(text), [name, p](YamlMap& map, EfficiencyDraft& draft) {
                      if (const YamlNode* part = map.find(name))
                        draft.different[static_cast<std::size_t>(p)] = *part;
                    }});
  }
  return keys;
}

const Keys<EfficiencyDraft>& draft_keys() {
  static const Keys<EfficiencyDraft> keys = make_efficiency_keys();
  return keys;
}

}  // namespace

Efficiency::Efficiency(double everywhere) {
  compute.fill(everywhere);
  bandwidth.fill(everywhere);
}

std::array<Efficiency, 4> read_efficiency(YamlMap& device) {
  std::array<Efficiency, 4> result;
  const YamlNode& node = device.node("efficiency");
  if (node.kind == YamlNode::Kind::scalar) {
    result.fill(Efficiency(device.number("efficiency", min_share, max_share)));
    return result;
  }
  if (node.kind != YamlNode::Kind::mapping)
    fail_unexpected(node, device.path_of("efficiency"), "a number such as 0.7 or a mapping of shares");
  EfficiencyDraft draft;
  const YamlMap map = device.map("efficiency");
  read_part(draft_keys(), map, draft);
  result.fill(draft.common);
  for (const Precision p : precisions_apart)
    if (const std::optional<YamlNode>& part = draft.different[static_cast<std::size_t>(p)])
      read_part(share_keys(), YamlMap(*part, map.path_of(to_string(p))), result[static_cast<std::size_t>(p)]);
  return result;
}

std::vector<KeyText> efficiency_keys() { return texts_of(draft_keys()); }

}  // namespace convoy::topologies
