// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_parallel.h"

#include <fmt/format.h>

#include "strategies/filter_parallel/filter_plan.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

const Keys<FilterOptions>& filter_keys() {
  using Options = FilterOptions;
  static const Keys<Options> own{
      choice_key<Options>("shares", filter_shares_names,
                          "filters a device: by its speed on the layer, or the same for all",
                          &Options::shares),
      integer_key<Options>("master", 0, 1'000'000,
                           "index of the device that holds the parameters and does the rest",
                           &Options::master)
          .at(&Options::master_pos),
      choice_key<Options>(
          "broadcast", input_broadcast_names,
          "inputs go from the master to each worker, and partial gradients back; or by parts, "
          "which workers send on to each other",
          &Options::broadcast),
      flag_key<Options>("overlap", "the master computes its own filters while its messages are under way",
                        &Options::overlap)};
  static const Keys<Options> keys = [] {
    Keys<Options> table = own;
    append_keys(table, keys_of_part<Options>(placed_replica_keys(), &Options::placed));
    return table;
  }();
  return keys;
}

class FilterParallel : public Annotator {
 public:
  explicit FilterParallel(FilterOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    return fmt::format("filter parallel, {} shares{}{}{}",
                       filter_shares_names[static_cast<std::size_t>(options_.shares)],
                       options_.broadcast == InputBroadcast::scatter_allgather ? ", scatter_allgather" : "",
                       options_.overlap ? ", overlap" : "", options_.placed.label());
  }

  std::string_view refuses_shared_parameters() const override {
    return "filter_parallel splits each layer's own filters";
  }

  const GradientSync* sums() const override { return options_.placed.sums(); }

  Annotation annotate(const StrategyInput& input) const override {
    const std::uint32_t devices = options_.placed.devices_a_replica(input.machine.devices.size());
    if (options_.master >= devices)
      throw InputError(
          options_.master_pos,
          fmt::format("strategy.master: there is no device {}; {} has {}, 0 to {}", options_.master,
                      options_.placed.replicas > 1 ? "a replica" : "the cluster", devices, devices - 1));
    const auto images = static_cast<double>(options_.placed.images(input.batch, devices));
    check_plan_size(input, options_.placed.micro_batches);
    return annotate_filters(options_, input, devices, images);
  }

 private:
  FilterOptions options_;
};

std::unique_ptr<Strategy> read_filter_parallel(YamlMap& map) {
  FilterOptions options;
  read_keys(filter_keys(), map, options);
  return std::make_unique<FilterParallel>(std::move(options));
}

}  // namespace

StrategyEntry filter_parallel_entry() {
  return {"filter_parallel",
          "convolutions shared out by filters among all devices; a master does everything else",
          texts_of(filter_keys()), &read_filter_parallel,
          "[{shares: [probed, equal], overlap: [true, false]}]"};
}

}  // namespace convoy::strategies
