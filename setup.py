"""Builds zerolayer._C (ops, torch's stable ABI) and zerolayer._host (pybind11, no torch headers).

One _C serves torch 2.11 and later. ZEROLAYER_CUDA=0 or 1 overrides whether CUDA kernels are built;
by default they are where this torch has CUDA, a CUDA toolkit is found and csrc/cuda has sources.
"""

import os
import shutil
import sys
from glob import glob
from typing import NoReturn

from setuptools import setup


def fail(sentence: str) -> NoReturn:
    """End the build with one sentence."""
    sys.exit(f"zerolayer cannot be built: {sentence}")


try:
    import torch
    from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension
except ImportError:
    fail("torch is missing; pip install torch==2.13.0, then pip install --no-build-isolation -e .")
try:
    from pybind11.setup_helpers import Pybind11Extension
except ImportError:
    fail("pybind11 is missing; pip install -r requirements-dev.txt")

compiler = os.environ.get("CXX", "c++").split()[-1]
if not shutil.which(compiler):
    fail(f"the C++ compiler {compiler} is missing; install g++ (apt-get install g++) or set CXX")
if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 11):
    fail(f"torch 2.11 or later is needed, this is {torch.__version__}")

cuda_sources = sorted(glob("csrc/cuda/**/*.cu", recursive=True))
wish = os.environ.get("ZEROLAYER_CUDA")
if wish not in (None, "0", "1"):
    fail(f"ZEROLAYER_CUDA must be 0 or 1, it is {wish!r}")
# Never torch.cuda.is_available(): a build machine may have no GPU.
cuda = bool(cuda_sources and torch.version.cuda and CUDA_HOME) if wish is None else wish == "1"
if cuda and not cuda_sources:
    fail("ZEROLAYER_CUDA=1, but this version has no CUDA sources; unset it")
if cuda and not (torch.version.cuda and CUDA_HOME):
    fail("ZEROLAYER_CUDA=1, but this torch has no CUDA or no toolkit is found; set CUDA_HOME")
if cuda:  # without it, torch's helper asks a GPU and fails where there is none
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0a")

STABLE = ["-DTORCH_TARGET_VERSION=0x020b000000000000"]  # 2.11; torch adds Py_LIMITED_API
FLAGS = [
    "-O3",
    "-g0",
    "-std=c++17",
    "-ffp-contract=off",  # sums round as torch's do, on every instruction set
    "-fno-math-errno",
    "-Wall",
    "-Wno-psabi",  # vectors are passed between functions of one file only
    "-Wno-ignored-attributes",
    "-Wno-unknown-pragmas",
]
ops = (CUDAExtension if cuda else CppExtension)(
    "zerolayer._C",
    sorted(glob("csrc/bindings/*_ops.cpp") + glob("csrc/cpu/*.cpp")) + cuda_sources * cuda,
    extra_compile_args={
        "cxx": [*FLAGS, *STABLE],
        "nvcc": ["-O3", "-std=c++17", "-DUSE_CUDA", *STABLE],
    },
    extra_link_args=["-Wl,-s"],
    depends=glob("csrc/**/*.h", recursive=True),
    py_limited_api=True,
)
host = Pybind11Extension(
    "zerolayer._host",
    ["csrc/bindings/host.cpp", *sorted(glob("csrc/host/*.cpp"))],
    cxx_std=17,
    extra_compile_args=["-O3", "-Wall"],
    depends=glob("csrc/**/*.h", recursive=True),
)

setup(
    ext_modules=[ops, host],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
