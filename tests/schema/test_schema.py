# SPDX-License-Identifier: MIT
"""What the program reads against the JSON Schema that it prints: the two are judged by each other.

CONVOY_SCHEMA_SEED and CONVOY_SCHEMA_TRIALS repeat or lengthen the trials with broken files.
"""
import copy
import functools
import json
import os
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[2]
CONVOY = os.environ["CONVOY"]
SEED = int(os.environ.get("CONVOY_SCHEMA_SEED", "20"))
TRIALS = int(os.environ.get("CONVOY_SCHEMA_TRIALS", "140"))


class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors have it: 1e6 is a number, on and yes are texts."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [("null", r"~|null|", ["~", "n", ""]), ("bool", r"true|false", list("tf")),
                            ("int", r"[-+]?[0-9]+", list("-+0123456789")),
                            ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
                             list("-+.0123456789"))]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))


def load(path):
    return yaml.load(Path(path).read_text(), Loader)


@functools.cache
def schema_text(name):
    return subprocess.run([CONVOY, "show", "schema", name], check=True, capture_output=True, text=True).stdout


@functools.cache
def validator(name):
    return jsonschema.Draft7Validator(json.loads(schema_text(name)))


def complaints(name, document):
    """What the schema says against a document; nothing where it is accepted."""
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validator(name).iter_errors(document)]


def document_kind(document):
    return "plan" if "plan" in document else "experiment"


def experiments():
    """Every experiment and plan that is shipped."""
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        document = load(path)
        if "experiment" in document:
            yield path, document


# How the program says that a value's form is wrong. Other refusals are of what values mean together.
OF_FORM = re.compile(r"unknown key|key '[^']*' is missing(?!: say)|expected |unknown value|lacks its unit|does not fit here|"
                     r"' is not a |is out of range: (between|at least)|must be more than zero|is negative|"
                     r"unknown layer kind")


def program_says(document, folder):
    """The program's refusal of a document; "" where it accepts it."""
    file = Path(folder) / "tried.yaml"
    file.write_text(json.dumps(document))  # JSON is YAML
    done = subprocess.run([CONVOY, "check", str(file)], capture_output=True, text=True, timeout=120)
    if done.returncode in (0, 3):
        return ""
    assert done.returncode in (1, 2), (done.returncode, done.stderr)
    return done.stderr or "refused"


WRITTEN = ["results", "plan-answer", "comparison", "validation", "doctor", "diagnosis", "study", "reproduction"]


class Schemas(unittest.TestCase):
    def test_every_schema_is_one(self):
        names = subprocess.run([CONVOY, "show", "schema", "--json"], check=True, capture_output=True, text=True)
        self.assertEqual(json.loads(names.stdout), ["experiment", "plan", "model", "cluster", "device", "server", "schedule", *WRITTEN])
        for name in json.loads(names.stdout):
            jsonschema.Draft7Validator.check_schema(json.loads(schema_text(name)))

    def test_properties_have_the_descriptions_and_defaults_of_the_key_tables(self):
        definitions = json.loads(schema_text("experiment"))["definitions"]
        training = definitions["training"]["properties"]
        self.assertEqual(training["optimizer"]["default"], "sgd")
        self.assertIn("without it: the framework's", training["layout"]["description"])
        shown = json.loads(subprocess.run([CONVOY, "show", "keys", "training", "--json"], check=True,
                                          capture_output=True, text=True).stdout)
        self.assertEqual([key["name"] for key in shown["keys"]], list(training))
        for key in shown["keys"]:
            self.assertTrue(training[key["name"]]["description"].startswith(key["meaning"]))


