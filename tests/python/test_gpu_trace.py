# SPDX-License-Identifier: MIT
"""Traces of GPUs, which are synthetic: no trace of a real GPU comes with convoy.

`cuda_trace` writes what torch.profiler writes of CUDA (Kineto's Chrome trace): operations of the host with their shapes,
the launches that they make (cuda_runtime, with External id and correlation), kernels on the compute stream that name their
launch by correlation alone, and NCCL's kernel on a stream of its own. The times of the kernels are those that convoy predicts,
times a factor for each kind, so that what diagnose has to find is known.
"""

import json
import pathlib
import unittest

import convoy
from in_folder import InFolder

IMAGES, SIZE = 32, 56
EXPERIMENT = {
    "experiment": "gpu",
    "model": {"name": "m", "input": [8, SIZE, SIZE], "layers": [
        {"name": "a", "kind": "conv2d", "out_channels": 64, "kernel": 3, "padding": 1, "bias": False},
        {"name": "r", "kind": "relu"},
        {"name": "b", "kind": "conv2d", "out_channels": 64, "kernel": 3, "padding": 1, "bias": False}]},
    "training": {"batch_per_device": IMAGES, "optimizer": "sgd"},
    "cluster": {"server": "aws-p3.2xlarge", "nodes": 2,
                "fabric": {"kind": "switch", "bandwidth": "10Gbps", "latency": "25us", "protocol": "tcp"}},
    "strategy": {"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring"}}
SHAPES = {"a": [[IMAGES, 8, SIZE, SIZE], [64, 8, 3, 3]], "b": [[IMAGES, 64, SIZE, SIZE], [64, 64, 3, 3]],
          "r": [[IMAGES, 64, SIZE, SIZE]]}
OUTPUT = [IMAGES, 64, SIZE, SIZE]
# operation of the host, its spans in the prediction, the shapes of its inputs
OPERATIONS = [
    ("aten::convolution", ["a.forward"], SHAPES["a"]),
    ("aten::relu", ["r.forward"], SHAPES["r"]),
    ("aten::convolution", ["b.forward"], SHAPES["b"]),
    ("aten::convolution_backward", ["b.data_gradient", "b.weight_gradient"], [OUTPUT, *SHAPES["b"]]),
    ("aten::threshold_backward", ["r.data_gradient"], [OUTPUT, OUTPUT]),
    ("aten::convolution_backward", ["a.weight_gradient"], [OUTPUT, *SHAPES["a"]]),
    ("aten::cat", ["bucket 0 filled"], [[64, 8, 3, 3]]),
    ("c10d::allreduce_", ["all-reduce bucket 0"], [[41472]]),
    ("aten::copy_", ["bucket 0 emptied"], [[41472]]),
    ("aten::_foreach_add_", ["a.update", "b.update"], [[41472]])]


def cuda_trace(seconds, factors, steps):
    """The events of some equal steps; `seconds` by span, `factors` of the operations by name (1: as predicted).

    NCCL runs after the kernels before it and before those behind it, as where nothing is left to overlap with.
    """
    events, correlation, gpu_us = [], 0, 1000.0
    for step in range(steps):
        host_us = begun_us = gpu_us - 1000
        for name, spans, shapes in OPERATIONS:
            operation = correlation = correlation + 1
            place = {"pid": 1, "tid": 1}
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "ts": host_us, "dur": 20, **place,
                           "args": {"External id": operation, "Input Dims": shapes,
                                    "Input type": ["float"] * len(shapes)}})
            for span in spans:
                correlation += 1
                us = 1e6 * seconds[span] * factors.get(name, 1)
                nccl = name.startswith("c10d")
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": host_us + 2, "dur": 4,
                               **place, "args": {"External id": operation, "correlation": correlation}})
                events.append({"ph": "X", "cat": "kernel", "ts": gpu_us, "dur": us, "pid": 0, "tid": 20 if nccl else 7,
                               "name": "ncclKernel_AllReduce_RING_LL_Sum_float" if nccl else f"void kernel_of<{span}>()",
                               "args": {"correlation": correlation, "stream": 20 if nccl else 7}})
                gpu_us += us
            host_us += 25
        events.append({"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "ts": host_us - 25, "dur": 24,
                       "pid": 1, "tid": 1, "args": {}})
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begun_us,
                       "dur": host_us - begun_us, "pid": 1, "tid": 1, "args": {}})
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB"}], "traceEvents": events}


