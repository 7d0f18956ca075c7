# SPDX-License-Identifier: MIT
"""Which mutants does the proof alone refuse? This is scripts/mutants --proof; docs/proof.md has the count.

Every mutant is met by experiments: those of tests/golden/drawn and of configs/, also with other settings (SETTINGS) where the
program takes them. Of each experiment that a mutant changes something for, `convoy check --prove` is asked. A mutant that no
experiment refutes is compared with the program as it was written, by what `convoy run --tasks` writes of the same experiments: a
plan that is the same, or that has other times, names or routes only, is none that a proof of meaning could refuse. Of those that
differ in more, some make another choice that is as right (another algorithm, placement or border of a bucket): these are told with the
first difference, to be looked at."""

import collections
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading

# Each of them alone, over each experiment.
SETTINGS = ["strategy.micro_batches=3", "strategy.zero=1", "strategy.zero=2", "strategy.zero=3", "strategy.compression={kind: powersgd, rank: 2}", "strategy.compression={kind: sign}", "strategy.compression=fp16",
            "strategy.replicas=2", "strategy.recompute=always", "strategy.sync=gossip",
            "strategy.weights=double_buffered", "strategy.overlap=true", "strategy.bucket=20kB",
            "strategy.local_aggregation=true", "strategy.algorithm=tree", "strategy.algorithm=halving_doubling",
            "strategy.algorithm=hierarchical", "strategy.scheme=b", "strategy.fidelity=chunk"]
# Keys of convoy.tasks/1 that say how long something takes, what it is called, which way it goes, or what the plan says of it.
PRICE = {"time_s", "issue_s", "seconds", "overhead_s", "latency_s", "slowdown", "bandwidth_Bps", "begin_s", "processors_taken", "speed",
         "interval_s"}
NAMES = {"name", "images"}
ROUTES = {"links", "connection", "connections", "in_order"}
MEMORY = {"allocates", "frees", "resident_bytes"}
DESCRIBED = {"does", "carries", "graph"}
endless = "it does not end"
most_ms, most_limit_s = 300, 10  # CPU time of an experiment without any change, and with one
most_memory_bytes, most_tasks_bytes = 4 << 30, 8 << 20


@dataclasses.dataclass
class Experiment:
    file: str
    settings: tuple = ()
    meets: set = dataclasses.field(default_factory=set)
    line: str = ""

    def __str__(self):
        return " ".join([self.file, *(f"--set '{setting}'" for setting in self.settings)])

    def options(self):
        return [option for setting in self.settings for option in ("--set", setting)]