class Accepted(unittest.TestCase):
    def test_every_experiment_and_plan(self):
        seen = 0
        for path, document in experiments():
            with self.subTest(path=str(path.relative_to(ROOT))):
                self.assertEqual(complaints(document_kind(document), document), [])
                seen += 1
        self.assertGreaterEqual(seen, 40)

    def test_every_entry_of_the_catalogue_and_every_model_of_the_zoo(self):
        for folder, name in [("topologies/catalog/devices", "device"), ("topologies/catalog/servers", "server"),
                             ("topologies/catalog/clusters", "cluster"), ("models/zoo", "model")]:
            paths = sorted((ROOT / folder).glob("*.yaml"))
            for path in paths:
                document = load(path)
                if name == "model" and "layers" not in document:
                    continue  # blocks that models share
                with self.subTest(path=str(path.relative_to(ROOT))):
                    self.assertEqual(complaints(name, document), [])

    def test_every_schedule(self):
        for path in sorted((ROOT / "configs" / "collectives").glob("*.yaml")):
            with self.subTest(path.name):
                document = load(path)
                self.assertEqual(complaints("schedule", document), [])
                for half in ("rounds", "reduce_scatter", "all_gather"):
                    for rule in document.get(half, []):
                        broken = copy.deepcopy(document)
                        broken[half][document[half].index(rule)]["sned"] = 1
                        self.assertNotEqual(complaints("schedule", broken), [])

    def test_examples_of_the_documentation(self):
        for page in sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]:
            for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S):
                try:
                    document = yaml.load(text, Loader)
                except yaml.YAMLError:
                    continue
                if not isinstance(document, dict) or not {"experiment", "model", "training"} <= set(document):
                    continue
                with self.subTest(page=page.name, begins=text[:60]):
                    self.assertEqual(complaints(document_kind(document), document), [])


def paths_of(value, path=()):
    """Where every value of a document is."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_of(inner, path + (key,))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def unknown_key(rng, document):
    path = rng.choice([p for p in paths_of(document) if isinstance(at(document, p), dict)])
    at(document, path)[rng.choice(["zzz_key", "bandwith", "nme"])] = rng.choice([1, "x", None])
    return "unknown key", path


def misspelt_key(rng, document):
    path = rng.choice([p for p in paths_of(document) if p and isinstance(p[-1], str)])
    mapping = at(document, path[:-1])
    mapping[path[-1][:-1] + "qq"] = mapping.pop(path[-1])
    return "misspelt key", path


def wrong_type(rng, document):
    path = rng.choice([p for p in paths_of(document) if p])
    at(document, path[:-1])[path[-1]] = rng.choice([[], {}, [[]], {"zzz": {}}, "some text", True, 7, -1, 0.3])
    return "wrong type", path


QUANTITY = re.compile(r"^[0-9.]+ ?([A-Za-z/%]+)$")


def wrong_unit(rng, document):
    quantities = [p for p in paths_of(document) if isinstance(at(document, p), str) and QUANTITY.match(at(document, p))]
    if not quantities:
        return wrong_type(rng, document)
    path = rng.choice(quantities)
    unit = rng.choice(["kg", "", "ms", "GB", "Gbps", "TFLOPS", "W", "USD/h", "%", "parsec"])
    at(document, path[:-1])[path[-1]] = re.sub(r"[A-Za-z/%]+$", unit, at(document, path))
    return "unit", path


def unknown_name(rng, document):
    words = [p for p in paths_of(document) if p and isinstance(at(document, p), str) and at(document, p).isidentifier()]
    if not words:
        return wrong_type(rng, document)
    path = rng.choice(words)
    word = at(document, path)
    at(document, path[:-1])[path[-1]] = rng.choice(["zzzz", word + "q", word.upper(), word.replace("_", "-"), word])
    return "name", path


def missing_key(rng, document):
    path = rng.choice([p for p in paths_of(document) if p and isinstance(p[-1], str)])
    del at(document, path[:-1])[path[-1]]
    return "missing", path


def none_for_a_value(rng, document):
    path = rng.choice([p for p in paths_of(document) if p and isinstance(p[-1], str)])
    at(document, path[:-1])[path[-1]] = None
    return "nothing", path


GOOD = """
- experiment: e
  model: lenet5
  training: {batch_per_device: 8, optimizer: adam, precision: fp16, dataset: {samples: 1000}, recompute: blocks,
             anchor: {images_per_s: 100, batch: 8}, processes: per_host, input: {kind: jpeg, library: pil, cached: true}}
  cluster: {server: {base: gcp-n1-standard-8-k80, devices: [{device: v100-pcie-16gb, count: 2}], name: mine,
                     interconnect: {kind: pcie, bandwidth: 12GB/s, latency: 2us, switches: [[0, 1]]}}, nodes: 2,
            fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us, protocol: tcp, streams: 2}}
  strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 25MiB, overlap: true,
             compression: {kind: top_k, ratio: 0.01}}
