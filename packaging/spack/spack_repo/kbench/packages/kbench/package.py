"""kbench, built from the clone of kbench's repository that this file lies in."""

import pathlib
import zipfile

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Kbench(CMakePackage, CudaPackage):
    """Measures why a model takes as long as it does on a GPU or a CPU, and profiles CUDA programs."""

    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    generator("ninja")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.1:")
    depends_on("benchmark@1.7:")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("zlib-api")
    depends_on("onednn@3.2: cpu_runtime=omp")
    depends_on("openblas@0.3.20: threads=openmp")
    depends_on("cuda@12.6:", when="+cuda")
    depends_on("googletest@1.12:+gmock", type="test")

    # As scripts/requirements-plotly.txt has it: Spack's py-plotly is older, and Python packages are not needed.
    resource(
        name="plotly",
        url="https://files.pythonhosted.org/packages/e5/7d/905a3a3d51087515719058c94cfbda2ff0fc14417c20d557ae3e82d8b250/plotly-7.1.0-py3-none-any.whl",
        sha256="dbb7fa18afce40d0a8e80d1bf162eceb3faa0ce5a77fe741ad09a74cf78f53f3",
        expand=False,
        placement=".deps/plotly",
    )

    conflicts("%gcc@:11")
    conflicts("%llvm@:18")
    for arch in CudaPackage.cuda_arch_values:
        if int(arch.rstrip("af")) < 80:
            conflicts(f"cuda_arch={arch}", msg="kbench's kernels need compute capability 8.0 or newer")

    @run_before("cmake")
    def unpack_plotly(self):
        folder = pathlib.Path(self.stage.source_path, ".deps/plotly")
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if name.endswith(("/plotly.min.js", ".dist-info/licenses/LICENSE.txt")):
                        (folder / pathlib.PurePath(name).name).write_bytes(archive.read(name))

    def cmake_args(self):
        args = [
            self.define("KBENCH_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
            self.define("KBENCH_CUDNN", "OFF"),
            self.define("KBENCH_UNITY", True),
            self.define("KBENCH_WERROR", False),
            self.define("BUILD_TESTING", self.run_tests),
        ]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", list(self.spec.variants["cuda_arch"].value)))
        return args
