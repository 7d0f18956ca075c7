# SPDX-License-Identifier: MIT
"""A folder with a small experiment, for tests of the Python module beside the program."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["CONVOY"]
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

EXPERIMENT = {
    "experiment": "small",
    "model": {"name": "toy", "input": [3, 8, 8], "layers": [
        {"name": "conv", "kind": "conv2d", "out_channels": 8, "kernel": 3, "padding": 1},
        {"name": "relu", "kind": "relu"},
        {"name": "flat", "kind": "flatten"},
        {"name": "fc", "kind": "linear", "out_features": 10}]},
    "training": {"batch_per_device": 8, "precision": "fp32", "optimizer": "sgd"},
    "cluster": {
        "name": "lab",
        "nodes": [{"name": "n", "count": 4, "server": "box"}],
        "fabric": {"kind": "switch", "bandwidth": "10Gbps", "latency": "25us"},
        "servers": {"box": {"devices": [{"device": "ideal", "count": 1}], "interconnect": {"kind": "none"}}},
        "devices": {"ideal": {"peak": {"fp32": "10TFLOPS"}, "memory": "16GiB", "memory_bandwidth": "500GB/s",
                              "efficiency": 1.0}}},
    "strategy": {"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring"},
}


class InFolder(unittest.TestCase):
    """Each test in an empty folder with the experiment in e.yaml."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("e.yaml").write_text(json.dumps(EXPERIMENT, indent=1))

    def program(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout
