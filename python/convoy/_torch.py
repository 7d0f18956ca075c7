# SPDX-License-Identifier: MIT
"""PyTorch modules as ONNX files that convoy reads; needs torch alone (1.13 or later)."""

import copy
import inspect
import mmap
import warnings

import torch
from torch.onnx import symbolic_helper

# The newest operators that PyTorch 1.10 knows; what later ones add says nothing that convoy needs.
_OPSET = 14
# A file holds at most 2 GiB. Without the weights in it, those that are transposed or otherwise computed with cannot be told from
# images.
_MOST_BYTES = 2 ** 31 - 2 ** 24
# A factor for each image of a residual branch, which costs nothing here: torchvision's name, and timm's.
_STOCHASTIC_DEPTH = {"StochasticDepth", "DropPath"}


@symbolic_helper.parse_args("v", "is")
def _adaptive_avg_pool2d(graph, values, size):
    """As an operator of convoy's own: ONNX has no pooling to a size that does not divide the image's."""
    size = list(size) * (2 if len(size) == 1 else 1)
    if size == [1, 1]:
        return graph.op("GlobalAveragePool", values)
    result = graph.op("convoy::AdaptiveAveragePool", values, output_size_i=size)
    sizes = values.type().sizes()
    if sizes is not None:
        result.setType(values.type().with_sizes(sizes[:-2] + size))
    return result


def _two_images(value):
    """Normalizations over one value a channel do not train, so that a sample of one image becomes two."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return torch.cat([value, value]) if value.dim() and value.shape[0] == 1 else value
    if isinstance(value, dict):
        return {name: _two_images(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        images = [_two_images(each) for each in value]
        return type(value)(*images) if hasattr(value, "_fields") else type(value)(images)
    return value


def _names_of_parameters(module):
    """Each parameter with all the names that it has: shared ones have several."""
    found = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for name, parameter in part._parameters.items():
            if parameter is not None:
                found.setdefault(id(parameter), (parameter, []))[1].append(f"{prefix}.{name}" if prefix else name)
    return list(found.values())


def _parts(content, begin, end):
    """The length-delimited fields of a message of Protocol Buffers: number, begin and end of each."""
    def varint(at):
        value = shift = 0
        while True:
            byte = content[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at

    while begin < end:
        key, begin = varint(begin)
        kind = key & 7
        if kind == 2:
            size, begin = varint(begin)
            yield key >> 3, begin, begin + size
            begin += size
        elif kind == 0:
            _, begin = varint(begin)
        else:
            begin += 8 if kind == 1 else 4


def _read_by_nodes(content, begin, end):
    """The names that the nodes of an ONNX graph read (onnx.proto: GraphProto.node 1, NodeProto.input 1 and attribute 5,
    AttributeProto.g 6)."""
    for number, node, node_end in _parts(content, begin, end):
        if number != 1:
            continue
        for field, at, at_end in _parts(content, node, node_end):
            if field == 1:
                yield content[at:at_end].decode()
            elif field == 5:
                for inner, graph, graph_end in _parts(content, at, at_end):
                    if inner == 6:
                        yield from _read_by_nodes(content, graph, graph_end)


def _without_use(module, file):
    """The parameters that no operation of the ONNX file reads, by their first names, with their numbers of values."""
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        read = {name for number, begin, end in _parts(content, 0, len(content)) if number == 7  # ModelProto.graph
                for name in _read_by_nodes(content, begin, end)}
    parameters = _names_of_parameters(module)
    if not any(name in read for _, names in parameters for name in names):
        return {}  # an exporter that gives them names of its own
    return {names[0]: parameter.numel() for parameter, names in parameters if not any(name in read for name in names)}


def export(module, sample, file):
    """Writes what one training step's forward pass of `module` computes; neither it nor the random state changes.

    Returns what of the module is not in it: the parameters that the forward pass does not use, by name.
    """
    training = copy.deepcopy(module).cpu().train()
    for parent in list(training.modules()):
        for name, child in parent._modules.items():  # a shared one under each of its names
            if type(child).__name__ in _STOCHASTIC_DEPTH:
                setattr(parent, name, torch.nn.Identity())
    arguments = _two_images(sample)
    bytes_of_weights = sum(weight.numel() * weight.element_size() for weight in training.parameters())
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.register_custom_op_symbolic("aten::adaptive_avg_pool2d", _adaptive_avg_pool2d, _OPSET)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the tracer, on what depends on the sample; shapes do
            torch.onnx.export(training, arguments if isinstance(arguments, tuple) else (arguments,), file,
                              training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                              export_params=bytes_of_weights < _MOST_BYTES, opset_version=_OPSET, **options)
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::adaptive_avg_pool2d", _OPSET)
    return _without_use(training, file)


def folded_normalizations(module):
    """How many convolutions are marked as having taken over a batch normalization's weights, which then does not train.

    torch.ao.quantization.fuse_modules and torch.nn.utils.fusion leave an Identity in the place of the normalization,
    and a bias on the convolution before it.
    """
    folded = 0
    for parent in module.modules():
        before = None
        for child in parent.children():
            if isinstance(child, torch.nn.Identity) and isinstance(before, torch.nn.modules.conv._ConvNd):
                folded += before.bias is not None
            before = child
    return folded
