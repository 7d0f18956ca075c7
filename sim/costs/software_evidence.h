// SPDX-License-Identifier: MIT
#pragma once

#include "models/framework.h"

namespace convoy {

/// How many published figures the kernels of a framework's way of execution were fitted to
/// (topologies/catalog/software/*.yaml, `rows`; a prepared graph launches those of eager execution). 0: their
/// factors are typical values. @throws InputError where the catalogue's file is wrong.
int software_kernel_rows(Framework framework, ExecutionMode execution);

/// Standard deviation of log(time of kernels) that typical factors leave: that of a framework's factor on
/// convolutions before any measurement (docs/cost_model.md). 0 where figures were fitted.
double software_spread(Framework framework, ExecutionMode execution);

}  // namespace convoy
