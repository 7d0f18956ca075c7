// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// Krizhevsky, arXiv:1404.5997: AlexNet's convolutions split by images, its fully connected layers by
/// neurons. The abstract claims that this scales better than any alternative; the figures of its table could
/// not be read at first hand, so nothing is held against them (configs/papers/krizhevsky2014.yaml).
ThesisReproduction reproduce_krizhevsky2014(std::size_t jobs);

}  // namespace convoy
