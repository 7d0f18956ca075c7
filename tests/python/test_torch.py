# SPDX-License-Identifier: MIT
"""Modules of PyTorch as models, against closed forms and, where torchvision is installed, against the zoo."""

import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)
try:
    import torchvision
except ImportError:
    torchvision = None

import convoy

FIELDS = ("parameters", "parameter_tensors", "forward_macs", "saved_activation_bytes")


class Shared(torch.nn.Module):
    """A residual network that uses one convolution twice, and pools to a size that does not divide the image's."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.twice = torch.nn.Conv2d(16, 16, 3, padding=1, groups=4, bias=False)
        self.norm = torch.nn.BatchNorm2d(16)
        self.pool = torch.nn.AdaptiveAvgPool2d((3, 5))
        self.dropout = torch.nn.Dropout(0.5)
        self.last = torch.nn.Linear(16 * 3 * 5, 10)

    def forward(self, images):
        values = torch.relu(self.norm(self.first(images)))
        values = values + self.twice(self.twice(values))
        return self.last(self.dropout(self.pool(values).flatten(1)))


class Torch(unittest.TestCase):
    def test_closed_form(self):
        shown = convoy.from_torch(Shared(), torch.zeros(1, 3, 14, 17)).show()
        weights = 3 * 16 * 9 + 16 + 16 * 4 * 9 + 2 * 16 + 16 * 3 * 5 * 10 + 10
        self.assertEqual(shown.parameters, weights)
        self.assertEqual(shown.parameters, sum(p.numel() for p in Shared().parameters()))
        self.assertEqual(shown.forward_macs, 14 * 17 * (3 * 16 * 9 + 2 * 16 * 4 * 9) + 16 * 3 * 5 * 10)

    def test_nothing_changes(self):
        module = Shared().eval()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        state = torch.random.get_rng_state()
        convoy.from_torch(module, torch.zeros(2, 3, 14, 14))
        self.assertTrue(torch.equal(state, torch.random.get_rng_state()))
        self.assertFalse(any(part.training for part in module.modules()))
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_runs_and_is_saved(self):
        import os
        import tempfile
        experiment = {"experiment": "torch", "model": convoy.from_torch(Shared(), torch.zeros(1, 3, 32, 32)),
                      "training": {"batch_per_device": 8}, "cluster": {"server": "dgx1-v100", "nodes": 1},
                      "strategy": {"kind": "data_parallel", "sync": "all_reduce"}}
        run = convoy.run(experiment)[0]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "kept.onnx")
            experiment["model"].save(file)
            self.assertEqual(convoy.run({**experiment, "model": {"onnx": file}})[0].step_time_s, run.step_time_s)
        temporary = experiment["model"]["onnx"]
        self.assertTrue(os.path.exists(temporary))
        del experiment["model"]
        self.assertFalse(os.path.exists(temporary))

    def test_what_the_forward_pass_does_not_use_is_told(self):
        class Heads(Shared):
            def __init__(self):
                super().__init__()
                self.aux = torch.nn.Sequential(torch.nn.Conv2d(16, 4, 1), torch.nn.Linear(4, 2))

        heads = Heads()
        with self.assertWarnsRegex(convoy.ConvoyWarning, r"does not use aux: 78 parameters are left out"):
            shown = convoy.from_torch(heads, torch.zeros(1, 3, 14, 14)).show()
        self.assertEqual(shown.parameters + 78, sum(p.numel() for p in heads.parameters()))

    def test_an_auxiliary_head_of_training_is_there_in_eval_mode(self):
        class Trained(Shared):
            def __init__(self):
                super().__init__()
                self.aux = torch.nn.Conv2d(3, 5, 1, bias=False)

            def forward(self, images):
                values = super().forward(images)
                return (values, self.aux(images)) if self.training else values

        with warnings.catch_warnings():
            warnings.simplefilter("error", convoy.ConvoyWarning)
            shown = convoy.from_torch(Trained().eval(), torch.zeros(1, 3, 14, 14)).show()
        self.assertEqual(shown.parameters, sum(p.numel() for p in Trained().parameters()))

    def test_folded_normalizations_are_told(self):
        module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
        fused = torch.ao.quantization.fuse_modules(module, ["0", "1"])
        with self.assertWarnsRegex(convoy.ConvoyWarning, "1 batch normalizations are folded into convolutions"):
            convoy.from_torch(fused, torch.zeros(1, 3, 8, 8))

    def test_what_cannot_be_written(self):
        class Shape(torch.nn.Module):
            def forward(self, images):
                return torch.linalg.svd(images)

        with self.assertRaisesRegex(convoy.InputError, "from_torch: Shape cannot be written as ONNX: "):
            convoy.from_torch(Shape(), torch.zeros(1, 3, 4, 4))

    @unittest.skipUnless(torchvision, "torchvision is not installed")
    def test_against_the_zoo(self):
        for name in ("alexnet", "resnet18", "densenet121", "googlenet", "squeezenet1_1", "mobilenet_v3_small", "mnasnet0_5",
                     "shufflenet_v2_x0_5", "regnet_x_400mf", "efficientnet_b0", "convnext_tiny"):
            with self.subTest(name):
                options = {"init_weights": False} if name == "googlenet" else {}  # weights of the right shapes are enough
                module = getattr(torchvision.models, name)(**options)
                shown, zoo = convoy.from_torch(module, torch.zeros(1, 3, 224, 224)).show(), convoy.show("models", name)
                self.assertEqual([shown[field] for field in FIELDS], [zoo[field] for field in FIELDS])


if __name__ == "__main__":
    unittest.main()
