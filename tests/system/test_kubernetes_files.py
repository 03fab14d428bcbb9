"""The Kubernetes manifests before kustomize, the API's own schemas and the programs they start."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml

from tests.system.driver import SITEMAPD
from tests.system.kubernetes import (
    KUBERNETES,
    Manifest,
    containers,
    of_kind,
    pods,
    rendered,
    seconds_of_unit,
)
from tests.system.nginx import PROGRAM, needs

OVERLAYS = [
    path.parent.name
    for path in sorted(KUBERNETES.glob("*/kustomization.yaml"))
    if "kind: Component" not in path.read_text()
]
WHOLE = [name for name in OVERLAYS if name != "base"]
"""Those with a Redis, which can be applied."""

COMPONENTS = ["scaling", "scaling-by-metrics-api"]
OLDEST = "1.30"
"""The first version whose preStop can sleep without a shell."""

PARTS = {
    "single": {"web", "files", "schedule", "redis"},
    "ha": {"web", "files", "schedule", "redis", "sentinel"},
}
URLS = {
    "single": "redis://sitemapd:0123456789abcdef@redis:6379",
    "ha": "redis+sentinel://sitemapd:0123456789abcdef@sentinel-0,sentinel-1,sentinel-2/sitemapd/0",
}
POD = "statefulset.kubernetes.io/pod-name"

SECRET = {
    "SITEMAPD_METRICS_TOKEN": "0123456789abcdef",
    "SITEMAPD_SITES__MAIN__SECRETS": '["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]',
    "SITEMAPD_SITES__MAIN__TOKENS": '["0123456789abcdef"]',
}


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> tuple[Manifest, ...]:
    return rendered(KUBERNETES / request.param)


@pytest.fixture(params=WHOLE)
def whole(request: pytest.FixtureRequest) -> tuple[Manifest, ...]:
    return rendered(KUBERNETES / request.param)


def scaled(component: str, directory: Path, whole: str = "single") -> tuple[Manifest, ...]:
    """An overlay with a component, as an overlay of an administrator has it."""
    shown = os.path.relpath(KUBERNETES, directory.resolve())
    (directory / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": [f"{shown}/{whole}"], "components": [f"{shown}/{component}"]})
    )
    return rendered(directory)


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_every_manifest_follows_the_schema_of_the_api(
    overlay: tuple[Manifest, ...], version: str
) -> None:
    assert len(overlay) > 10
    for manifest in overlay:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_adds_to_an_overlay_and_every_pod_is_hardened(
    name: str, component: str, tmp_path: Path
) -> None:
    manifests = scaled(component, tmp_path, name)
    for manifest in manifests:
        if not manifest["apiVersion"].startswith("keda.sh/"):
            kubernetes_validate.validate(manifest, OLDEST, strict=True)
    assert PARTS[name] | {"worker"} == set(pods(manifests))
    each_is_hardened(manifests)


def each_is_hardened(manifests: tuple[Manifest, ...]) -> None:
    for name, pod in pods(manifests).items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, container["name"]
            assert {"cpu", "memory"} == set(container["resources"]["requests"]), container["name"]
            assert "memory" in container["resources"]["limits"], container["name"]


def test_every_pod_is_hardened(overlay: tuple[Manifest, ...]) -> None:
    each_is_hardened(overlay)


def test_every_selector_selects_and_what_is_asked_for_exists(
    overlay: tuple[Manifest, ...],
) -> None:
    labels = [pod["metadata"]["labels"] for pod in pods(overlay).values()]
    claims = of_kind(overlay, "StatefulSet")
    known = of_kind(overlay, "ConfigMap") | {"sitemapd": {}, "sitemapd-redis": {}}

    for kind in ("Service", "PodDisruptionBudget"):
        for name, manifest in of_kind(overlay, kind).items():
            wanted = manifest["spec"]["selector"]
            wanted = wanted.get("matchLabels", wanted) | {}
            if (pod := wanted.pop(POD, "")) and (of := pod.rpartition("-"))[0] in claims:
                assert int(of[2]) < claims[of[0]]["spec"]["replicas"], name
            assert any(wanted.items() <= each.items() for each in labels), (kind, name)
    for name, pod in pods(overlay).items():
        mounted = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        own = of_kind(overlay, "StatefulSet").get(name, {"spec": {}})["spec"]
        claimed = {each["metadata"]["name"] for each in own.get("volumeClaimTemplates", ())}
        for container in containers(pod):
            for mount in container["volumeMounts"]:
                assert mount["name"] in mounted.keys() | claimed, (name, mount)
        for volume in mounted.values():
            if "configMap" in volume:
                assert volume["configMap"]["name"] in known
            if "secret" in volume:
                assert volume["secret"]["secretName"] in known


def test_a_pod_has_the_time_to_stop_that_its_unit_has(overlay: tuple[Manifest, ...]) -> None:
    grace = {name: pod["spec"]["terminationGracePeriodSeconds"] for name, pod in
             pods(overlay).items()}  # fmt: skip
    waits = pods(overlay)["web"]["spec"]["containers"][0]["lifecycle"]["preStop"]["sleep"]

    assert grace["web"] >= seconds_of_unit("web", "TimeoutStopSec") + waits["seconds"]
    assert grace["files"] >= seconds_of_unit("worker", "TimeoutStopSec")
    assert grace["schedule"] >= seconds_of_unit("schedule", "TimeoutStopSec")


def test_the_programs_know_their_options(overlay: tuple[Manifest, ...]) -> None:
    """Each command of the image is in the help of the command line."""
    for pod in pods(overlay).values():
        for container in containers(pod):
            if not container["image"].startswith("registry.example.com/sitemapd:"):
                continue
            arguments = container["args"]
            words = [word for word in arguments[:2] if re.fullmatch("[a-z-]+", word)]
            options = [word for word in arguments if word.startswith("--")]
            shown = subprocess.run(
                [SITEMAPD, *words, "--help"], capture_output=True, text=True, check=True,
                env=os.environ | {"COLUMNS": "200"},
            ).stdout  # fmt: skip
            assert all(option in shown for option in options), (words, options)


def home(overlay: tuple[Manifest, ...], directory: Path) -> dict[str, str]:
    """Put the ConfigMap into `directory`; the environment of a pod, with the Secret."""
    for name, text in of_kind(overlay, "ConfigMap")["sitemapd"]["data"].items():
        (directory / name).write_text(text)
    address = {"SITEMAPD_REDIS_URL": URLS["ha" if "sentinel" in pods(overlay) else "single"]}
    return os.environ | SECRET | address | {"SITEMAPD_HOME": str(directory)}


def test_sitemapd_takes_the_configuration(overlay: tuple[Manifest, ...], tmp_path: Path) -> None:
    checked = subprocess.run(
        [SITEMAPD, "config", "check"], capture_output=True, text=True, check=False,
        env=home(overlay, tmp_path),
    )  # fmt: skip

    assert checked.returncode == 0, checked.stderr


def test_nginx_takes_the_servers_that_the_pod_makes(
    overlay: tuple[Manifest, ...], tmp_path: Path
) -> None:
    needs(PROGRAM)
    pod = pods(overlay)["files"]
    made = next(each for each in containers(pod) if each["name"] == "nginx-servers")
    out = tmp_path / "out"
    arguments = [str(out) if word == "/out" else word for word in made["args"]]
    subprocess.run([SITEMAPD, *arguments], check=True, env=home(overlay, tmp_path))
    conf = of_kind(overlay, "ConfigMap")["nginx"]["data"]["nginx.conf"]
    # Names of the cluster are nowhere to be found here, and nginx asks for them at its start.
    servers = out / "nginx/sites-available/sitemapd"
    servers.write_text(servers.read_text().replace("server web:", "server 127.0.0.1:"))
    (out / "nginx/nginx.conf").write_text(
        conf.replace("/tmp/", f"{tmp_path}/").replace("/dev/stdout", f"{tmp_path}/access.log")
    )

    checked = subprocess.run(
        [PROGRAM, "-t", "-c", out / "nginx/nginx.conf", "-e", tmp_path / "error.log"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert checked.returncode == 0, checked.stderr
    assert "[emerg]" not in checked.stderr
    ports = {port["containerPort"] for each in containers(pod) for port in each.get("ports", ())}
    assert ports == {8080}
    assert set(re.findall(r"(?m)^    listen (?:\[::\]:)?(\d+)", servers.read_text())) == {"8080"}


def settings(text: str) -> dict[str, str]:
    """The settings of a configuration of Redis."""
    lines = (line.split(None, 1) for line in text.splitlines() if line and line[0] != "#")
    return dict(line for line in lines if len(line) == 2)


def redis_settings(whole: tuple[Manifest, ...]) -> dict[str, str]:
    """The settings of the Redis of an overlay: options of its command, or a file."""
    if given := of_kind(whole, "ConfigMap").get("redis"):
        return settings(given["data"]["redis.conf"])
    command = pods(whole)["redis"]["spec"]["containers"][0]["command"]
    return settings("\n".join(word.removeprefix("--") for word in command if word[:2] == "--"))


def test_redis_has_the_settings_that_are_shipped(whole: tuple[Manifest, ...]) -> None:
    given = redis_settings(whole)
    shipped = settings((KUBERNETES.parent / "redis" / "sitemapd.conf").read_text())
    elsewhere = {"port", "unixsocket", "unixsocketperm", "dir", "logfile", "daemonize",
                 "protected-mode", "maxmemory"}  # fmt: skip

    assert {name: given[name] for name in shipped.keys() - elsewhere} == {
        name: shipped[name] for name in shipped.keys() - elsewhere
    } | {"aclfile": "/etc/redis/sitemapd.acl"}


def redis_memory(whole: tuple[Manifest, ...]) -> tuple[int, int]:
    limit = pods(whole)["redis"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    given = redis_settings(whole)["maxmemory"]
    return int(given.removesuffix("mb")), 1024 * int(limit.removesuffix("Gi"))


def test_redis_refuses_events_before_its_pod_is_killed(whole: tuple[Manifest, ...]) -> None:
    given, limit = redis_memory(whole)

    assert given < 0.8 * limit


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_scaling_asks_for_metrics_that_are_declared(component: str, tmp_path: Path) -> None:
    found = of_kind(scaled(component, tmp_path), "ScaledObject")["worker"]["spec"]
    declared = (KUBERNETES.parents[1] / "shared/metrics/declarations.py").read_text()
    asked: list[Any] = [each["metadata"] for each in found["triggers"]]

    for each in asked:
        query = each.get("query") or each["valueLocation"]
        promql_parser.parse(query)
        for name in re.findall(r"sitemapd_(\w+)", query):
            assert f'_now("{name}"' in declared
    assert found["scaleTargetRef"] == {"name": "worker"}


def test_the_readme_names_every_overlay_and_component() -> None:
    readme = (KUBERNETES.parent / "README.md").read_text()
    lines = [shlex.split(line, comments=True) for line in readme.splitlines() if
             line.startswith("kubectl apply")]  # fmt: skip

    applied = {word for words in lines for word in words if "kubernetes/" in word}
    assert {Path(word).name for word in applied} == set(WHOLE)
    assert all(f"`{component}`" in readme for component in COMPONENTS)
