// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/expression.h"
#include "models/layer.h"
#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {

/// A layer written out in full: blocks, repeats and expressions are gone, inputs are known.
struct LayerDraft {
  std::string name;
  YamlNode node;                   ///< its mapping, with `name`, `kind` and the kind's keys
  std::vector<LayerIndex> inputs;  ///< indices into the drafts, in any order, or image_input
  bool frozen = false;             ///< itself, or a block around it
  /// Whose parameters it uses, by `weights_of` of itself or of a block around it.
  struct Share {
    LayerIndex owner;  ///< index into the drafts; image_input: no layer of the other block is called as it
    std::string name;  ///< of the owner
    SourcePos pos;
    bool of_block;  ///< that has the key; layers without parameters have nothing to share then
  };
  std::optional<Share> share{};
};

/// A block: a named list of layers with arguments.
struct Block {
  std::map<std::string, YamlNode, std::less<>>
      arguments;  ///< with their defaults; null where one must be given
  const YamlNode* layers = nullptr;
};
using Blocks = std::map<std::string, Block, std::less<>>;

/// Keys of every entry of a list of layers: `name`, `inputs`, `when`, `frozen` and `weights_of`.
/// What may be written for an argument of a block, and for a list of layers.
ValueForm argument_form();
ValueForm layers_form(std::size_t least);
std::vector<KeyText> entry_keys();
/// Keys of an entry that uses a block, beside these and the block's arguments.
std::vector<KeyText> block_use_keys();
/// Keys of an entry of `blocks:`.
std::vector<KeyText> block_keys();

/// Adds the blocks of a `blocks:` mapping. `node` must outlive them. @throws InputError
void read_blocks(const YamlNode& node, const std::string& path, Blocks& blocks);

/// Writes out a model's `layers:`. `path` is for messages.
/// @throws InputError for unknown, doubly used and missing names, blocks that use themselves, more than
/// 100,000 layers.
std::vector<LayerDraft> expand_layers(const YamlNode& layers, const std::string& path, const Blocks& blocks,
                                      const Scope& parameters);

}  // namespace convoy::models
