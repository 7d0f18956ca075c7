#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/run/check_regions.py TASKS.json...: follows every element of every tensor through what `convoy run FILE --tasks TASKS.json` wrote,
by docs/tasks.md (Regions) and with nothing of the program. Tasks are gone through in an order drawn at random among those that the file
allows (the seed is the file's number). Whatever an operation reads must be there, whole; parts of an operation must be all of it; an update
needs the gradients of all images. A line a file: "the same", or what is wrong. Exit code 1 where any is."""

import collections
import functools
import json
import random
import sys

AXES = ("images", "channels", "rows", "columns", "inputs")
OF_GRADIENTS = ("sum", "scatter", "gather_gradients", "push", "collect")


class Wrong(Exception):
    """What is wrong with a plan."""


def need(condition, *what):
    if not condition:
        raise Wrong(" ".join(map(str, what)))


@functools.lru_cache(maxsize=None)
def mask_of(sizes, ranges):
    """The elements of a box as bits of a number, the last axis first."""
    bits, width = 1, 1
    for size, of_axis in reversed(list(zip(sizes, ranges))):
        every = 0
        for begin, end in of_axis:
            need(0 <= begin < end <= size, "a range", begin, "to", end, "of", size)
            for i in range(begin, end):
                every |= bits << i * width
        bits, width = every, width * size
    return bits


class Graph:
    """The training graph, with the sizes of its tensors."""
    def __init__(self, tasks):
        graph = tasks["graph"]
        self.layers, self.operations, self.parameters = graph["layers"], graph["operations"], graph["parameters"]
        self.buckets, self.images, self.image = graph["buckets"], graph.get("images", 1), graph["image"]
        self.image_parts = graph.get("image_parts", [])
        self.parameters_of = collections.defaultdict(list)
        for p, parameter in enumerate(self.parameters):
            self.parameters_of[parameter["layer"]].append(p)
        self.updated = {operation["layer"] for operation in self.operations if operation["phase"] == "update"}

    def sizes(self, tensor, layer):
        of = self.image if tensor == "images" else self.layers[layer]
        if tensor in ("parameters", "parameter_gradients"):
            return (1, of["channels"], 1, 1, of["inputs"])
        return (self.images, of["channels"], of["rows"], of["columns"], of["inputs"] if tensor == "work" else 1)

    def mask(self, tensor, layer, part):
        sizes = self.sizes(tensor, layer)
        return mask_of(sizes, tuple(tuple(map(tuple, part.get(axis, [[0, size]]))) for axis, size in zip(AXES, sizes)))

    def volume(self, layer, part):
        product = 1
        for axis, size in zip(AXES, self.sizes("work", layer)):
            product *= sum(end - begin for begin, end in part.get(axis, [[0, size]]))
        return product

    def keys(self, tensor, layer):
        """Tensors by which values are kept: of parameters, each of the layer's."""
        if tensor == "parameter_gradients":
            return [(tensor, p) for p in self.parameters_of[layer]]
        return [(tensor, layer)]


def at(part, position):
    """What an endpoint has of something that may differ by position."""
    if part is None:
        return {}
    return part if all(key in AXES for key in part) else part[str(position)]


class Endpoint:
    """What an endpoint has: of each tensor the terms of its sums, each with the elements for which it is there."""
    def __init__(self, described):
        self.name, self.lane = described["name"], described.get("lane", 0)
        self.position, self.has_images = described.get("position", 0), described.get("has_images")
        self.values = collections.defaultdict(lambda: collections.defaultdict(int))
        self.come = collections.defaultdict(lambda: collections.defaultdict(int))  # and not added up
        self.parameters, self.images = collections.defaultdict(int), collections.defaultdict(int)
        self.own, self.updates = collections.defaultdict(int), collections.Counter()

    def range(self, of):
        first, count = of["images"]
        return of["micro_batch"], first + self.lane * count, count


class Checker:
    """One file."""
    def __init__(self, tasks, seed):
        self.tasks, self.graph, self.dice = tasks, Graph(tasks), random.Random(seed)
        self.endpoints = [Endpoint(described) for described in tasks["endpoints"]]
        kinds = {comm["carries"]["kind"] for comm in tasks["communications"] if "carries" in comm}
        self.is_endless, self.is_placed = "endless" in tasks, any(e.has_images is not None for e in self.endpoints)
        # Whether all gradients of a step come to each update.
        self.sums_all = not (self.is_endless or "steps" in tasks or kinds & {"average", "exchange"})
        # By tensor and images: terms with the elements for which they are made.
        self.expected = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(int)))
        self.look_ahead()

    # ---- What the programs say that they do.

    def part(self, endpoint, op, listed):
        """Tensors that an operation reads or writes on an endpoint, with their parts."""
        for tensor in op[listed]:
            part = at(tensor.get("part"), endpoint.position)
            if all(part.get(axis, True) for axis in AXES):
                yield tensor["tensor"], tensor.get("layer", 0), part

    def term(self, endpoint, does):
        """By which what an operation adds to a sum is known: a forward pass that runs again makes the same."""
        operation = self.graph.operations[does["operation"]]
        of = "forward" if operation["phase"] == "forward" else does["operation"]
        return of, endpoint.range(does), json.dumps(at(does.get("part"), endpoint.position), sort_keys=True)

    def anybody_does(self, act):
        return any(task.get("does", {}).get("act") == act for role in self.tasks["roles"] for task in role["program"])

    def computes(self, does):
        return does and does["act"] == "compute" and "operation" in does

    def written(self, endpoint, op):
        operation = self.graph.operations[op["does"]["operation"]]
        if operation.get("adds_up") or operation["phase"] == "update":
            return
        for tensor, layer, part in self.part(endpoint, op, "writes"):
            for key in self.graph.keys(tensor, layer):
                yield key, self.graph.mask(tensor, layer, part)

    def look_ahead(self):
        work, self.micro_batches = collections.defaultdict(set), 1
        for role in self.tasks["roles"]:
            for e in role["members"]:
                endpoint = self.endpoints[e]
                for op in (op for task in role["program"] for op in task.get("ops", ())):
                    does = op.get("does")
                    if not self.computes(does):
                        continue
                    self.micro_batches = max(self.micro_batches, 1 + does.get("micro_batch", 0))
                    operation = self.graph.operations[does["operation"]]
                    part = at(does.get("part"), endpoint.position)
                    if operation["phase"] == "update":
                        endpoint.own[operation["layer"]] |= self.weights(operation["layer"], part)
                        continue
                    term = self.term(endpoint, does)
                    work[does["operation"], term[1]].add(term[2])
                    for key, mask in self.written(endpoint, op):
                        self.expected[key][term[1]][term] |= mask
        for (operation, images), parts in work.items():
            layer = self.graph.operations[operation]["layer"]
            done = sum(self.graph.volume(layer, json.loads(part)) for part in parts)
            need(done == self.graph.volume(layer, {}), self.graph.operations[operation]["name"], "of images", images, "does", done,
                 "of", self.graph.volume(layer, {}))
        for layer in self.graph.updated if not self.anybody_does("serve") else ():
            updated = functools.reduce(lambda a, b: a | b, (endpoint.own[layer] for endpoint in self.endpoints))
            need(updated == self.weights(layer, {}), "of", self.graph.layers[layer]["name"], "a part is not updated")
        # Every operation is run on the same images, each once.
        batches = collections.defaultdict(list)
        for (operation, (_, first, count)) in work:
            batches[operation].append((first, first + count))
        whole = None
        for operation, ranges in batches.items():
            ranges.sort()
            for (_, end), (begin, _) in zip(ranges, ranges[1:]):
                need(abs(end - begin) < 1e-9 * (1 + end), self.graph.operations[operation]["name"], "after image", end, "goes on from", begin)
            batch = ranges[0][0], round(ranges[-1][1], 6)
            whole = whole or batch
            need(batch == whole, self.graph.operations[operation]["name"], "is run on images", batch, "and others on", whole)

    def weights(self, layer, part):
        return self.graph.mask("parameters", layer, {axis: part[axis] for axis in ("channels", "inputs") if axis in part})

    # ---- What is there.

    def check_there(self, endpoint, key, images, mask, what):
        """Of these elements all terms, of all images or of these."""
        there, made = endpoint.values[key], 0
        expected = self.expected[key]
        need(images is None or images in expected, endpoint.name, what, "reads of", *key, "that of images", images)
        for terms in expected.values() if images is None else [expected[images]]:
            for term, makes in terms.items():
                made |= makes
                need(makes & mask & ~there[term] == 0, endpoint.name, what, "needs", *key, "without all of term", *term)
        need(key[0] == "output_gradient" or mask & ~made == 0 or mask < 0, endpoint.name, what, "reads of", *key, "what nobody makes")

    def check_images(self, endpoint, images, mask):
        if endpoint.has_images is False:
            there = endpoint.images[images]
            for view in self.graph.image_parts:
                part = at(view.get("part"), endpoint.position)
                there |= self.graph.mask("images", 0, part) if all(part.get(axis, True) for axis in AXES) else 0
            need(mask & ~there == 0, endpoint.name, "needs images", *images)

    def check_parameters(self, endpoint, layer, mask, does, what):
        if self.is_placed and layer in self.graph.updated:
            there = endpoint.own[layer] | endpoint.parameters[layer, does["micro_batch"]]
            need(mask & ~there == 0, endpoint.name, what, "needs parameters of", self.graph.layers[layer]["name"])

    def check_version(self, endpoint, operation, op):
        updates, is_update = endpoint.updates[operation["layer"]], operation["phase"] == "update"
        for listed, after in (("reads", 0), ("writes", is_update)):
            for tensor in op[listed]:
                version = tensor.get("version")
                need((version is not None) == (tensor["tensor"] in ("parameters", "parameter_gradients")), operation["name"], listed, tensor)
                if version is not None:
                    is_right = version <= updates if self.is_endless and not is_update else version == updates + after
                    need(is_right, endpoint.name, operation["name"], listed, "version", version, "after", updates, "updates")

    # ---- Tasks.

    def compute(self, endpoint, op):
        does = op.get("does")
        if not does:
            need(not op.get("reads") and not op.get("writes"), op["name"], "reads or writes without doing anything")
            return
        if does["act"] == "add":
            self.add(endpoint, op)
        elif does["act"] == "serve" and self.sums_all:
            for p in self.graph.buckets[does["bucket"]]["parameters"]:
                self.check_there(endpoint, ("parameter_gradients", p), None, -1, "serves")
        if not self.computes(does):
            return
        operation = self.graph.operations[does["operation"]]
        is_update = operation["phase"] == "update"
        self.check_version(endpoint, operation, op)
        for tensor, layer, part in self.part(endpoint, op, "reads"):
            if operation.get("adds_up"):
                need(endpoint.range(does) in self.expected[tensor, layer], endpoint.name, operation["name"], "has nothing to add up")
                continue
            mask = self.graph.mask(tensor, layer, part)
            if tensor == "images":
                self.check_images(endpoint, endpoint.range(does), mask)
            elif tensor == "parameters":
                if not is_update:
                    self.check_parameters(endpoint, layer, mask, does, operation["name"])
            elif self.sums_all or not is_update:
                for key in self.graph.keys(tensor, layer):
                    if key not in self.expected and tensor == "output_gradient":
                        continue  # of the last output of a network without a loss
                    self.check_there(endpoint, key, None if is_update else endpoint.range(does), mask, operation["name"])
        if is_update:
            endpoint.updates[operation["layer"]] += 1
            return
        term = self.term(endpoint, does)
        for key, mask in self.written(endpoint, op):
            endpoint.values[key][term] |= mask

    def add(self, endpoint, op):
        for tensor, layer, part in self.part(endpoint, op, "writes"):
            wanted = self.graph.mask(tensor, layer, part)
            for key in self.graph.keys(tensor, layer):
                for term, mask in list(endpoint.come[key].items()):
                    if term[1] == endpoint.range(op["does"]):
                        endpoint.values[key][term] |= mask & wanted
                        endpoint.come[key][term] = mask & ~wanted

    def carried(self, endpoint, carries):
        """What a message, or a collective, takes of an endpoint."""
        content = collections.defaultdict(dict)
        if carries["kind"] in OF_GRADIENTS:
            for p in self.graph.buckets[carries["bucket"]]["parameters"]:
                content["parameter_gradients", p] = dict(endpoint.values["parameter_gradients", p])
        for result in carries.get("results", ()):
            tensor, layer = result["tensor"], result.get("layer", 0)
            mask = self.graph.mask(tensor, layer, at(result.get("from"), endpoint.position)) if self.has_any(result, "from", endpoint) else 0
            images = endpoint.range(carries)
            if tensor in ("images", "parameters"):
                content[tensor, layer] = {images: mask}
                continue
            for key in self.graph.keys(tensor, layer):
                alone = tensor == "output_gradient" and not self.graph.operations[result["made_by"]].get("adds_up")
                for term, held in endpoint.values[key].items():
                    if term[1] == images and held & mask and not (alone and term[0] != result["made_by"]):
                        content[key][term] = content[key].get(term, 0) | held & mask
        return content

    def has_any(self, result, end, endpoint):
        part = at(result.get(end), endpoint.position)
        return all(part.get(axis, True) for axis in AXES)

    def take(self, endpoint, carries, content, in_group=False):
        if carries["kind"] in OF_GRADIENTS:
            for key, terms in content.items():
                for term, mask in terms.items():
                    endpoint.values[key][term] |= mask
        for result in carries.get("results", ()):
            tensor, layer = result["tensor"], result.get("layer", 0)
            if not self.has_any(result, "to", endpoint):
                continue
            wanted = self.graph.mask(tensor, layer, at(result.get("to"), endpoint.position))
            images = endpoint.range(carries)
            if tensor == "images":
                for mask in content[tensor, layer].values():
                    endpoint.images[images] |= mask & wanted
            elif tensor == "parameters":
                for mask in content[tensor, layer].values():
                    endpoint.parameters[layer, carries["micro_batch"]] |= mask & wanted
            else:
                adds = self.micro_batches > 1 if tensor == "parameter_gradients" else carries["kind"] == "parts" and not in_group
                into = endpoint.come if adds else endpoint.values
                for key in self.graph.keys(tensor, layer):
                    for term, mask in content[key].items():
                        into[key][term] |= mask & wanted

    def check_sent(self, sender, receiver, carries):
        """Outputs that go by a message are complete."""
        for result in carries.get("results", ()):
            if result["tensor"] == "output" and self.has_any(result, "from", sender) and self.has_any(result, "to", receiver):
                masks = [self.graph.mask("output", result["layer"], at(result.get(end), of.position)) for end, of in
                         (("from", sender), ("to", receiver))]
                self.check_there(sender, ("output", result["layer"]), sender.range(carries), masks[0] & masks[1], "sends")

    # ---- The order.

    def run(self):
        comms, patterns = self.tasks["communications"], self.tasks["patterns"]
        group_of, pairs = {}, collections.defaultdict(set)
        for p, pattern in enumerate(patterns):
            for g, group in enumerate(pattern["groups"]):
                for e in group["members"]:
                    group_of[p, e] = g
                for flow in group["flows"]:
                    pairs[p].add((flow["from"], flow["to"]))
        left = {}  # by endpoint and task: how many others it waits for
        next_of = collections.defaultdict(list)
        programs = {e: role["program"] for role in self.tasks["roles"] for e in role["members"]}
        for e, program in programs.items():
            last = {}
            for t, task in enumerate(program):
                before = set(task["after"])
                if "stream" in task:
                    before |= {last[task["stream"]]} if task["stream"] in last else set()
                    last[task["stream"]] = t
                left[e, t] = len(before)
                for b in before:
                    next_of[e, b].append(t)
        ready = [key for key, count in left.items() if count == 0]
        sent, awaiting = {}, {}  # messages by communication and pair; tasks that wait for them
        arrived = collections.defaultdict(dict)
        done = 0

        def end(e, t):
            nonlocal done
            done += 1
            for following in next_of[e, t]:
                left[e, following] -= 1
                if left[e, following] == 0:
                    ready.append((e, following))

        def receive_if_there(e, t):
            comm = programs[e][t]["communication"]
            senders = [a for a, b in pairs[comms[comm]["pattern"]] if b == e]
            if any((comm, a, e) not in sent for a in senders):
                for a in senders:
                    awaiting[comm, a, e] = t
                return
            for a in senders:
                self.take(self.endpoints[e], comms[comm]["carries"], sent[comm, a, e])
            end(e, t)

        while ready:
            at_random = self.dice.randrange(len(ready))
            ready[at_random], ready[-1] = ready[-1], ready[at_random]
            e, t = ready.pop()
            endpoint, task = self.endpoints[e], programs[e][t]
            if task["kind"] == "compute":
                for op in task.get("ops", ()):
                    self.compute(endpoint, op)
                self.compute(endpoint, task)
                end(e, t)
                continue
            comm = task["communication"]
            carries, pattern = comms[comm].get("carries"), comms[comm]["pattern"]
            need(carries, comms[comm]["name"], "carries nothing")
            if task["kind"] == "receive":
                receive_if_there(e, t)
            elif task["kind"] == "send":
                content = self.carried(endpoint, carries)
                for a, b in pairs[pattern]:
                    if a == e:
                        self.check_sent(endpoint, self.endpoints[b], carries)
                        sent[comm, a, b] = content
                end(e, t)
                for a, b in pairs[pattern]:
                    if a == e and (comm, a, b) in awaiting:
                        receive_if_there(b, awaiting.pop((comm, a, b)))
            else:
                g = group_of[pattern, e]
                arrived[comm, g][e] = (t, self.carried(endpoint, carries))
                if len(arrived[comm, g]) == len(patterns[pattern]["groups"][g]["members"]):
                    self.bring_together(carries, arrived[comm, g], end)
        need(done == len(left), len(left) - done, "tasks cannot begin")

    def bring_together(self, carries, arrived, end):
        together = collections.defaultdict(lambda: collections.defaultdict(int))
        for _, content in arrived.values():
            for key, terms in content.items():
                for term, mask in terms.items():
                    together[key][term] |= mask
        for e, (t, _) in arrived.items():
            self.take(self.endpoints[e], carries, together, True)
            end(e, t)


def main():
    is_wrong = False
    for number, path in enumerate(sys.argv[1:], 1):
        try:
            with open(path, encoding="utf-8") as file:
                Checker(json.load(file), number).run()
            verdict = "the same"
        except Wrong as wrong:
            is_wrong, verdict = True, str(wrong)
        print(f"{path}: {verdict}")
    sys.exit(is_wrong)


main()
