"""changes-verify on a program that answers as kbench does, with planted figures. Needs no GPU."""

import json
import struct
import subprocess
import unittest

from planted_program import PlantedProgram

# A run's figures are by its folder's name; $SLOW is added to the latency of batch 2. It keeps what it was asked
# and, of weights, the header and what the first and the last element of each tensor are.
PROGRAM = """\
    #!{python}
    import json, os, pathlib, struct, sys
    at = lambda option: sys.argv[sys.argv.index(option) + 1]
    if sys.argv[1] == "run":
        if os.environ.get("FAILS", "nothing") in at("--out"):
            sys.exit(print("kbench: the device is lost", file=sys.stderr) or 1)
        out = pathlib.Path(at("--out"))
        out.mkdir()
        (out / "result.json").write_text("{{}}")
        (out / "asked.json").write_text(json.dumps(sys.argv))
        if "--weights" in sys.argv:
            with open(at("--weights"), "rb") as file:
                size = struct.unpack("<Q", file.read(8))[0]
                header = json.loads(file.read(size))
                for tensor in header.values():
                    begin, end = tensor["data_offsets"]
                    tensor["ends"] = []
                    for where in (begin, end - 2):
                        file.seek(8 + size + where)
                        tensor["ends"].append(struct.unpack("<e", file.read(2))[0])
                file.seek(0, 2)
                header["size"] = file.tell() - 8 - size
            (out / "weights.json").write_text(json.dumps(header))
    else:
        name = pathlib.Path(sys.argv[2]).name
        ms, clock = dict([("random-b1", (4.0, 500)), ("random-b2", (7.0, 1000)), ("random-b4", (14.0, 3000)),
                          ("alike-b1", (3.5, 0)), ("alike-b4", (11.5, 600)), ("native-gemm-b1", (6.0, 400))])[name]
        own = 1000 if name == "native-gemm-b1" else 0
        if name == "random-b2": ms += float(os.environ.get("SLOW", 0))
        clock = json.loads(os.environ.get("CLOCK", str(clock)))
        print(json.dumps([dict(latency_ms=ms, clock_us=clock, fixed_time_us=900, gaps_us=100,
                              main_loop_us=100 + own, uneven_waves_us=400 + own)]))
"""


class ChangesVerify(PlantedProgram):
    PROGRAM = PROGRAM
    SCRIPT = "changes-verify"

    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "out"

    def verify(self, *options: object, **environment: str) -> subprocess.CompletedProcess:
        return self.script("--kbench", str(self.program), *map(str, options), **environment)

    def test_promises_are_held_against_what_came_back(self) -> None:
        done = self.verify("--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| clock | alike weights, batch 4 | 14.00 | 2.400 | 2.500 | 1.04 |", done.stdout)
        self.assertIn("| clock | alike weights, batch 1 | 4.00 | 0.500 | 0.500 | 1.00 |", done.stdout)
        self.assertIn("| fixed time and gaps | batch 2 for 1, a sequence | 4.00 | 0.500 | 0.500 | 1.00 |", done.stdout)
        self.assertIn("| main loop and uneven waves | cuBLASLt's GEMMs for kbench's own | 6.00 | 2.000 | 2.000 | 1.00 |",
                      done.stdout)
        asked = json.loads((self.out / "native-gemm-b1/asked.json").read_text())
        self.assertEqual(asked[-2:], ["--provider", "gemm=native"])
        self.assertEqual((self.out / "changes.md").read_text(), done.stdout)
        again = self.verify("--read", self.out, FAILS="b")
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout), again.stderr)
        late = self.verify("--read", self.out, SLOW="0.3")
        self.assertEqual(late.returncode, 1)
        self.assertIn("fixed time and gaps, batch 2 for 1, a sequence: not within 25 % of what was promised", late.stderr)
        unknown = self.verify("--read", self.out, CLOCK="null")
        self.assertEqual((unknown.returncode, unknown.stdout), (1, ""))
        self.assertIn("clock_us is not known", unknown.stderr)

    def test_weights_are_a_model_whose_elements_are_alike(self) -> None:
        self.assertEqual(self.verify("--out", self.out).returncode, 0)
        self.assertNotIn("--weights", json.loads((self.out / "random-b4/asked.json").read_text()))
        weights = json.loads((self.out / "alike-b4/weights.json").read_text())
        size = weights.pop("size")
        self.assertEqual(size, 2 * 774030080)  # the parameters of GPT-2 large
        self.assertEqual(size, max(tensor["data_offsets"][1] for tensor in weights.values()))
        self.assertEqual(weights["h.35.mlp.c_fc.weight"]["shape"], [1280, 5120])
        half = struct.unpack("<e", struct.pack("<e", 1.5e-3))[0]
        self.assertEqual(weights["h.35.mlp.c_fc.weight"]["ends"], [half, half])
        self.assertEqual(weights["ln_f.bias"]["ends"], [0.5, 0.5])

    def test_a_run_that_fails_or_lacks_ends_it(self) -> None:
        done = self.verify("--out", self.out, FAILS="random-b2")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("random-b2: kbench: the device is lost", done.stderr)
        lacks = self.verify("--read", self.out)
        self.assertIn("random-b2: was not measured", lacks.stderr)
        self.assertEqual(self.verify("--read", self.folder / "none").returncode, 2)


if __name__ == "__main__":
    unittest.main()
