# SPDX-License-Identifier: MIT
"""Draws experiments and plans by what `convoy show schema` says may be in them.

A walk begins with a small file (tests/golden/bases.yaml) and changes it at random, key by key: one is added, gets another value or
goes, an item of a list comes twice. What the program refuses is taken back. What has come of it is kept where it has a key or a kind
of value that few of the others have (for strategies: that few of the same kind of strategy have)."""

import collections
import copy
import json
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

STEPS, CHANGES = 40, 12  # of a walk at most: changes tried, and changes that stay
WANTED = 2               # so many files are to have each key and kind of value
MOST_CPU_S, MOST_MEMORY = 1, 4 << 30
# Of each unit values from small to large: definitions in the schema are named for units.
VALUES = {
    "time": ["3us", "0.4ms", "20ms", "1.5s", "4min", "3h"], "size": ["1000B", "96kB", "3MiB", "700MB", "6GiB"],
    "bandwidth": ["0.3Gbps", "7Gbps", "90Gbps", "11GB/s"], "rate": ["90GFLOPS", "3TFLOPS", "70TFLOPS"], "clock": ["900MHz", "1.7GHz"],
    "power": ["15W", "210W"], "price": ["0.2USD/h", "7USD/h"], "fraction": [0.03, "12%", 0.4, 0.8],
}
# Other kinds of files, what takes minutes, and what names numbers of the file.
LEFT_OUT = {"study", "jobs", "sweep", "plan", "numerics", "spread"}
# Other spellings of a value, and variables of a study: tests of their own have these.
IN_ANY_CASE = "^([^A-Za-z0-9]*"
SPELLINGS = ({"type": ["string", "number", "boolean"]}, {"type": "string", "pattern": "^\\$"})


