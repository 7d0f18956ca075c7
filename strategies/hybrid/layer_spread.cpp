// SPDX-License-Identifier: MIT
#include "strategies/hybrid/layer_spread.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy {
namespace {

using Over = Spread::Over;
using Owner = std::vector<std::uint32_t>;

std::int64_t groups_of(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind)) return conv->groups;
  return 1;
}

Owner repeated(const Owner& owner, std::int64_t times) {
  Owner result;
  result.reserve(owner.size() * static_cast<std::size_t>(times));
  for (const std::uint32_t d : owner) result.insert(result.end(), static_cast<std::size_t>(times), d);
  return result;
}

bool is_global_pool(const Layer& layer) {
  const auto* pool = std::get_if<AdaptiveAvgPool>(&layer.kind);
  return pool && pool->size == Size2{1, 1};
}

class Spreader {
 public:
  Spreader(const Model& model, const std::vector<DecidedLayout>& layouts, const Cut& images)
      : model_(model),
        layouts_(layouts),
        devices_(images.counts.size()),
        images_{Over::images, std::make_shared<Cut>(images)} {}

  std::vector<LayerSpread> run() {
    for (index_ = 0; index_ < model_.layers.size(); ++index_) {
      pos_ = origin();
      spreads_.push_back(spread());
    }
    return std::move(spreads_);
  }

 private:
  const Layer& layer() const { return model_.layers[index_]; }
  const Shape& input_shape(std::size_t k) const { return model_.shape_of(layer().inputs[k]); }

  /// What the producer of an input makes; nothing for the image, which is wherever it is read.
  const Spread* made(std::size_t k) const {
    const LayerIndex input = layer().inputs[k];
    return input == image_input ? nullptr : &spreads_[static_cast<std::size_t>(input)].output;
  }
  const Spread* first_made() const {
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

  LayerSpread spread() const {
    if (layouts_[index_].layout) return with(*layouts_[index_].layout);
    const Spread* input = first_made();
    if (!input) return with(before_the_first());
    switch (input->over) {
      case Over::images:
        return with(LayerLayout::batch);
      case Over::channels:
        if (const std::optional<Owner> owner = channels_after(*input)) return along_channels(*input, *owner);
        break;
      case Over::rows:
      case Over::columns: {
        const ImageAxis axis = input->over == Over::rows ? ImageAxis::height : ImageAxis::width;
        if (is_spatial(layer())) return along(axis);
        if (is_global_pool(layer())) return pooled(*input);
        break;
      }
      case Over::whole:
      case Over::partial:
        break;
    }
    return with(LayerLayout::replicated);
  }

  /// Of a layer that reads the image and follows: as the first layer with a layout of its own, if it can.
  LayerLayout before_the_first() const {
    for (std::size_t i = index_; i < layouts_.size(); ++i) {
      if (!layouts_[i].layout) continue;
      const LayerLayout layout = *layouts_[i].layout;
      if (layout == LayerLayout::batch) return layout;
      const bool spatial = layout == LayerLayout::height || layout == LayerLayout::width;
      return spatial && is_spatial(layer()) ? layout : LayerLayout::replicated;
    }
    return LayerLayout::batch;
  }

  LayerSpread with(LayerLayout layout) const {
    switch (layout) {
      case LayerLayout::batch:
        return everywhere(layout, images_);
      case LayerLayout::filter:
        return groups_of(layer()) > 1 ? by_groups() : by_filters();
      case LayerLayout::channel:
        return by_channels();
      case LayerLayout::height:
        return along(ImageAxis::height);
      case LayerLayout::width:
        return along(ImageAxis::width);
      case LayerLayout::replicated:
        break;
    }
    return everywhere(LayerLayout::replicated, {});
  }

  LayerSpread everywhere(LayerLayout layout, const Spread& spread) const {
    LayerSpread result{layout, {}, spread, spread};
    result.inputs.assign(layer().inputs.size(), {spread, spread, std::nullopt});
    return result;
  }

  Spread even(Over over, std::int64_t size, std::string_view what) const {
    if (size < static_cast<std::int64_t>(devices_))
      throw InputError(pos_->pos, fmt::format("{}: layer '{}' has {} {}, too few for {} devices", pos_->path,
                                              layer().name, size, what, devices_));
    return {over, std::make_shared<Cut>(even_cut(size, devices_))};
  }
  Spread owned(Owner owner) const {
    return {Over::channels, std::make_shared<Cut>(cut_of(std::move(owner), devices_))};
  }

  // Channels.

  LayerSpread by_filters() const {
    const Spread out = even(Over::channels, layer().output.front(), "outputs");
    LayerSpread result{LayerLayout::filter, {}, out, out};
    result.inputs.assign(layer().inputs.size(), {{}, {Over::partial}, std::nullopt});
    result.splits_weights = true;
    return result;
  }

  /// Convolutions with groups need the channels of their groups only.
  LayerSpread by_groups() const {
    const std::int64_t groups = groups_of(layer());
    const std::int64_t inputs = input_shape(0).front() / groups, outputs = layer().output.front() / groups;
    std::optional<Owner> owner = owner_of_groups(groups);
    if (!owner && groups < static_cast<std::int64_t>(devices_)) return by_filters();
    if (!owner) owner = even_cut(groups, devices_).owner;
    const Spread in = owned(repeated(*owner, inputs)), out = owned(repeated(*owner, outputs));
    LayerSpread result{LayerLayout::filter, {{in, in, std::nullopt}}, out, out};
    result.splits_weights = true;
    return result;
  }

  /// Where the input is split so that no group is.
  std::optional<Owner> owner_of_groups(std::int64_t groups) const {
    const Spread* input = made(0);
    if (!input || input->over != Over::channels) return std::nullopt;
    const Owner& channels = input->cut->owner;
    const std::size_t size = channels.size() / static_cast<std::size_t>(groups);
    Owner owner;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (c % size == 0) owner.push_back(channels[c]);
      if (channels[c] != owner.back()) return std::nullopt;
    }
    return owner;
  }

