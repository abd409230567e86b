"""What Nsight Compute printed, compared with what kbench counted: parsing, comparing, and the table."""

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

from verification import markdown
from verification.process import FAILED, MISSING, Stop

DURATION = "gpu__time_duration.sum"
DRAM_READ = "dram__bytes_read.sum"
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
SM_THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
REGISTERS = "launch__registers_per_thread"
STATIC_SHARED = "launch__shared_mem_per_block_static"
DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"
GRID_SIZE = "launch__grid_size"
BLOCK_SIZE = "launch__block_size"
METRICS = [
    DURATION,
    DRAM_READ,
    ACHIEVED,
    SM_THROUGHPUT,
    MEMORY_THROUGHPUT,
    THEORETICAL,
    REGISTERS,
    STATIC_SHARED,
    DYNAMIC_SHARED,
    GRID_SIZE,
    BLOCK_SIZE,
]

# ncu's factors are decimal. What one is divided by ("byte/block") does not scale it.
UNITS = {"nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
UNITS |= {"byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12}
UNITS |= {"": 1.0, "%": 1.0, "register": 1.0, "block": 1.0, "thread": 1.0, "threads": 1.0, "blocks": 1.0}

NO_PERMISSION = "ERR_NVGPUCTRPERM"
PERMISSION_FIX = (
    "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or set the kernel module's option "
    "NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d and reboot; in a container also --cap-add SYS_ADMIN"
)


@dataclass(frozen=True)
class Tolerance:
    """A difference agrees within the larger of a share of ncu's value and an absolute bound."""

    relative: float = 0.0
    absolute: float = 0.0

    def allows(self, kbench: float, ncu: float, kernels: int) -> bool:
        """The absolute bound is one kernel's: a sum of several has it as often. NaN is never allowed."""
        slack = 1e-9 * max(1.0, abs(ncu))  # for the printed decimals
        return abs(kbench - ncu) <= max(self.relative * abs(ncu), self.absolute * kernels) + slack


TOLERANCES = {
    "duration_ns": Tolerance(0.03, 500),
    "recorded_ns": Tolerance(0.03, 1000),
    "dram_read_bytes": Tolerance(0.02, 64 * 1024),
    "achieved_occupancy_pct": Tolerance(absolute=1),
    "sm_throughput_pct": Tolerance(absolute=2),
    "memory_throughput_pct": Tolerance(absolute=2),
    "theoretical_occupancy_pct": Tolerance(absolute=0.1),
    "registers": Tolerance(),
    "static_shared_bytes": Tolerance(),
    "dynamic_shared_bytes": Tolerance(),
    "grid": Tolerance(),
    "block": Tolerance(),
}
# kbench's counter of the step, ncu's metric, and whether kernels add up.
COUNTED = {
    "duration_ns": ("time", DURATION, False),  # a range around several kernels is longer than they are
    "recorded_ns": (None, DURATION, True),  # from the activity records, for each kernel
    "dram_read_bytes": ("dram_read_bytes", DRAM_READ, True),
    "achieved_occupancy_pct": ("achieved_occupancy", ACHIEVED, False),
    "sm_throughput_pct": ("sm_throughput", SM_THROUGHPUT, False),
    "memory_throughput_pct": ("memory_throughput", MEMORY_THROUGHPUT, False),
}
LAUNCHED = {"registers": REGISTERS, "static_shared_bytes": STATIC_SHARED, "dynamic_shared_bytes": DYNAMIC_SHARED}


@dataclass(frozen=True)
class Launch:
    """A kernel as ncu profiled it: metrics in ns, bytes and %, None where ncu has no value."""

    name: str
    metrics: dict[str, float | None]
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None


def parse_number(text: str) -> float | None:
    """The number in "1,234.5"; None for "n/a" and the like."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def scale(metric: str, unit: str) -> float:
    factor = UNITS.get(unit.split("/")[0].strip().lower())
    if factor is None:
        raise Stop(FAILED, f"ncu: unit '{unit}' of {metric} is unknown to this script")
    return factor


def dimensions(row: dict[str, str], column: str, prefix: str) -> tuple[int, ...] | None:
    """Reads three metrics where ncu has them, else a column such as "(80, 18, 1)"."""
    named = [parse_number(row.get(f"{prefix}_{axis}", "")) for axis in "xyz"]
    if all(value is not None for value in named):
        return tuple(int(value) for value in named if value is not None)
    numbers = re.findall(r"\d+", row.get(column, ""))
    return tuple(int(number) for number in numbers) if len(numbers) == 3 else None


def parse_csv(text: str) -> list[Launch]:
    """The kernels of `ncu --csv --page raw`, in order: a line of titles, one of units, one a kernel. Lines of ncu or of
    the program among them are not of the table."""
    titles: list[str] = []
    units: dict[str, str] = {}
    launches = []
    for cells in csv.reader(io.StringIO("\n".join(line for line in text.splitlines() if line.startswith('"')))):
        if "ID" in cells and "Kernel Name" in cells:
            titles, units = cells, {}
            continue
        if len(cells) != len(titles):
            continue
        row = dict(zip(titles, cells, strict=True))
        if not row["ID"]:
            units = row
            continue
        metrics: dict[str, float | None] = {}
        for metric in METRICS:
            value = parse_number(row.get(metric, ""))
            metrics[metric] = None if value is None else value * scale(metric, units.get(metric, ""))
        grid = dimensions(row, "Grid Size", "launch__grid_dim")
        launches.append(Launch(row["Kernel Name"], metrics, grid, dimensions(row, "Block Size", "launch__block_dim")))
    return launches


def outside_brackets(name: str) -> tuple[str, str]:
    """What stands outside of template arguments and parameters, and the template arguments."""
    outside, arguments, open_brackets = "", "", []
    for character in name.replace("->", "  ").replace("(anonymous namespace)", "").replace("<unnamed>", ""):
        if character == "(" or (character == "<" and "(" not in open_brackets):
            open_brackets.append(character)
        elif open_brackets and character == {"(": ")", "<": ">"}[open_brackets[-1]]:
            open_brackets.pop()
        elif not open_brackets:
            outside += character
        elif open_brackets[0] == "<":
            arguments += character
    return outside, arguments


def base_name(name: str) -> str:
    """Such as softmax of "void kbench::(anonymous namespace)::softmax<(int)8, float>(float const*)"."""
    words = outside_brackets(re.sub(r"\[clone[^]]*\]", "", name))[0].split()
    return words[-1].split("::")[-1] if words else name.strip()


def variants(name: str) -> set[str]:
    """Long words among the template arguments: Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nn_align1> says what it is
    there only. Short ones are spelt differently by different demanglers: true, (bool)1."""
    return set(re.findall(r"[A-Za-z_]\w{23,}", outside_brackets(name)[1]))


def same_kernel(kernel: dict[str, Any], name: str) -> bool:
    """kbench's kernel and ncu's name, whatever their demanglers made of types."""
    if base_name(name) not in (base_name(kernel["name"]), base_name(kernel["short_name"])):
        return False
    ours, theirs = variants(kernel["name"]), variants(name)
    return not ours or not theirs or bool(ours & theirs)


def usable_point(result: dict[str, Any]) -> dict[str, Any]:
    """The one point of a run, with kernels and counters; Stop where it has none."""
    point = result["points"][0]
    if point["status"] != "done":
        raise Stop(MISSING if point["status"] == "skipped" else FAILED, f"kbench {point['status']}: {point['reason']}")
    for part in ("activity", "counters"):
        if part not in point:
            raise Stop(FAILED, f"this kbench's result has no {part}: it is older than this script")
        reason = point[part]["unavailable"]
        if reason:
            fix = f"; {PERMISSION_FIX}" if "PERM" in reason or "PRIVILEGE" in reason else ""
            raise Stop(MISSING, f"kbench has no {part}: {reason}{fix}")
    for step in point["steps"]:  # fills and copies run as kernels in kbench's graph; ncu has no rows for them
        step["range_of_one_kernel"] = len(step["kernels"]) == 1
        step["kernels"] = [kernel for kernel in step["kernels"] if not re.match(r"mem(set|cpy)", kernel["short_name"])]
    if not count_kernels(point["steps"]):
        raise Stop(FAILED, "kbench's result holds no kernels")
    return point


def count_kernels(steps: list[dict[str, Any]]) -> int:
    return sum(len(step["kernels"]) for step in steps)


def first_steps(steps: list[dict[str, Any]], kernels: int) -> list[dict[str, Any]]:
    """The first steps that hold so many kernels; the last is whole, as a step's counters cover all its kernels."""
    chosen: list[dict[str, Any]] = []
    for step in steps:
        if count_kernels(chosen) >= kernels:
            break
        chosen.append(step)
    return chosen


def layer_span(steps: list[dict[str, Any]]) -> tuple[int, int]:
    """Kernels before the first transformer layer, and in it; (0, 0) where no step is of a layer."""
    for at, step in enumerate(steps):
        layer = re.match(r"h\.\d+\.", step["layer"])
        if layer:
            inside = [other for other in steps if other["layer"].startswith(layer[0])]
            return count_kernels(steps[:at]), count_kernels(inside)
    return 0, 0


def check(quantity: str, kbench: Any, ncu: Any, kernels: int = 1, reason: str = "") -> dict[str, Any]:
    """Both sides and a verdict. A side that is None, or a reason, leaves it uncompared."""
    entry: dict[str, Any] = {"kbench": kbench, "ncu": ncu, "difference": None, "verdict": "not compared"}
    if reason or kbench is None or ncu is None:
        return entry | {"reason": reason or f"{'kbench' if kbench is None else 'ncu'} has no value"}
    if isinstance(kbench, list):
        return entry | {"verdict": "agrees" if kbench == ncu else "deviates"}
    agrees = TOLERANCES[quantity].allows(kbench, ncu, kernels)
    return entry | {"difference": kbench - ncu, "verdict": "agrees" if agrees else "deviates"}


def check_dimensions(quantity: str, kbench: list[int], launch: Launch) -> dict[str, Any]:
    """By axis; by size where this ncu shows no axes."""
    axes = launch.grid if quantity == "grid" else launch.block
    if axes is not None:
        return check(quantity, list(kbench), list(axes))
    size = kbench[0] * kbench[1] * kbench[2]
    return check(quantity, size, launch.metrics[GRID_SIZE if quantity == "grid" else BLOCK_SIZE])


def check_counters(step: dict[str, Any], launches: list[Launch]) -> dict[str, Any]:
    checks = {}
    kernels = len(launches)
    for quantity, (counter, metric, is_sum) in COUNTED.items():
        values = [launch.metrics[metric] for launch in launches]
        reason = step["counters_discarded"]
        if not is_sum and not step["range_of_one_kernel"]:
            reason, ncu = reason or "kbench's range is around several kernels, fills or copies", None
        else:
            ncu = None if None in values else sum(value for value in values if value is not None)
        if counter is None:
            ours, reason = sum(kernel["time_us"] for kernel in step["kernels"]) * 1e3, ""
        else:
            ours = step["counters"].get(counter)
        checks[quantity] = check(quantity, ours, ncu, kernels, reason)
    return checks


def check_launch(kernel: dict[str, Any], launch: Launch) -> dict[str, Any]:
    occupancy = kernel["theoretical_occupancy_pct"]
    reason = "" if occupancy["value"] is not None else f"kbench: {occupancy['reason']}"
    name = "theoretical_occupancy_pct"
    checks = {name: check(name, occupancy["value"], launch.metrics[THEORETICAL], reason=reason)}
    for quantity, metric in LAUNCHED.items():
        checks[quantity] = check(quantity, kernel[quantity], launch.metrics[metric])
    checks |= {quantity: check_dimensions(quantity, kernel[quantity], launch) for quantity in ("grid", "block")}
    return checks


def compare(steps: list[dict[str, Any]], launches: list[Launch]) -> list[dict[str, Any]]:
    """A row for every kernel, joined by order. Counters of a step with several kernels are in a row of their own, the
    sum. Stop where the two programs did not run the same kernels."""
    kernels = [(step, kernel) for step in steps for kernel in step["kernels"]]
    for number, ((step, kernel), launch) in enumerate(zip(kernels, launches, strict=False), 1):
        if not same_kernel(kernel, launch.name):
            ours = f"kbench ran {kernel['short_name']} ({step['layer']} {step['op']})"
            raise Stop(FAILED, f"kernel {number} is not the same: {ours}, ncu profiled {launch.name}")
    if len(launches) != len(kernels):
        raise Stop(FAILED, f"ncu profiled {len(launches)} kernels, {len(kernels)} were asked for")
    rows = []
    rest = iter(launches)
    for step in steps:
        count = len(step["kernels"])
        own = [next(rest) for _ in range(count)]
        place = {"step": step["index"], "layer": step["layer"], "op": step["op"]}
        if count > 1:
            checks = check_counters(step, own)
            rows.append(place | {"kernel": f"sum of {count} kernels", "kernels": count, "checks": checks})
        for kernel, launch in zip(step["kernels"], own, strict=True):
            checks = (check_counters(step, own) if count == 1 else {}) | check_launch(kernel, launch)
            names = {"kernel": kernel["short_name"], "kbench_name": kernel["name"], "ncu_name": launch.name}
            rows.append(place | names | {"kernels": 1, "checks": checks})
    return rows


def count(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Verdicts by quantity."""
    verdicts = {quantity: {"agrees": 0, "deviates": 0, "not compared": 0} for quantity in TOLERANCES}
    for row in rows:
        for quantity, entry in row["checks"].items():
            verdicts[quantity][entry["verdict"]] += 1
    return verdicts


def uncompared(rows: list[dict[str, Any]]) -> str:
    """Why a quantity has not one comparison; empty where each has."""
    for quantity, verdicts in count(rows).items():
        if not verdicts["agrees"] and not verdicts["deviates"]:
            reasons = [row["checks"][quantity]["reason"] for row in rows if quantity in row["checks"]]
            return f"{quantity} could not be compared on any kernel: {reasons[0] if reasons else 'no kernels'}"
    return ""


def cell(entry: dict[str, Any] | None, unit: float, digits: int, relative: bool) -> str:
    """As kbench / ncu (difference), in bold where it deviates."""
    if entry is None:
        return ""
    sides = (entry["kbench"], entry["ncu"])
    ours, theirs = ("–" if side is None else f"{side / unit:.{digits}f}" for side in sides)
    if entry["difference"] is None:
        return f"{ours} / {theirs}"
    share = f"{entry['difference'] / entry['ncu']:+.1%}" if relative and entry["ncu"] else ""
    text = f"{ours} / {theirs} ({share or format(entry['difference'] / unit, f'+.{digits}f')})"
    return f"**{text}**" if entry["verdict"] == "deviates" else text


def launch_cell(checks: dict[str, Any]) -> str:
    """Says equal, or what is not."""
    names = [quantity for quantity in TOLERANCES if quantity not in COUNTED and quantity in checks]
    notes = []
    for quantity in names:
        entry = checks[quantity]
        if entry["verdict"] == "deviates":
            sides = (entry["kbench"], entry["ncu"])
            ours, theirs = (f"{side:.12g}" if isinstance(side, float) else side for side in sides)
            notes.append(f"**{quantity} {ours} / {theirs}**")
        elif entry["verdict"] == "not compared":
            notes.append(f"{quantity} {entry['verdict']}")
    return "; ".join(notes) or ("equal" if names else "")


# Titles, the quantity under each, its unit, the digits shown, and whether the difference is relative.
COLUMNS = [
    ("duration, us", "duration_ns", 1e3, 2, True),
    ("recorded, us", "recorded_ns", 1e3, 2, True),
    ("SM throughput, %", "sm_throughput_pct", 1, 1, False),
    ("memory throughput, %", "memory_throughput_pct", 1, 1, False),
    ("DRAM read, MB", "dram_read_bytes", 1e6, 3, True),
    ("achieved occupancy, %", "achieved_occupancy_pct", 1, 1, False),
]
TITLES = ["op", "kernel", *(column[0] for column in COLUMNS), "launch"]


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        checks = row["checks"]
        name = row["kernel"] if len(row["kernel"]) <= 60 else row["kernel"][:59] + "…"
        cells = [f"{row['layer']} {row['op']}", name]
        cells += [cell(checks.get(quantity), *form) for _, quantity, *form in COLUMNS]
        lines.append([*cells, launch_cell(checks)])
    return markdown.table(TITLES, lines)


def problem(output: str, last_line: str) -> Stop:
    """What to say when ncu failed."""
    if NO_PERMISSION in output:
        return Stop(MISSING, PERMISSION_FIX)
    errors = [line for line in output.splitlines() if line.startswith("==ERROR==")]
    return Stop(FAILED, f"ncu: {errors[0].removeprefix('==ERROR==').strip() if errors else last_line}")
