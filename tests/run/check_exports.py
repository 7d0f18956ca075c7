#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/run/check_exports.py FOLDER...: compares, in each folder, traces of Chakra (chakra/) and a schedule of GOAL (goal), where they
are there, with tasks.json of the same run. Reads the traces by chakra_et.proto, with no library of protobuf, and nothing of the program.
All three are gone through on networks on which each message takes a time drawn for it: every operation has to end at the same moment
on the same rank, and every message to arrive at the same; messages, bytes and arithmetic have to add up to the same. A line a folder: "the same", or what differs. Exit code 1 where any does."""

import collections
import json
import pathlib
import re
import struct
import sys
import zlib

PROTO = pathlib.Path(__file__).resolve().parents[2] / "sim/run/export/chakra_et.proto"
GATHER, SAME, NANO = 2, 1e-9, 1e-9


class Wrong(Exception):
    """What differs."""


def need(condition, *what):
    if not condition:
        raise Wrong(" ".join(map(str, what)))


# ---- Chakra: messages of protobuf, by the text of the schema

def schema_of(text):
    text = re.sub(r"//[^\n]*", "", text)
    enums = set(re.findall(r"enum (\w+)", text))
    messages = {}
    for name, body in re.findall(r"message (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", text):
        messages[name] = {int(number): (field, kind, bool(repeated)) for repeated, kind, field, number
                          in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body)}
    return enums, messages


ENUMS, MESSAGES = schema_of(PROTO.read_text(encoding="utf-8"))


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at


def decode(data, name):
    message, at = {field: [] if repeated else None for field, _, repeated in MESSAGES[name].values()}, 0
    while at < len(data):
        tag, at = varint(data, at)
        need(tag >> 3 in MESSAGES[name], f"{name} has no field {tag >> 3}")
        field, kind, repeated = MESSAGES[name][tag >> 3]
        if tag & 7 == 1:
            need(kind == "double", field, "is no double")
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif tag & 7 == 2:
            size, at = varint(data, at)
            piece, at = data[at:at + size], at + size
            need(len(piece) == size, "cut off")
            if kind in MESSAGES:
                value = decode(piece, kind)
            elif kind == "string":
                value = piece.decode("utf-8")
            else:  # numbers, packed
                need(repeated, field, "is no list")
                inner = 0
                while inner < size:
                    value, inner = varint(piece, inner)
                    message[field].append(value)
                continue
        else:
            need(tag & 7 == 0 and (kind in ENUMS or kind in ("uint64", "int64", "int32", "bool")), field, "is no number")
            value, at = varint(data, at)
        if repeated:
            message[field].append(value)
        else:
            need(message[field] is None, field, "comes twice")
            message[field] = value
    return message


def attributes(message):
    result = {}
    for attribute in message["attr"]:
        values = [value for key, value in attribute.items() if key != "name" and value is not None]
        need(len(values) == 1 and attribute["name"] not in result, "attribute", attribute["name"])
        result[attribute["name"]] = values[0]
    return result


Step = collections.namedtuple("Step", "kind on_host name seconds bytes peer tag group type ops delay after")


def read_chakra(folder):
    ranks, endpoints, off = [], [], 0.0
    groups = json.loads((folder / "comm_groups.json").read_text(encoding="utf-8"))
    while (folder / f"trace.{len(ranks)}.et").exists():
        data, at, steps, micros = (folder / f"trace.{len(ranks)}.et").read_bytes(), 0, [], collections.Counter()
        while at < len(data):
            size, at = varint(data, at)
            message = decode(data[at:at + size], "Node" if endpoints[len(ranks):] else "GlobalMetadata")
            at += size
            if not endpoints[len(ranks):]:
                need(message["version"] == "0.0.4", "version")
                endpoints.append(attributes(message)["endpoint"])
                count = attributes(message)["steps"]
                continue
            have = attributes(message)
            need((message["id"] or 0) == len(steps), "ids are not 0, 1, ...")
            after = message["data_deps"]
            need(set(message["ctrl_deps"]) <= set(after), "a control dependency is no data dependency")
            need(sorted(set(after)) == after and all(before < len(steps) for before in after), "dependencies of", message["name"])
            kind = {4: "compute", 5: "send", 6: "receive", 7: "collective"}[message["type"]]
            if kind == "compute" and message["name"].split()[0] in ("issue", "join"):
                kind = message["name"].split()[0]
            if kind in ("compute", "issue", "join"):
                micros[kind] += message["duration_micros"] or 0
                micros[kind, "s"] += have["duration_s"]
                off = max(off, abs(micros[kind] * 1e-6 - micros[kind, "s"]))
                need(have["is_cpu_op"] or {"num_ops", "tensor_size"} <= set(have), "no work in", message["name"])
            else:
                need(not have["is_cpu_op"] and have["comm_size"] >= 1, "size of", message["name"])
                need(kind != "send" or have["comm_src"] == len(ranks), "a send of another rank")
                need(kind != "receive" or have["comm_dst"] == len(ranks), "a receive of another rank")
                need(kind != "collective" or len(ranks) in groups[have["pg_name"]], "a collective of other ranks")
            steps.append(Step(kind, have["is_cpu_op"], message["name"].removeprefix("issue ").removeprefix("join "), have.get("duration_s", 0.0), have.get("comm_size", 0),
                              have.get("comm_src" if kind == "receive" else "comm_dst"), have.get("comm_tag"),
                              have.get("pg_name"), have.get("comm_type"), have.get("num_ops", 0), have.get("delay_s", 0.0), after))
        ranks.append(steps)
    need(off < 0.51e-6, "whole microseconds are", off, "s off")
    return ranks, endpoints, groups, count


# ---- GOAL

LINE = re.compile(r"(?P<label>\w+): (?:calc (?P<calc>\d+)|(?P<kind>send|recv) (?P<bytes>\d+)b (?P<way>to|from) (?P<peer>\d+) tag (?P<tag>\d+))"
                  r" cpu (?P<cpu>\d+)$")


def read_goal(path):
    ranks, endpoints, labels, count, name = [], [], {}, None, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("num_ranks "):
            count = int(line.split()[1])
        elif line.startswith("// "):
            name = line[3:]
        elif match := re.fullmatch(r"rank (\d+) \{", line):
            labels = {}
            ranks.append((int(match[1]), []))
            endpoints.append((int(match[1]), name))
        elif match := LINE.match(line):
            steps = ranks[-1][1]
            need(match["label"] not in labels, "label", match["label"], "twice")
            labels[match["label"]] = len(steps)
            if match["calc"]:
                kind = {"w": "wait", "j": "join"}.get(match["label"][0]) or ("issue" if match["cpu"] == "1" else "compute")
                steps.append(Step(kind, None, "", int(match["calc"]) * NANO, 0, None, None, None, None, 0, 0.0, []))
            else:
                need((match["kind"] == "send") == (match["way"] == "to"), line)
                kind = "send" if match["kind"] == "send" else "receive"
                steps.append(Step(kind, None, "", 0.0, int(match["bytes"]), int(match["peer"]), int(match["tag"]), None, None, 0, 0.0, []))
                need(steps[-1].bytes >= 1, line)
        elif match := re.fullmatch(r"(\w+) requires (\w+)", line):
            need(labels[match[2]] < labels[match[1]], line)
            ranks[-1][1][labels[match[1]]].after.append(labels[match[2]])
        else:
            need(line in ("", "}"), "no line of GOAL:", line)
    need(count == len(ranks) and sorted(number for number, _ in ranks) == list(range(count)), "ranks")
    return [steps for _, steps in sorted(ranks, key=lambda rank: rank[0])], [name for _, name in sorted(endpoints)], {}, None


# ---- Moments on a network on which each message takes a time of its own

def drawn_s(draw, *message):
    return zlib.crc32(repr((draw, *message)).encode()) / 2**32 * 1e-3


class Moments:
    """Each vertex is as late as the latest of what it comes after, with a delay."""
    def __init__(self):
        self.out, self.left, self.at = [], [], []

    def add(self, *before):
        self.out.append([])
        self.left.append(0)
        self.at.append(0.0)
        for vertex, delay_s in before:
            self.edge(vertex, len(self.out) - 1, delay_s)
        return len(self.out) - 1

    def edge(self, vertex, after, delay_s=0.0):
        self.out[vertex].append((after, delay_s))
        self.left[after] += 1

    def run(self):
        ready, done = [vertex for vertex, left in enumerate(self.left) if left == 0], 0
        while ready:
            vertex = ready.pop()
            done += 1
            for after, delay_s in self.out[vertex]:
                self.at[after] = max(self.at[after], self.at[vertex] + delay_s)
                self.left[after] -= 1
                if self.left[after] == 0:
                    ready.append(after)
        need(done == len(self.out), "it cannot finish")
        return self.at


def moments_of_ranks(ranks, groups, meets, draw):
    """@param meets tags of messages that wait for their receivers, too"""
    arrivals = {}
    moments, sent, received, together, ends = Moments(), collections.defaultdict(list), collections.defaultdict(list), {}, []
    for rank, steps in enumerate(ranks):
        done = []
        for step in steps:
            ready = moments.add(*((done[before], 0.0) for before in step.after))
            end = moments.add((ready, step.seconds + step.delay))
            if step.kind == "collective":
                occurrence = together.setdefault((step.tag, step.group), [])
                occurrence.append((rank, ready, end, step))
            elif step.kind in ("send", "receive"):
                key = (rank, step.peer, step.tag) if step.kind == "send" else (step.peer, rank, step.tag)
                (sent if step.kind == "send" else received)[key].append((ready, end, step))
            done.append(end)
        ends.append(done)
    for key in sent.keys() | received.keys():
        need(len(sent[key]) == len(received[key]), "messages of", key, ":", len(sent[key]), "sent,", len(received[key]), "received")
        for k, ((s_ready, s_end, s_step), (r_ready, r_end, r_step)) in enumerate(zip(sent[key], received[key])):
            need(s_step.bytes == r_step.bytes, "bytes of", key)
            under_way_s = drawn_s(draw, *key, k)
            delivered = moments.add((s_ready, s_step.delay + under_way_s))
            if key[2] in meets:
                moments.edge(r_ready, delivered, r_step.delay + under_way_s)
            arrivals[*key, k] = delivered
            moments.edge(delivered, s_end)
            moments.edge(delivered, r_end)
    for (tag, group), members in together.items():
        need([rank for rank, *_ in members] == groups[group], "members of", tag)
        need(len({(step.type, step.bytes) for *_, step in members}) == 1, "kinds of", tag)
        all_there = moments.add(*((ready, step.delay) for _, ready, _, step in members))
        for _, _, end, _ in members:
            moments.edge(all_there, end, drawn_s(draw, tag))
    at = moments.run()
    return [[at[end] for end in done] for done in ends], {key: at[vertex] for key, vertex in arrivals.items()}


def moments_of_tasks(tasks, whole, draw):
    """@param whole communications that are one step
    @return by endpoint: [name, end] of each operation; arrivals of messages"""
    moments, ends, arrivals, ops = Moments(), {}, collections.defaultdict(dict), collections.defaultdict(list)
    patterns, flows, meet = tasks["patterns"], collections.defaultdict(list), {}
    for number, pattern in enumerate(patterns):
        for g, group in enumerate(pattern["groups"]):
            meet.update({(number, member): g for member in group["members"]})
            for flow in group["flows"]:
                for member in {flow["from"], flow["to"]}:
                    flows[number, member, flow["round"]].append(flow)
    messages = {}  # by communication, flow and repetition: the vertex at which it has been delivered, and its time
    names = {}
    between = collections.Counter()  # messages of a communication between two ranks
    members = sorted(member for role in tasks["roles"] for member in role["members"])
    ranks = {member: rank for rank, member in enumerate(members)}

    def number_messages(number):
        pattern = patterns[tasks["communications"][number]["pattern"]]
        all_flows = [(flow["round"], repetition, place, flow) for group in pattern["groups"] for place, flow in enumerate(group["flows"])
                     for repetition in range(pattern["repeat"][flow["round"]] if pattern["one_by_one"] else 1)]
        for _, repetition, _, flow in sorted(all_flows, key=lambda of: of[:3]):
            key = ranks[flow["from"]], ranks[flow["to"]], number
            messages[number, id(flow), repetition] = moments.add(), drawn_s(draw, *key, between[key])
            names[number, id(flow), repetition] = *key, between[key]
            between[key] += 1

    def message(number, flow, repetition):
        if (number, id(flow), repetition) not in messages:
            number_messages(number)
        return messages[number, id(flow), repetition]

    for role in tasks["roles"]:
        for member in role["members"]:
            endpoint, last, issued = tasks["endpoints"][member], {}, moments.add()
            issued, begun = moments.add((issued, endpoint.get("begin_s", 0.0))), []
            for task in role["program"]:
                before = [begun[k] for k in task["after"]] + ([begun[last[task["stream"]]]] if task.get("stream") in last else [])
                at = moments.add(*((vertex, 0.0) for vertex in before))
                if task.get("begins_step"):
                    issued = moments.add((at, endpoint.get("begin_s", 0.0)))
                if task["kind"] == "compute":
                    for op in task.get("ops", []):
                        issue_s, time_s = (op[key][endpoint["type"]] if isinstance(op[key], dict) else op[key]
                                           for key in ("issue_s", "time_s"))
                        issued = moments.add((issued, issue_s))
                        begin = moments.add((at, 0.0), (issued, 0.0)) if time_s > 0 else at
                        at = moments.add((begin, time_s * role["slowdown"] / endpoint["speed"]))
                        ops[member].append((op["name"], at))
                    if task.get("seconds"):
                        at = moments.add((at, task["seconds"]))
                        ops[member].append((task["name"], at))
                else:
                    number = task["communication"]
                    communication = tasks["communications"][number]
                    place = communication["pattern"]
                    pattern, in_turn = patterns[place], patterns[place]["one_by_one"]
                    if task["kind"] != "receive":
                        at = moments.add((at, communication["overhead_s"]))
                    if task["kind"] == "collective" and number in whole:
                        if meet[place, member] not in arrivals[number]:
                            arrivals[number][meet[place, member]] = moments.add()
                        all_there = arrivals[number][meet[place, member]]
                        moments.edge(at, all_there)
                        at = moments.add((all_there, drawn_s(draw, number)))
                    else:
                        for round_, repeat in enumerate(pattern["repeat"]):
                            own = [flow for flow in flows[place, member, round_] if task["kind"] == "collective"
                                   or flow["from" if task["kind"] == "send" else "to"] == member]
                            for repetition in range(repeat if in_turn else 1) if own else []:
                                done = moments.add((at, 0.0))
                                for flow in own:
                                    delivered, under_way_s = message(number, flow, repetition)
                                    if task["kind"] != "receive":
                                        more_s = (repeat - 1) * flow["latency_s"] if flow["from"] == member and not in_turn else 0.0
                                        moments.edge(at, delivered, more_s + under_way_s)
                                    moments.edge(delivered, done)
                                at = done
                if task.get("stream") is not None:
                    last[task["stream"]] = len(begun)
                begun.append(moments.add((at, 0.0)))
    at = moments.run()
    return ({member: [(name, at[vertex]) for name, vertex in named] for member, named in ops.items()},
            {names[key]: at[vertex] for key, (vertex, _) in messages.items()})


def compare(tasks, read, is_goal):
    ranks, endpoints, groups, count = read
    members = sorted(member for role in tasks["roles"] for member in role["members"])
    need(endpoints == [tasks["endpoints"][member]["name"] for member in members], "ranks are other endpoints")
    tags = {task["communication"] for role in tasks["roles"] for task in role["program"] if task["kind"] == "collective"}
    whole = {step.tag for steps in ranks for step in steps if step.kind == "collective"}
    need(is_goal or count == tasks.get("steps", 1), "steps")
    for rank, member in enumerate(members):
        for step in ranks[rank] if not is_goal else []:
            if step.kind in ("compute", "issue", "join"):
                need(step.on_host == (step.kind != "compute" or tasks["endpoints"][member]["kind"] == "host"), "place of", step.name)
            else:
                need(step.name == tasks["communications"][step.tag]["name"], "name of", step.name)
    crossings = sum(step.kind != "compute" for steps in ranks for step in steps)
    allowed_s = 2 * NANO * (1 + crossings) if is_goal else 0
    for draw in range(3 if sum(map(len, ranks)) < 1000 else 1):
        told, told_arrivals = moments_of_tasks(tasks, whole, draw)
        found, arrivals = moments_of_ranks(ranks, groups, tags, draw)
        need(told_arrivals.keys() == arrivals.keys(), "messages", sorted(told_arrivals.keys() ^ arrivals.keys())[:3])
        for key, told_s in told_arrivals.items():
            need(abs(told_s - arrivals[key]) <= SAME * told_s + allowed_s, "message", key, "arrives at", told_s, "found", arrivals[key])
        for rank, member in enumerate(members):
            steps = [(step, at) for step, at in zip(ranks[rank], found[rank]) if step.kind == "compute"]
            own = told.get(member, [])
            need(len(steps) == len(own), endpoints[rank], "has", len(own), "operations, found", len(steps))
            for (name, told_s), (step, found_s) in zip(own, steps):
                need(is_goal or name == step.name, endpoints[rank], name, "found", step.name)
                need(abs(told_s - found_s) <= SAME * told_s + allowed_s, endpoints[rank], name, "ends at", told_s, "found", found_s)
    bytes_of, messages = collections.Counter(), collections.Counter()
    for steps in ranks:
        for step in steps:
            if step.kind == "send":
                bytes_of[step.tag] += step.bytes
                messages[step.tag] += 1
    for number, communication in enumerate(tasks["communications"]):
        pattern = tasks["patterns"][communication["pattern"]]
        if number in whole:
            sizes = {step.bytes * (len(groups[step.group]) if step.type == GATHER else 1)
                     for steps in ranks for step in steps if step.kind == "collective" and step.tag == number}
            parties = max(len(group["members"]) for group in pattern["groups"])
            need(all(abs(size - communication["bytes"]) <= parties for size in sizes), communication["name"], sizes)
            need(number not in bytes_of, communication["name"], "is sent, too")
        elif any(task.get("communication") == number for role in tasks["roles"] for task in role["program"]):
            total = communication["bytes"] * sum(flow["fraction"] * pattern["repeat"][flow["round"]]
                                                 for group in pattern["groups"] for flow in group["flows"])
            need(abs(total - bytes_of[number]) <= 1 + messages[number], communication["name"], total, "bytes, found", bytes_of[number])
    return f"{len(whole)} whole, {sum(step.ops for steps in ranks for step in steps)} FLOPs"


def check(folder):
    tasks, words = json.loads((folder / "tasks.json").read_text(encoding="utf-8")), []
    try:
        if (folder / "chakra").exists():
            words.append(compare(tasks, read_chakra(folder / "chakra"), False))
        if (folder / "goal").exists():
            compare(tasks, read_goal(folder / "goal"), True)
    except (Wrong, KeyError, IndexError, TypeError, ValueError) as wrong:
        return print(f"{folder}: {type(wrong).__name__}: {wrong}") or 1
    return print(f"{folder}: the same, {', '.join(words) or 'no traces'}") or 0


if __name__ == "__main__":
    sys.exit(max(map(check, map(pathlib.Path, sys.argv[1:])), default=2))
