// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/layer.h"
#include "sim/numerics/data.h"

namespace convoy::inline numerics {

/// The digits that come with convoy (models/data/README.md), [1, 8, 8]; every fifth is held out.
LearningData read_digits();

/// Adds images and their labels from files in MNIST's format: http://yann.lecun.com/exdb/mnist, "FILE FORMATS
/// FOR THE MNIST DATABASE": big-endian magic number (bytes 0 0, type 8, axes), sizes, unsigned bytes.
/// @return the shape of an image, [1, rows, columns]
/// @throws InputError
Shape read_idx(const std::string& images, const std::string& labels, LearningData::Part& part);

/// Adds the images of a file of CIFAR-10's binary version: a byte for the class and 3,072 for the image, red,
/// green, blue, each row by row (Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html). [3, 32, 32]
/// @throws InputError
void read_cifar(const std::string& file, LearningData::Part& part);

}  // namespace convoy::numerics
