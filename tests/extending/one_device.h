// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/strategy.h"

namespace convoy {

/// `kind: one_device`: the device of index `device` does everything, as `single` does on the first.
StrategyEntry one_device_entry();

}  // namespace convoy
