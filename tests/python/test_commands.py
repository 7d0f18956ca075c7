# SPDX-License-Identifier: MIT
"""The other functions of the Python module say what the commands say."""

import csv
import gzip
import json
import pathlib
import types
import unittest
import warnings

import convoy
from in_folder import CONFIGS, EXPERIMENT, InFolder


class Commands(InFolder):
    def test_show(self):
        self.assertEqual(convoy.show("models"), json.loads(self.program("show", "models", "--json")))
        self.assertEqual(convoy.show("schema", "experiment").to_dict(),
                         json.loads(self.program("show", "schema", "experiment")))
        shown = convoy.show("models", "ResNet-50")
        self.assertEqual(shown.to_dict(), json.loads(self.program("show", "models", "resnet50", "--json")))

    def test_check(self):
        checked = convoy.check("e.yaml", sweep={"cluster.nodes.0.count": [1, 2]})
        self.assertEqual([point.id for point in checked.points], ["1", "2"])
        results = convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 2]})
        for point, run in zip(checked.points, results):
            self.assertAlmostEqual(point.peak_memory_bytes, run.peak_memory_bytes, delta=1)

    def test_compare(self):
        convoy.run("e.yaml", out="a")
        other = convoy.run("e.yaml", set={"training.batch_per_device": 16}, out="b")
        comparison = convoy.compare("a", "b")
        self.assertEqual(comparison.to_json(), self.program("compare", "a", "b", "--json"))
        self.assertEqual(comparison.changed[0].because, ["training.batch_per_device: 8 -> 16"])
        in_memory = convoy.compare(convoy.run("e.yaml"), other)
        self.assertEqual(in_memory.changed[0].because, ["training.batch_per_device: 8 -> 16"])
        self.assertEqual(in_memory.changed[0].terms.to_dict(), comparison.changed[0].terms.to_dict())

    def test_plan(self):
        plan = {"experiment": "p", "model": "resnet18",
                "training": {"optimizer": "sgd", "dataset": {"samples": 1000000}}, "goal": {"epochs": 1},
                "plan": {"objective": "cost", "servers": ["aws-p3.2xlarge"], "nodes": [1, 2],
                         "batch_per_device": [64],
                         "strategies": [{"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring"}]}}
        pathlib.Path("p.yaml").write_text(json.dumps(plan))
        answer = convoy.plan("p.yaml")
        self.assertEqual(answer.to_json(), self.program("plan", "p.yaml", "--json"))
        self.assertEqual(answer.choice.servers.to_dict(), {"aws-p3.2xlarge": answer.choice.devices})
        convoy.plan("p.yaml", out="o")
        self.program("plan", "p.yaml", "--out", "p")
        for name in ("plan.json", "report.html"):
            self.assertEqual(pathlib.Path("o", name).read_bytes(), pathlib.Path("p", name).read_bytes(), name)
        self.assertIn("<iframe", answer._repr_html_())
        self.assertIn(str(answer).rstrip(), self.program("plan", "p.yaml", "--out", "p"))

    def test_calibrate(self):
        with open(CONFIGS.parent / "results/published/single_device.csv", newline="") as stream:
            published = list(csv.reader(stream))
        few = [row for row in published if row[0] == "k80" and "/" not in row[1] and "fit" in row][:12]
        with open("few.csv", "w", newline="") as stream:
            csv.writer(stream).writerows([published[0], *few])
        fit = convoy.calibrate("few.csv", device="k80")
        self.assertEqual(fit.yaml, self.program("calibrate", "few.csv", "--device", "k80"))
        self.assertEqual(len(fit.rows), len(few))
        rows = ["device,model,batch,precision,framework,images_per_s,role,source"]
        pathlib.Path("none.csv").write_text("\n".join(rows) + "\n")
        with self.assertRaises(convoy.InputError):
            convoy.calibrate("none.csv", device="k80")

    def test_calibrate_with_the_model_of_a_trace(self):
        trace = CONFIGS.parent / "tests/calibration/traces/resnet18_batch8_32x32_cpu.json.gz"
        own = {"base": "epyc-7763", "peak": {"fp32": "78.4GFLOPS"}, "memory_bandwidth": "20GB/s", "sms": 1}
        model = {"name": "resnet18", "input": [3, 32, 32]}
        fit = convoy.calibrate(trace=trace, device=own, model=model, training={"optimizer": "momentum"})
        self.assertEqual(fit.experiment["training"]["batch_per_device"], 8)
        self.assertEqual({key: fit.device[key] for key in own}, own)
        self.assertEqual(convoy.run(fit.experiment)[0].step_time_s, fit.diagnosis.step_time_s)
        self.assertGreater(fit.diagnosis.matched_share, 0.98)
        unfitted = {**fit.experiment, "cluster": {**fit.experiment["cluster"], "devices": {"calibrated": own}}}
        before = convoy.diagnose(trace, unfitted)
        # What the profiler took to record operations, and waiting, is nobody's kernel: the rest comes out within a tenth.
        kernels = [t for t in fit.diagnosis.terms if "recording" not in t.name and "waiting" not in t.name]
        self.assertEqual(len(kernels), len(fit.diagnosis.terms) - 2)
        self.assertLess(abs(sum(t.gap_s for t in kernels)), 0.1 * sum(t.measured_s for t in kernels))
        self.assertEqual(before.measured_step_time_s, fit.diagnosis.measured_step_time_s)
        self.assertNotEqual(before.step_time_s, fit.diagnosis.step_time_s)
        # As with the device in a file.
        pathlib.Path("lab.yaml").write_text(json.dumps({"cluster": {
            "nodes": [{"name": "n", "count": 1, "server": "own"}], "devices": {"lab-cpu": own},
            "servers": {"own": {"devices": [{"device": "lab-cpu", "count": 1}], "interconnect": {"kind": "none"}}}}}))
        self.assertEqual(convoy.calibrate(trace, device="lab-cpu", experiment="lab.yaml").yaml, fit.yaml)
        four = convoy.run({**fit.experiment, "strategy": {"kind": "data_parallel", "sync": "all_reduce"},
                           "cluster": fit.cluster(4, fabric={"kind": "switch", "bandwidth": "1Gbps", "latency": "50us"})})
        self.assertEqual(four[0].devices, 4)
        for wrong in ({}, {"trace": trace}, {"device": own}, {"profiles": trace, "device": own, "model": model},
                      {"trace": trace, "device": "lab-cpu", "experiment": "lab.yaml", "model": model}):
            with self.assertRaises(TypeError):
                convoy.calibrate(**wrong)
        with self.assertRaisesRegex(convoy.InputError, "another network"):
            convoy.calibrate(trace=trace, device=own, model="alexnet")

    def test_a_saving_of_money_is_no_gain_where_that_of_time_is_none(self):
        # An hour is so dear that 0.01 % of it is money.
        experiment = json.loads(json.dumps(EXPERIMENT))
        experiment["model"]["layers"][0]["out_channels"] = 64
        experiment["training"].update(batch_per_device=4096, dataset={"samples": 10 ** 9})
        cluster = experiment["cluster"]
        cluster["servers"]["box"]["price"] = "1000000USD/h"
        cluster["fabric"].update(bandwidth="100Gbps", latency="1us")
        cluster["devices"]["ideal"]["peak"] = {"fp32": "1TFLOPS"}
        experiment["strategy"]["bucket"] = "64KiB"
        pathlib.Path("dear.yaml").write_text(json.dumps(experiment))
        printed = self.program("run", "dear.yaml", "--explain", "--out", "o")
        rows = json.loads(pathlib.Path("o/results.json").read_text())["runs"][0]
        small = [row["change"] for row in rows["counterfactuals"]
                 if 0 < abs(row["gain_s"]) < 5e-4 * rows["step_time_s"] and abs(row["gain_usd_per_epoch"]) > 1]
        self.assertGreater(len(small), 1)
        for change in small:
            line = next(line for line in printed.splitlines() if line.strip().startswith(change))
            self.assertRegex(line, "no gain +as many USD an epoch")
        self.assertNotIn("(0.0 %)", printed)

    def test_learning_that_takes_long_is_told_before_it_begins(self):
        experiment = {**EXPERIMENT, "model": {"name": "resnet18", "input": [3, 32, 32]},
                      "numerics": {"data": {"kind": "drawn"}, "steps": 400}}
        with self.assertRaisesRegex(convoy.ConvoyWarning, "numerics: 400 steps of resnet18 with 32 images compute real "
                                    "values for about .* on one core"):
            with warnings.catch_warnings():
                warnings.simplefilter("error", convoy.ConvoyWarning)
                convoy.run(experiment)

    def test_save_trace(self):
        def event(number, name, start, us, shapes):
            return types.SimpleNamespace(
                name=name, thread=1, id=number, input_shapes=shapes,
                time_range=types.SimpleNamespace(start=start, elapsed_us=lambda: us))
        events = [event(1, "aten::conv2d", 0, 900, [[8, 64, 8, 8], [64, 64, 3, 3], []]),
                  event(2, "aten::convolution", 5, 890, [[8, 64, 8, 8], [64, 64, 3, 3], []]),
                  event(3, "aten::convolution_backward", 1000, 2000,
                        [[8, 64, 8, 8], [8, 64, 8, 8], [64, 64, 3, 3]])]
        profiler = types.SimpleNamespace(events=lambda: events)
        convoy.save_trace(profiler, "t.json")
        convoy.save_trace(profiler, pathlib.Path("t.json.gz"))
        self.assertEqual(gzip.open("t.json.gz", "rt").read(), pathlib.Path("t.json").read_text())
        fit = convoy.calibrate("t.json.gz", device="xeon-platinum-8480")
        self.assertEqual(len(fit.rows), 2)
        pathlib.Path("t.json.gz").write_bytes(pathlib.Path("t.json.gz").read_bytes()[:-9])
        with self.assertRaisesRegex(convoy.InputError, "is cut"):
            convoy.calibrate("t.json.gz", device="xeon-platinum-8480")

    def test_doctor(self):
        experiment = json.loads(json.dumps(EXPERIMENT))
        experiment["cluster"]["servers"]["box"]["devices"][0]["device"] = "v100-sxm2-16gb"
        experiment["model"] = "resnet18"
        experiment["training"]["input"] = {"kind": "jpeg", "library": "pil"}
        experiment["cluster"]["servers"]["box"]["vcpus"] = 8
        experiment["spread"] = {"cluster.fabric.latency": "50%"}
        pathlib.Path("doctor.yaml").write_text(json.dumps(experiment))
        diagnosis = convoy.doctor(experiment, set={"training.batch_per_device": 4})
        self.assertEqual(diagnosis.to_dict(), json.loads(
            self.program("doctor", "doctor.yaml", "--set", "training.batch_per_device=4", "--json")))
        self.assertEqual(str(diagnosis), self.program("doctor", "doctor.yaml", "--set", "training.batch_per_device=4"))
        for measured in diagnosis.runs[0].inputs:
            self.assertIn(f"<td>{measured.key}</td>", diagnosis._page)
        self.assertIn("<iframe", diagnosis._repr_html_())
        self.assertEqual(diagnosis.runs[0].interval.to_dict(),
                         convoy.run(experiment, set={"training.batch_per_device": 4})[0].interval.to_dict())
        inputs = diagnosis.runs[0].inputs
        self.assertAlmostEqual(sum(each.variance_share for each in inputs), 1)
        pasted = [each.measure for each in inputs if "<<'END'\n" in each.measure]
        self.assertGreaterEqual(len(pasted), 3)
        for lines in pasted:
            compile(lines.split("<<'END'\n")[1].rsplit("\nEND", 1)[0], "pasted", "exec")
        with self.assertRaises(convoy.InputError):
            convoy.doctor(experiment, set={"spread": {"cluster.fabric.loss": "5%"}})
        with self.assertRaises(convoy.InputError):
            convoy.doctor(experiment, prices="prices.csv")

    def test_diagnose(self):
        trace = CONFIGS.parent / "tests/calibration/traces/resnet18_batch8_32x32_cpu.json.gz"
        experiment = {"experiment": "lab", "model": {"name": "resnet18", "input": [3, 32, 32]},
                      "training": {"batch_per_device": 8}, "strategy": {"kind": "single"},
                      "cluster": {"nodes": [{"name": "n", "count": 1, "server": "box"}],
                                  "servers": {"box": {"devices": [{"device": "mine", "count": 1}],
                                                      "interconnect": {"kind": "none"}}},
                                  "devices": {"mine": {"base": "epyc-7763", "sms": 1}}}}
        pathlib.Path("lab.yaml").write_text(json.dumps(experiment))
        diagnosis = convoy.diagnose(trace, experiment)
        self.assertEqual(diagnosis.to_json(), self.program("diagnose", str(trace), "lab.yaml", "--json"))
        self.assertEqual(str(diagnosis), self.program("diagnose", str(trace), "lab.yaml"))
        self.assertIn("<iframe", diagnosis._repr_html_())
        convoy.diagnose(trace, experiment, joint_trace="both.json")
        events = json.loads(pathlib.Path("both.json").read_text())["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(names, {1: "measured", 2: "predicted: n0"})
        ends = {pid: max(event["ts"] + event["dur"] for event in events if event["ph"] == "X" and event["pid"] == pid)
                for pid in names}
        # The first of five measured steps, from its first operation to the optimizer's end, and the predicted one.
        self.assertAlmostEqual(ends[1] * 1e-6 / diagnosis.measured_step_time_s, 1, delta=0.2)
        self.assertAlmostEqual(ends[2] * 1e-6, diagnosis.step_time_s, places=6)
        self.assertIn("aten::conv2d", {event["name"] for event in events if event["pid"] == 1})
        with self.assertRaisesRegex(convoy.InputError, "another network"):
            convoy.diagnose(trace, experiment, set={"training.batch_per_device": 16})

    def test_validate(self):
        pathlib.Path("rows.csv").write_text("device,model,batch_per_device,images_per_s\n"
                                            "k80,resnet18,16,90\nt4,alexnet,32,700\n")
        validation = convoy.validate("rows.csv")
        self.assertEqual(validation.to_dict(), json.loads(self.program("validate", "rows.csv", "--json")))
        self.assertEqual(str(validation), self.program("validate", "rows.csv"))
        self.assertEqual(validation._page.count("<tr>"), 1 + len(validation.rows))
        row = validation.rows[0]
        self.assertAlmostEqual(row.error, row.predicted / 90 - 1)

    def test_validate_takes_rows_of_python(self):
        rows = [{"device": "k80", "model": "resnet18", "batch_per_device": 16, "images_per_s": 90},
                {"device": "t4", "model": "alexnet", "batch_per_device": 32, "images_per_s": 700, "precision": "fp32"}]

        class Frame:  # as pandas has it: a column that a row lacks is NaN there
            def to_dict(self, orient):
                assert orient == "records"
                return [{"precision": float("nan"), **row} for row in rows]

        pathlib.Path("rows.csv").write_text("device,model,batch_per_device,images_per_s,precision\n"
                                            "k80,resnet18,16,90,\nt4,alexnet,32,700,fp32\n")
        of_file = convoy.validate("rows.csv").to_dict()
        self.assertEqual(convoy.validate(rows).to_dict(), of_file)
        self.assertEqual(convoy.validate(Frame()).to_dict(), of_file)
        with self.assertRaises(convoy.InputError) as caught:
            convoy.validate([*rows, {**rows[0], "images_per_s": -1}])
        self.assertEqual((caught.exception.file, caught.exception.line), ("rows", 4))
        with self.assertRaisesRegex(TypeError, "rows are"):
            convoy.validate([1, 2])

    def test_doubts_of_models_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            convoy.run("e.yaml")
        self.assertEqual([str(each.message) for each in caught], [])


if __name__ == "__main__":
    unittest.main()
