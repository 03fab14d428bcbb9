"""The shipped Kubernetes manifests as `kubectl kustomize` renders them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

KUBERNETES = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
KUBECTL = Path(sys.executable).with_name("kubectl")
RUNS_PODS = ("Deployment", "StatefulSet")

Manifest = dict[str, Any]


@cache
def rendered(folder: Path) -> tuple[Manifest, ...]:
    """The manifests of an overlay or of a set of components; fails with what kustomize says."""
    done = subprocess.run(
        [KUBECTL, "kustomize", folder], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(manifests: tuple[Manifest, ...], *kinds: str) -> dict[str, Manifest]:
    """The manifests of these kinds by name."""
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] in kinds}


def pods(manifests: tuple[Manifest, ...]) -> dict[str, Manifest]:
    """The pod template of each workload, by its name."""
    return {name: each["spec"]["template"] for name, each in of_kind(manifests, *RUNS_PODS).items()}


def containers(pod: Manifest) -> Iterator[Manifest]:
    """All containers of a pod, those that prepare it first."""
    yield from pod["spec"].get("initContainers", ())
    yield from pod["spec"]["containers"]


def seconds_of_unit(unit: str, setting: str) -> int:
    """A number of seconds in a shipped systemd unit."""
    text = (KUBERNETES.parent / "systemd" / f"sitemapd-{unit}.service").read_text()
    return int(text.partition(f"\n{setting}=")[2].partition("\n")[0])