- experiment: e
  model: {name: tiny, input: [3, 32, 32], layers: [
    {name: c, kind: conv2d, out_channels: 8, kernel: 3, stride: [1, 1], padding: 1}, {name: r, kind: relu},
    {name: p, kind: max_pool, kernel: 2}, {name: f, kind: flatten}, {name: l, kind: linear, out_features: 10, bias: true}]}
  training: {global_batch: 64, framework: tensorflow, execution: graph}
  cluster: {devices: {ideal: {peak: {fp32: 1TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0},
                      v100-pcie-16gb: {memory: 32GiB}},
            servers: {box: {devices: [{device: ideal, count: 1}], price: 1.5USD/h, host: {power: 100W}}},
            nodes: [{name: a, count: 2, server: box, speed: 0.5}, {name: b, count: 2, server: box}],
            fabric: {kind: fat_tree, bandwidth: 10Gbps, latency: 5us, hosts_per_leaf: 2, oversubscription: 2}}
  strategy: {kind: pipeline, stages: 4, micro_batches: 4, schedule: gpipe, partition: balanced}
  variability: {runs: 3, jitter: 5%, stops: [{host: a0, at: 1ms, for: 2ms, chance: 50%}]}
- experiment: e
  model: {name: wide_resnet50_2, input: [3, 64, 64]}
  training: {optimizer: momentum}
  cluster: {server: box, servers: {box: {devices: [{device: p, count: 2}], interconnect: {kind: nvlink, bandwidth: 20GB/s,
            latency: 1us, pairs: [[0, 1]], pcie: {bandwidth: 12GB/s, latency: 1us}}}}, devices: {p: {base: p100-pcie-16gb, memory: 12GiB}},
            fabric: {kind: torus, bandwidth: 5GB/s, latency: 1us, dims: [2, 2]}}
  strategy: {kind: data_parallel, sync: parameter_server, servers: 1, placement: colocated, mode: sync, pull: after_all}
  sweep: {cluster.nodes: [1, 2], training.batch_per_device: [4, 8], strategy.sharding: [tensor, even]}
- experiment: e
  model: lenet5
  training: {batch_per_device: 16}
  cluster: {server: gcp-n1-standard-8-k80, nodes: 4}
  strategy: {kind: hybrid, conv: {height: 2, width: 2}, fc: filter, groups: [{kind: conv, layout: batch}]}
- experiment: e
  model: lenet5
  training: {dataset: {samples: 60000}}
  goal: {epochs: 3, checkpoint: {time: 5s, every: 1}}
  plan: {objective: time, constraints: {deadline: 24h, budget: 500USD, max_devices: 16}, servers: ['gcp-n1-*'],
         nodes: {max: 2}, batch_per_device: [32], precision: [fp32], market: [on_demand], failures: {repair: 10min},
         strategies: [{kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}]}
"""
GOOD_PLANS = """
- experiment: e
  model: lenet5
  training: {dataset: {samples: 60000}}
  goal: {epochs: 3}
  plan: {servers: [{name: mine, base: gcp-n1-standard-8-k80}, gcp-n1-standard-8-k80,
                   {name: box, devices: [{device: k80, count: 1}], interconnect: {kind: none}, price: 1USD/h}],
         electricity: 0.15USD/kWh, batch_per_device: [32],
         scenarios: [{name: longer, set: {goal.epochs: 6}}, {name: soon, set: {plan.constraints.deadline: 24h}}]}
- experiment: e
  model: lenet5
  training: {batch_per_device: 16}
  cluster: {server: gcp-n1-standard-8-k80, nodes: 2, fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us}}
  strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}
  spread: {cluster.fabric.bandwidth: 20%, cluster.fabric.latency: 50%}
"""


def may_be_swept(document, path, said):
    """A sweep may say what is missing in a part of the experiment of which it sets something."""
    swept = {axis.split(".")[0] for axis in document.get("sweep") or {}}
    return path and path[0] in swept and re.search(r"is missing|found nothing", said)


def set_by_scenario(path):
    """A scenario's values are of any form; the reader of what they set judges them."""
    return path[:2] == ("plan", "scenarios") and "set" in path


