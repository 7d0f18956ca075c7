// SPDX-License-Identifier: MIT
#include "strategies/hybrid/shard_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/locality.h"

namespace convoy::inline strategies {
namespace {

using Over = Sharding::Over;
using Owner = std::vector<std::uint32_t>;

std::int64_t groups_of(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<Conv3d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<ConvTranspose3d>(&layer.kind)) return conv->groups;
  return 1;
}

Owner repeated(const Owner& owner, std::int64_t times) {
  Owner result;
  result.reserve(owner.size() * static_cast<std::size_t>(times));
  for (const std::uint32_t d : owner) result.insert(result.end(), static_cast<std::size_t>(times), d);
  return result;
}

std::string name_of(LayerLayout layout) { return std::string(to_string(layout)); }

bool is_global_pool(const Layer& layer) {
  const auto* pool = std::get_if<AdaptiveAvgPool>(&layer.kind);
  return pool && pool->size == Size2{1, 1};
}

class LayerSharder {
 public:
  LayerSharder(const Model& model, const std::vector<DecidedLayout>& layouts, const Shards& images)
      : model_(model),
        layouts_(layouts),
        devices_(images.counts.size()),
        images_{Over::batch, std::make_shared<Shards>(images)} {}

  std::vector<LayerSharding> run() {
    for (index_ = 0; index_ < model_.layers.size(); ++index_) {
      pos_ = origin();
      shardings_.push_back(sharding());
    }
    return std::move(shardings_);
  }

 private:
  const Layer& layer() const { return model_.layers[index_]; }
  const Shape& input_shape(std::size_t k) const { return model_.shape_of(layer().inputs[k]); }

  /// What the producer of an input makes; nothing for the image, which is wherever it is read.
  const Sharding* made(std::size_t k) const {
    const LayerIndex input = layer().inputs[k];
    return input == image_input ? nullptr : &shardings_[static_cast<std::size_t>(input)].output;
  }
  const Sharding* first_made() const {
    for (std::size_t k = 0; k < layer().inputs.size(); ++k)
      if (made(k)) return made(k);
    return nullptr;
  }

  /// The rule that the layer's layout comes from.
  const DecidedLayout* origin() {
    const DecidedLayout* own = &layouts_[index_];
    if (!own->layout)
      for (const LayerIndex input : layer().inputs)
        if (input != image_input) {
          own = origins_[static_cast<std::size_t>(input)];
          break;
        }
    origins_.push_back(own);
    return own;
  }

  LayerSharding sharding() const {
    if (layouts_[index_].layout) return with(layouts_[index_]);
    const Sharding* input = first_made();
    if (!input) return with(before_the_first());
    switch (input->over) {
      case Over::batch:
        return by_images();
      case Over::channel:
        if (const std::optional<Owner> owner = channels_after(*input)) return along_channels(*input, *owner);
        break;
      case Over::space:
        if (is_spatial(layer()))
          return on_grid(layout_followed(), input->grid->rows.counts.size(),
                         input->grid->columns.counts.size());
        if (is_global_pool(layer())) return pooled(*input);
        break;
      case Over::replicate:
      case Over::partial:
        break;
    }
    return replicated_layer(layer());
  }

  /// Of a layer that reads the image and follows: as the first layer with a layout of its own, if it can.
  DecidedLayout before_the_first() const {
    for (std::size_t i = index_; i < layouts_.size(); ++i) {
      if (!layouts_[i].layout) continue;
      const LayerLayout layout = *layouts_[i].layout;
      if (layout == LayerLayout::batch || (is_by_space(layout) && is_spatial(layer()))) return layouts_[i];
      return {LayerLayout::replicated, {}, {}};
    }
    return {LayerLayout::batch, {}, {}};
  }

  LayerSharding with(const DecidedLayout& decided) const {
    switch (*decided.layout) {
      case LayerLayout::batch:
        return by_images();
      case LayerLayout::filter:
        return groups_of(layer()) > 1 ? by_groups() : by_filters();
      case LayerLayout::channel:
        return by_channels();
      case LayerLayout::height:
        return on_grid(name_of(LayerLayout::height), devices_, 1);
      case LayerLayout::width:
        return on_grid(name_of(LayerLayout::width), 1, devices_);
      case LayerLayout::grid:
        check_grid(decided);
        return on_grid(grid_text(decided.grid), static_cast<std::size_t>(decided.grid.h),
                       static_cast<std::size_t>(decided.grid.w));
      case LayerLayout::added:
        return as_added(*decided.added);
      case LayerLayout::replicated:
        break;
    }
    return replicated_layer(layer());
  }

