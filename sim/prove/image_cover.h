// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy::inline prove {

/// Where the images end of which devices have gradients: they have to follow one another from `begin` on,
/// each once.
/// @param parts first image and count; sorted here
/// @param of whose gradients they are, for people
/// @throws Refuted where an image is missing or there twice
double end_of_images(std::vector<std::pair<double, double>>& parts, double begin, double tolerance,
                     const std::string& of);

}  // namespace convoy::prove
