// SPDX-License-Identifier: MIT
// Operators that make other sizes: paddings, enlargements, copies, blocks of space.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {
namespace {

void pad(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const std::vector<std::int64_t> pads = import.integers(node, "pads", 1);
  const std::size_t rank = in.dims.size();
  if (pads.size() != 2 * rank)
    import.fail(node, fmt::format("{} pads of [{}]", pads.size(), fmt::join(in.dims, ", ")));
  OnnxDims dims = in.dims;
  bool image_only = rank == 4 && dims[0] == import.batch();
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] += pads[i] + pads[rank + i];
    image_only =
        image_only && pads[i] >= 0 && pads[rank + i] >= 0 && (i >= 2 || pads[i] + pads[rank + i] == 0);
  }
  if (dims == in.dims) return import.define(node, 0, in);
  import.per_image(node, dims);  // possible sizes
  if (!image_only) return import.elementwise(node, dims, false);
  OnnxValue out = import.output_of(import.emit(node, Pad{pads[2], pads[3], pads[6], pads[7]}, {in.layer}));
  out.zero_border =
      pads[2] == pads[6] && pads[3] == pads[7] && node.text_or("mode", "constant") == "constant";
  import.define(node, 0, std::move(out));
}

void resize(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const bool old = node.inputs.size() < 3;  // Upsample, and Resize of set 10: (data, scales)
  const OnnxValue* scales = import.find(node, old ? 1 : 2);
  const OnnxValue* sizes = import.find(node, 3);
  std::vector<double> factors;
  if (const OnnxAttribute* written = node.find("scales")) factors = written->numbers;
  if (scales && scales->values && !scales->values->empty()) factors = *scales->values;
  OnnxDims dims = in.dims;
  if (sizes && sizes->values && sizes->values->size() == dims.size()) {
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = to_integer((*sizes->values)[i]);
  } else if (factors.size() == dims.size()) {
    for (std::size_t i = 0; i < dims.size(); ++i)
      dims[i] = to_integer(static_cast<double>(dims[i]) * factors[i]);
  } else {
    import.fail(node, "the size it makes is not known before the network runs");
  }
  if (dims == in.dims) return import.define(node, 0, in);
  import.per_image(node, dims);  // possible sizes
  if (dims.size() != 4 || dims[0] != in.dims[0] || dims[1] != in.dims[1] || dims[0] != import.batch())
    return import.elementwise(node, dims, false);
  Upsample kind;
  kind.scale = dims[2] / in.dims[2];
  const bool whole =
      dims[2] % in.dims[2] == 0 && dims[3] % in.dims[3] == 0 && dims[3] / in.dims[3] == kind.scale;
  if (!whole) kind = {1, {dims[2], dims[3]}};
  import.define(node, 0, import.output_of(import.emit(node, kind, {in.layer})));
}

void repeat(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const std::vector<std::int64_t> by = import.integers(node, "", 1);
  std::optional<OnnxDims> dims;
  if (node.op == "Expand") dims = broadcast(in.dims, by);
  if (node.op == "Tile" && by.size() == in.dims.size()) {
    dims = in.dims;
    for (std::size_t i = 0; i < by.size(); ++i)
      if (__builtin_mul_overflow((*dims)[i], by[i], &(*dims)[i])) (*dims)[i] = -1;
  }
  if (!dims || dims->empty())
    import.fail(node, fmt::format("[{}] by [{}]", fmt::join(in.dims, ", "), fmt::join(by, ", ")));
  if (*dims == in.dims) return import.define(node, 0, in);
  import.elementwise(node, *dims, false);
}

/// Blocks of space to channels and back.
void depth_and_space(OnnxImport& import, const OnnxNode& node) {
  const OnnxDims& in = import.result(node, 0).dims;
  const std::int64_t block = to_integer(node.number_or("blocksize", 0));
  const bool to_space = node.op == "DepthToSpace";
  const bool fits = in.size() == 4 && block >= 1 && block < 65'536 &&
                    (to_space ? in[1] % (block * block) == 0 : in[2] % block == 0 && in[3] % block == 0);
  if (!fits) import.fail(node, fmt::format("blocks of {} of [{}]", block, fmt::join(in, ", ")));
  const OnnxDims dims = to_space ? OnnxDims{in[0], in[1] / (block * block), in[2] * block, in[3] * block}
                                 : OnnxDims{in[0], in[1] * block * block, in[2] / block, in[3] / block};
  import.elementwise(node, dims, false);
}

struct SizeConverter {
  std::string_view op;
  void (*convert)(OnnxImport& import, const OnnxNode& node);
};

constexpr SizeConverter size_converters[] = {{"Pad", pad},
                                             {"Resize", resize},
                                             {"Upsample", resize},
                                             {"Expand", repeat},
                                             {"Tile", repeat},
                                             {"DepthToSpace", depth_and_space},
                                             {"SpaceToDepth", depth_and_space}};

}  // namespace

bool convert_onnx_size(OnnxImport& import, const OnnxNode& node) {
  for (const SizeConverter& known : size_converters)
    if (known.op == node.op) return known.convert(import, node), true;
  return false;
}

}  // namespace convoy::models
