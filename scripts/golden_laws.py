# SPDX-License-Identifier: MIT
"""Laws that the results of every run keep, whatever the experiment says: scripts/golden asks them of all that it runs."""


def as_much(a, b, tolerance=1e-9):
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def of_intervals(run):
    """A figure lies in its interval, and what is not known has none."""
    for key, interval in (run.get("interval") or {}).items():
        if isinstance(interval, list):
            figure = run.get(key)
            if figure is None:
                yield f"{key} is not known and has an interval"
            elif not interval[0] <= figure * (1 + 1e-12) or not figure * (1 - 1e-12) <= interval[1]:
                yield f"{key} {figure} is not in its interval {interval}"
    varying = run.get("variability") or {}
    for key, interval in varying.items():
        if key.endswith("_interval_s") and (interval is None) != (varying[key.replace("_interval", "")] is None):
            yield f"variability: {key} without its figure, or the other way round"
        if isinstance(interval, list) and interval[0] > interval[1]:
            yield f"variability: {key} {interval}"


def of_steps(run):
    """A step is what its parts add up to, and has the images of the batch."""
    step_s = run["step_time_s"]
    if not step_s > 0:
        yield f"a step of {step_s} s"
    parts_s = run["compute_s"] + run["exposed_comm_s"] + run["idle_s"]
    if not as_much(parts_s, step_s, 1e-6):
        yield f"compute_s, exposed_comm_s and idle_s are {parts_s} s, the step {step_s} s"
    if run["issue_wait_s"] > run["compute_s"] * (1 + 1e-9):
        yield f"issue_wait_s {run['issue_wait_s']} is more than compute_s {run['compute_s']}"
    if not as_much(run["throughput_images_per_s"] * step_s, run["global_batch"]):
        yield f"throughput x step {run['throughput_images_per_s'] * step_s} images, global_batch {run['global_batch']}"


def of_devices(run):
    """Devices are as many as there are, no longer busy than a step, and hold, send and draw what the run does. The peak of a run
    with phases is that of all of them, its devices are those of the last."""
    devices = run["per_device"]
    if sum(device["count"] for device in devices) != run["devices"]:
        yield f"per_device has {sum(device['count'] for device in devices)} of {run['devices']} devices"
    for device in devices:
        if device["busy_s"] > run["step_time_s"] * (1 + 1e-9):
            yield f"{device['name']} is busy for {device['busy_s']} s of {run['step_time_s']} s"
        if not as_much(sum(device["memory"].values()), device["peak_memory_bytes"]):
            yield f"{device['name']} holds {sum(device['memory'].values())} bytes at a peak of {device['peak_memory_bytes']}"
    peaks = [device["peak_memory_bytes"] for device in devices]
    if "phases" not in run and run["peak_memory_bytes"] not in peaks:
        yield f"a peak of {run['peak_memory_bytes']} bytes where devices have {peaks}"
    for kind, whole in (("energy_j", run["energy_j"]), ("sent_bytes", run["comm_bytes"])):
        of_all = sum(device[kind] * device["count"] for device in devices)
        if whole is not None and of_all > whole * (1 + 1e-9):
            yield f"the devices' {kind} are {of_all}, the run's {whole}"


def of_links(run):
    """No link carries more than it can."""
    for link in run["per_link"]:
        if link["utilization"] > 1 + 1e-9:
            yield f"{link['name']} is used to {link['utilization']}"


def broken(results):
    """The laws that a document of `convoy run --json` breaks, each with the run."""
    found = []
    for run in results["runs"]:
        for law in (of_intervals, of_steps, of_devices, of_links):
            found += [f"run {run['id']}: {what}" for what in law(run)]
    return found
