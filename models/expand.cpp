// SPDX-License-Identifier: MIT
#include "models/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"

namespace convoy::inline models {
namespace {

constexpr std::size_t max_layers = 100'000;
constexpr int max_nesting = 16;
constexpr int max_hops = 1000;  // from a name that stands for another to the layer meant
constexpr std::size_t max_inputs = 10'000;
constexpr std::string_view input_name = "input";

/// What every entry of a list of layers says.
struct EntryText {
  std::string name;
  const YamlNode* inputs = nullptr;  ///< null: what the entry before it makes
  bool wanted = true;
  bool frozen = false;
  std::string weights_of;  ///< empty: its own
  SourcePos weights_pos;
};

const Keys<EntryText>& entry_table() {
  static const Keys<EntryText> keys{
      custom_key<EntryText>("name", "", forms::text("a name"), "unique in its list",
                            [](YamlMap& map, EntryText& entry) {
                              entry.name = map.text("name");
                              if (entry.name.empty()) map.fail("name", "must not be empty");
                              if (entry.name == input_name)
                                map.fail("name", "'input' is the name of the image; choose another");
                            })
          .told_required(),
      list_key<EntryText>(
          "inputs", "the entry before it", forms::list(forms::text("a name"), "a list of names", 1),
          "what it reads; input is the image, or in a block what the block's entry reads (input.1: the "
          "second of them)",
          [](YamlMap& map, EntryText& entry) {
            entry.inputs = map.find("inputs");
            if (entry.inputs &&
                (entry.inputs->kind != YamlNode::Kind::sequence || entry.inputs->items.empty()))
              map.fail("inputs",
                       fmt::format("expected a list of layer names, found {}",
                                   entry.inputs->kind == YamlNode::Kind::sequence ? "an empty one"
                                                                                  : describe(*entry.inputs)));
          }),
      flag_key<EntryText>("when", "false leaves the entry out; who reads it reads its first input instead",
                          &EntryText::wanted),
      flag_key<EntryText>("frozen", "whether its parameters are not trained", &EntryText::frozen),
      custom_key<EntryText>("weights_of", "its own", forms::text("a name"),
                            "an entry of the same kind or block, whose parameters it uses",
                            [](YamlMap& map, EntryText& entry) {
                              if (!map.find("weights_of")) return;
                              entry.weights_of = map.text("weights_of");
                              if (entry.weights_of.empty()) map.fail("weights_of", "expected a name");
                              entry.weights_pos = map.pos("weights_of");
                            })};
  return keys;
}

/// What an entry that uses a block says beside that and the block's arguments.
struct BlockUse {
  std::string block;
  std::optional<std::int64_t> repeat;
  std::optional<YamlMap> first;
};

const Keys<BlockUse>& block_use_table() {
  static const Keys<BlockUse> keys{
      custom_key<BlockUse>("block", "", forms::text("a name of blocks"),
                           "instead of kind, whose layers stand here, with its arguments as further keys",
                           [](YamlMap& map, BlockUse& use) { use.block = map.text("block"); }),
      optional_integer_key<BlockUse>(
          "repeat", "one, without a number in its names", 0, static_cast<std::int64_t>(max_layers),
          "with block, copies, each of which reads the one before", &BlockUse::repeat),
      custom_key<BlockUse>("first", "none", forms::entries(argument_form(), "{argument: value}"),
                           "with block, arguments that the first copy has instead",
                           [](YamlMap& map, BlockUse& use) {
                             if (map.find("first")) use.first = map.map("first");
                           })};
  return keys;
}

/// A block as it is written.
struct BlockText {
  const YamlNode* arguments = nullptr;
  const YamlNode* layers = nullptr;
};

const Keys<BlockText>& block_table() {
  static const Keys<BlockText> keys{
      custom_key<BlockText>("arguments", "none", forms::entries(argument_form(), "{name: default}"),
                            "that its layers use as $name; without a default it must be given",
                            [](YamlMap& map, BlockText& block) { block.arguments = map.find("arguments"); }),
      list_key<BlockText>("layers", "", layers_form(0), "as a model's", [](YamlMap& map, BlockText& block) {
        block.layers = &map.node("layers");
      }).told_required()};
  return keys;
}

/// Whether an entry has a key of that name whatever it is, so that no block's argument can.
bool is_entry_key(const std::string& name) {
  const auto has = [&](const auto& keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return key.text.name == name; });
  };
  return name == "kind" || has(entry_table()) || has(block_use_table());
}

