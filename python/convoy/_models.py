# SPDX-License-Identifier: MIT
"""Models of PyTorch, and traces of its profiler."""

import collections.abc
import gzip
import json
import os
import shutil
import tempfile
import warnings
import weakref

from . import _convoy
from ._records import ConvoyWarning, InputError, call, wrapped


def save_trace(profiler, file):
    """Writes what torch.profiler.profile recorded as a trace that calibrate reads, packed where `file` ends in .gz.

    For a PyTorch without Kineto (Debian's), whose export_chrome_trace leaves out the shapes that record_shapes=True
    records. Operations of the host alone: on a GPU, export_chrome_trace writes the kernels too.
    """
    file = os.fspath(file)
    events = [{"ph": "X", "cat": "cpu_op", "name": event.name, "pid": 0, "tid": event.thread,
               "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
               "args": {"External id": event.id, "Input Dims": event.input_shapes}} for event in profiler.events()]
    text = json.dumps({"traceEvents": events}, separators=(",", ":"))
    with gzip.open(file, "wt") if file.endswith(".gz") else open(file, "w") as stream:
        stream.write(text)


class TorchModel(collections.abc.Mapping):
    """A model of an experiment, made of a module by from_torch: {"onnx": file}."""

    def __init__(self, folder, name):
        self._name = name
        self._file = os.path.join(folder, name + ".onnx")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __getitem__(self, key):
        return {"onnx": self._file}[key]

    def __iter__(self):
        return iter(("onnx",))

    def __len__(self):
        return 1

    def save(self, file):
        """Keeps the model as an ONNX file, with its weights below 2 GiB, for `model: {onnx: FILE}` and other tools."""
        shutil.copyfile(self._file, file)

    def show(self):
        """Its layers, parameters and multiply-adds, as `convoy show models FILE.onnx --json`."""
        return wrapped(json.loads(call(_convoy.show, "models", self._file)))

    def __repr__(self):
        return f"<TorchModel {self._name}>"


def from_torch(module, sample):
    """A PyTorch module as the model of an experiment: convoy.run({..., "model": convoy.from_torch(net, images)}).

    module  a torch.nn.Module; what it computes in training mode counts, auxiliary heads included, whichever mode it is in
    sample  what it is called with: a tensor of images, or a tuple of tensors; sizes count, values do not

    The file that the model stands for is deleted with it (TorchModel.save keeps one). Parameters that the forward pass does
    not use, and batch normalizations that were folded into convolutions, are told by a ConvoyWarning. Stochastic depth is
    left out: it costs nothing here. What convoy has no kind of layer for is elementwise, with a ConvoyWarning when it is simulated.

    Raises InputError where PyTorch cannot trace or write the module.
    """
    from . import _torch  # the only one that needs PyTorch

    name = type(module).__name__
    folder = tempfile.mkdtemp(prefix="convoy-torch-")
    model = TorchModel(folder, name)
    try:
        unused = _torch.export(module, sample, model["onnx"])
    except Exception as error:
        raise InputError(f"from_torch: {name} cannot be written as ONNX: {error}") from error
    if unused:
        # "aux1.conv.weight" -> "aux1": the outermost modules that have nothing else.
        used = {parameter for parameter, _ in module.named_parameters()} - set(unused)
        parts = sorted({_outermost(parameter, used) for parameter in unused})
        warnings.warn(f"from_torch: {name}: its forward pass does not use {', '.join(parts)}: "
                      f"{sum(unused.values()):,} parameters are left out", ConvoyWarning, stacklevel=2)
    folded = _torch.folded_normalizations(module)
    if folded:
        warnings.warn(f"from_torch: {name}: {folded} batch normalizations are folded into convolutions, as for inference: "
                      "training has them; take the module before it was fused", ConvoyWarning, stacklevel=2)
    return model


def _outermost(parameter, used):
    """The first part of a parameter's name that no used parameter begins with."""
    parts = parameter.split(".")
    for end in range(1, len(parts)):
        prefix = ".".join(parts[:end])
        if not any(other.startswith(prefix + ".") for other in used):
            return prefix
    return parameter
