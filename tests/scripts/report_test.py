"""report.html in a real browser: it opens quietly, sends nothing, its filters and its ways between chart and table work,
names are only text, axe-core finds nothing, it fits a phone, and it draws a section that it has never seen. Screenshots go to the folder given.

report_test.py KBENCH FOLDER; skips (77) without selenium, Chromium or its driver.
"""

import base64
import csv
import gzip
import http.server
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    from selenium import webdriver
except ImportError:
    # A python3 ahead on PATH need not be the one for which the distribution installs modules.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: Python has no selenium (scripts/setup --tests installs it)")
    sys.exit(77)
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait

import color_vision

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXE = ROOT / ".deps/axe/axe.min.js"
HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><b>h.0</b>&amp;{{data}}%{x}$a$\u2028"
BLOCKS = 6


# Layer, op, FLOPs, bytes and microseconds of a block's steps.
BLOCK = [("h.0.ln_1", "layernorm", 13e6, 10e6, 4), ("h.0.attn.c_attn", "gemm", 10e9, 20e6, 18),
         ("h.0.attn", "attention", 2.7e9, 10e6, 20), ("h.0.mlp.c_fc", "gemm", 13.4e9, 26e6, 25)]
NO_COUNTERS = "powercap cannot be read"


def step_of(template: dict, index: int) -> dict:
    """A step of the example, with counters that a GPU's steps have."""
    layer, op, flops, moved, us = BLOCK[index % len(BLOCK)]
    us *= 1 + 0.01 * (index * 7 % 11)
    step = json.loads(json.dumps(template))
    step.update(index=index, layer=layer.replace("h.0", f"h.{index // len(BLOCK)}"), op=op)
    step["cost"].update(flops=flops, bytes_read={"weights": moved / 2, "activations": moved / 4}, bytes_written={"activations": moved / 4})
    factor = us / step["time_us"]["median"]
    step["time_us"] = {key: value if key == "n" else value * factor for key, value in step["time_us"].items()}
    step["kernels"][0]["time_us"] = us
    step["counters"] = {"dram_read_bytes": moved * 0.7, "dram_write_bytes": moved * 0.5, "l2_sm_sectors": moved / 8, "l1_bytes": 6 * moved,
                        "sm_cycles_active": 700 * us, "sm_cycles_elapsed": 3000 * us, "time": 3000 * us, "ipc": 1.5, "achieved_occupancy": 20.0, "tensor_pipe_active": 40.0}
    return step


def example() -> dict:
    """Points on a GPU at batch 1 and 4, one on a CPU at batch 2 without counters, one skipped."""
    result = json.loads((ROOT / "tests/analysis/golden/result.json").read_text())
    gpu = next(point for point in result["points"] if point["status"] == "done")
    skipped = next(point for point in result["points"] if point["status"] == "skipped")
    template = next(step for step in gpu["steps"] if step["op"] == "layernorm")
    gpu["steps"] = [step_of(template, i) for i in range(BLOCKS * len(BLOCK))]
    gpu["counters"]["metrics"] += [{"name": name, "unit": unit, "source": "", "origin": "measured", "reason": ""} for name, unit in
                                   (("ipc", "inst/cycle"), ("sm_cycles_active", "cycle"), ("achieved_occupancy", "%"), ("dram_read_bytes", "byte"))]
    larger, cpu = (json.loads(json.dumps(gpu)) for _ in range(2))
    larger["batch"] = 4
    cpu.update(batch=2, backend="cpu", marginal=[])
    unavailable = {"value": None, "origin": "unavailable", "reason": NO_COUNTERS}
    cpu["activity"].update(unavailable="a CPU has no kernels")
    cpu["counters"].update(unavailable=NO_COUNTERS, metrics=[])
    cpu["conditions"].update(power_w=unavailable, readings=[])
    for step in cpu["steps"]:
        step.update(kernels=[], counters={})
    result["points"] = [gpu, larger, cpu, skipped]
    result["ceilings"]["ceilings"] += [dict(result["ceilings"]["ceilings"][0], name="l1_read", value=dict(gpu["conditions"]["power_w"], value=29000.0))]
    return result


def sweep() -> dict:
    """Twelve points on a GPU, each twice: batch, length and precision; the second repeat takes 2 % longer."""
    result = example()
    gpu = result["points"][0]
    result["points"] = []
    for repeat in (1, 2):
        for seq, batch, precision in itertools.product((256, 512, 1024), (1, 4), ("fp16", "fp32")):
            point = json.loads(json.dumps(gpu))
            ms = batch * seq / 256 * (2 if precision == "fp32" else 1) * (1.02 if repeat == 2 else 1)
            factor = ms / point["end_to_end"]["latency"]["summary_ms"]["median"]
            point.update(repeat=repeat, seq=seq, batch=batch, precision=precision, batch_is_max=batch == 4)
            summary = point["end_to_end"]["latency"]["summary_ms"]
            point["end_to_end"]["latency"]["summary_ms"] = {key: value if key == "n" else value * factor for key, value in summary.items()}
            for step in point["steps"]:
                step["counters"]["achieved_occupancy"] = 10.0 * batch
            result["points"].append(point)
    return result


AXES = ("model", "backend", "attention", "batch", "seq", "repeat", "precision", "direction")


def study(result: dict | None = None) -> dict:
    """The first repeat of the sweep at one length as a study; no two points may look like one measurement."""
    result = result or sweep()
    result["points"] = [point for point in result["points"] if point["repeat"] == 1 and point.get("seq") == 1024]
    for i, point in enumerate(result["points"]):
        point["batch_is_max"] = False
        point["cost"]["flops"] *= point["batch"]
        latency = point["end_to_end"]["latency"]
        latency["samples_ms"] = [latency["summary_ms"]["median"] + 1e-6 * i] * latency["summary_ms"]["n"]
        for step in point["steps"]:
            for kernel in step["kernels"]:
                kernel.update(name=f"{kernel['short_name']}_{point['precision']}", grid=[point["batch"], 1, 1])
    tasks = {(1, "fp32"): ["bottlenecks", "batch", "precision", "directions"], (1, "fp16"): ["precision"], (4, "fp32"): ["batch"]}
    planned = [({axis: point[axis] for axis in AXES if axis in point}, tasks.get((point["batch"], point["precision"]), []))
               for point in result["points"]]
    result["study"] = {"budget_s": 480.0, "points": [{**axes, "batch_is_max": False, "tasks": asked, "left_out": ""} for axes, asked in planned]}
    result["study"]["points"].append({**planned[0][0], "batch": 64, "batch_is_max": False, "tasks": ["batch"], "left_out": "the budget was used up"})
    return result