  LayerSharding as_added(const LayoutEntry& entry) const {
    LayerInGroup of{model_, layer(), {}, devices_};
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) of.inputs.push_back(made(k));
    LayerSharding sharding = entry.annotate(of);
    sharding.layout = entry.name;
    return sharding;
  }

  LayerSharding by_images() const {
    const Sharding& sharding = images_;
    LayerSharding result{name_of(LayerLayout::batch), {}, sharding, sharding};
    result.inputs.assign(layer().inputs.size(), {sharding, sharding, std::nullopt});
    return result;
  }

  /// @param what the layer has `size` of, for errors
  void check_enough(std::int64_t size, std::string_view what, std::size_t devices) const {
    if (size < static_cast<std::int64_t>(devices))
      throw InputError(pos_->pos, fmt::format("{}: layer '{}' has {} {}, too few for {} devices", pos_->path,
                                              layer().name, size, what, devices));
  }
  Sharding even_channels(std::int64_t size, std::string_view what) const {
    check_enough(size, what, devices_);
    return {Over::channel, std::make_shared<Shards>(even_shards(size, devices_))};
  }
  Sharding owned(Owner owner) const {
    return {Over::channel, std::make_shared<Shards>(shards_of(std::move(owner), devices_))};
  }

  // Channels.

  LayerSharding by_filters() const {
    const Sharding out = even_channels(layer().output.front(), "outputs");
    LayerSharding result{name_of(LayerLayout::filter), {}, out, out};
    result.inputs.assign(layer().inputs.size(), {{}, {Over::partial}, std::nullopt});
    result.splits_weights = true;
    return result;
  }

  /// Convolutions with groups need the channels of their groups only.
  LayerSharding by_groups() const {
    const std::int64_t groups = groups_of(layer());
    const std::int64_t inputs = input_shape(0).front() / groups, outputs = layer().output.front() / groups;
    std::optional<Owner> owner = owner_of_groups(groups);
    if (!owner && groups < static_cast<std::int64_t>(devices_)) return by_filters();
    if (!owner) owner = even_shards(groups, devices_).owner;
    const Sharding in = owned(repeated(*owner, inputs)), out = owned(repeated(*owner, outputs));
    LayerSharding result{name_of(LayerLayout::filter), {{in, in, std::nullopt}}, out, out};
    result.splits_weights = true;
    return result;
  }