def limited():
    """A change may make a loop endless that takes memory."""
    resource.setrlimit(resource.RLIMIT_AS, (most_memory_bytes, most_memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (most_limit_s, most_limit_s))


def convoy(tree, arguments, **environment):
    """Exit code, first line of output, and CPU seconds; None and the reason where it did not end by itself. A busy machine changes nothing."""
    process = subprocess.Popen([str(tree.path / tree.build / "convoy"), *arguments], cwd=tree.path, env={**os.environ, **environment}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limited)
    waits = threading.Timer(20 * most_limit_s, process.kill)  # it may also wait for ever
    waits.start()
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    waits.cancel()
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = usage.ru_utime + usage.ru_stime
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None, endless, cpu_s
    lines = [line for line in text.splitlines() if "warning:" not in line] or [f"it ends with {process.returncode}"]
    return process.returncode, lines[0], cpu_s


def prove(tree, experiment, **environment):
    """What a proof comes to, the line, and CPU seconds: proved, refuted, not proved, or stopped (by a check of its own, before the proof)."""
    code, line, cpu_s = convoy(tree, ["check", experiment.file, *experiment.options(), "--prove"], **environment)
    found = re.match(r"(?:point \d+[^:]*: )?(proved|refuted|not proved)\b", line)
    return (found.group(1) if found and code in (0, 1, 2) else "stopped"), line, cpu_s


def points(path):
    """Settings that leave one point of a sweep each, so that every value of every key has its turn."""
    import yaml
    document = yaml.safe_load(path.read_text())
    if not isinstance(document, dict) or {"plan", "jobs", "study"} & set(document):
        return []
    sweep = {key: values for key, values in (document.get("sweep") or {}).items() if isinstance(values, list)}
    turns = max((len(values) for values in sweep.values()), default=1)
    return [tuple(f"sweep.{key}=[{json.dumps(values[turn % len(values)])}]" for key, values in sweep.items()) for turn in range(turns)]


def experiments(tree):
    """All that are proved without any change and within a time, with what they meet."""
    files = sorted((tree.path / "tests/golden/drawn").glob("experiment-*.yaml")) + sorted((tree.path / "configs").rglob("*.yaml"))
    asked = []
    for path in files:
        for settings in points(path):
            asked.append(Experiment(str(path.relative_to(tree.path)), settings))
            if not settings:
                asked += [Experiment(asked[-1].file, (setting,)) for setting in SETTINGS]

    def look(experiment):
        with tempfile.NamedTemporaryFile("r") as met:
            outcome, experiment.line, cpu_s = prove(tree, experiment, MUTANTS_MET=met.name)
            if outcome != "proved" or cpu_s > most_ms / 1000:
                return None
            experiment.meets = {int(line) for line in met.read().split()}
            return experiment

    with concurrent.futures.ThreadPoolExecutor(tree.jobs) as pool:
        return [experiment for experiment in pool.map(look, asked) if experiment]


# ---- what a plan means

def tasks_text(tree, experiment, **environment):
    """What was replayed, as it is written; None: the run writes none, or too much; or why the program stopped before."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as out:
        code, line, _ = convoy(tree, ["run", experiment.file, *experiment.options(), "--json", "--tasks", out.name], **environment)
        if code not in (0, 2) or (code == 2 and "tasks of this run cannot be written" not in line):
            return json.dumps({"stopped": line})
        text = out.read(most_tasks_bytes + 1)
        return text if 0 < len(text) <= most_tasks_bytes else None


@functools.lru_cache(maxsize=None)
def digest_unchanged(tree, file, settings):
    """Of what is written without any change."""
    text = tasks_text(tree, Experiment(file, settings))
    return text and hashlib.sha256(text.encode()).digest()


def tasks_of(text):
    """Without the results."""
    return text and {key: value for key, value in json.loads(text).items() if key != "result"}


def differences(old, new, path=""):
    """What two replays differ in: kind, and the first place of that kind."""
    key = re.sub(r"\[\d+\]$", "", path).rsplit(".", 1)[-1]
    if old == new:
        return {}
    for kind, keys in (("price", PRICE), ("names", NAMES), ("routes", ROUTES), ("memory", MEMORY), ("description", DESCRIBED)):
        if key in keys:
            return {kind: path}
    found = {}
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            for kind, place in differences(old.get(name), new.get(name), f"{path}.{name}").items():
                found.setdefault(kind, place)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new)):
            for kind, place in differences(a, b, f"{path}[{i}]").items():
                found.setdefault(kind, place)
    else:
        found = {"meaning": f"{path}: {str(old)[:60]} became {str(new)[:60]}"}
    return found


def verdict(tree, mutant, meeting):
    """What becomes of a mutant (its kind), and where."""
    stopped = ""
    weaker = ""
    for experiment in meeting:
        outcome, line, _ = prove(tree, experiment, MUTANT=str(mutant))
        if outcome == "refuted":
            return "refuted", f"{experiment}: {line}"
        if outcome == "not proved":
            weaker = weaker or f"{experiment}: {line}"
        if outcome == "stopped":
            stopped = stopped or f"{experiment}: {line}"
            if line == endless:
                break
    if weaker:
        return "not proved", weaker
    if stopped:
        return "stopped", stopped
    found = {}
    for experiment in meeting:
        digest = digest_unchanged(tree, experiment.file, experiment.settings)
        if digest is None:
            continue
        text = tasks_text(tree, experiment, MUTANT=str(mutant))
        if text and not text.startswith('{"stopped"') and hashlib.sha256(text.encode()).digest() == digest:
            continue
        old, new = tasks_of(tasks_text(tree, experiment)), tasks_of(text)
        if "stopped" in old or new is None or "stopped" in new:
            found.setdefault("no tasks", str(experiment))
            continue
        for kind, place in differences(old, new).items():
            found.setdefault(kind, f"{experiment}: {place}")
        if "meaning" in found:
            return "let through", found["meaning"]
    if not found:
        return "same plan", ""
    return f"other {' and '.join(sorted(found))}", "; ".join(f"{kind}: {place}" for kind, place in found.items())


def tell(tree, changes, most_each):
    """Prints what becomes of each mutant; returns the share of those that change what a plan means and that the proof notices."""
    met_by = experiments(tree)
    print(f"{len(met_by)} experiments are proved without any change", flush=True)
    count = collections.Counter()

    def try_one(number):
        meeting = [experiment for experiment in met_by if number in experiment.meets]
        step = max(1, len(meeting) // most_each)  # of different files
        return verdict(tree, number, meeting[::step][:most_each]) if meeting else ("not met", "")

    with concurrent.futures.ThreadPoolExecutor(tree.jobs) as pool:
        for (number, change), (kind, where) in zip(changes.items(), pool.map(try_one, changes)):
            count[kind] += 1
            print(f"{number:3} {change}\n      {kind}{': ' if where else ''}{where}", flush=True)
    for kind, of_it in count.most_common():
        print(f"{of_it:4} {kind}")
    noticed = count["refuted"] + count["not proved"]
    told = noticed + count["let through"]
    print(f"{noticed} of {told} mutants that change what a plan means are refused by the proof")
    return noticed / told if told else 0
