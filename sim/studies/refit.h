// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/calibration/calibration.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline studies {

/// A device's parameters, fitted again to a user's own rows, and what that is worth on rows it has not seen.
struct ValidatedRefit {
  std::string device;            ///< of the rows
  std::size_t rows = 0;          ///< of this device alone, on images made up
  std::size_t networks = 0;      ///< of these rows
  double before = 0, after = 0;  ///< mean of |error|, as it is and each network left out of the refit in turn
  std::string name, yaml;        ///< of the device that it becomes: a file devices/NAME.yaml of a catalogue
  bool helps() const { return after < before; }
};

/// Collects the rows of a validation that tell of a device alone.
class Refits {
 public:
  /// Does nothing where the step is not that of one device that computes the whole batch at once: several devices,
  /// micro-batches, a loader, an anchor, an exact device. @pre the device is as the catalogue has it
  /// @param network that the row is of: rows of one network are left out together
  void add(const PreparedRun& run, const std::string& network, double images_per_s);
  /// Of the devices with rows of at least two networks, in the order of the rows.
  std::vector<ValidatedRefit> fit(const std::string& file) const;

 private:
  struct OfDevice {
    DeviceType device;
    std::vector<OwnStep> steps;
  };
  std::vector<OfDevice> devices_;
};

}  // namespace convoy::studies
