"""The wheel's build hook: puts the compiled kernel into it, for every instruction set it knows.

One wheel a platform, `py3-none-manylinux_2_17_x86_64` and its like: the kernel is loaded by ctypes,
so it does not depend on the version of Python. Where there is no C compiler, or POLYSEME_PURE=1 is
set, the wheel is pure Python and runs anywhere, only slower.
"""

import os
import platform
import re
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_INTO = "polyseme/encoders/kernels/built"
_OLDEST_GLIBC = (2, 17)  # of manylinux2014, the oldest that installers still know
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_MACOS = "11.0"  # the first on ARM


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles before the wheel is written, and removes what it compiled after."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the libraries and their hashes; an editable install has a folder of its own."""
        if version == "editable" or os.environ.get("POLYSEME_PURE") == "1":
            return
        self._folder = tempfile.TemporaryDirectory()
        libraries = _compile(Path(self.root), Path(self._folder.name))
        if not libraries:
            self.app.display_warning(
                "No C compiler that works was found: the wheel is pure Python."
            )
            return
        for path in sorted(Path(self._folder.name).iterdir()):
            build_data["force_include"][str(path)] = f"{_INTO}/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag(libraries)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clean up."""
        del version, build_data, artifact_path
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _compile(root: Path, into: Path) -> list[Path]:
    """Every library that the compiler here can make, by the code that users build with."""
    sys.path.insert(0, str(root / "src"))
    os.environ.setdefault("MACOSX_DEPLOYMENT_TARGET", _MACOS)
    try:
        from polyseme.encoders.kernels.build import build_all

        return build_all(into)
    finally:
        sys.path.remove(str(root / "src"))


def _platform_tag(libraries: list[Path]) -> str:
    """Which machines the libraries run on, in the words of installers."""
    machine = platform.machine()
    if sys.platform == "darwin":
        return f"macosx_{_MACOS.replace('.', '_')}_{machine}"
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return re.sub(r"\W", "_", sysconfig.get_platform())
    # What a library asks of the C library stands in it by name; it asks nothing of others.
    asked = (_GLIBC.findall(library.read_bytes()) for library in libraries)
    versions = [(int(major), int(minor)) for found in asked for major, minor in found]
    major, minor = max([_OLDEST_GLIBC, *versions])
    return f"manylinux_{major}_{minor}_{machine}"