class Drawer:
    """Draws values that a JSON Schema of the program allows."""

    def __init__(self, schema, dice):
        import jsonschema  # only here: checking needs no schema
        self.schema, self.dice = schema, dice
        resolver = jsonschema.RefResolver.from_schema(schema)
        self.valid = lambda part, value: jsonschema.Draft7Validator(part, resolver=resolver).is_valid(value)

    def named(self, part):
        name = part["$ref"].rsplit("/", 1)[1]
        return name, self.schema["definitions"][name]

    def branch(self, part, value):
        """What follows from a part's `if` for this value."""
        return part.get("then" if self.valid(part["if"], value) else "else", {}) if "if" in part else {}

    def alternatives(self, part, name=""):
        """What a value may be, with the name of its definition: neither null nor another spelling where there is something else."""
        if "$ref" in part:
            name, part = self.named(part)
            return self.alternatives(part, name)
        if "anyOf" not in part or "properties" in part:
            return [(name, part)]
        found = [option for each in part["anyOf"] for option in self.alternatives(each, name) if option[1].get("type") != "null"]
        return [option for option in found if option[1] not in SPELLINGS and not option[1].get("pattern", "").startswith(IN_ANY_CASE)] or found

    def keys(self, part, value):
        """The keys that an object may have beside those it has, each with the part of the schema for its value."""
        found = {}

        def add(more):
            found.update({key: each for key, each in more.items() if key not in found or each.get("anyOf", [{}])[0] != {}})

        if "$ref" in part:
            add(self.keys(self.named(part)[1], value))
        for inner in (*part.get("allOf", []), self.branch(part, value)):
            add(self.keys(inner, value) if inner else {})
        add(part.get("properties", {}))
        for _, option in self.alternatives(part) if "anyOf" in part else []:
            more = self.keys(option, value) if option is not part else {}
            if more and set(value) <= set(more) | {"name"}:
                add(more)
                break
        return found

    def required(self, part, value):
        inner = [self.named(part)[1]] if "$ref" in part else []
        inner += [*part.get("allOf", []), self.branch(part, value)]
        return part.get("required", []) + [key for each in inner if each for key in self.required(each, value)]

    def value(self, part, names, depth=0):
        """@param names of things in the file, one of which a text may be"""
        options = self.alternatives(part)
        if depth > 4:
            options = [option for option in options if option[1].get("type") not in ("object", "array")] or options
        name, one = self.dice.choice(options)
        kind = one.get("type")
        if "enum" in one:
            return self.dice.choice(one["enum"])
        if kind == "integer":
            low, high = one.get("minimum", 0), one.get("maximum", 1000)
            default = part.get("default")
            some = [low, default if isinstance(default, int) else 2, 1, 2, 3, 4, 7, 16] + ([30_000] * 4 if high >= 1e12 else [])
            return self.dice.choice([each for each in some if low <= each <= high] or [low])
        if kind == "number":
            low, high = one.get("minimum", one.get("exclusiveMinimum", 0)), one.get("maximum", 10)
            some = [0.3, 2, 20, 500] if high - low > 100 else [low + (high - low) * part for part in (0.03, 0.2, 0.5, 0.9)]
            return round(self.dice.choice([each for each in some if low <= each <= high]), 6)
        if kind == "boolean":
            return self.dice.choice([True, False])
        if kind == "array":
            items = one.get("items", {})
            if isinstance(items, list):
                return [self.value(each, names, depth + 1) for each in items]
            count = min(max(one.get("minItems", 1), self.dice.choice([1, 1, 2, 3])), one.get("maxItems", 3))
            return [self.value(items, names, depth + 1) for _ in range(count)]
        if kind == "object" or "allOf" in one or "if" in one:
            return self.object(one, names, depth)
        unit = next((unit for unit in VALUES if name.startswith(unit)), None)
        return self.dice.choice(VALUES[unit] if unit else names)

    def object(self, part, names, depth):
        value = {}
        while missing := sorted(set(self.required(part, value)) - set(value)):
            known = self.keys(part, value)
            value.update({key: self.value(known.get(key, {}), names, depth + 1) for key in missing})
        known = self.keys(part, value)
        further = sorted(set(known) - set(value))
        for key in self.dice.sample(further, min(len(further), self.dice.choice([0, 1, 1, 2]))):
            value[key] = self.value(known[key], names, depth + 1)
        if not known and part.get("additionalProperties"):
            value[self.dice.choice(names)] = self.value(part["additionalProperties"], names, depth + 1)
        return value

    def objects(self, part, value, path=()):
        """All objects in a value: path, and the keys that each may have."""
        found = []
        if isinstance(value, dict):
            known = self.keys(part, value)
            found.append((path, known))
            others = next((each["additionalProperties"] for _, each in self.alternatives(part) if each.get("additionalProperties")), None)
            for key, inner in value.items():
                if known.get(key, others):
                    found += self.objects(known.get(key, others), inner, (*path, key))
        elif isinstance(value, list):
            items = next((each["items"] for _, each in self.alternatives(part) if isinstance(each.get("items"), dict)), None)
            for i, inner in enumerate(value) if items else ():
                found += self.objects(items, inner, (*path, i))
        return found

    def changed(self, document):
        """A copy of a document with one change; None where there was nothing to change."""
        new = copy.deepcopy(document)
        objects = self.objects(self.schema["allOf"][0], new)
        # A section of the file first, so that a long one does not crowd out the others.
        section = self.dice.choice(sorted({path[0] for path, _ in objects if path}) + [None, None])
        path, known = self.dice.choice([each for each in objects if (each[0][0] if each[0] else None) == section])
        here = new
        for key in path:
            here = here[key]
        names = names_in(new)
        absent = sorted(set(known) - set(here) - (LEFT_OUT if not path else set()))
        present = [key for key in here if key in known] if path else []
        lists = [key for key, value in here.items() if isinstance(value, list) and value]
        roll = self.dice.random()
        if roll < 0.6 and absent:
            key = self.dice.choice(absent)
            here[key] = self.value(known[key], names)
        elif roll < 0.85 and present:
            key = self.dice.choice(present)
            here[key] = self.value(known[key], names)
        elif roll < 0.93 and present:
            del here[self.dice.choice(present)]
        elif lists:
            key = self.dice.choice(lists)
            item = copy.deepcopy(self.dice.choice(here[key]))
            if isinstance(item, dict) and "name" in item:
                item["name"] = f"{item['name']}b"
            here[key].append(item)
        else:
            return None
        return new