  LayerSpread by_channels() const {
    LayerSpread result{LayerLayout::channel, {}, {Over::partial}, {}};
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
      const Spread in = made(k) && made(k)->over == Over::channels
                            ? *made(k)
                            : even(Over::channels, input_shape(k).front(), "inputs");
      result.inputs.push_back({in, in, std::nullopt});
    }
    result.sums_inputs = result.splits_weights = true;
    return result;
  }

  /// Owners of the output's channels where a layer that follows works channel by channel.
  std::optional<Owner> channels_after(const Spread& input) const {
    const Owner& owner = input.cut->owner;
    const auto& kind = layer().kind;
    if (const auto* concat = std::get_if<Concat>(&kind)) {
      if (concat->axis != 0) return std::nullopt;
      Owner all;
      for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
        const Owner part = concat_part(k);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    if (std::holds_alternative<Flatten>(kind))
      return repeated(owner, layer().output.front() / input_shape(0).front());
    if (const auto* slice = std::get_if<Slice>(&kind)) {
      if (slice->axis != 0) return std::nullopt;
      Owner part;
      for (std::int64_t c = slice->first; c < slice->last; c += slice->step)
        part.push_back(owner[static_cast<std::size_t>(c)]);
      return part;
    }
    if (const auto* shuffle = std::get_if<ChannelShuffle>(&kind)) {
      const std::size_t groups = static_cast<std::size_t>(shuffle->groups), size = owner.size() / groups;
      Owner shuffled(owner.size());
      for (std::size_t c = 0; c < owner.size(); ++c) shuffled[c % size * groups + c / size] = owner[c];
      return shuffled;
    }
    const bool joins = std::holds_alternative<Add>(kind) || std::holds_alternative<Multiply>(kind);
    if (joins)
      for (std::size_t k = 0; k < layer().inputs.size(); ++k)
        if (input_shape(k).front() != layer().output.front()) return std::nullopt;
    const auto* norm = std::get_if<Normalization>(&kind);
    const auto* activation = std::get_if<Activation>(&kind);
    if (joins || (norm && norm->over == Normalization::Over::batch) ||
        (activation && activation->function != Activation::Function::softmax) ||
        std::holds_alternative<Pool>(kind) || std::holds_alternative<AdaptiveAvgPool>(kind) ||
        std::holds_alternative<Dropout>(kind) || std::holds_alternative<Scale>(kind) ||
        std::holds_alternative<Upsample>(kind) || std::holds_alternative<Pad>(kind))
      return owner;
    return std::nullopt;
  }

  Owner concat_part(std::size_t k) const {
    if (made(k) && made(k)->over == Over::channels) return made(k)->cut->owner;
    return even_cut(input_shape(k).front(), devices_).owner;
  }

  LayerSpread along_channels(const Spread& input, const Owner& owner) const {
    const Spread out = owned(owner);
    LayerSpread result{LayerLayout::filter, {}, out, out};
    result.splits_weights = true;
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
      const Spread in = std::holds_alternative<Concat>(layer().kind) ? owned(concat_part(k)) : input;
      result.inputs.push_back({in, in, std::nullopt});
    }
    return result;
  }

  // Rows and columns.

  LayerSpread along(ImageAxis axis) const {
    const bool rows = axis == ImageAxis::height;
    const Over over = rows ? Over::rows : Over::columns;
    const auto a = static_cast<std::size_t>(axis);
    const std::string_view what = rows ? "rows" : "columns";
    const std::int64_t size = layer().output[a];
    const auto& kind = layer().kind;
    const auto* slice = std::get_if<Slice>(&kind);
    const bool window = (slice && slice->axis == static_cast<std::int64_t>(axis)) ||
                        std::holds_alternative<Conv2d>(kind) ||
                        std::holds_alternative<ConvTranspose2d>(kind) || std::holds_alternative<Pool>(kind) ||
                        std::holds_alternative<Upsample>(kind) || std::holds_alternative<Pad>(kind);
    const Spread out = even(over, size, what);
    LayerSpread result{rows ? LayerLayout::height : LayerLayout::width, {}, out, out};
    for (std::size_t k = 0; k < layer().inputs.size(); ++k) {
      const std::int64_t in_size = input_shape(k)[a];
      if (!window && in_size != size) {  // one row for all
        result.inputs.push_back({{}, {Over::partial}, std::nullopt});
        continue;
      }
      const Spread in =
          in_size == size ? out : Spread{over, std::make_shared<Cut>(even_cut(in_size, devices_))};
      result.inputs.push_back({in, in, std::nullopt});
      if (!window) continue;
      Halo rows_of_others = halo(layer(), axis, *in.cut, *out.cut);
      if (!rows_of_others.empty()) result.inputs.back().halo = std::move(rows_of_others);
    }
    return result;
  }

  /// Every device adds up its rows.
  LayerSpread pooled(const Spread& input) const {
    LayerSpread result{input.over == Over::rows ? LayerLayout::height : LayerLayout::width,
                       {{input, input, std::nullopt}},
                       {Over::partial},
                       {}};
    result.sums_inputs = true;
    return result;
  }

  const Model& model_;
  const std::vector<DecidedLayout>& layouts_;
  std::size_t devices_;
  Spread images_;
  std::size_t index_ = 0;
  const DecidedLayout* pos_ = nullptr;
  std::vector<const DecidedLayout*> origins_;
  std::vector<LayerSpread> spreads_;
};

}  // namespace