/// A name as written in a list of layers; names are local to their list, `prefix` tells which list.
struct Reference {
  std::string prefix;
  std::string local;
  SourcePos pos;
  std::string full() const { return prefix + local; }
};

class Expander {
 public:
  Expander(const Blocks& blocks, std::string path) : blocks_(blocks), path_(std::move(path)) {}

  std::vector<LayerDraft> run(const YamlNode& layers, const Scope& parameters) {
    expand_list(layers, path_, "", parameters, 0);
    for (std::size_t i = 0; i < drafts_.size(); ++i)
      for (const Reference& reference : references_[i]) resolve(reference, 0, drafts_[i].inputs);
    for (const SharedBlock& use : shared_uses_) check_block(use);
    for (LayerDraft& draft : drafts_)
      if (draft.share) find_owner(*draft.share);
    return std::move(drafts_);
  }

 private:
  /// An entry with a block and `weights_of`, by full names.
  struct SharedBlock {
    std::string name, owner;
    SourcePos pos;
  };

  /// All entries of one list; returns what its last entry is called (or the list's input where it is empty).
  Reference expand_list(const YamlNode& list, const std::string& path, const std::string& prefix,
                        const Scope& scope, int depth) {
    if (list.kind != YamlNode::Kind::sequence)
      throw InputError(list.pos,
                       fmt::format("{}: expected a list of layers, found {}", path, describe(list)));
    Reference previous{prefix, std::string(input_name), list.pos};
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      YamlNode entry = substitute(list.items[i], scope);
      const std::string entry_path = fmt::format("{}[{}]", path, i);
      YamlMap map(entry, entry_path);
      EntryText text;
      read_keys(entry_table(), map, text);
      declare(map, prefix, text.name);
      std::vector<Reference> inputs = inputs_of(text, map.path_of("inputs"), prefix, previous);
      const std::string& name = text.name;
      previous = {prefix, name, entry.pos};
      if (!text.wanted)
        aliases_[previous.full()] = {inputs.front()};
      else if (map.has("block"))
        expand_block(map, prefix, text, std::move(inputs), scope, depth);
      else
        add_layer(std::move(entry), prefix, text, std::move(inputs));
    }
    return previous;
  }

  void declare(const YamlMap& map, const std::string& prefix, const std::string& name) {
    const auto [it, fresh] = declared_.emplace(prefix + name, map.pos("name"));
    if (!fresh)
      map.fail("name", fmt::format("two layers are named '{}' (the first in line {})", prefix + name,
                                   it->second.line));
  }

  static std::vector<Reference> inputs_of(const EntryText& entry, const std::string& path,
                                          const std::string& prefix, const Reference& previous) {
    if (!entry.inputs) return {previous};
    std::vector<Reference> inputs;
    for (const YamlNode& item : entry.inputs->items)
      inputs.push_back({prefix, read_text(item, path), item.pos});
    return inputs;
  }

  void add_layer(YamlNode entry, const std::string& prefix, const EntryText& text,
                 std::vector<Reference> inputs) {
    std::string name = prefix + text.name;
    if (drafts_.size() >= max_layers)
      throw InputError(entry.pos, fmt::format("the model has more than {} layers", max_layers));
    index_.emplace(name, static_cast<LayerIndex>(drafts_.size()));
    std::optional<LayerDraft::Share> share = share_of(prefix, text, name);
    drafts_.push_back(
        {std::move(name), std::move(entry), {}, text.frozen || frozen_blocks_ > 0, std::move(share)});
    references_.push_back(std::move(inputs));
  }

  std::optional<LayerDraft::Share> share_of(const std::string& prefix, const EntryText& text,
                                            const std::string& name) const {
    if (!text.weights_of.empty())
      return LayerDraft::Share{image_input, prefix + text.weights_of, text.weights_pos, false};
    if (shared_blocks_.empty()) return std::nullopt;
    const SharedBlock& block = shared_blocks_.back();
    return LayerDraft::Share{image_input, block.owner + name.substr(block.name.size()), block.pos, true};
  }

  /// @param use with the name of the block
  void check_block(const SharedBlock& use) const {
    const auto owner = blocks_used_.find(use.owner);
    if (owner == blocks_used_.end() || owner->second != use.name)
      throw InputError(use.pos,
                       fmt::format("weights_of: '{}' is not an entry with `block: {}`", use.owner, use.name));
  }

  void find_owner(LayerDraft::Share& share) const {
    if (const auto owner = index_.find(share.name); owner != index_.end()) share.owner = owner->second;
    if (share.owner != image_input || share.of_block) return;
    std::vector<std::string> known;
    for (const auto& [name, index] : index_) known.push_back(name);
    throw InputError(share.pos, fmt::format("weights_of: '{}' is not a layer{}; it names another entry with "
                                            "`kind`, of a block an entry with `block`",
                                            share.name, suggestion(share.name, known)));
  }

  void expand_block(YamlMap& map, const std::string& prefix, const EntryText& entry,
                    std::vector<Reference> inputs, const Scope& scope, int depth) {
    BlockUse use;
    read_keys(block_use_table(), map, use);
    const std::string& block_name = use.block;
    const auto it = blocks_.find(block_name);
    if (it == blocks_.end()) {
      std::vector<std::string> known;
      for (const auto& [key, block] : blocks_) known.push_back(key);
      map.fail("block", fmt::format("unknown block '{}'{}; known: {}", block_name,
                                    suggestion(block_name, known), known.empty() ? "none" : list_of(known)));
    }
    if (depth >= max_nesting)
      map.fail("block", fmt::format("block '{}' is nested deeper than {} levels; does it use itself?",
                                    block_name, max_nesting));
    const Block& block = it->second;
    const bool repeated = use.repeat.has_value();
    const std::int64_t count = use.repeat.value_or(1);
    const Scope arguments = read_arguments(map, block, scope);
    const Scope first = read_first(use.first, block, arguments);
    map.finish();

    const std::string full = prefix + entry.name;
    frozen_blocks_ += entry.frozen ? 1 : 0;
    if (!entry.weights_of.empty()) {
      shared_uses_.push_back({block_name, prefix + entry.weights_of, entry.weights_pos});
      shared_blocks_.push_back({full, prefix + entry.weights_of, entry.weights_pos});
    }
    std::vector<Reference> current{inputs.front()};
    if (count > 0) current = inputs;
    for (std::int64_t i = 0; i < count; ++i) {
      if (++expansions_ > max_layers) map.fail("block", fmt::format("more than {} blocks", max_layers));
      const std::string inner = repeated ? fmt::format("{}.{}.", full, i) : full + ".";
      for (std::size_t k = 0; k < inputs.size() && inputs.size() > 1;
           ++k)  // of which the first is the copy before
        aliases_[fmt::format("{}{}.{}", inner, input_name, k)] = {k == 0 ? current.front() : inputs[k]};
      aliases_[inner + std::string(input_name)] = std::move(current);
      const Reference last = expand_list(*block.layers, fmt::format("blocks.{}.layers", block_name), inner,
                                         i == 0 ? first : arguments, depth + 1);
      current = {last};
      if (repeated) aliases_[fmt::format("{}.{}", full, i)] = current;
    }
    aliases_[full] = std::move(current);
    frozen_blocks_ -= entry.frozen ? 1 : 0;
    if (!entry.weights_of.empty()) shared_blocks_.pop_back();
    blocks_used_.emplace(full, block_name);
  }

  /// The scope inside a block: what is visible outside, and its arguments as given here or by default.
  static Scope read_arguments(YamlMap& map, const Block& block, const Scope& outside) {
    Scope scope = outside;
    for (const auto& [name, fallback] : block.arguments) {
      const YamlNode* given = map.find(name);
      if (!given && fallback.kind == YamlNode::Kind::null) map.node(name);  // says that it is missing
      scope[name] = given ? *given : fallback;
    }
    return scope;
  }

  /// The same for the first copy of a repeated block: `first: {stride: 2}` overrides its arguments.
  static Scope read_first(std::optional<YamlMap>& overrides, const Block& block, const Scope& arguments) {
    Scope scope = arguments;
    if (!overrides) return scope;
    for (const auto& [name, fallback] : block.arguments)
      if (const YamlNode* given = overrides->find(name)) scope[name] = *given;
    overrides->finish();
    return scope;
  }

  void resolve(const Reference& reference, int hops, std::vector<LayerIndex>& out) const {
    const std::string full = reference.full();
    if (full == input_name) return push(reference, image_input, out);
    if (const auto layer = index_.find(full); layer != index_.end())
      return push(reference, layer->second, out);
    const auto alias = aliases_.find(full);
    if (alias == aliases_.end()) unknown(reference);
    if (hops > max_hops)
      throw InputError(reference.pos,
                       fmt::format("inputs: '{}' leads through names that stand for one another in a "
                                   "circle, or through more than {} of them",
                                   reference.local, max_hops));
    for (const Reference& target : alias->second) resolve(target, hops + 1, out);
  }

  static void push(const Reference& reference, LayerIndex layer, std::vector<LayerIndex>& out) {
    if (out.size() >= max_inputs)
      throw InputError(reference.pos, fmt::format("inputs: more than {} inputs of one layer", max_inputs));
    out.push_back(layer);
  }

  [[noreturn]] void unknown(const Reference& reference) const {
    std::vector<std::string> known{std::string(input_name)};
    for (const auto& [name, pos] : declared_)
      if (name.starts_with(reference.prefix)) known.push_back(name.substr(reference.prefix.size()));
    throw InputError(reference.pos,
                     fmt::format("inputs: no layer is named '{}'{}; known: {}", reference.local,
                                 suggestion(reference.local, known), list_of(known)));
  }

  const Blocks& blocks_;
  std::string path_;
  int frozen_blocks_ = 0;                                     ///< around the entry that is read
  std::vector<SharedBlock> shared_blocks_;                    ///< the same
  std::vector<SharedBlock> shared_uses_;                      ///< all of them, by the name of the block
  std::unordered_map<std::string, std::string> blocks_used_;  ///< by full name of the entry
  std::vector<LayerDraft> drafts_;
  std::vector<std::vector<Reference>> references_;  // of the draft of the same index
  std::unordered_map<std::string, LayerIndex> index_;
  std::unordered_map<std::string, std::vector<Reference>> aliases_;  // blocks, their inputs, layers left out
  std::map<std::string, SourcePos> declared_;
  std::size_t expansions_ = 0;
};

}  // namespace

