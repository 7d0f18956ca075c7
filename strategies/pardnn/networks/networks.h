// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"
#include "strategies/pardnn/networks/operation_tape.h"

namespace convoy::inline strategies {

/// Words spelled in characters, seen by convolutions (Kim et al., Character-Aware Neural Language Models,
/// AAAI 2016, section 2): of each width, then tanh, the maximum over the word, and highway layers.
struct CharacterLayers {
  double alphabet = 0, word_length = 0, embedding = 0;
  std::vector<int> widths, features;
  int highway = 0;
};

/// A language model of LSTM cells unrolled over its steps: a grid of `layers` by `steps`, each layer's
/// weights shared by its steps; words looked up in a table, or spelled.
struct RecurrentNetwork {
  int layers = 0, steps = 0;
  double hidden = 0, vocabulary = 0;
  std::optional<CharacterLayers> characters;
};
OperationNetwork recurrent_network(const RecurrentNetwork& shape, Optimizer optimizer, bool clip);

/// Encoder and decoder of `layers` blocks each (Vaswani et al., Attention Is All You Need, NIPS 2017, section
/// 3) over sequences of `length` tokens.
struct TransformerNetwork {
  int layers = 0, heads = 0, length = 0;
  double hidden = 0, feed_forward = 0, vocabulary = 0;
};
OperationNetwork transformer_network(const TransformerNetwork& shape, Optimizer optimizer, bool clip);

/// Wide residual network of bottleneck blocks for images: ResNet (He et al., CVPR 2016, table 1) whose 3x3
/// convolutions, and the 1x1 ones before them, have `widen` times the channels (Zagoruyko & Komodakis, Wide
/// Residual Networks, BMVC 2016, section 3); the stride is the 3x3 convolution's, as in torchvision.
struct ResidualNetwork {
  std::vector<int> blocks;                        ///< by stage, four of them: [3, 4, 23, 3] for 101 layers
  double widen = 1, image = 224, classes = 1000;  ///< image: side in pixels, a multiple of 32
};
OperationNetwork residual_network(const ResidualNetwork& shape, Optimizer optimizer, bool clip);

/// Frames of a video that follow on given ones, by layers of eidetic LSTM cells that see a window of frames with
/// convolutions in space and time, and recall all their earlier states by attention (Wang et al., Eidetic 3D LSTM:
/// A Model for Video Prediction and Beyond, ICLR 2019, section 3).
struct VideoNetwork {
  int layers = 0;
  double hidden = 0;             ///< channels of a cell
  double side = 64, colors = 1;  ///< of a frame, in pixels, and channels of one
  double patch = 4;              ///< so many times so many pixels are the channels of one place
  int given = 10,
      frames = 20;  ///< of a sample; those after the given ones are predicted from the ones before
  int kernel_depth = 2, kernel = 5;
};
OperationNetwork video_network(const VideoNetwork& shape, Optimizer optimizer, bool clip);

/// An operation network, and what it is executed on: a file of configs/networks.
struct OperationNetworkFile {
  std::string name;
  OperationNetwork network;
  DeviceType device;
  Software software;
  double batch = 1;
  Dag dag(double samples) const { return operation_network_dag(network, samples, software, device); }
};
/// The mapping of such a file (docs/partition.md). @throws InputError
OperationNetworkFile read_operation_network(const YamlNode& root);

/// What `convoy show keys` tells of such a file.
KeySection operation_network_keys();

}  // namespace convoy::strategies
