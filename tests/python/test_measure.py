# SPDX-License-Identifier: MIT
"""scripts/measure: what it writes is read, fitted and simulated by the program; its networks are those of the zoo."""

import contextlib
import csv
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "measure"
QUANTILE_80 = 1.2815515655446004


def script():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("measure", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", loader))
    loader.exec_module(module)
    return module


class Measure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def program(self, *words):
        done = subprocess.run([os.environ["CONVOY"], *words], capture_output=True, text=True, cwd=self.out,
                              env={**os.environ, "XDG_CONFIG_HOME": str(self.out)}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def measure(self, *words, code=0):
        done = subprocess.run([sys.executable, str(SCRIPT), "--out", str(self.out), "--name", "box", "--threads", "1", "--device", "cpu",
                               "--quick", "--convoy", os.environ["CONVOY"], *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def measure_with_numpy(self, *words, slow_flops=0):
        """In this process, whatever NumPy's BLAS reaches here."""
        module, told = script(), io.StringIO()
        module.SLOW_FLOPS = slow_flops
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
            try:
                module.measure(module.parse(["--out", str(self.out), "--name", "box", "--threads", "1", "--quick", "--without-torch",
                                             "--convoy", os.environ["CONVOY"], *words]))
            except module.Failed as failed:
                return str(failed)
        return told.getvalue()

    def experiment(self, nodes):
        self.out.joinpath("e.yaml").write_text(
            "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 4, framework: pytorch1, execution: eager}\n"
            f"cluster: {{server: box, nodes: {nodes}}}\nstrategy: {{kind: data_parallel, sync: all_reduce, algorithm: ring}}\n")
        return json.loads(self.program("run", "e.yaml", "--json"))["runs"][0], json.loads(self.program("doctor", "e.yaml", "--json"))["runs"][0]

    def grades(self, kind):
        shown = json.loads(self.program("show", kind, "box", "--json"))["grades"]
        return {key: of["grade"] for key, of in shown.items()}

    def check_device(self, networks):
        """Its numbers are measured, and a run's interval is that of what was measured."""
        grades = self.grades("devices")
        self.assertEqual([grades[key] for key in ("peak", "memory_bandwidth", "efficiency", "evidence")],
                         ["measured", "measured", "fitted", "fitted"])
        with open(self.out / "convoy" / "box.csv", newline="") as stream:
            rows = list(csv.DictReader(stream))
        self.assertRegex(rows[0]["source"], r"\d{4}-\d\d-\d\d, .*, 1 thread, ")
        run, told = self.experiment(1)
        of_kernels = next(number for number in told["inputs"] if number["key"] == "training.anchor")
        low, high = run["interval"]["step_time_s"]
        if networks > 1:
            self.assertEqual(of_kernels["source"], f"calibrated to {len(rows)} rows of box")
            self.assertEqual([number["key"] for number in told["inputs"]], ["training.anchor"])
        # One device alone: all of its step is computing.
        self.assertAlmostEqual(math.log(high / run["step_time_s"]), QUANTILE_80 * of_kernels["spread"], delta=1e-6 if networks > 1 else 0.2)
        self.assertLess(low, run["step_time_s"])
        return rows

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_without_torch(self):
        self.measure_with_numpy()
        rows = self.check_device(0)
        self.assertTrue(all(row["kernel"].startswith("matmul ") and "no framework" in row["framework"] for row in rows))
        # A network between hosts that was not measured is told as assumed, and widens the interval.
        self.assertEqual(self.grades("servers")["fabric"], "assumed")
        self.assertIn("cluster.fabric.bandwidth", [number["key"] for number in self.experiment(2)[1]["inputs"]])

    def test_peer(self):
        serving = subprocess.Popen([sys.executable, str(SCRIPT), "--serve", "--address", "127.0.0.1", "--port", "0"], stdout=subprocess.PIPE,
                                   text=True)
        try:
            port = serving.stdout.readline().split()[-1]
            told = self.measure_with_numpy("--peer", f"127.0.0.1:{port}")
        finally:
            serving.kill()
            serving.communicate()
        if numpy:
            self.assertEqual(self.grades("servers")["fabric"], "measured")
        else:
            self.assertIn("no device and no server are described", told)
            self.assertEqual(list(self.out.iterdir()), [])
            self.assertIn("neither PyTorch nor NumPy is here", self.measure("--without-torch", code=2))
        self.assertIn("--peer 127.0.0.1:", self.measure("--without-torch", "--peer", f"127.0.0.1:{port}", code=2))

    def test_a_transfer_that_breaks_off_is_no_rate(self):
        module = script()

        def break_off(listener):
            connection, _ = listener.accept()
            connection.sendall(module.receive(connection, len(module.GREETING)))
            for _ in range(200):
                module.receive(connection, 8)
                connection.sendall(b"!")
            connection.close()
        with module.listen("127.0.0.1", 0) as listener:
            threading.Thread(target=break_off, args=(listener,), daemon=True).start()
            port = listener.getsockname()[1]
            with self.assertRaisesRegex(module.Failed, f"--peer 127.0.0.1:{port}: "):
                module.Transfer("127.0.0.1", port, 1 << 20)

    def test_wrong_words(self):
        self.assertIn("--peer: 'ssh' is no port", self.measure("--without-torch", "--peer", "127.0.0.1:ssh", code=2))
        self.assertIn("--name: 'a/b'", self.measure("--name", "a/b", code=2))
        self.assertIn("--threads: must be at least 1", self.measure("--threads", "0", code=2))
        self.assertIn("cannot be run", self.measure("--without-torch", "--convoy", str(self.out / "none"), code=2))
        self.assertIn("--base: is of a GPU", self.measure("--without-torch", "--base", "k80", code=2))

    @unittest.skipUnless(numpy and script().cpu_generation(), "NumPy is not installed, or nothing tells what this CPU can do")
    def test_slow_products_do_not_describe_a_machine(self):
        self.assertIn("its BLAS is slow", self.measure_with_numpy(slow_flops=math.inf))
        self.assertEqual([path for path in self.out.rglob("*") if path.is_file()], [])

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_what_cannot_be_written(self):
        self.out.joinpath("file").write_text("")
        self.assertRegex(self.measure("--without-torch", "--out", str(self.out / "file"), code=2), "^measure: .*Not a directory")

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_with_torch(self):
        self.measure("--batch", "2", "--pixels", "64")
        rows = self.check_device(2)
        self.assertEqual({row["model"] for row in rows if row["model"]}, {"resnet18@64", "resnet34@64"})

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_networks(self):
        module = script()
        with self.assertRaisesRegex(module.Failed, "'resnet19' is not one of alexnet, "):
            module.network(torch, "resnet19")
        for name in ("alexnet", "vgg11_bn", "resnet18", "resnet34", "resnet50"):
            shown = json.loads(self.program("show", "models", name, "--json"))
            net = module.network(torch, name)
            self.assertEqual(sum(weight.numel() for weight in net.parameters()), shown["parameters"], name)
            net.eval()
            with torch.no_grad():
                self.assertEqual(tuple(net(torch.zeros(1, 3, 64, 64)).shape), (1, 1000), name)


if __name__ == "__main__":
    unittest.main()