ValueForm argument_form() { return forms::anything("a value"); }

ValueForm layers_form(std::size_t least) {
  return forms::list(forms::section("layer", "{name, kind, ...}"), "a list of layers", least);
}

std::vector<KeyText> entry_keys() { return texts_of(entry_table()); }
std::vector<KeyText> block_use_keys() { return texts_of(block_use_table()); }
std::vector<KeyText> block_keys() { return texts_of(block_table()); }

void read_blocks(const YamlNode& node, const std::string& path, Blocks& blocks) {
  YamlMap all(node, path);
  for (const std::string& name : all.keys()) {
    const YamlMap map = all.map(name);
    BlockText text;
    read_part(block_table(), map, text);
    Block block;
    block.layers = text.layers;
    if (text.arguments) {
      YamlMap list(*text.arguments, map.path_of("arguments"));
      for (const std::string& argument : list.keys()) {
        if (is_entry_key(argument)) list.fail(argument, "is a key of every entry and cannot be an argument");
        block.arguments.emplace(argument, *text.arguments->find(argument));
      }
    }
    if (!blocks.emplace(name, std::move(block)).second)
      all.fail(name, "a block of this name is there already");
  }
}

std::vector<LayerDraft> expand_layers(const YamlNode& layers, const std::string& path, const Blocks& blocks,
                                      const Scope& parameters) {
  return Expander(blocks, path).run(layers, parameters);
}

}  // namespace convoy::models
