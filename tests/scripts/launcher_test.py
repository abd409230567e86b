"""./kbench in a checkout of its own, with a cmake that builds nothing: who ends when it is told to stop or is killed, that
no two builds are at work, and what it says meanwhile."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Compiles for $SECONDS_OF_BUILD in a process of its own, as ninja's compilers are, and notes begin and end.
CMAKE = """\
#!/usr/bin/env bash
echo "$*" >>"$FOLDER/cmake.calls"
[[ $1 == --build ]] || exit 0
echo "begin $$" >>"$FOLDER/builds"
${DAEMON:-true}
for ((file = 1; file <= 4; ++file)); do
    language=CXX
    ((file > 1)) || language=${FIRST:-CXX}
    echo "[$((file - 1))/${FILES:-4}] Building $language object" # what was done before, as $NINJA_STATUS says
    sleep "$(echo "$SECONDS_OF_BUILD" | awk '{ print $1 / 4 }')" & echo "compiler $!" >>"$FOLDER/builds"
    wait $!
done
mkdir -p "$2/bench"
printf '#!/bin/sh\\nls -l /proc/self/fd\\n' >"$2/bench/kbench"
chmod +x "$2/bench/kbench"
echo "end $$" >>"$FOLDER/builds"
"""


def runs(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Launcher(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_launcher_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "checkout"
        for name in ("cmake", "include", "models", "analysis", "profile", "kernels", "cpu", "bench", "machines", "scripts"):
            (self.root / name).mkdir(parents=True)
        for name in ("kbench", "scripts/common.sh"):
            shutil.copy(ROOT / name, self.root / name)
        for name in ("CMakeLists.txt", "CMakePresets.json"):
            (self.root / name).touch()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.program(self.bin / "cmake", CMAKE)
        self.program(self.root / "scripts/setup", "#!/bin/sh\nexit 0\n")
        self.environment = os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}", "FOLDER": str(self.folder), "SECONDS_OF_BUILD": "0",
                                         "KBENCH_CUDA": "OFF"}

    def program(self, path: pathlib.Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def start(self, **environment: str) -> subprocess.Popen:
        process = subprocess.Popen([self.root / "kbench"], env=self.environment | environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def notes(self, word: str) -> list[int]:
        path = self.folder / "builds"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(word + " ") and len(line.split()) == 2]

    def wait_for(self, what, seconds: float = 20) -> None:
        limit = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), limit, "waited in vain")
            time.sleep(0.02)


class Stopped(Launcher):
    def check_that_all_ended(self, number: signal.Signals) -> None:
        left = lambda: [pid for pid in self.notes("begin") + self.notes("compiler") if runs(pid)]
        limit = time.monotonic() + 5  # this cmake does not wait for its compilers' end, as ninja does
        while left() and time.monotonic() < limit:
            time.sleep(0.02)
        for pid in (running := left()):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(running, [], f"{number.name} left the build running")

    def test_a_signal_ends_the_whole_build_and_is_told(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            (self.folder / "builds").unlink(missing_ok=True)
            process = self.start(SECONDS_OF_BUILD="240")
            self.wait_for(lambda: self.notes("compiler"))
            process.send_signal(number)
            errors = process.communicate(timeout=20)[1]
            self.check_that_all_ended(number)
            self.assertEqual(process.returncode, -number)
            self.assertIn(f"kbench: stopped by {number.name} while compiling\n", errors)
            self.assertNotIn("failed", errors)

    def test_a_signal_ends_an_installation_and_is_told(self) -> None:
        self.program(self.root / "scripts/setup", '#!/usr/bin/env bash\nset -euo pipefail\nsource "$(dirname "$0")/common.sh"\n'
                     'install() { echo "compiler $BASHPID" >>"$FOLDER/builds"; sleep 60; }\nphase "installing plotly" install\n')
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            (self.folder / "builds").unlink(missing_ok=True)
            process = self.start()
            self.wait_for(lambda: self.notes("compiler"))
            process.send_signal(number)
            errors = process.communicate(timeout=20)[1]
            self.check_that_all_ended(number)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(errors.count("stopped by"), 1, errors)
            self.assertIn("while installing plotly\n", errors)
            self.assertFalse((self.folder / "cmake.calls").exists(), "went on after it was stopped")

    def test_a_build_that_fails_is_not_called_stopped(self) -> None:
        self.program(self.bin / "cmake", "#!/bin/sh\necho an error of the compiler\nexit 2\n")
        process = self.start()
        errors = process.communicate(timeout=20)[1]
        self.assertEqual(process.returncode, 1)
        self.assertIn("an error of the compiler", errors)
        self.assertIn("configuring failed", errors)


class Lock(Launcher):
    def test_a_start_waits_for_the_build_of_a_killed_one(self) -> None:
        first = self.start(SECONDS_OF_BUILD="4")
        self.wait_for(lambda: self.notes("compiler"))
        first.kill()
        first.communicate(timeout=20)
        second = self.start()
        errors = second.communicate(timeout=30)[1]
        self.assertEqual(second.returncode, 0, errors)
        self.assertIn("waiting for another start", errors)
        order = [line.split()[0] for line in (self.folder / "builds").read_text().splitlines()]
        self.assertEqual([word for word in order if word != "compiler"], ["begin", "end", "begin", "end"])

    def test_a_server_that_the_build_starts_does_not_keep_the_lock(self) -> None:
        self.program(self.bin / "server", f'#!/bin/sh\nsetsid sleep 300 >/dev/null 2>&1 &\necho "server $!" >>{self.folder}/builds\n')
        process = self.start(DAEMON="server")
        self.assertEqual(process.wait(timeout=20), 0)
        for pid in self.notes("server"):
            self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.assertTrue(self.notes("server"))
        time.sleep(0.1)
        (self.root / "CMakeLists.txt").touch()
        second = self.start()
        self.assertNotIn("waiting", second.communicate(timeout=20)[1])
        self.assertEqual(len(self.notes("end")), 2)

    def test_the_program_holds_no_lock(self) -> None:
        output, errors = self.start().communicate(timeout=20)
        self.assertIn("/proc/", output, errors)
        self.assertNotIn(".lock", output)


class Progress(Launcher):
    def test_it_says_how_long_it_takes_and_how_far_it_is(self) -> None:
        errors = self.start(SECONDS_OF_BUILD="24").communicate(timeout=60)[1]
        self.assertRegex(errors, r"kbench: building, which takes about \d+ (s|min) on \d+ cores; details go to /")
        # 6 s a file: it is told after 10 s of one of four, then again.
        self.assertRegex(errors, r"kbench: compiled 1 of 4 files, about [23]\d s left\n")
        self.assertRegex(errors, r"kbench: compiled 3 of 4 files, about \d s left\n")
        self.assertNotIn("\r", errors)
        (self.root / "CMakeLists.txt").touch()
        errors = self.start().communicate(timeout=20)[1]
        self.assertIn("kbench: building what changed", errors)

    def on_a_terminal(self, **environment: str) -> bytes:
        ours, terminal = os.openpty()
        process = subprocess.Popen([self.root / "kbench"], env=self.environment | environment, stdin=terminal,
                                   stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            text += part
        os.close(ours)
        self.assertEqual(process.wait(timeout=20), 0)
        return text

    def test_on_a_terminal_it_rewrites_one_line(self) -> None:
        self.assertRegex(self.on_a_terminal(SECONDS_OF_BUILD="8"),
                         rb"compiling\r\n(\r\x1b\[Kkbench: compiled \d of 4 files, about \d+ s left)+\r\x1b\[K$")

    def test_what_it_watches_with_says_nothing_when_the_build_ends_first(self) -> None:
        # Its grep outlives the shell whose status it reads.
        self.program(self.bin / "grep", f'#!/bin/sh\ncase "$*" in *PPid*) sleep 4 ;; esac\nexec {shutil.which("grep")} "$@"\n')
        self.assertNotIn(b"grep", self.on_a_terminal(SECONDS_OF_BUILD="2"))

    def test_kernels_come_first_and_count_for_more(self) -> None:
        build = self.root / "build/release/build.ninja"
        build.parent.mkdir(parents=True)
        build.write_text("build first.cu.o: CUDA first.cu\n" + "build other.cpp.o: CXX other.cpp\n" * 3)
        text = self.on_a_terminal(SECONDS_OF_BUILD="8", FIRST="CUDA")
        left = [int(seconds) for seconds in re.findall(rb"compiled 1 of 4 files, about (\d+) s left", text)]
        self.assertTrue(left)
        # After 2 to 4 s 5 of 8 parts are done; 1 of 4 files would promise 6 to 12 s more.
        self.assertLessEqual(max(left), 4, text)

    def test_the_first_files_of_many_promise_no_time(self) -> None:
        self.assertRegex(self.on_a_terminal(SECONDS_OF_BUILD="8", FILES="400"),
                         rb"compiling\r\n(\r\x1b\[Kkbench: compiled \d of 400 files)+\r\x1b\[K$")


class Cuda(Launcher):
    """What it compiles for which GPUs: the driver's files and nvidia-smi are stand-ins."""

    def setUp(self) -> None:
        super().setUp()
        # Every command but those that tell of a GPU or a toolkit.
        farm = self.folder / "farm"
        farm.mkdir()
        for folder in os.environ["PATH"].split(":"):
            for path in pathlib.Path(folder).glob("*"):
                if not path.name.startswith(("nvidia-smi", "nvcc", "ldconfig")) and not (farm / path.name).exists():
                    (farm / path.name).symlink_to(path)
        self.program(self.bin / "ldconfig", "#!/bin/sh\n")
        self.program(self.bin / "nvcc", "#!/bin/sh\n")
        self.environment |= {"PATH": f"{self.bin}:{farm}", "KBENCH_CUDA": "AUTO"}
        common = self.root / "scripts/common.sh"
        text = common.read_text()
        for there in ("/proc/driver/nvidia", "/dev/nvidiactl", "/usr/lib/wsl"):
            self.assertIn(there, text)
            text = text.replace(there, f"{self.folder}{there}")
        common.write_text(text.replace("PATH=$PATH:/sbin ", ""))

    def gpus(self, *lines: str) -> None:
        """A driver with these GPUs: "name, compute capability"."""
        shutil.rmtree(self.folder / "proc", ignore_errors=True)
        driver = self.folder / "proc/driver/nvidia"
        driver.mkdir(parents=True)
        (driver / "version").touch()
        for index, line in enumerate(lines):
            (driver / f"gpus/{index}").mkdir(parents=True)
            (driver / f"gpus/{index}/information").write_text(f"Model: \t\t {line.split(',')[0]}\nIRQ:   \t\t 7\n")
        self.program(self.bin / "nvidia-smi", "#!/bin/sh\ncat <<E\n" + "\n".join(lines or ["No devices were found"]) + "\nE\n")

    def configured(self, code: int = 0, **environment: str) -> str:
        """The options with which this start configured; nothing where it did not."""
        (self.folder / "cmake.calls").unlink(missing_ok=True)
        process = self.start(**environment)
        self.errors = process.communicate(timeout=20)[1]
        self.assertEqual(process.returncode, code, self.errors)
        calls = self.folder / "cmake.calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        return "".join(line.split("--preset release ")[1] for line in lines if "--fresh" in line)

    def test_without_a_driver_cuda_is_not_built_though_a_toolkit_is_there(self) -> None:
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=OFF")
        self.assertEqual(self.configured(), "")
        self.assertEqual(self.configured(KBENCH_CUDA="ON"), "-DKBENCH_CUDA=ON")

    def test_a_driver_or_another_gpu_builds_anew_and_one_that_went_away_does_not(self) -> None:
        self.configured()
        self.gpus("NVIDIA A100-SXM4-80GB, 8.0", "NVIDIA A100-SXM4-80GB, 8.0")
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=80-real")
        self.assertEqual(self.configured(), "")
        self.gpus("NVIDIA A100-SXM4-80GB, 8.0", "NVIDIA H200, 9.0")
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=80-real;90-real")
        self.gpus("NVIDIA A100-SXM4-80GB, 8.0")
        self.assertEqual(self.configured(), "")
        shutil.rmtree(self.folder / "proc")
        (self.bin / "nvidia-smi").unlink()
        self.assertEqual(self.configured(), "")
        self.gpus("NVIDIA H200, 9.0", "NVIDIA GeForce RTX 4090, 8.9")
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=89-real;90-real")

    def test_two_kinds_of_one_architecture_are_one(self) -> None:
        self.gpus("NVIDIA H100 80GB HBM3, 9.0", "NVIDIA H200, 9.0")
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=90-real")

    def test_a_driver_that_cannot_be_asked_gets_the_usual_architectures(self) -> None:
        self.gpus()
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=AUTO")

    def test_a_gpu_that_is_too_old_is_named_before_anything_is_built(self) -> None:
        self.gpus("Tesla T4, 7.5")
        self.assertEqual(self.configured(code=3), "")
        self.assertIn("Tesla T4 (compute capability 7.5)", self.errors)
        self.assertIn("8.0", self.errors)
        self.assertIn("KBENCH_CUDA=OFF ./kbench ... --backend cpu", self.errors)
        self.gpus("NVIDIA H200, 9.0", "Tesla T4, 7.5")
        self.assertEqual(self.configured(), "-DKBENCH_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=90-real")
        self.assertIn("not built for Tesla T4", self.errors)


if __name__ == "__main__":
    if not all(map(shutil.which, ("flock", "setsid"))):
        print("skipped: no flock or no setsid")
        sys.exit(77)
    unittest.main()
