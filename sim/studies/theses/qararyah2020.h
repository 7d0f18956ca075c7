// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// Qararyah, Koc University 2020 (ParDNN): operations placed one by one under memory limits. Published
/// (abstracts): batch and throughput grow superlinearly with devices on five very large models; no figures.
/// The model, and the graphs on which methods are compared, are ours (configs/papers/qararyah2020.yaml).
ThesisReproduction reproduce_qararyah2020(std::size_t jobs);

}  // namespace convoy
