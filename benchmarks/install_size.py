"""What each core dependency of Polyseme weighs on disk, with what it alone brings along.

    python -m venv core && core/bin/pip install polyseme
    core/bin/python benchmarks/install_size.py

A package that two dependencies need counts for neither, but under "shared". Sizes are those of the
files that pip has listed, compiled Python included. Run it with the Python of the installation.
"""

import re
from importlib.metadata import Distribution, distributions, requires
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9._-]+")


def plain(name: str) -> str:
    """A package's name as installers compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(name: str, there: dict[str, int]) -> set[str]:
    """What a package asks for, extras left out, of what is there."""
    lines = [line for line in requires(name) or [] if "extra ==" not in line]
    found = {plain(match[0]) for match in map(NAME.match, lines) if match}
    return found & there.keys()


def closure(name: str, there: dict[str, int]) -> set[str]:
    """A package and all that it needs."""
    found, new = {name}, {name}
    while new:
        new = {other for each in new for other in needs(each, there)} - found
        found |= new
    return found


def size(distribution: Distribution) -> int:
    """Bytes of its files."""
    paths = (Path(str(distribution.locate_file(file))) for file in distribution.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    there = {plain(d.metadata["Name"]): size(d) for d in distributions()}
    roots = {name: closure(name, there) for name in sorted(needs("polyseme", there))}
    everything = set().union(*roots.values())
    print(f"{'dependency':<20}{'itself':>8}{'with its own':>14}   MB")
    own: dict[str, set[str]] = {}
    for name, packages in roots.items():
        others = set().union(*(closure for other, closure in roots.items() if other != name))
        own[name] = (packages - others) | {name}
    for name in sorted(own, key=lambda name: -sum(there[each] for each in own[name])):
        together = sum(there[each] for each in own[name])
        brought = ", ".join(sorted(own[name] - {name}, key=lambda each: -there[each])[:6])
        print(f"{name:<20}{there[name] / 1e6:>8.1f}{together / 1e6:>14.1f}   {brought}")
    shared = everything - set().union(*own.values())
    print(f"{'shared':<20}{'':>8}{sum(there[name] for name in shared) / 1e6:>14.1f}")
    total = sum(there[name] for name in everything | {"polyseme"})
    print(f"{'all, with polyseme':<20}{there['polyseme'] / 1e6:>8.1f}{total / 1e6:>14.1f}")


if __name__ == "__main__":
    main()
