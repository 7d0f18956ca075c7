// SPDX-License-Identifier: MIT
#include "tests/extending/one_device.h"

#include <fmt/format.h>

#include "strategies/replicas.h"

namespace convoy {
namespace {

struct OneDeviceOptions {
  std::uint32_t device = 0;
  SourcePos device_pos;
};

const Keys<OneDeviceOptions>& one_device_keys() {
  using Options = OneDeviceOptions;
  static const Keys<Options> keys{
      integer_key<Options>("device", 0, 1'000'000, "its index in the cluster", &Options::device)
          .at(&Options::device_pos)};
  return keys;
}

class OneDevice : public Annotator {
 public:
  explicit OneDevice(OneDeviceOptions options) : options_(std::move(options)) {}

  std::string label() const override { return fmt::format("device {} alone", options_.device); }
  std::string_view refuses_recomputation() const override { return {}; }

 private:
  Annotation annotate(const StrategyInput& input) const override {
    const std::size_t devices = input.machine.devices.size();
    if (options_.device >= devices)
      throw InputError(options_.device_pos,
                       fmt::format("strategy.device: there is no device {}; the cluster has {}, 0 to {}",
                                   options_.device, devices, devices - 1));
    const std::uint32_t type = input.machine.devices[options_.device].type;
    return annotate_replicas(input, {}, {{type, input.batch.over(1), {options_.device}}}, 1);
  }

  OneDeviceOptions options_;
};

std::unique_ptr<Strategy> read_one_device(YamlMap& map) {
  OneDeviceOptions options;
  read_keys(one_device_keys(), map, options);
  return std::make_unique<OneDevice>(std::move(options));
}

}  // namespace

StrategyEntry one_device_entry() {
  return {"one_device", "one device of the cluster does everything", texts_of(one_device_keys()),
          &read_one_device};
}

}  // namespace convoy