  /// Where the input is split so that no group is.
  std::optional<Owner> owner_of_groups(std::int64_t groups) const {
    const Sharding* input = made(0);
    if (!input || input->over != Over::channel) return std::nullopt;
    const Owner& channels = input->shards->owner;
    const std::size_t size = channels.size() / static_cast<std::size_t>(groups);
    Owner owner;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (c % size == 0) owner.push_back(channels[c]);
      if (channels[c] != owner.back()) return std::nullopt;
    }
    return owner;
  }

  LayerSharding by_channels() const {
    LayerSharding result{name_of(LayerLayout::channel), {}, {Over::partial}, {}};
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
      const Sharding in = made(k) && made(k)->over == Over::channel
                              ? *made(k)
                              : even_channels(input_shape(k).front(), "inputs");
      result.inputs.push_back({in, in, std::nullopt});
    }
    result.sums_inputs = result.splits_weights = true;
    return result;
  }

  /// Owners of the output's channels where a layer that follows works channel by channel.
  std::optional<Owner> channels_after(const Sharding& input) const {
    std::vector<Owner> owners;
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) owners.push_back(part_owner(k));
    if (const auto* attention = std::get_if<Attention>(&layer().kind);
        attention && (attention->position_units > 0 || !heads_lie_together(owners, attention->heads)))
      return std::nullopt;  // the perceptron of all heads' terms is not divided
    Owner owner;
    for (const ChannelSource& source : channel_sources(model_, layer())) {
      const bool every = source.input == ChannelSource::every_input;
      owner.push_back(
          (every ? input.shards->owner : owners[source.input])[static_cast<std::size_t>(source.channel)]);
    }
    return owner.empty() ? std::nullopt : std::optional(std::move(owner));
  }

  /// Whether a device that has a channel of a head has all of its queries, keys and values.
  static bool heads_lie_together(const std::vector<Owner>& owners, std::int64_t heads) {
    for (const Owner& owner : owners) {
      if (owner != owners.front()) return false;
      const std::size_t size = owner.size() / static_cast<std::size_t>(heads);
      for (std::size_t c = 0; c < owner.size(); ++c)
        if (owner[c] != owner[c / size * size]) return false;
    }
    return true;
  }

  /// Owners of an input's channels.
  Owner part_owner(std::size_t k) const {
    if (made(k) && made(k)->over == Over::channel) return made(k)->shards->owner;
    return even_shards(input_shape(k).front(), devices_).owner;
  }

  LayerSharding along_channels(const Sharding& input, const Owner& owner) const {
    const Sharding out = owned(owner);
    LayerSharding result{name_of(LayerLayout::filter), {}, out, out};
    result.splits_weights = true;
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
      const Sharding in = std::holds_alternative<Concat>(layer().kind) ? owned(part_owner(k)) : input;
      result.inputs.push_back({in, in, std::nullopt});
    }
    return result;
  }

  // Rows and columns.

  /// The layout of the input that the layer follows.
  std::string layout_followed() const {
    for (const LayerIndex input : layer().inputs)
      if (input != image_input) return shardings_[static_cast<std::size_t>(input)].layout;
    return name_of(LayerLayout::replicated);
  }

  void check_grid(const DecidedLayout& decided) const {
    const Size2& grid = decided.grid;
    const auto devices = static_cast<std::int64_t>(devices_);
    if (devices % grid.h == 0 && grid.w == devices / grid.h) return;
    auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(devices)));
    while (devices % rows != 0) --rows;
    throw InputError(decided.pos,
                     fmt::format("{}: a grid of {} x {} parts is not one of the {} devices of a group; their "
                                 "product must be {}, such as {{height: {}, width: {}}}",
                                 decided.path, grid.h, grid.w, devices, devices, rows, devices / rows));
  }

  /// On `rows` times `columns` devices.
  LayerSharding on_grid(std::string layout, std::size_t rows, std::size_t columns) const {
    const std::int64_t height = layer().output[1], width = layer().output[2];
    check_enough(height, "rows", rows);
    check_enough(width, "columns", columns);
    const bool windows =
        reads_windows(layer(), ImageAxis::height) || reads_windows(layer(), ImageAxis::width);
    const Sharding out = split_on_grid(height, width, rows, columns);
    LayerSharding result{std::move(layout), {}, out, out};
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
      const Shape& shape = input_shape(k);
      const bool is_factor_for_all = !windows && ((rows > 1 && shape[1] != height) ||  // one row for all
                                                  (columns > 1 && shape[2] != width));
      if (is_factor_for_all) {
        result.inputs.push_back({{}, {Over::partial}, std::nullopt});
        continue;
      }
      const Sharding in =
          shape[1] == height && shape[2] == width ? out : split_on_grid(shape[1], shape[2], rows, columns);
      result.inputs.push_back({in, in, std::nullopt});
      if (!windows) continue;
      Halo of_others = halo(layer(), *in.grid, *out.grid);
      if (!of_others.empty()) result.inputs.back().halo = std::move(of_others);
    }
    return result;
  }

  /// Every device adds up its positions.
  LayerSharding pooled(const Sharding& input) const {
    LayerSharding result{layout_followed(), {{input, input, std::nullopt}}, {Over::partial}, {}};
    result.sums_inputs = true;
    return result;
  }

  const Model& model_;
  const std::vector<DecidedLayout>& layouts_;
  std::size_t devices_;
  Sharding images_;
  std::size_t index_ = 0;
  const DecidedLayout* pos_ = nullptr;
  std::vector<const DecidedLayout*> origins_;
  std::vector<LayerSharding> shardings_;
};

}  // namespace

std::vector<LayerSharding> shard_layers(const Model& model, const std::vector<DecidedLayout>& layouts,
                                        const Shards& images) {
  return LayerSharder(model, layouts, images).run();
}

}  // namespace convoy::strategies
