"""report.html in a real browser: it opens quietly, sends nothing, its filters and its ways between chart and table work,
names are only text, and it fits a phone. Screenshots go to the folder given for a person to look at.

report_test.py KBENCH FOLDER; skips (77) without selenium, Chromium or its driver.
"""

import base64
import http.server
import itertools
import json
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
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><b>h.0</b>&amp;{{data}}%{x}$a$\u2028"
BLOCKS = 12


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


class Browser(webdriver.Chrome):
    """Chromium without a window, at a width that a phone may have."""

    def __init__(self) -> None:
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        super().__init__(service=Service(shutil.which("chromedriver")), options=options)

    def open(self, page: pathlib.Path, width: int = 1280, theme: str = "light") -> None:
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                             {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        self.get(page.as_uri())
        self.wait("document.querySelectorAll('.main-svg').length > 0")

    def js(self, script: str, *arguments):
        return self.execute_script("return " + script, *arguments)

    def wait(self, condition: str) -> None:
        WebDriverWait(self, 20).until(lambda _: self.js(condition), f"never true: {condition}")

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

    def press(self, selector: str) -> None:
        self.js("arguments[0].scrollIntoView({block: 'center'})", element := self.find_element(By.CSS_SELECTOR, selector))
        element.click()

    # What the roofline shows: marks by trace, and the step whose ring is drawn.
    def marks(self) -> dict[str, int]:
        return self.js("Object.fromEntries(document.getElementById('roofline-chart').data.filter((t) => t.mode === 'markers')"
                       ".map((t) => [t.name, t.x.length]))")

    def rows(self) -> list[str]:
        return self.js("[...document.querySelectorAll('#rows tbody tr')].map((row) => row.dataset.step)")


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
        subprocess.run([cls.kbench, "report", folder, "--format", "html"], check=True, capture_output=True)
        return folder / "report.html"

    def open(self, page: pathlib.Path | None = None, **options) -> Browser:
        self.browser.open(page or self.page, **options)
        return self.browser

    def test_opens_quietly_and_asks_the_network_for_nothing(self) -> None:
        b = self.open()
        b.requests()
        b = self.open()
        for section in b.find_elements(By.CSS_SELECTOR, "main > section > div"):
            self.assertNotEqual(section.text, "", section.find_element(By.XPATH, "..").get_attribute("id"))
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
        steps = len(b.rows())
        before = b.marks()
        self.assertEqual(steps, 4 * BLOCKS)
        b.press('#filters [aria-label="Ops"] [data-value="gemm"]')
        self.assertEqual(len(b.rows()), steps - 2 * BLOCKS)
        self.assertLess(b.marks()["DRAM"], before["DRAM"])
        b.press('#filters [aria-label="Ops"] [data-value="gemm"]')
        self.assertEqual(b.marks(), before)
        layer = Select(b.find_element(By.CSS_SELECTOR, "#filters select"))
        layer.select_by_value("h.*.attn.c_attn")
        self.assertEqual(len(b.rows()), BLOCKS)
        self.assertEqual(b.marks()["DRAM"], BLOCKS)
        layer.select_by_value("")
        b.find_element(By.ID, "contains").send_keys("h.3.ATTN.c")
        self.assertEqual(len(b.rows()), 1)
        self.assertIn("1 of 48", b.find_element(By.ID, "row-count").text)

    def test_levels_are_switched_on_and_off(self) -> None:
        b = self.open()
        self.assertEqual(set(b.marks()), {"DRAM", "L2", "L1", "selected"})
        b.press('#filters [data-value="L2"]')
        self.assertEqual(set(b.marks()), {"DRAM", "L1", "selected"})
        b.press('#filters [data-value="streaming"]')
        self.assertIn("streaming", b.marks())
        self.assertEqual(b.marks()["streaming"], b.marks()["DRAM"])
        b.press('#filters [data-value="ops"]')
        self.assertEqual(b.marks()["DRAM"], 3)

    def test_a_mark_selects_its_row_and_a_row_its_mark(self) -> None:
        b = self.open()
        Select(b.find_element(By.CSS_SELECTOR, "#filters select")).select_by_value("h.*.attn.c_attn")
        for level in ("L2", "L1"):
            b.press(f'#filters [data-value="{level}"]')
        points = b.find_elements(By.CSS_SELECTOR, "#roofline-chart .scatterlayer .points path")
        b.js("arguments[0].scrollIntoView({block: 'center'})", points[-1])
        ActionChains(b).move_to_element(points[-1]).pause(0.2).click().perform()
        b.wait("document.querySelectorAll('#rows tr.selected').length === 1")
        chosen = b.js("document.querySelector('#rows tr.selected').dataset.step")
        self.assertEqual(b.js("document.querySelector('#rows tr.selected').cells[1].textContent").count("attn.c_attn"), 1)
        self.assertEqual(b.marks()["selected"], 1)
        box, row = (b.find_element(By.CSS_SELECTOR, s).rect for s in ("#rows", "#rows tr.selected"))
        self.assertTrue(box["y"] <= row["y"] <= box["y"] + box["height"], "the row is in the table's window")
        b.press("#show-row")
        self.assertEqual(b.js("document.activeElement.closest('tr').dataset.step"), chosen)
        other = next(step for step in b.rows() if step != chosen)
        b.press(f'#rows tr[data-step="{other}"] td:nth-child(2)')
        ring = b.js("document.getElementById('roofline-chart').data.find((t) => t.name === 'selected')")
        mark = b.js("(([t]) => ({x: t.x[t.customdata.indexOf(arguments[0])]}))(document.getElementById('roofline-chart').data"
                    ".filter((t) => t.name === 'DRAM'))", int(other))
        self.assertEqual(ring["x"], [mark["x"]])
        self.assertIn(f"Step {other} ", b.find_element(By.ID, "selection").text)

    def test_every_header_sorts_both_ways(self) -> None:
        b = self.open()
        for column in ("time_us", "layer"):
            for way in ("descending", "ascending") if column == "time_us" else ("ascending", "descending"):
                b.press(f'#table [data-column="{column}"]')
                self.assertEqual(b.js("[...document.querySelectorAll('#rows th')].map((h) => h.ariaSort).filter((s) => s !== 'none')"), [way])
                at = b.js("[...document.querySelectorAll('#rows th button')].findIndex((h) => h.dataset.column === arguments[0])", column)
                cells = b.js("[...document.querySelectorAll('#rows tbody tr')].map((row) => row.cells[arguments[0]].textContent)", at)
                values = [float(cell.replace(",", "")) for cell in cells] if column == "time_us" else cells
                self.assertEqual(values, sorted(values, reverse=way == "descending"))
        self.assertEqual(b.js("document.activeElement.dataset.column"), "layer", "the header keeps the focus")

    def test_steps_and_kernels_are_both_tables(self) -> None:
        b = self.open()
        b.press('#table [data-value="kernel"]')
        headers = [h.text for h in b.find_elements(By.CSS_SELECTOR, "#rows th")]
        self.assertIn("grid", headers)
        self.assertEqual(len(b.rows()), 4 * BLOCKS)

    def test_the_theme_follows_the_system_until_the_button_decides(self) -> None:
        background = "getComputedStyle(document.body).backgroundColor"
        ink = "document.getElementById('roofline-chart').layout.font.color"
        b = self.open(theme="dark")
        dark = b.js(background), b.js(ink)
        b.press("#theme")
        light = b.js(background), b.js(ink)
        self.assertNotEqual(dark[0], light[0])
        self.assertNotEqual(dark[1], light[1], "charts follow")
        self.assertEqual(b.js(background), "rgb(255, 255, 255)")

    def test_everything_is_reached_by_keyboard(self) -> None:
        b = self.open()
        keys = lambda *what: ActionChains(b).send_keys(*what).perform()  # noqa: E731
        keys(Keys.TAB)
        self.assertEqual(b.js("document.activeElement.className"), "skip")
        keys(Keys.ENTER)
        self.assertEqual(b.js("document.activeElement.id"), "answer")
        reached = set()
        for _ in range(400):
            keys(Keys.TAB)
            reached.add(b.js("(e => e.id || e.dataset.column || e.dataset.value || e.closest('[id]')?.id)(document.activeElement)"))
            if "time_us" in reached:
                break
        self.assertLessEqual({"filters", "DRAM", "gemm", "contains", "rows", "time_us"}, reached)
        keys(Keys.ENTER)
        self.assertEqual(b.js("document.querySelector('#rows th[aria-sort=descending] button').dataset.column"), "time_us")
        b.js("document.querySelector('#rows tbody button').focus()")
        keys(Keys.SPACE)
        self.assertEqual(b.js("document.querySelectorAll('#rows tr.selected').length"), 1)
        b.js("document.getElementById('theme').focus()")
        keys(Keys.ENTER)
        self.assertEqual(b.js("document.documentElement.dataset.theme"), "dark")
        outline = b.js("getComputedStyle(document.activeElement).outlineStyle")
        self.assertNotEqual(outline, "none", "the focus is seen")

    def test_names_from_the_result_are_only_text(self) -> None:
        b = self.open(self.report(hostile(), "hostile"))
        for i in range(len(example()["points"])):
            Select(b.find_element(By.CSS_SELECTOR, "#answer select")).select_by_index(i)
            for details in b.find_elements(By.CSS_SELECTOR, "main details"):
                b.js("arguments[0].open = true", details)
            if i < 2:
                mark = b.find_elements(By.CSS_SELECTOR, "#roofline-chart .scatterlayer .points path")[0]
                b.js("arguments[0].scrollIntoView({block: 'center'})", mark)
                ActionChains(b).move_to_element(mark).pause(0.3).perform()
                b.wait("document.querySelectorAll('#roofline-chart .hoverlayer text').length > 0")
                seen = b.js("document.querySelector('#roofline-chart .hoverlayer').textContent")
                self.assertIn("<b>h.0</b>&amp;", seen, "what looks like markup is shown")
                self.assertEqual(b.js("document.querySelector('#rows tbody tr').cells[1].textContent"), HOSTILE)
            if i < 3:
                ticks = b.js("[...document.querySelectorAll('#ledger .ytick text')].map((t) => t.textContent).join(' ')")
                self.assertIn("</scri", ticks)
        self.assertIsNone(b.js("window.hacked ?? null"))
        self.assertEqual(b.js("document.querySelectorAll('img, b, iframe, svg a').length"), 0)
        self.assertIn(HOSTILE.replace("\u2028", ""), b.js("document.title").replace("\u2028", ""))
        self.assertEqual(b.errors(), [])

    def test_what_is_missing_is_said_with_its_reason(self) -> None:
        b = self.open()
        points = example()["points"]
        choose = lambda i: Select(b.find_element(By.CSS_SELECTOR, "#answer select")).select_by_index(i)  # noqa: E731
        cpu = next(i for i, point in enumerate(points) if point["backend"] == "cpu" and point["status"] == "done")
        choose(cpu)
        self.assertIn(NO_COUNTERS, b.find_element(By.ID, "environment").text)
        for section in ("marginal", "sms", "heat", "timeline", "table"):
            self.assertIn("unavailable", b.find_element(By.ID, section).text, section)
        skipped = next(i for i, point in enumerate(points) if point["status"] == "skipped")
        choose(skipped)
        self.assertIn(points[skipped]["reason"], b.find_element(By.ID, "answer").text)
        for section in ("figures", "roofline", "ledger", "attribution", "heat", "verdicts", "table"):
            self.assertIn("unavailable", b.find_element(By.ID, section).text, section)
        self.assertIn(points[skipped]["reason"], b.find_element(By.ID, "sweep").text)
        self.assertEqual(b.errors(), [])

    def test_curves_of_a_sweep_along_each_of_its_axes(self) -> None:
        b = self.open(self.report(sweep(), "sweep"))
        charts = "[...document.querySelectorAll('#sweep .chart')]"
        titles = b.js(f"{charts}.map((c) => c.ariaLabel)")
        self.assertEqual(titles, ["Time of one run, ms", "Throughput, tokens/s", "Useful work, TFLOP/s", "Occupancy, %",
                                  "Share of the binding roofs, %", "Energy a sequence, J"])
        traces = lambda i: b.js(f"{charts}[{i}].data.map((t) => [t.x, t.y])")  # noqa: E731
        times = traces(0)
        self.assertEqual(len(times), 4, "a curve for each batch and precision along the length")
        self.assertEqual(times[0][0], ["256", "512", "1024"])
        for value, expected in zip(times[0][1], (1.01, 2.02, 4.04)):  # the median of two repeats
            self.assertAlmostEqual(value, expected, 3)
        self.assertEqual([y for _, y in traces(3)], [[10] * 3, [10] * 3, [40] * 3, [40] * 3], "achieved, since all were counted")
        b.press('#sweep [aria-label="Along"] [data-value="precision"]')
        times = traces(0)
        self.assertEqual((len(times), times[0][0]), (6, ["fp16", "fp32"]))
        self.assertAlmostEqual(times[0][1][1] / times[0][1][0], 2, 3)
        b.press('#sweep [aria-label="Along"] [data-value="batch"]')
        self.assertEqual(traces(3)[0], [["1", "4"], [10, 40]])
        hover = b.js(f"{charts}[4].data[0].hovertext[1]")
        for part in ("batch 4 (max)", "median of 2 repeats", "most is demanded by fp16_tensor"):
            self.assertIn(part, hover)
        self.assertEqual(b.js(f"{charts}[4].data[0].marker.symbol"), ["square", "square"], "the mark is the roof's")
        rows = b.find_elements(By.CSS_SELECTOR, "#sweep tbody tr")
        self.assertEqual(len(rows), 24)
        repeat = b.js("[...document.querySelectorAll('#sweep thead th')].findIndex((th) => th.textContent === 'repeat')")
        self.assertEqual([row.find_elements(By.CSS_SELECTOR, "th, td")[repeat].text for row in (rows[11], rows[12])], ["1", "2"])
        b.screenshot(self.folder / "sweep.png", 1280)
        self.assertEqual(b.errors(), [])

    def test_a_study_answers_each_question_on_one_screen(self) -> None:
        b = self.open(self.report(study(), "study"))
        self.assertEqual(b.errors(), [])
        self.assertEqual(b.js("[...document.querySelectorAll('#study .screen h3')].map((title) => title.textContent)"),
                         ["Bottlenecks", "Batch", "Precision", "Forward against backward"])
        for screen in b.find_elements(By.CSS_SELECTOR, "#study .screen"):
            self.assertLessEqual(screen.size["height"], 900, screen.get_attribute("id"))
        for screen in ("bottlenecks", "batch", "precision"):
            self.assertEqual(b.js(f"document.querySelectorAll('#study-{screen} .chart .main-svg').length > 0"), True, screen)
        self.assertNotIn("[object", b.js("document.getElementById('study').textContent"))
        self.assertIn("the budget was used up", b.js("document.getElementById('study-more').textContent"))
        before = b.js("document.querySelectorAll('#study .main-svg').length")
        Select(b.find_element(By.CSS_SELECTOR, "#answer select")).select_by_index(1)
        self.assertEqual(b.js("document.querySelectorAll('#study .main-svg').length"), before, "choosing a point leaves the study as it is")
        b.press("#theme")
        self.assertEqual(b.errors(), [])
        for width in (1280, 390):
            self.open(pathlib.Path(self.scratch.name) / "study/report.html", width=width)
            self.assertLessEqual(b.js("document.documentElement.scrollWidth"), width)
            b.screenshot(self.folder / f"study-{width}.png", width)

    def test_a_run_that_is_no_study_shows_none(self) -> None:
        b = self.open()
        self.assertIsNone(b.js("document.getElementById('study')"))

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
        self.assertIn("<b>h.*</b>".replace("*", "0"), b.js("document.getElementById('study').textContent"))
        self.assertEqual(b.errors(), [])

    def test_fits_a_desk_and_a_phone_in_both_themes(self) -> None:
        for width in (1280, 390):
            for theme in ("light", "dark"):
                with self.subTest(width=width, theme=theme):
                    b = self.open(width=width, theme=theme)
                    b.screenshot(self.folder / f"report-{width}-{theme}.png", width)
                    self.assertEqual(b.js("document.documentElement.scrollWidth"), width, "the page does not scroll sideways")
                    wide = b.js("[...document.querySelectorAll('.main-svg')].filter((s) => s.clientWidth > arguments[0]).length", width)
                    self.assertEqual(wide, 0)
                    self.assertEqual(b.js("[...document.querySelectorAll('.chart')].filter((c) => !c.querySelector('.main-svg')).length"), 0)

    def test_charts_follow_the_width_of_the_window(self) -> None:
        b = self.open(width=1280)
        b.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        b.wait("[...document.querySelectorAll('.main-svg')].every((s) => s.clientWidth <= 390)")
        self.assertEqual(b.js("document.documentElement.scrollWidth"), 390)

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
