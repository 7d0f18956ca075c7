#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/replay_tasks.py TASKS.json...: replays what `convoy run FILE --tasks TASKS.json` wrote, by the rules of docs/tasks.md and with
nothing of the program, and compares the time of a step, the bytes on every link and the peak of every endpoint's memory with what the
program found. Exit code 0: all are the same to 1e-12; 1: some differ, and these are named; 2: a file cannot be read or replayed."""

import collections
import heapq
import itertools
import json
import sys

ONE_MOMENT_S, SAME = 1e-12, 1e-12


class Latch:
    """Something that has to happen `count` times before activities that wait for it go on."""
    def __init__(self, count):
        self.count, self.waiting = count, []


class Event:
    """Opens latches at a time; with links, when so many bytes have crossed them; or lets such a flow enter its links."""
    def __init__(self, latches, links=(), left=0.0, entry=None):
        self.latches, self.links, self.left, self.entry = latches, links, left, entry
        self.version, self.rate, self.since_s = 0, 0.0, 0.0  # a new time of an event, with its version, makes former ones void


class Engine:
    """A clock; events; activities, which are generators that yield latches; flows that share links by max-min fairness."""
    def __init__(self, capacities):
        self.now_s, self.asked, self.heap, self.ready = 0.0, 0, [], collections.deque()
        self.capacity, self.on, self.changed = capacities, [{} for _ in capacities], False  # flows by link

    def schedule(self, time_s, event):
        self.asked += 1
        event.version += 1
        heapq.heappush(self.heap, (time_s, self.asked, event.version, event))
        return event

    def open(self, latches):
        for latch in latches:
            latch.count -= 1
            self.ready.extend(latch.waiting if latch.count == 0 else [])

    def happen(self, event):
        flow = event.entry or event
        self.changed = self.changed or bool(flow.links)
        for link in flow.links:
            self.on[link].update({flow: None}) if event.entry else self.on[link].pop(flow, None)
        self.open(event.latches)

    def share(self):
        """New rates for all flows where one has come or gone."""
        left, rates = list(self.capacity), {}
        crossing = collections.Counter({link: len(flows) for link, flows in enumerate(self.on) if flows and self.changed})
        self.changed = False
        while crossing:
            share = min(left[link] / count for link, count in crossing.items())
            full = [link for link, count in crossing.items() if left[link] <= share * count * (1 + SAME)]
            for flow in dict.fromkeys(flow for link in full for flow in self.on[link] if flow not in rates):
                rates[flow] = share
                for link in flow.links:
                    left[link] -= share
                    crossing[link] -= 1
            crossing = +crossing  # links that flows without a rate cross
        for flow, rate in rates.items():
            if rate != flow.rate:
                flow.left -= flow.rate * (self.now_s - flow.since_s)
                flow.rate, flow.since_s = rate, self.now_s
                self.schedule(self.now_s + max(0.0, flow.left) / rate, flow)

    def resume(self):
        while self.ready:
            activity = self.ready.popleft()
            closed = next((latch for latch in activity if latch.count > 0), None)
            if closed:
                closed.waiting.append(activity)

    def run(self):
        self.resume()
        while self.heap or self.changed:
            self.share()
            moment = []
            while self.heap and (not moment or self.heap[0][0] <= self.now_s + ONE_MOMENT_S):
                time_s, _, version, event = heapq.heappop(self.heap)
                if version == event.version:
                    self.now_s = self.now_s if moment else max(self.now_s, time_s)
                    moment.append((version, event))
            for version, event in moment:
                if version == event.version:
                    self.happen(event)
                    self.resume()


class Processor:
    """What an endpoint computes, and the time that its collectives owe it for what it computed beside them."""
    def __init__(self, engine, taken):
        self.engine, self.taken, self.collectives, self.since_s, self.computed_s = engine, taken, 0, 0.0, 0.0
        self.works, self.task, self.asked = {}, None, []  # operations [issued_s, seconds left] by latch; the task's latch

    def change(self, **values):
        """Takes off what was done since the last change, at the rates of that time; what goes on then has new rates."""
        now_s = self.engine.now_s
        for latch, operations in self.works.items():
            time_s, rate = self.since_s, 1 - (self.taken if (self.collectives if latch is self.task else self.task) else 0)
            while operations and max(time_s, operations[0][0]) < now_s:
                time_s, left_s = max(time_s, operations[0][0]), operations[0][1]
                operations[0][1] = left_s - (now_s - time_s) * rate
                if operations[0][1] >= 0:
                    break
                time_s += left_s / rate
                operations.popleft()
        self.computed_s += now_s - self.since_s if self.task else 0
        vars(self).update(values, since_s=now_s)
        for event in self.asked:
            event.version += 1
        self.asked = []
        for latch, operations in self.works.items():
            end_s, rate = now_s, 1 - (self.taken if (self.collectives if latch is self.task else self.task) else 0)
            for issued_s, left_s in operations:
                end_s = max(end_s, issued_s) + left_s / rate
            self.asked.append(self.engine.schedule(end_s, Event([latch])))

    def work(self, operations, is_task):
        latch = Latch(1)  # opened when the operations are done: those of a task, or what a collective owes
        self.change(works={**self.works, latch: collections.deque(map(list, operations))}, task=latch if is_task else self.task)
        yield latch
        works = {other: operations for other, operations in self.works.items() if other is not latch}
        self.change(works=works, task=None if is_task else self.task)


class Replay:
    """Every endpoint goes through the program of its role."""
    def __init__(self, tasks):
        limits = [link["bandwidth_Bps"] for link in tasks["links"] + tasks["connections"]]
        self.tasks, self.engine = tasks, Engine([float("inf") if limit is None else limit for limit in limits])
        self.processors = [Processor(self.engine, endpoint.get("processors_taken", 0)) for endpoint in tasks["endpoints"]]
        self.end_s, self.latches, self.meetings = {}, {}, collections.defaultdict(list)  # end_s: by member and task
        self.role_of, self.flows, self.group_of = {}, collections.defaultdict(list), {}
        self.last_sent = {}  # by flow: latch that its last message opens
        self.began_s = collections.defaultdict(float)  # by member: when its host began to issue
        for number, pattern in enumerate(tasks["patterns"]):
            for group in pattern["groups"]:
                self.group_of.update({(number, member): group["members"] for member in group["members"]})
                for flow in group["flows"]:
                    for member in (flow["from"], flow["to"]) if pattern["one_by_one"] else group["members"][:1]:
                        self.flows[number, member, flow["round"]].append(flow)
        for role in tasks["roles"]:
            last = {}  # task of each stream
            for number, task in enumerate(role["program"]):
                task["next"], task["waits"] = [], {*task["after"], last.get(task.get("stream"), number)} - {number}
                last.update({task["stream"]: number} if "stream" in task else {})
                for before in task["waits"]:
                    role["program"][before]["next"].append(number)
            self.role_of.update(dict.fromkeys(role["members"], role))
        for member, role in self.role_of.items():
            operations = operations_of(role, tasks["endpoints"][member])
            self.engine.ready.extend(self.task(member, number, *what) for number, what in enumerate(zip(role["program"], operations)))
        self.engine.run()

    def latch(self, key, count):
        return self.latches.setdefault(key, Latch(count))

    def send(self, flow, size, repeat, latches):
        links = flow["links"] + ([len(self.tasks["links"]) + flow["connection"]] if "connection" in flow else [])
        left = size * flow["fraction"] * repeat
        crosses = links and left > 0
        before = self.last_sent.get(id(flow), Latch(0))
        if crosses and flow.get("in_order"):  # what was sent over the same connection before goes first
            self.last_sent[id(flow)] = Latch(1)
            latches = [*latches, self.last_sent[id(flow)]]
        yield self.engine.schedule(self.engine.now_s + flow["latency_s"] * repeat, Event([Latch(1)])).latches[0]
        yield before
        self.engine.happen(Event([], entry=Event(latches, links, left)) if crosses else Event(latches))

    def task(self, member, number, task, operations):
        yield self.latch((member, number), len(task["waits"]))
        processor, collective = self.processors[member], task["kind"] == "collective"
        processor.change(collectives=processor.collectives + collective)
        if task.get("begins_step"):
            self.began_s[member] = self.engine.now_s
        before_s = processor.computed_s
        if task["kind"] != "compute":
            yield from self.communicate(member, task["kind"], task["communication"])
        processor.change()
        owed_s = processor.taken * (processor.computed_s - before_s) if collective else 0
        operations = [(0.0, owed_s)] if owed_s else [(issued_s + self.began_s[member], time_s) for issued_s, time_s in operations]
        if operations:
            yield from processor.work(operations, not collective)
        processor.change(collectives=processor.collectives - collective)
        self.end_s[member, number] = self.engine.now_s
        for after in task["next"]:
            self.engine.open([self.latch((member, after), len(self.role_of[member]["program"][after]["waits"]))])

    def communicate(self, member, kind, number):
        communication = self.tasks["communications"][number]
        place, size = communication["pattern"], communication["bytes"]
        pattern, members = self.tasks["patterns"][place], self.group_of[place, member]
        inbox = lambda end: self.latch((number, end, "in"), sum(flow["to"] == end for flow in self.flows[place, end, 0]))
        if kind == "receive":
            yield inbox(member)
            return
        together, done = not pattern["one_by_one"], self.latch((number, members[0], "done"), 1)
        if together:  # the members meet first, and go on together
            self.engine.open([self.latch((number, members[0], "there"), len(members))])
            yield self.latch((number, members[0], "there"), 0) if member == members[0] else done
            if member != members[0]:
                return
        yield self.engine.schedule(self.engine.now_s + communication["overhead_s"], Event([Latch(1)])).latches[0]
        for round_, repeat in enumerate(pattern["repeat"]):
            own = [flow for flow in self.flows[place, member, round_] if kind == "collective" or flow["from"] == member]
            for repetition in range(1 if together else repeat) if own else []:
                arrived = Latch(len(own))
                for flow in own:
                    ends = self.meetings[number, id(flow), repetition]
                    ends.extend([arrived] if kind == "collective" else [arrived, inbox(flow["to"])])
                    if together or len(ends) == 2:  # both ends are there, or the sender waits for nobody
                        self.engine.ready.append(self.send(flow, size, repeat if together else 1, ends))
                yield arrived
        self.engine.open([done])


def operations_of(role, endpoint):
    """Of each task: how long after the step began the host has issued its operations, and how long they take on this endpoint."""
    begin_s = endpoint.get("begin_s", 0.0)
    issued_s, result = begin_s, []
    for task in role["program"]:
        issued_s = begin_s if task.get("begins_step") else issued_s
        result.append([(0.0, task["seconds"])] if task.get("seconds") else [])
        for op in task.get("ops", []):
            issue_s, time_s = (op[key][endpoint["type"]] if isinstance(op[key], dict) else op[key] for key in ("issue_s", "time_s"))
            issued_s += issue_s
            result[-1] += [(issued_s, time_s * role["slowdown"] / endpoint["speed"])] if time_s > 0 else []
    return result


def peak_bytes(role):
    changes = [sum(role["resident_bytes"].values())]
    for op in [op for task in role["program"] for op in task.get("ops", [])]:
        changes += [sum(part["bytes"] for part in op.get("allocates", [])), -sum(part["bytes"] for part in op.get("frees", []))]
    return max(itertools.accumulate(changes))


def steady_step_s(ends_s):
    last, first = len(ends_s) - 1, (len(ends_s) - 1) // 2
    for period in range(1, (last - first) // 2 + 1):
        lengths_s = [ends_s[k + period] - ends_s[k] for k in range(first, len(ends_s) - period)]
        if all(abs(length_s - lengths_s[0]) <= 1e-6 * lengths_s[0] for length_s in lengths_s):
            return (ends_s[last] - ends_s[last - (last - first) // period * period]) / ((last - first) // period * period)
    return (ends_s[last] - ends_s[first]) / (last - first)


def with_input_s(feed, step_s, steps):
    """The mean of many steps, each beside the preparation of a later batch, or after that of its own."""
    interval_s = max(feed["interval_s"]) * steps
    return max(step_s, interval_s) if feed["prefetch"] else step_s + interval_s


def result_of(tasks):
    """What the replay of a file finds, by the names that its own result has."""
    replayed, endless, roles = Replay(tasks), tasks.get("endless"), tasks["roles"]
    if len(replayed.end_s) < sum(len(role["members"]) * len(role["program"]) for role in roles):
        raise ValueError("the programs cannot finish")
    step_s, sizes, link_bytes = max(replayed.end_s.values(), default=0.0), collections.Counter(), [0.0] * len(tasks["links"])
    steps = tasks.get("steps", 1)  # that the programs are of
    for communication in tasks["communications"]:  # an endless run has several of a pattern alike, and says how many a step has
        number, size = communication["pattern"], communication["bytes"]
        sizes[number] = size * endless["uses_per_step"][number] if endless else sizes[number] + size
    for number, pattern in enumerate(tasks["patterns"]):
        for flow, link in [(flow, link) for group in pattern["groups"] for flow in group["flows"] for link in flow["links"]]:
            link_bytes[link] += sizes[number] * flow["fraction"] * pattern["repeat"][flow["round"]]
    if endless:
        ends_s = sorted(max(replayed.end_s[member, end["task"]] for end in step for member in roles[end["role"]]["members"])
                        for step in endless["steps"])
        step_s = steady_step_s(ends_s[:endless["steady_steps"]])
    step_s = with_input_s(tasks["input"], step_s, steps) if "input" in tasks else step_s
    peaks = [peak_bytes(replayed.role_of[end]) if end in replayed.role_of else 0.0 for end in range(len(tasks["endpoints"]))]
    return {"step_time_s": [step_s / steps], "link_bytes": [size / steps for size in link_bytes], "peak_memory_bytes": peaks}


def check(path):
    try:
        with open(path, encoding="utf-8") as file:
            tasks = json.load(file)
        if tasks["schema"] != "convoy.tasks/1":
            raise ValueError(f"the schema is {tasks['schema']}")
        found = result_of(tasks)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr) or 2
    told, wrong = {**tasks["result"], "step_time_s": [tasks["result"]["step_time_s"]]}, []
    for key, values in found.items():
        wrong += [f"{key}[{i}]: {b!r} in the file, {a!r} replayed" for i, (a, b) in enumerate(zip(values, told[key], strict=True))
                  if abs(a - b) > SAME * max(abs(a), abs(b))]
    print(f"{path}: {'; '.join(wrong[:5]) or 'the same'}{'; ...' if len(wrong) > 5 else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(max(map(check, sys.argv[1:]), default=2))
