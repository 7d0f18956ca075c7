# SPDX-License-Identifier: MIT
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol

__version__: str

Experiment = str | PathLike[str] | Mapping[str, Any]
Progress = Callable[[int, int], object]

class _DataFrame(Protocol):
    def to_dict(self, orient: str) -> Any: ...

class InputError(ValueError):
    file: str | None
    line: int | None
    column: int | None
    message: str

class ConvoyWarning(UserWarning): ...

class Record(Mapping[str, Any]):
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...

class Run(Record):
    id: str
    point: Record
    model: str
    cluster: str
    servers: str
    device_type: str
    strategy: str
    algorithms: list[str]
    devices: int
    global_batch: float
    step_time_s: float
    throughput_images_per_s: float
    epoch_time_s: float | None
    cost_usd_per_epoch: float | None
    energy_j: float
    compute_s: float
    issue_wait_s: float
    exposed_comm_s: float
    idle_s: float
    comm_bytes: float
    load_imbalance: float
    peak_memory_bytes: float
    process_memory_bytes: float
    device_memory_bytes: float
    fits: bool
    software: Record
    warnings: list[str]
    bottleneck: Record
    per_device: list[Record]
    per_link: list[Record]
    def timeline(self) -> Timeline: ...

class Columns(Mapping[str, list[Any]]):
    def __getitem__(self, name: str) -> list[Any]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = ...) -> object: ...
    def to_numpy(self) -> dict[str, Any]: ...
    def to_pandas(self) -> Any: ...

class Timeline:
    step_time_s: float
    left_out: int
    def spans(self) -> Columns: ...
    def memory(self) -> Columns: ...
    def traffic(self) -> Columns: ...
    def __arrow_c_stream__(self, requested_schema: object = ...) -> object: ...
    def to_pandas(self) -> Any: ...
    def save(self, file: str | PathLike[str]) -> None: ...

class Results(Sequence[Run]):
    experiment: str
    failed: list[Record]
    manifest: Record
    schedules: list[Record]
    def __getitem__(self, index: Any) -> Any: ...
    def __len__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def columns(self) -> Columns: ...
    def arrow(self) -> Columns: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = ...) -> object: ...
    def to_numpy(self) -> dict[str, Any]: ...
    def to_pandas(self) -> Any: ...

class Check(Record): ...

class Plan(Record):
    experiment: str
    goal: str
    objective: str
    constraints: Record
    choice: Record | None
    front: list[Record]
    runners_up: list[Record]
    candidates: int
    planned: int
    simulated: int
    pruned: Record
    left_out: list[Record]
    sensitivity: list[Record]
    assumes: list[Record]
    not_included: list[str]
    scenarios: list[Record]
    manifest: Record
    def to_json(self) -> str: ...

class Comparison(Record):
    a: str
    b: str
    same: int
    only_a: list[Record]
    only_b: list[Record]
    changed: list[Record]
    def to_json(self) -> str: ...

class Diagnosis(Record):
    experiment: str
    runs: list[Record]
    flip: Record  # of a plan
    def to_json(self) -> str: ...

class TraceDiagnosis(Record):
    experiment: str
    steps: int
    measured_step_time_s: float
    recording_s: float
    step_time_s: float
    matched_share: float
    terms: list[Record]
    operations: list[Record]
    remedies: list[Record]
    refused_changes: list[Record]
    def to_json(self) -> str: ...

class Validation(Record):
    rows: list[Record]
    summary: Record
    terms: list[Record]
    refits: list[Record]
    def to_json(self) -> str: ...

class Calibration:
    yaml: str
    device: dict[str, Any]
    mean_error: float
    worst_error: float
    host_issue_factor: float
    rows: list[Record]
    experiment: dict[str, Any] | None
    diagnosis: TraceDiagnosis | None
    def cluster(self, hosts: int = ..., devices: int = ..., fabric: Mapping[str, Any] | None = ...) -> dict[str, Any]: ...

def run(experiment: Experiment, set: Mapping[str, Any] = ..., sweep: Mapping[str, Iterable[Any]] = ...,
        jobs: int | None = ..., out: str | PathLike[str] | None = ...,
        progress: Progress | None = ..., tasks: str | PathLike[str] | None = ...) -> Results: ...
def check(experiment: Experiment, set: Mapping[str, Any] = ..., sweep: Mapping[str, Iterable[Any]] = ...,
          jobs: int | None = ...) -> Check: ...
def plan(experiment: Experiment, set: Mapping[str, Any] = ..., jobs: int | None = ...,
         out: str | PathLike[str] | None = ..., prices: str | PathLike[str] | None = ..., exhaustive: bool = ...,
         progress: Progress | None = ...) -> Plan: ...
def compare(a: Results | str | PathLike[str], b: Results | str | PathLike[str]) -> Comparison: ...
def validate(rows: str | PathLike[str] | Iterable[Mapping[str, Any]] | _DataFrame,
             jobs: int | None = ...) -> Validation: ...
def doctor(experiment: Experiment, set: Mapping[str, Any] = ..., jobs: int | None = ...,
           prices: str | PathLike[str] | None = ...) -> Diagnosis: ...
def diagnose(trace: str | PathLike[str], experiment: Experiment, set: Mapping[str, Any] = ...,
             jobs: int | None = ..., joint_trace: str | PathLike[str] | None = ...) -> TraceDiagnosis: ...
def show(what: str, name: str | None = ...) -> Any: ...
class TorchModel(Mapping[str, str]):
    def save(self, file: str | PathLike[str]) -> None: ...
    def show(self) -> Record: ...

def from_torch(module: Any, sample: Any) -> TorchModel: ...
Files = str | PathLike[str] | Iterable[str | PathLike[str]]
def calibrate(profiles: Files | None = ..., device: str | Mapping[str, Any] | None = ...,
              experiment: str | PathLike[str] | None = ..., trace: Files | None = ..., model: Any = ...,
              training: Mapping[str, Any] = ...) -> Calibration: ...
def save_trace(profiler: Any, file: str | PathLike[str]) -> None: ...