std::vector<LayerSpread> spread_layers(const Model& model, const std::vector<DecidedLayout>& layouts,
                                       const Cut& images) {
  return Spreader(model, layouts, images).run();
}

double parameters_on(const Layer& layer, const LayerSpread& spread, const ParameterTensor& tensor,
                     std::size_t device) {
  const auto all = static_cast<double>(tensor.elements);
  if (!spread.splits_weights) return all;
  // Where outputs are summed over the devices, what is added to the sum is everyone's.
  if (spread.sums_inputs && &tensor != layer.parameters.data()) return all;
  return all * spread.work_share(device);
}

double parameters_on(const Layer& layer, const LayerSpread& spread, std::size_t device) {
  double sum = 0;
  for (const ParameterTensor& tensor : layer.parameters) sum += parameters_on(layer, spread, tensor, device);
  return sum;
}

double inputs_share(const Model& model, std::size_t layer, const LayerSpread& spread, std::size_t device) {
  double all = 0, own = 0;
  for (std::size_t k = 0; k < spread.inputs.size(); ++k) {
    const auto size = static_cast<double>(elements(model.shape_of(model.layers[layer].inputs[k])));
    const InputSpread& input = spread.inputs[k];
    double share = input.needed.share(device);
    if (input.halo)
      share += static_cast<double>(input.halo->counts[device]) / static_cast<double>(input.needed.cut->size);
    all += size;
    own += size * share;
  }
  return all > 0 ? own / all : 1;
}

}  // namespace convoy