def hostile() -> dict:
    result = example()
    for point in result["points"]:
        point["model"] = point["reason"] = HOSTILE
        for step in point["steps"]:
            step["layer"] = step["implementation"] = step["shape"] = HOSTILE
            step["absorbs"] = [HOSTILE]
            for kernel in step["kernels"]:
                kernel["name"] = kernel["short_name"] = HOSTILE
    result["warnings"] = [HOSTILE]
    result["environment"]["command_line"] = result["environment"]["host"]["cpu"] = HOSTILE
    result["environment"]["gpu"]["name"] = HOSTILE
    return result


# Texts and boxes of a roofline's names on marks, and boxes of what they must not cover: marks, and labels of flat roofs.
NAMES_ON_MARKS = """(chart) => {
    const box = (element) => (({left, right, top, bottom}) => [left, right, top, bottom])(element.getBoundingClientRect());
    const drawn = [...chart.querySelectorAll('.annotation')].map((element, i) => [chart.layout.annotations[i], box(element.querySelector('text'))]);
    return {names: drawn.filter(([label]) => label.name === 'mark').map(([label, rect]) => [label.text, rect]),
        others: [...drawn.filter(([label]) => !label.name && !label.textangle).map(([, rect]) => rect),
            ...[...chart.querySelectorAll('.scatterlayer .points path')].map(box)]};
}"""