def names_in(value):
    """Texts that name something in a document."""
    if isinstance(value, dict):
        inner = {name for each in value.values() for name in names_in(each)}
        return sorted(inner | ({str(value["name"])} if isinstance(value.get("name"), (str, int)) else set())) or ["thing"]
    return sorted({name for each in value for name in names_in(each)} - {"thing"}) if isinstance(value, list) else []


def traits(document):
    """Keys and kinds of values that a document has; those of strategies, training and variability by kind of strategy."""
    strategy = document.get("strategy")
    kind = f"{strategy.get('kind')}/{(strategy.get('inner') or {}).get('kind', '')}" if isinstance(strategy, dict) else ""
    found = set()

    def walk(value, path):
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, (*path, key))
        elif isinstance(value, list):
            found.add((path, "several" if len(value) > 1 else "one"))
            for inner in value:
                walk(inner, (*path, "[]"))
        else:
            of_kind = kind if path[0] in ("strategy", "training", "variability") else ""
            word = value if isinstance(value, bool) or isinstance(value, str) and not re.match(r"[-+.\d]", value) else \
                value if value in (0, 1) else "number"
            found.add((of_kind, path))
            found.add((path, word) if path[0] != "strategy" else (of_kind, path, word))

    walk(document, ())
    return found


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, 2 * MOST_CPU_S))


def written(document):
    import yaml
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=150)


def draw(program, golden, kind, seed, walks):
    """Adds files to golden/drawn. A crash is told and ends the drawing."""
    import yaml
    bases = yaml.safe_load((golden / "bases.yaml").read_text())
    schema = json.loads(subprocess.run([program, "show", "schema", kind], check=True, capture_output=True, text=True).stdout)
    seen = collections.Counter(trait for file in (golden / "drawn").glob("*.yaml") for trait in traits(yaml.safe_load(file.read_text())))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "drawn.yaml"

        def accepted(document):
            file.write_text(written(document))
            options = ["plan"] if kind == "plan" else ["run", "--out", tempfile.mkdtemp(dir=folder)]
            done = subprocess.run([program, *options, str(file), "--json", "--jobs", "1"], capture_output=True, text=True,
                                  preexec_fn=limited, check=False)
            if done.returncode not in (0, 1, 2) and "SIGXCPU" not in done.stderr and done.returncode >= 0:
                sys.exit(f"golden: exit code {done.returncode} of\n{file.read_text()}\n{done.stderr}")
            return done.returncode == 0

        for walk in range(walks):
            dice = random.Random(f"{kind} {seed} {walk}")
            drawer = Drawer(schema, dice)
            document = {"experiment": f"{kind}-{seed}-{walk}"}
            for _ in range(10):  # until the parts go together
                if kind == "plan":
                    document.update(dice.choice(bases["plans"]))
                else:
                    document.update({section: dice.choice(bases[section]) for section in ("model", "training", "cluster")})
                    document["strategy"] = bases["strategy"][walk % len(bases["strategy"])]
                if accepted(document):
                    break
            changes = 0
            for _ in range(STEPS):
                new = drawer.changed(document)
                if new and accepted(new):
                    document, changes = new, changes + 1
                    if changes == CHANGES:
                        break
            fresh = [trait for trait in traits(document) if seen[trait] < WANTED]
            if fresh and changes and accepted(document):
                seen.update(traits(document))
                (golden / "drawn" / f"{document['experiment']}.yaml").write_text(written(document))
            print(f"{document['experiment']}: {changes} changes, {len(fresh)} traits that few have", flush=True)
    return 0
