// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/hybrid/add_layout.h"

namespace convoy {

/// `dealt`: filters or features are dealt out like cards, the first to the first device, the second to the second.
LayoutEntry dealt_layout();

}  // namespace convoy