class Browser(webdriver.Chrome):
    """Chromium without a window, at a width that a phone may have."""

    def __init__(self) -> None:
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        super().__init__(service=Service(shutil.which("chromedriver")), options=options)
        self.set_script_timeout(120)

    def open(self, page: pathlib.Path, width: int = 1280, theme: str = "light", height: int = 900) -> None:
        self.resize(width, height)
        self.prefer(theme)
        self.load(page.as_uri())

    def load(self, address: str) -> None:
        self.get(address)
        self.wait("document.querySelector('main').dataset.state === 'drawn'")

    def prefer(self, theme: str) -> None:
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})

    def resize(self, width: int, height: int = 900) -> None:
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                             {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def js(self, script: str, *arguments):
        return self.execute_script("return " + script, *arguments)

    def wait(self, condition: str, *arguments) -> None:
        WebDriverWait(self, 20).until(lambda _: self.js(condition, *arguments), f"never true: {condition}")

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def screenshot(self, file: pathlib.Path, width: int) -> None:
        height = self.js("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        file.write_bytes(base64.b64decode(shot["data"]))

    def press(self, element: WebElement) -> None:
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def section(self, title: str) -> "Part":
        """The section under the heading that begins so."""
        element = self.js("[...document.querySelectorAll('main :is(h2, h3, h4, h5)')].find((h) => h.textContent.startsWith(arguments[0]))"
                          "?.closest('section')", title)
        if element is None:
            raise AssertionError(f"no section is called {title}")
        return Part(self, element)

    def titles(self) -> list[str]:
        return self.js("[...document.querySelectorAll('main :is(h2, h3, h4, h5)')].map((h) => h.textContent)")


class Part:
    """A section of the page: its charts, its long table and its controls."""

    def __init__(self, browser: Browser, element: WebElement) -> None:
        self.browser, self.element = browser, element

    def find(self, selector: str) -> WebElement:
        return self.element.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.element.find_elements(By.CSS_SELECTOR, selector)

    def js(self, script: str, *arguments):
        """A script in which `part` is the section."""
        return self.browser.js("((part, ...rest) => (" + script + "))(...arguments)", self.element, *arguments)

    def text(self) -> str:
        return self.js("part.textContent")

    def unfold(self) -> None:
        """Opens what is folded, and waits until its charts are drawn."""
        self.js("part.querySelectorAll('details').forEach((d) => { d.open = true; })")
        self.browser.wait("[...arguments[0].querySelectorAll('.chart')].every((chart) => chart.data)", self.element)

    def press(self, group: str, text: str) -> None:
        self.browser.press(next(button for button in self.all(f'[aria-label="{group}"] button') if button.text.endswith(text)))

    def select(self, label: str) -> Select:
        return Select(next(element for element in self.all("label") if element.text.startswith(label)).find_element(By.TAG_NAME, "select"))

    def traces(self, chart: int = 0) -> list[dict]:
        return self.js("part.querySelectorAll('.chart')[rest[0]].data.map(({name, x, y, hovertext, customdata, marker}) => ({name, x, y, hovertext, customdata, color: marker?.color}))", chart)

    def marks(self) -> dict[str, int]:
        """How many marks a chart of them shows, by trace; the one called "selected" is the ring."""
        return self.js("Object.fromEntries(part.querySelector('.chart').data.filter((t) => t.mode !== 'lines').map((t) => [t.name, t.x.length]))")

    def keys(self) -> list[str]:
        return self.js("[...part.querySelectorAll('.tall tbody tr')].map((row) => row.dataset.key)")

    def column(self, header: str) -> list[str]:
        return self.js(
            "((at) => [...part.querySelectorAll('.tall tbody tr')].map((row) => row.cells[at].textContent))"
            "([...part.querySelectorAll('.tall th[scope=col]')].findIndex((h) => h.textContent.replace(/ [↓↑]$/, '') === rest[0]))", header)

    def sort(self, header: str) -> str:
        button = next(button for button in self.all(".tall thead button") if button.text.rstrip(" ↓↑") == header)
        self.browser.press(button)
        return self.js("part.querySelector('.tall th:not([aria-sort=none])').ariaSort")


class Report(unittest.TestCase):
    kbench: pathlib.Path
    folder: pathlib.Path
    browser: Browser
    page: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory()
        cls.page = cls.report(example(), "example")
        cls.browser = Browser()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def report(cls, result: dict, name: str) -> pathlib.Path:
        folder = pathlib.Path(cls.scratch.name) / name
        folder.mkdir()
        (folder / "result.json").write_text(json.dumps(result))
        subprocess.run([cls.kbench, "report", folder, "--format", "html", "--out", folder], check=True, capture_output=True)
        return folder / "report.html"

    def open(self, page: pathlib.Path | None = None, **options) -> Browser:
        self.browser.open(page or self.page, **options)
        return self.browser

    def test_opens_quietly_and_asks_the_network_for_nothing(self) -> None:
        b = self.open()
        b.requests()
        b = self.open()
        empty = b.js("[...document.querySelectorAll('main section')].filter((s) => s.textContent === s.querySelector('h2, h3, h4, h5')?.textContent).map((s) => s.id)")
        self.assertEqual(empty, [])
        self.assertNotIn("Bottlenecks", b.titles(), "this is no study")
        links = b.js("[...document.querySelectorAll('nav a')].map((a) => [a.textContent, a.hash.slice(1)])")
        self.assertGreater(len(links), 10)
        for text, target in links:
            self.assertTrue(b.js("document.getElementById(arguments[0])?.textContent.startsWith(arguments[1])", target, text), target)
        self.assertEqual(b.errors(), [])
        foreign = [url for url in b.requests() if not url.startswith(("data:", "blob:", self.page.as_uri()))]
        self.assertEqual(foreign, [])

    def test_no_request_can_leave_the_file(self) -> None:
        asked = []

        class Listener(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        b = self.open()
        tried = b.execute_async_script(
            "const done = arguments[1], url = arguments[0]; const image = new Image(); image.src = url + 'image';"
            "const script = document.createElement('script'); script.src = url + 'script'; document.head.append(script);"
            "const frame = document.createElement('iframe'); frame.src = url + 'frame'; document.body.append(frame);"
            "fetch(url + 'fetch', {mode: 'no-cors'}).then(() => done('sent'), () => setTimeout(() => done('refused'), 500));",
            f"http://127.0.0.1:{server.server_port}/")
        self.assertEqual((tried, asked), ("refused", []))
        self.assertIn("Content Security Policy", " ".join(b.errors()))

    def test_filters_hold_for_marks_and_rows(self) -> None:
        b = self.open()
        roofline, steps = b.section("Roofline"), b.section("Steps")
        roofline.select("Marks").select_by_visible_text("steps")
        before = roofline.marks()
        self.assertEqual(len(steps.keys()), 4 * BLOCKS)
        roofline.press("Groups", "gemm")
        self.assertEqual(len(steps.keys()), 2 * BLOCKS)
        self.assertLess(roofline.marks()["DRAM"], before["DRAM"])
        roofline.press("Groups", "gemm")
        self.assertEqual(roofline.marks(), before)
        layer = roofline.select("Layer")
        layer.select_by_visible_text("h.*.attn.c_attn")
        self.assertEqual(len(steps.keys()), BLOCKS)
        self.assertEqual(roofline.marks()["DRAM"], BLOCKS)
        layer.select_by_index(0)
        steps.find("input").send_keys("h.3.ATTN.c")
        self.assertEqual(len(steps.keys()), 1)
        self.assertIn(f"1 of {4 * BLOCKS}", steps.find("[role=status]").text)
        steps.find("input").clear()
        steps.find("input").send_keys(Keys.SPACE, Keys.BACKSPACE)
        op = steps.select("op")
        op.select_by_visible_text("attention")
        self.assertEqual(set(steps.column("op")), {"attention"})

    def test_levels_and_views_are_switched(self) -> None:
        roofline = self.open().section("Roofline")
        self.assertEqual(set(roofline.marks()), {"DRAM", "L2", "L1", "selected"})
        self.assertEqual(roofline.marks()["DRAM"], len(BLOCK), "a mark a layer, until steps are asked for")
        roofline.press("Shapes", "L2")
        self.assertEqual(set(roofline.marks()), {"DRAM", "L1", "selected"})
        roofline.press("Shapes", "unfused")
        self.assertEqual(roofline.marks()["unfused"], roofline.marks()["DRAM"])
        roofline.select("Marks").select_by_visible_text("ops")
        self.assertEqual(roofline.marks()["DRAM"], 3)
        for level in ("DRAM", "L1", "unfused"):
            roofline.press("Shapes", level)
        self.assertEqual(roofline.marks(), {"selected": 0})
        low, high = roofline.js("part.querySelector('.chart').layout.yaxis.range")
        self.assertTrue(2 < high - low < 5, "without marks the roofs are left")

    def test_the_largest_marks_have_their_layers_name_and_no_name_covers_another(self) -> None:
        b = self.open()
        for width, least in ((1440, 4), (390, 2)):
            b.resize(width)
            b.wait("[...document.querySelectorAll('.main-svg')].every((s) => s.clientWidth <= arguments[0])", width)
            roofline = b.section("Roofline")
            for view in ("layers", "steps"):
                roofline.select("Marks").select_by_visible_text(view)
                drawn = roofline.js("(" + NAMES_ON_MARKS + ")(part.querySelector('.chart'))")  # at once: a new width draws it again
                labels = [text for text, _ in drawn["names"]]
                with self.subTest(width=width, view=view, labels=labels):
                    self.assertGreaterEqual(len(labels), least)
                    self.assertEqual(len(labels), len(set(labels)), "each once")
                    if view == "layers":
                        self.assertEqual(labels[0], "h.*.mlp.c_fc", "the longest first")
                    for i, (text, (left, right, top, bottom)) in enumerate(drawn["names"]):
                        for x0, x1, y0, y1 in [box for _, box in drawn["names"][i + 1:]] + drawn["others"]:
                            self.assertFalse(left < x1 - 1 and x0 < right - 1 and top < y1 - 2 and y0 < bottom - 2, text)

    def test_the_axes_of_the_roofline_end_with_its_marks(self) -> None:
        roofline = self.open().section("Roofline")
        axes = roofline.js("(({xaxis, yaxis}) => ({titles: [xaxis.title.text, yaxis.title.text], x: xaxis.range, y: yaxis.range}))(part.querySelector('.chart').layout)")
        self.assertEqual(axes["titles"], ["Arithmetic intensity (FLOP/byte)", "Performance (TFLOP/s)"])
        marks = [trace for trace in roofline.traces() if trace["name"] in ("DRAM", "L2", "L1")]
        for axis in "xy":
            values = [math.log10(value) for trace in marks for value in trace[axis]]
            low, high = axes[axis]
            self.assertTrue(low < min(values) < low + 0.6 and high > max(values), (axis, low, high))
            if axis == "x":
                self.assertLess(high, max(values) + 0.6)
        roofline.press("Groups", "gemm")
        self.assertEqual(roofline.js("part.querySelector('.chart').layout.xaxis.range"), axes["x"], "a filter leaves them")

    def test_marks_far_beyond_the_ridge_points_do_not_stretch_the_axis(self) -> None:
        def move(document: dict) -> None:
            for point in next(section for section in document["sections"] if section.get("choice") == "Point of the sweep")["sections"]:
                for section in point["sections"]:
                    for block in section["blocks"]:
                        if block.get("chart") == "roofline":
                            shown = [i for i, shape in enumerate(block["marks"]["shape"]) if shape not in block["off"]]
                            block["marks"]["x"][shown[0]] = 1e6

        roofline = self.open(self.changed(move, "far-mark.html")).section("Roofline")
        self.assertLess(roofline.js("part.querySelector('.chart').layout.xaxis.range")[1], 4, "the last ridge point is at 227")
        self.assertRegex(roofline.find(".controls > [role=status]").text, r"^1 of \d+ marks lie further right than the axis")
        roofline.select("Marks").select_by_visible_text("ops")
        self.assertEqual(roofline.find(".controls > [role=status]").text, "")

    def test_a_mark_selects_its_row_and_its_bar_and_a_row_its_mark(self) -> None:
        b = self.open()
        roofline, steps, timeline = (b.section(title) for title in ("Roofline", "Steps", "Timeline"))
        roofline.select("Marks").select_by_visible_text("steps")
        roofline.select("Layer").select_by_visible_text("h.*.attn.c_attn")
        for level in ("L2", "L1"):
            roofline.press("Shapes", level)
        mark = roofline.all(".scatterlayer .points path")[-1]
        b.js("arguments[0].scrollIntoView({block: 'center'})", mark)
        ActionChains(b).move_to_element(mark).pause(0.2).click().perform()
        b.wait("arguments[0].querySelectorAll('tr.selected').length === 1", steps.element)
        chosen = steps.js("part.querySelector('tr.selected').dataset.key")
        self.assertIn("attn.c_attn", steps.find("tr.selected").text)
        self.assertEqual((roofline.marks()["selected"], timeline.marks()["selected"]), (1, 1))
        box, row = (steps.find(selector).rect for selector in (".tall", "tr.selected"))
        self.assertTrue(box["y"] <= row["y"] <= box["y"] + box["height"], "the row is in the table's window")
        panel = b.find_element(By.ID, "selection")
        self.assertIn("attn.c_attn", panel.text)
        next(button for button in panel.find_elements(By.TAG_NAME, "button") if "Steps" in button.text).click()
        self.assertEqual(b.js("document.activeElement.closest('tr').dataset.key"), chosen)
        other = next(key for key in steps.keys() if key != chosen)
        b.press(steps.find(f'tr[data-key="{other}"] td:nth-child(2)'))
        traces = {trace["name"]: trace for trace in roofline.traces()}
        at = traces["DRAM"]["customdata"].index(int(other))
        self.assertEqual(traces["selected"]["x"], [traces["DRAM"]["x"][at]])
        roofline.select("Marks").select_by_visible_text("layers")
        self.assertEqual(roofline.marks()["selected"], 1, "the step's layer")
        panel.find_elements(By.TAG_NAME, "button")[-1].click()
        self.assertEqual((steps.all("tr.selected"), roofline.marks()["selected"], panel.is_displayed()), ([], 0, False))

    def test_every_header_sorts_both_ways(self) -> None:
        b = self.open()
        steps = b.section("Steps")
        for header, ways in (("time us", ("descending", "ascending")), ("layer", ("ascending", "descending"))):
            for way in ways:
                self.assertEqual(steps.sort(header), way)
                cells = steps.column(header)
                values = [float(cell.replace(",", "")) for cell in cells] if header == "time us" else cells
                self.assertEqual(values, sorted(values, reverse=way == "descending"))
        self.assertTrue(b.js("document.activeElement.textContent").startswith("layer"), "the header keeps the focus")

    def test_kernels_are_a_table_too(self) -> None:
        kernels = self.open().section("Kernels")
        self.browser.js("arguments[0].querySelectorAll('details').forEach((d) => { d.open = true; })", kernels.element)
        self.assertIn("grid", [header.text for header in kernels.all("thead th")])
        self.assertEqual(len(kernels.keys()), 4 * BLOCKS)

    def test_the_theme_follows_the_system_until_the_button_decides(self) -> None:
        b = self.open(theme="dark")
        colors = lambda: b.js("[getComputedStyle(document.body).backgroundColor, document.querySelector('.chart').layout.font.color]")  # noqa: E731
        dark = colors()
        b.press(b.find_element(By.ID, "theme"))
        light = colors()
        self.assertNotEqual(dark[0], light[0])
        self.assertNotEqual(dark[1], light[1], "charts follow")
        self.assertEqual(light[0], "rgb(255, 255, 255)")

    def fragment(self) -> list[str]:
        """The section of the address, then its pairs."""
        return self.browser.js("location.hash.slice(1).split('&')")

    def open_at(self, fragment: str) -> Browser:
        """As from a link: in a page of its own, not where it was."""
        self.browser.get("about:blank")
        self.browser.resize(1280)
        self.browser.prefer("light")
        self.browser.load(f"{self.page.as_uri()}#{fragment}")
        return self.browser

    def test_point_step_and_theme_are_in_the_address_and_come_back_from_it(self) -> None:
        b = self.open()
        self.assertEqual(b.js("location.href"), self.page.as_uri(), "who chose nothing has a plain address")
        self.choose_point(1)
        point = self.fragment()[1]
        self.assertRegex(point, "^point=.*batch-4")
        key = b.section("Steps").keys()[5]
        b.press(b.section("Steps").find(f'tr[data-key="{key}"] td:nth-child(2)'))
        b.press(b.find_element(By.ID, "theme"))
        self.assertEqual(self.fragment(), ["", point, f"step={key}", "theme=dark"])
        link = next(link for link in b.find_elements(By.CSS_SELECTOR, "nav a") if link.text == "Roofline")
        section = link.get_attribute("hash")[1:]
        b.press(link)
        b.wait("location.hash.includes('step')")
        self.assertEqual(self.fragment(), [section, point, f"step={key}", "theme=dark"], "a link leaves the rest")
        address = "&".join(self.fragment())
        b = self.open_at(address)
        self.assertEqual("&".join(self.fragment()), address)
        self.assertTrue(b.js("[...document.querySelectorAll('main select')].some((s) => s.selectedOptions[0].text.includes('batch 4'))"))
        self.assertEqual(b.section("Steps").js("part.querySelector('tr.selected').dataset.key"), key)
        self.assertTrue(b.find_element(By.ID, "selection").is_displayed())
        self.assertEqual(b.js("document.documentElement.dataset.theme"), "dark")
        self.assertLess(abs(b.js("document.getElementById(arguments[0]).getBoundingClientRect().top", section)), 200, "the section is in view")
        self.choose_point(0)
        self.assertFalse(any(pair.startswith("step=") for pair in self.fragment()), "a step goes with its point")
        self.assertFalse(b.find_element(By.ID, "selection").is_displayed())
        self.assertEqual(b.errors(), [])

    def test_what_an_address_names_and_the_page_lacks_is_ignored(self) -> None:
        for fragment in ("nowhere", "theme", "selection", "&section=nav", "&step", "&point=gpt9&step=9999&theme=pink", "&step=-1", "&step=1e1", "&constructor=1&__proto__=2&toString", "%&%E0%A4%A&point",
                         "&point=%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E"):
            with self.subTest(fragment):
                b = self.open_at(fragment)
                self.assertEqual(b.js("[location.hash, document.documentElement.dataset.theme, document.querySelector('#selection').hidden, scrollY, window.hacked ?? null]"),
                                 ["", "light", True, 0, None])
                self.assertEqual(b.errors(), [])

    def test_differences_of_colours_are_the_published_ones(self) -> None:
        for one, other, expected in (((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, -1, 2), (50, 0, 0), 2.3669), ((50, 2.5, 0), (73, 25, -18), 27.1492),
                                     ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373), ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441)):
            self.assertAlmostEqual(color_vision.ciede2000(one, other), expected, 4)  # Sharma's table 1

    def test_neighbouring_colours_differ_to_colour_blind_readers(self) -> None:
        b = self.open()
        names = [f"c{i}" for i in range(8)]
        # The next but one is a neighbour where a line of a stacked bar is nothing. What is not explained may follow any.
        pairs = [(name, names[(i + step) % 8]) for i, name in enumerate(names) for step in (1, 2)] + [(name, "g0") for name in names] + [("g0", "g1"), ("g1", "g2"), ("g2", "g0")]
        for theme in ("light", "dark"):
            b.prefer(theme)
            b.wait("document.documentElement.dataset.theme === arguments[0]", theme)
            colors = {name: b.js("getComputedStyle(document.documentElement).getPropertyValue('--' + arguments[0]).trim()", name) for name in {*itertools.chain(*pairs)}}
            for (one, other), vision in itertools.product(pairs, color_vision.VISION):
                with self.subTest(theme=theme, pair=(one, other), vision=vision):
                    self.assertGreaterEqual(color_vision.difference(colors[one], colors[other], vision), 10, "CIEDE2000")

    def test_everything_is_reached_by_keyboard(self) -> None:
        b = self.open()
        keys = lambda *what: ActionChains(b).send_keys(*what).perform()  # noqa: E731
        keys(Keys.TAB)
        self.assertEqual(b.js("document.activeElement.className"), "skip")
        keys(Keys.ENTER)
        self.assertEqual(b.js("document.activeElement.id"), "main")
        reached = []
        for _ in range(40):  # a Tab each, several at a time, since each call takes long
            ActionChains(b).send_keys(Keys.TAB * 10).perform()
            reached = b.js("(window.reached ??= (addEventListener('focusin', (e) => reached.push(e.target.textContent.trim() || e.target.type)), []))")
            if any(text.startswith("time us") for text in reached):
                break
        for expected in ("DRAM", "gemm", "search"):
            self.assertTrue(any(expected in text for text in reached), expected)
        header = b.js("[...document.querySelectorAll('.tall thead button')].find((h) => h.textContent === 'time us')")
        header.send_keys(Keys.ENTER)
        self.assertEqual(b.js("document.querySelector('.tall th[aria-sort=descending]').textContent"), "time us ↓")
        b.section("Steps").find("tbody button").send_keys(Keys.SPACE)
        self.assertEqual(len(b.section("Steps").all("tr.selected")), 1)
        b.find_element(By.ID, "theme").send_keys(Keys.ENTER)
        self.assertEqual(b.js("document.documentElement.dataset.theme"), "dark")
        self.assertNotEqual(b.js("getComputedStyle(document.activeElement).outlineStyle"), "none", "the focus is seen")

    def test_names_from_the_result_are_only_text(self) -> None:
        b = self.open(self.report(hostile(), "hostile"))
        for i, point in enumerate(example()["points"]):
            self.choose_point(i)
            b.js("document.querySelectorAll('main details').forEach((d) => { d.open = true; })")
            if i < 1:
                mark = b.section("Roofline").all(".scatterlayer .points path")[0]
                b.js("arguments[0].scrollIntoView({block: 'center'})", mark)
                ActionChains(b).move_to_element(mark).pause(0.3).perform()
                b.wait("document.querySelectorAll('.hoverlayer text').length > 0")
                self.assertIn("<b>h.0</b>&amp;", b.js("[...document.querySelectorAll('.hoverlayer')].map((h) => h.textContent).join()"), "what looks like markup is shown")
                self.assertIn(HOSTILE, b.section("Steps").column("layer"))
            if point["status"] == "done":
                ticks = b.js("[...document.querySelectorAll('.ytick text')].map((t) => t.textContent).join(' ')")
                self.assertIn("</scri", ticks)
        self.assertIsNone(b.js("window.hacked ?? null"))
        self.assertEqual(b.js("document.querySelectorAll('img, b, iframe, svg a').length"), 0)
        self.assertIn(HOSTILE.replace("\u2028", ""), b.js("document.title").replace("\u2028", ""))
        self.assertEqual(b.errors(), [])

    def choose_point(self, index: int) -> None:
        label = next(label for label in self.browser.find_elements(By.CSS_SELECTOR, "main label") if label.text.startswith("Point of the sweep"))
        Select(label.find_element(By.TAG_NAME, "select")).select_by_index(index)

    def test_what_is_missing_is_said_with_its_reason(self) -> None:
        b = self.open()
        points = example()["points"]
        cpu = next(i for i, point in enumerate(points) if point["backend"] == "cpu" and point["status"] == "done")
        self.choose_point(cpu)
        self.assertIn(NO_COUNTERS, b.js("document.querySelector('main').textContent"))
        for title in ("Layers by metric", "Timeline", "All steps and kernels"):
            self.assertIn("unavailable", b.section(title).text(), title)
        skipped = next(i for i, point in enumerate(points) if point["status"] == "skipped")
        self.choose_point(skipped)
        self.assertIn(points[skipped]["reason"], b.js("document.querySelector('main').textContent"))
        self.assertIn(points[skipped]["reason"], b.section("All points").text())
        self.assertEqual(b.errors(), [])

    def test_curves_of_a_sweep_along_each_of_its_axes(self) -> None:
        b = self.open(self.report(sweep(), "sweep"))
        part = b.section("What the points say")
        leads = part.all("p.lead")
        self.assertIn("Bandwidth-bound?", leads[0].text)
        charts = part.all("figure")
        self.assertLess(leads[-1].location["y"], charts[0].location["y"], "the answer comes first")
        self.assertLess(charts[1].location["y"] + charts[1].size["height"], 900, "and a chart on its screen")
        part.unfold()
        titles = [caption.text.split("\n")[0] for caption in part.all("figcaption")]
        self.assertEqual(titles, ["Time of one run, ms", "Throughput, tokens/s", "Useful work, TFLOP/s", "Occupancy, achieved, %", "Occupancy, theoretical, %",
                                  "Longest roof times, share of the latency, %", "Energy a sequence, J"])
        times = part.traces()
        self.assertEqual(len(times), 4, "a curve for each batch and precision along the length")
        self.assertEqual(times[0]["x"], [256, 512, 1024])
        for value, expected in zip(times[0]["y"], (1.01, 2.02, 4.04)):  # the median of two repeats
            self.assertAlmostEqual(value, expected, 3)
        self.assertEqual([trace["y"] for trace in part.traces(3)], [[10] * 3, [10] * 3, [40] * 3, [40] * 3], "achieved, since all were counted")
        along = part.select("Along")
        along.select_by_visible_text("precision")
        part.unfold()
        times = part.traces()
        self.assertEqual((len(times), times[0]["x"]), (6, ["fp16", "fp32"]))
        self.assertAlmostEqual(times[0]["y"][1] / times[0]["y"][0], 2, 3)
        along.select_by_visible_text("batch")
        part.unfold()
        self.assertEqual((part.traces(3)[0]["x"], part.traces(3)[0]["y"]), ([1, 4], [10, 40]))
        hover = part.traces(5)[0]["hovertext"][1]
        for text in ("batch 4 (max)", "median of 2 repeats", "longest roof time: fp16_tensor"):
            self.assertIn(text, hover)
        before = len(b.section("All points").all("tbody tr"))
        self.assertEqual(before, 24)
        self.choose_point(1)
        self.assertEqual(len(part.traces()), 6, "choosing a point leaves the curves as they are")
        b.screenshot(self.folder / "sweep.png", 1280)
        self.assertEqual(b.errors(), [])

    def test_a_study_answers_each_question_on_one_screen(self) -> None:
        page = self.report(study(), "study")
        b = self.open(page)
        for title in ("Bottlenecks", "Batch", "Precision", "Forward against backward"):
            answer = b.section(title)
            folded = answer.js("[...part.querySelectorAll('details')].reduce((sum, d) => sum + d.clientHeight, 0)")
            self.assertLessEqual(answer.element.size["height"] - folded, 900, title)
            if title != "Forward against backward":
                self.assertGreater(len(answer.all(".chart .main-svg")), 0, title)
        self.assertNotIn("[object", b.js("document.querySelector('main').textContent"))
        self.assertIn("the budget was used up", b.js("document.querySelector('main').textContent"))
        b.press(b.find_element(By.ID, "theme"))
        self.assertEqual(b.errors(), [])
        b.screenshot(self.folder / "study-1280.png", 1280)
        b.resize(390)
        b.wait("[...document.querySelectorAll('.main-svg')].every((s) => s.clientWidth <= 390)")
        self.assertLessEqual(b.js("document.documentElement.scrollWidth"), 390)

    def test_names_in_a_study_are_only_text(self) -> None:
        result = study()
        for point in result["points"] + result["study"]["points"]:
            point["model"] = HOSTILE
            for step in point.get("steps", []):
                step["layer"] = step["implementation"] = HOSTILE
                for kernel in step["kernels"]:
                    kernel["name"] = kernel["short_name"] = HOSTILE + point["precision"]
        b = self.open(self.report(result, "hostile-study"))
        self.assertIsNone(b.js("window.hacked ?? null"))
        self.assertEqual(b.js("document.querySelectorAll('img, b, iframe, svg a').length"), 0)
        self.assertIn("<b>h.0</b>", b.section("Bottlenecks").text())
        self.assertEqual(b.errors(), [])

    def changed(self, change, name: str) -> pathlib.Path:
        """The example's page with its document changed, by a function of it."""
        page = self.page.read_text()
        begin = page.index(">", page.index('id="data"')) + 1
        end = page.index("</script>", begin)
        document = json.loads(gzip.decompress(base64.b64decode(page[begin:end])))
        change(document)
        target = pathlib.Path(self.scratch.name) / name
        target.write_text(page[:begin] + base64.b64encode(gzip.compress(json.dumps(document).encode())).decode() + page[end:])
        return target

    def test_a_section_that_the_page_has_never_seen_is_drawn(self) -> None:
        series = [{"name": "first", "values": [1, 2], "low": [0.5, 1.5], "high": [1.5, None]}, {"name": "second", "values": [2, None], "faint": True}]
        charts = [{"chart": "bars", "unit": "ms", "labels": ["a", "b"], "series": series},
                  {"chart": "stacked", "unit": "ms", "labels": ["a", "b"], "series": series},
                  {"chart": "curve", "x": {"title": "n", "log": True, "zero": False}, "y": {"title": "", "log": False, "zero": True},
                   "series": [{"name": "one", "x": [1, 2, 4], "y": [1, 4, 2], "low": [1, 3, 2], "high": [1, 5, 2], "hover": ["p", "q", "r"]}]},
                  {"chart": "heat", "rows": ["a", "b"], "columns": [{"header": "m", "what": "more", "most": None}], "values": [[1], [None]], "decimals": [2]},
                  {"chart": "timeline", "unit": "us", "groups": ["x", "y"], "bars": {"start": [0, 5], "length": [4, 2], "group": [0, 1], "hover": ["p", "q"], "key": [7, None]}},
                  {"chart": "timeline", "unit": "ms", "groups": ["x", "y"], "names": ["forward", "<b>", "none"],
                   "bars": {"start": [0, 4, 0], "length": [4, 0.001, 2], "group": [0, 0, 1], "hover": ["p", "q", "r"], "key": [None] * 3, "name": [0, 1, 1]}}]
        section = {"id": "never-seen", "title": "Never seen", "sections": [], "blocks": [
            {"kind": "chart", "title": f"Chart of {chart['chart']}", "caption": "a caption", **chart} for chart in charts] + [
            {"kind": "table", "caption": "Keys", "columns": [{"header": "name", "style": "name"}], "rows": [["seven"]], "keys": [7]},
            {"kind": "table", "caption": "Long", "long": True, "columns": [{"header": "n", "number": True}, {"header": "name"}],
             "rows": [[str(i), f"row {i}"] for i in range(120)]}]}
        b = self.open(self.changed(lambda document: document["sections"].append(section), "never-seen.html"))
        part = b.section("Never seen")
        self.assertIn("Never seen", b.find_element(By.TAG_NAME, "nav").text)
        self.assertEqual([caption.text.split("\n")[0] for caption in part.all("figcaption")], [f"Chart of {chart['chart']}" for chart in charts])
        self.assertEqual(len(part.all(".chart > .plot-container")), 5)
        self.assertEqual([trace["name"] for trace in part.traces()], ["first", "second"])
        part.press("Series", "first")
        self.assertEqual([trace["name"] for trace in part.traces()], ["second"])
        self.assertEqual([cell.text for cell in part.all(".heat tbody td")], ["1.00", "na"])
        b.press(part.find("tr[data-key='7'] button"))
        self.assertEqual(len(part.traces(3)[-1]["x"]), 1, "the row's bar is outlined")
        colors = [trace["color"] for trace in part.traces(3)[:-1]]
        self.assertEqual([(trace["name"], trace["color"]) for trace in part.traces(4)[:2]],
                         list(zip(["forward", "&lt;b&gt;"], colors)), "a colour for each name, in whichever lane")
        shown = part.js("[...part.querySelectorAll('.chart')[4].querySelectorAll('.bartext')].filter((text) => text.getBoundingClientRect().width > 0).map((text) => text.textContent)")
        self.assertEqual(shown, ["forward", "<b>"], "not in the bar that has no room")
        self.assertEqual(len(part.keys()), 50, "a long table shows its first rows")
        b.press(next(button for button in part.all("button") if button.text == "Show all"))
        self.assertEqual(len(part.keys()), 120)
        self.assertEqual(b.errors(), [])

    def test_every_table_is_copied_and_saved(self) -> None:
        b = self.open()
        downloads = pathlib.Path(self.scratch.name) / "downloads"
        b.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        b.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        b.js("document.querySelectorAll('main details').forEach((d) => { d.open = true; })")
        names = b.js("[...document.querySelectorAll('main table')].map((t) => [...t.closest('.table').querySelectorAll('.export button')].map((b) => b.getAttribute('aria-label')))")
        self.assertGreater(len(names), 10)
        for pair in names:
            self.assertRegex(" ".join(pair), "^Copy the table .+ Save the table .+ as CSV$")

        def exported(part: Part, table: int = 0) -> tuple[list[str], list[list[str]]]:
            """Lines that were copied and rows that were saved."""
            box = part.js("[...part.querySelectorAll('table')][rest[0]].closest('.table')", table)
            for button in box.find_elements(By.CSS_SELECTOR, ".export button"):
                b.press(button)
            b.wait("arguments[0].querySelector('.export [role=status]').textContent === 'copied'", box)
            wait = WebDriverWait(b, 20)
            file = wait.until(lambda _: next(iter(downloads.glob("*.csv")), None))
            with file.open(newline="") as lines:
                rows = list(csv.reader(lines))
            self.saved = file.name
            file.unlink()
            return b.execute_async_script("navigator.clipboard.readText().then(arguments[0])").split("\n"), rows

        steps = b.section("Steps")
        steps.select("op").select_by_visible_text("gemm")
        steps.sort("time us")
        lines, rows = exported(steps)
        self.assertEqual(self.saved, "steps.csv")
        self.assertEqual((len(rows), len(lines)), (1 + 2 * BLOCKS,) * 2, "what the filters leave, all of it")
        at = rows[0].index("time us")
        self.assertEqual([f"{float(row[at]):,.3f}" for row in rows[1:]], steps.column("time us"), "in the order of the table")
        self.assertEqual(lines[1].split("\t")[at], rows[1][at])
        heat = b.section("Layers by metric")
        _, rows = exported(heat)
        values = heat.js("[...part.querySelectorAll('tbody tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))")
        self.assertGreater(max(len(cell) for cell in rows[1]), max(len(cell) for cell in values[0]), "more digits than are shown")
        for row, shown in zip(rows[1:], values):
            for value, text in zip(row[1:], shown):
                self.assertTrue((value, text) == ("", "na") or abs(float(value) - float(text)) <= 0.51 * 10 ** -len(text.partition(".")[2]), (value, text))
        self.assertEqual(b.errors(), [])

    def test_no_exported_cell_is_a_formula(self) -> None:
        b = self.open()
        cells = ["=1+1", "+x", "@y", "-z", "\t=1", "-2.5", "h.0", ""]
        kept = ["'=1+1", "'+x", "'@y", "'-z", "'\t=1", "-2.5", "h.0", ""]
        self.assertEqual(b.js("commaSeparated([arguments[0]])", cells), ",".join(kept) + "\r\n")
        self.assertEqual(b.js("tabSeparated([arguments[0]])", cells).split("\t"), [cell.replace("\t", " ") for cell in kept])

    def test_buttons_of_a_table_show_when_they_are_needed(self) -> None:
        b = self.open()
        occupancy = b.section("Occupancy")
        opacity = lambda: occupancy.js("getComputedStyle(part.querySelector('.export')).opacity")  # noqa: E731
        ActionChains(b).move_to_element(b.find_element(By.TAG_NAME, "h1")).perform()
        height = b.js("document.documentElement.scrollHeight")
        self.assertEqual(opacity(), "0")
        ActionChains(b).move_to_element(occupancy.find("td")).perform()
        self.assertEqual(opacity(), "1")
        ActionChains(b).move_to_element(b.find_element(By.TAG_NAME, "h1")).perform()
        b.js("arguments[0].focus()", occupancy.find(".export button"))
        self.assertEqual(opacity(), "1")
        self.assertEqual(b.js("document.documentElement.scrollHeight"), height, "they take no room")
        b.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        self.addCleanup(b.execute_cdp_cmd, "Emulation.setTouchEmulationEnabled", {"enabled": False})
        b.js("document.activeElement.blur()")
        self.assertEqual(opacity(), "1", "a finger does not hover")
        b.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.addCleanup(b.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"media": ""})
        self.assertEqual(occupancy.js("getComputedStyle(part.querySelector('.export')).display"), "none")

    def test_fits_a_desk_and_a_phone_in_both_themes(self) -> None:
        b = self.open()
        for width in (1280, 390):
            b.resize(width)
            for theme in ("light", "dark"):
                with self.subTest(width=width, theme=theme):
                    b.prefer(theme)
                    b.wait("[...document.querySelectorAll('.main-svg')].every((s) => s.clientWidth <= arguments[0])", width)
                    self.assertEqual(b.js("document.documentElement.scrollWidth"), width, "the page does not scroll sideways")
                    self.assertEqual(b.js("[...document.querySelectorAll('.chart')].filter((c) => c.clientWidth && !c.querySelector('.main-svg')).length"), 0)
                    if (width, theme) in ((1280, "light"), (390, "dark")):
                        b.screenshot(self.folder / f"report-{width}-{theme}.png", width)

    @unittest.skipUnless(AXE.exists(), "no axe-core: scripts/setup --tests installs it")
    def test_axe_finds_nothing(self) -> None:
        pages = {"example": self.page, "study": self.report(study(), "study-for-axe")}
        # To look at the contrast of a page takes ten times as long as all else, and the study has the example's parts.
        of_study = {(1280, "dark"), (390, "light")}
        for (name, page), width in itertools.product(pages.items(), (1280, 390)):
            b = self.open(page, width=width)
            b.js("document.querySelectorAll('main details').forEach((d) => { d.open = true; })")
            b.press(b.find_element(By.CSS_SELECTOR, "tbody tr[data-key] button"))
            b.js("document.querySelectorAll('.export').forEach((box) => { box.style.opacity = 1; })")
            b.execute_script(AXE.read_text())
            for theme in ("light", "dark"):
                b.prefer(theme)
                b.wait("document.documentElement.dataset.theme === arguments[0]", theme)
                with self.subTest(page=name, width=width, theme=theme):
                    found = b.execute_async_script(
                        "const [enabled, done] = arguments; axe.run(document, {resultTypes: ['violations'], rules: {'color-contrast': {enabled}}}).then(({violations}) =>"
                        " done(violations.map(({id, impact, nodes}) => `${impact} ${id}: ${nodes.map((node) => node.target.join(' ')).slice(0, 3).join(', ')}`)), (error) => done([String(error)]));",
                        name == "example" or (width, theme) in of_study)
                    self.assertEqual(found, [])

    def test_the_first_screen_has_the_answer_and_a_picture(self) -> None:
        run = pathlib.Path(__file__).resolve().parents[2] / "results/h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz"
        folder = pathlib.Path(self.scratch.name) / "answer"
        subprocess.run([self.kbench, "report", run, "--format", "html", "--out", folder], check=True, capture_output=True)
        b = self.browser
        b.open(folder / "report.html", width=1440)
        part = b.section("Why it takes this long")
        self.assertIn("Bandwidth-bound? NO: DRAM traffic", part.text())
        self.assertEqual([dt.text for dt in part.all("dt")], ["latency", "FLOP/s", "bottleneck", "changes could give back"])
        self.assertLessEqual(part.js("part.querySelector('.chart').getBoundingClientRect().bottom"), 900, "the picture is on the first screen")
        self.assertEqual(part.js("part.querySelector('.chart').data.length"), 8, "causes")
        labels = part.js("[...part.querySelectorAll('.chart .bartext')].filter((text) => text.getBoundingClientRect().width > 0).map((text) => text.textContent)")
        self.assertEqual([label for label in labels if label[0].isalpha()], ["useful work 1.8", "clock 0.57", "fixed time 0.95"])
        self.assertIn("0.48", labels, "a part too narrow for its name has its value")
        self.assertNotIn("0.077", labels, "it is not written where there is no room")
        for theme, vision in itertools.product(("light", "dark"), color_vision.VISION):
            b.prefer(theme)
            b.wait("document.documentElement.dataset.theme === arguments[0]", theme)
            causes = part.js("part.querySelector('.chart').data.map((trace) => trace.marker.color)")
            for one, other in itertools.pairwise(causes):
                self.assertGreaterEqual(color_vision.difference(one, other, vision), 10, (theme, vision, one, other))
        b.prefer("light")
        self.assertTrue(part.js("part.querySelector('details') && !part.querySelector('details').open"), "sentences are folded")
        self.assertEqual(b.titles()[:2], ["Why it takes this long", "In sentences"])
        self.assertEqual(b.js("[...document.querySelectorAll('nav a')].map((a) => a.textContent)")[:3], ["Why it takes this long", "Occupancy", "Roofline"])
        self.assertLessEqual(b.js("document.documentElement.scrollHeight"), 6 * 900, "six screens")
        b.resize(390, 844)
        b.wait("[...document.querySelectorAll('.main-svg')].every((s) => s.clientWidth <= 390)")
        self.assertLess(part.js("part.querySelector('dl').getBoundingClientRect().bottom"), 844, "answer and figures on a phone's first screen")
        self.assertEqual(b.errors(), [])

    def test_prints_on_white_paper_and_comes_back(self) -> None:
        b = self.open(theme="dark")
        pdf = base64.b64decode(b.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})["data"])
        (self.folder / "report.pdf").write_bytes(pdf)
        self.assertEqual(pdf[:5], b"%PDF-")
        self.assertEqual(b.js("document.documentElement.dataset.theme"), "dark")
        self.assertEqual(b.errors(), [])


def main() -> None:
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        print(f"skipped: no {' and no '.join(missing)} (on Debian scripts/setup --tests installs them)")
        sys.exit(77)
    Report.kbench, Report.folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    Report.folder.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)


if __name__ == "__main__":
    main()