class GpuTrace(InFolder):
    def setUp(self):
        super().setUp()
        spans = convoy.run(EXPERIMENT)[0].timeline().spans()
        self.seconds = {name: end - start for process, name, start, end in
                        zip(spans["process"], spans["name"], spans["start_s"], spans["end_s"])
                        if process == spans["process"][0]}
        self.factors = {"aten::convolution": 1.5, "aten::convolution_backward": 1.2, "aten::relu": 0.5,
                        "aten::threshold_backward": 0.5, "c10d::allreduce_": 2, "aten::copy_": 3}
        pathlib.Path("t.json").write_text(json.dumps(cuda_trace(self.seconds, self.factors, 4)))

    def measured(self, *names):
        return sum(self.seconds[span] * self.factors.get(name, 1) for name, spans, _ in OPERATIONS if name in names
                   for span in spans)

    def test_what_was_made_slower_is_found(self):
        diagnosis = convoy.diagnose("t.json", EXPERIMENT, joint_trace="both.json")
        terms = {term.name: term for term in diagnosis.terms}
        for name, operations in (("convolution", ("aten::convolution", "aten::convolution_backward")),
                                 ("relu", ("aten::relu", "aten::threshold_backward")),
                                 ("communication", ("c10d::allreduce_",)),
                                 ("other operations", ("aten::cat", "aten::copy_", "aten::_foreach_add_"))):
            self.assertAlmostEqual(terms[name].measured_s * 1e6, 1e6 * self.measured(*operations), delta=0.01, msg=name)
        # Spans last longer by what devices wait for the slowest of them, which is no operation's.
        slowdown = [sum(self.seconds[span] for name, spans, _ in OPERATIONS if name in names for span in spans) /
                    terms[kind].predicted_s
                    for kind, names in (("convolution", ("aten::convolution", "aten::convolution_backward")),
                                        ("relu", ("aten::relu", "aten::threshold_backward")))]
        self.assertAlmostEqual(slowdown[0], slowdown[1], places=9)
        self.assertGreater(slowdown[0], 1)
        self.assertLess(slowdown[0], 1.1)
        self.assertAlmostEqual(terms["communication"].predicted_s * 1e6, 1e6 * self.seconds["all-reduce bucket 0"], delta=0.01)
        self.assertEqual(diagnosis.steps, 4)
        self.assertAlmostEqual(sum(term.measured_s for term in diagnosis.terms), diagnosis.measured_step_time_s)
        self.assertAlmostEqual(sum(term.predicted_s for term in diagnosis.terms), diagnosis.step_time_s)
        events = json.loads(pathlib.Path("both.json").read_text())["traceEvents"]
        threads = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual({"GPU 0 stream 7", "GPU 0 stream 20", "host thread 1", "device compute"}, threads)
        kernels = [event for event in events if event["name"].startswith("void kernel_of")]
        self.assertEqual(len(kernels), 11)  # of the first step alone

    def test_a_device_is_fitted_to_it(self):
        fit = convoy.calibrate(trace="t.json", device="v100-sxm2-16gb", model=EXPERIMENT["model"])
        self.assertEqual(fit.experiment["training"]["batch_per_device"], IMAGES)
        self.assertEqual(len(fit.rows), 6)
        measured = self.measured("aten::convolution", "aten::convolution_backward")
        term = next(term for term in fit.diagnosis.terms if term.name == "convolution")
        self.assertAlmostEqual(term.measured_s * 1e6, 1e6 * measured, delta=0.01)
        self.assertLess(abs(term.gap_s), 0.1 * measured)  # it was a fifth too fast

    def test_a_trace_of_a_gpu_is_none_of_a_cpu(self):
        with self.assertRaisesRegex(convoy.InputError, "holds kernels of a GPU, and epyc-7763 is a CPU"):
            convoy.calibrate("t.json", device="epyc-7763")


if __name__ == "__main__":
    unittest.main()