class Broken(unittest.TestCase):
    def test_good_ones_are_accepted_by_both(self):
        with tempfile.TemporaryDirectory() as folder:
            for document in yaml.load(GOOD, Loader) + yaml.load(GOOD_PLANS, Loader):
                self.assertEqual(program_says(document, folder), "")
                self.assertEqual(complaints(document_kind(document), document), [])

    def test_what_the_program_refuses_for_its_form_the_schema_refuses_and_what_it_accepts_the_schema_accepts(self):
        self.judge(yaml.load(GOOD, Loader), TRIALS)

    def test_the_same_of_machines_of_ones_own_electricity_scenarios_and_spreads(self):
        self.judge(yaml.load(GOOD_PLANS, Loader), TRIALS // 2)

    def judge(self, good, trials):
        rng = random.Random(SEED)
        breaks = [unknown_key, misspelt_key, wrong_type, wrong_unit, unknown_name, missing_key, none_for_a_value]
        of_form = accepted = 0
        with tempfile.TemporaryDirectory() as folder:
            for trial in range(trials):
                document = copy.deepcopy(good[trial % len(good)])
                kind = document_kind(document)
                how, path = breaks[trial // len(good) % len(breaks)](rng, document)
                if document_kind(document) != kind:
                    continue
                said = program_says(document, folder)
                against = complaints(kind, document)
                case = f"seed {SEED}, trial {trial}, {how} at {'.'.join(map(str, path))}: program: {said!r}, schema: {against}"
                with self.subTest(case):
                    if said == "":
                        accepted += 1
                        self.assertEqual(against, [], case)
                    elif OF_FORM.search(said) and not may_be_swept(document, path, said) and not set_by_scenario(path):
                        of_form += 1
                        self.assertNotEqual(against, [], case)
        print(f"seed {SEED}: of {trials} broken files the program refused {of_form} for their form and accepted "
              f"{accepted}")
        self.assertGreaterEqual(of_form, trials / 2)


LAB = {
    "experiment": "e", "model": "lenet5", "training": {"batch_per_device": 16, "dataset": {"samples": 1000}},
    "cluster": {"server": "gcp-n1-standard-8-k80", "nodes": 2,
                "fabric": {"kind": "switch", "bandwidth": "10Gbps", "latency": "25us"}},
    "strategy": {"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring"}}
PIPELINE = {"kind": "pipeline", "stages": 2, "micro_batches": 4, "schedule": "1f1b", "partition": "balanced"}
ELASTIC = {"kind": "elastic", "inner": {"kind": "data_parallel", "sync": "all_reduce"},
           "schedule": [{"at_step": 0, "devices": 4}, {"at_step": 3, "devices": 2}], "reconfigure": "restart"}
AUTO = {"kind": "auto", "candidates": [{"kind": "data_parallel", "sync": "all_reduce", "algorithm": ["ring", "tree"]}]}
# What a device of a trace needs: the model, the batch and the kind of device that it is of.
OF_TRACE = {"experiment": "t", "model": {"name": "resnet18", "input": [3, 32, 32]}, "training": {"batch_per_device": 8},
            "strategy": {"kind": "single"},
            "cluster": {"nodes": [{"name": "n", "count": 1, "server": "box"}],
                        "servers": {"box": {"devices": [{"device": "mine", "count": 1}], "interconnect": {"kind": "none"}}},
                        "devices": {"mine": {"base": "epyc-7763", "sms": 1}}}}


class Written(unittest.TestCase):
    """What the program writes is what the schemas of its documents say, and nothing else."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def written(self, name, *arguments, codes=(0,)):
        done = subprocess.run([CONVOY, *arguments], capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertIn(done.returncode, codes, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(complaints(name, document), [])
        return document

    def experiment(self, document, name="e.yaml", **changes):
        (self.folder / name).write_text(json.dumps({**document, **changes}))
        return name

    def test_results_of_all_kinds(self):
        self.written("results", "run", self.experiment(LAB), "--json", "--explain")
        self.written("results", "run", self.experiment(LAB), "--json", "--full", "--set",
                     "sweep={training.batch_per_device: [8, 100000000]}", codes=(0, 2, 3))
        self.written("results", "run", self.experiment(LAB, strategy=PIPELINE), "--json")
        self.written("results", "run", self.experiment(LAB, strategy=AUTO), "--json")
        self.written("results", "run", self.experiment(
            LAB, strategy=ELASTIC, training={"global_batch": 32, "dataset": {"samples": 1000}},
            cluster={**LAB["cluster"], "nodes": 4}), "--json", codes=(0, 1, 2))
        self.written("results", "run", self.experiment(
            LAB, strategy={"kind": "data_parallel", "sync": "parameter_server", "servers": 1, "mode": "async"}), "--json")
        self.written("results", "run", self.experiment(LAB, variability={"runs": 3, "jitter": "5%"}), "--json")
        digits = {"data": {"kind": "drawn", "train": 32, "held_out": 8}, "steps": 2}
        self.written("results", "run", self.experiment(LAB, numerics=digits), "--json")

    def test_plans(self):
        plan = load(ROOT / "configs" / "plan-imagenet.yaml")
        plan["plan"].update(servers=["aws-p3.*"], nodes={"max": 2}, precision=["fp16"])
        answer = self.written("plan-answer", "plan", self.experiment(plan), "--json")
        self.assertIsNotNone(answer["choice"])
        plan["plan"]["constraints"] = {"deadline": "1s"}
        self.assertIsNone(self.written("plan-answer", "plan", self.experiment(plan), "--json", codes=(1,))["choice"])

    def test_comparisons(self):
        for name, batch in (("a", 8), ("b", 16)):
            subprocess.run([CONVOY, "run", self.experiment(LAB), "--set", f"training.batch_per_device={batch}", "--set",
                            f"sweep.cluster.nodes=[1, {batch}]", "--out", name], check=True, capture_output=True, cwd=self.folder)
        compared = self.written("comparison", "compare", "a", "b", "--json")
        self.assertEqual([len(compared[part]) for part in ("only_a", "only_b", "changed")], [1, 1, 1])

    def test_validations_doctors_and_diagnoses(self):
        (self.folder / "rows.csv").write_text("device,model,batch_per_device,images_per_s,note\nk80,resnet18,16,90,a\n"
                                              "t4,alexnet,32,700,b\n")
        self.written("validation", "validate", "rows.csv", "--json")
        self.written("doctor", "doctor", self.experiment(LAB), "--json")
        trace = ROOT / "tests" / "calibration" / "traces" / "resnet18_batch8_32x32_cpu.json.gz"
        self.written("diagnosis", "diagnose", str(trace), self.experiment(OF_TRACE), "--json")

    def test_studies(self):
        study = {"inputs": {"rate": {"sets": "cluster.fabric.bandwidth", "range": ["1Gbps", "10Gbps"], "because": "b"},
                            "batch": {"sets": "training.batch_per_device", "values": [8, 16], "because": "b"}},
                 "points": 16, "variants": {"ring": {}},
                 "claims": [{"claim": "c", "value": "ring.throughput_images_per_s", "at_least": 100}]}
        (self.folder / "study.yaml").write_text(yaml.safe_dump({**LAB, "study": study}))  # ranges are not in quotes
        made = self.written("study", "study", "study.yaml", "--json", codes=(0, 1))
        self.assertEqual(len(made["sample"]), 16)

    def test_reproductions(self):
        made = self.written("reproduction", "reproduce", "pipelines", "dawnbench", "--json", codes=(0, 1))
        self.assertEqual([each["name"] for each in made["reproductions"]], ["pipelines", "dawnbench"])

    def test_a_name_too_many_and_one_too_few_are_refused(self):
        results = self.written("results", "run", self.experiment(LAB), "--json")
        rng = random.Random(SEED)
        for trial in range(60):
            broken = copy.deepcopy(results)
            path = rng.choice([p for p in paths_of(broken["runs"][0]) if isinstance(at(broken["runs"][0], p), dict)
                               and p[:1] not in (("point",), ("interval",))])
            place = at(broken["runs"][0], path)
            gone = rng.choice(sorted(place))
            if trial % 2 == 0:
                place["zzz"] = 1
            elif gone in ("interval", "reason"):
                continue  # a part that only some runs have
            else:
                del place[gone]
            self.assertNotEqual(complaints("results", broken), [], f"seed {SEED}, trial {trial}: {path} {gone}")


class Documentation(unittest.TestCase):
    def test_the_documented_command_writes_the_schema_that_the_modeline_names(self):
        page = (ROOT / "docs" / "experiment.md").read_text()
        command, file = re.search(r"^convoy show schema experiment > (\S+)$", page, re.M).group(0, 1)
        self.assertIn(f"# yaml-language-server: $schema={file}\n", page)
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, PATH=f"{Path(CONVOY).parent}:{os.environ['PATH']}")
            subprocess.run(["bash", "-c", command], check=True, cwd=folder, env=environment)
            schema = json.loads((Path(folder) / file).read_text())
        jsonschema.Draft7Validator(schema).validate(load(ROOT / "configs" / "quickstart.yaml"))


if __name__ == "__main__":
    unittest.main()
