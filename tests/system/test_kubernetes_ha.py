"""The Kubernetes overlay `ha`: two of everything, on nodes of their own, that find each other."""

from __future__ import annotations

import subprocess
import tomllib

from tests.system.kubernetes import KUBERNETES, RUNS_PODS, of_kind, pods, rendered

COMPONENT = "app.kubernetes.io/component"


def test_ha_has_two_of_everything_on_nodes_of_their_own_and_gives_up_one_at_a_time() -> None:
    ha = rendered(KUBERNETES / "ha")

    workloads = of_kind(ha, *RUNS_PODS)
    assert {name: each["spec"]["replicas"] for name, each in workloads.items()} == {
        "web": 2, "files": 2, "schedule": 2, "redis": 3, "sentinel": 3,
    }  # fmt: skip
    assert of_kind(ha, "PodDisruptionBudget").keys() == workloads.keys()
    for name, pod in pods(ha).items():
        spread, *_ = pod["spec"]["topologySpreadConstraints"]
        same = spread["labelSelector"]["matchLabels"]
        assert same.items() <= pod["metadata"]["labels"].items(), name
        assert COMPONENT in [*same, *spread.get("matchLabelKeys", ())], name
        if name in {"redis", "sentinel", "files"}:
            assert (spread["maxSkew"], spread["minDomains"]) == (1, 3), name
            assert spread["whenUnsatisfiable"] == "DoNotSchedule", name


def test_ha_publishes_to_each_pod_that_serves_files() -> None:
    ha = rendered(KUBERNETES / "ha")
    config = tomllib.loads(of_kind(ha, "ConfigMap")["sitemapd"]["data"]["sitemapd.toml"])
    site = config["sites"]["main"]

    hosts = {each["host"] for each in site["targets"]}
    replicas = of_kind(ha, "StatefulSet")["files"]["spec"]["replicas"]
    assert hosts == {f"files-{n}" for n in range(replicas)}
    assert {each["url"] for each in site["targets"]} == {site["web_root"]}, "what nginx serves"
    assert config["wait_replicas"] == 1


def test_ha_finds_redis_and_sentinels_by_names_that_stay_and_may_reach_them() -> None:
    ha = rendered(KUBERNETES / "ha")
    scripts = of_kind(ha, "ConfigMap")["redis"]["data"]
    services = of_kind(ha, "Service")

    for name in ("redis.sh", "sentinel.sh"):
        checked = subprocess.run(["sh", "-n"], input=scripts[name], text=True, check=False)
        assert checked.returncode == 0, name
    for kind in ("redis", "sentinel"):
        for n in range(3):
            assert services[f"{kind}-{n}"]["spec"]["publishNotReadyAddresses"] is True
    rules = of_kind(ha, "NetworkPolicy")
    asking = rules["to-sentinel"]["spec"]["podSelector"]["matchExpressions"][0]["values"]
    assert {*pods(ha), "worker"} == {*asking}
    (heard,) = rules["sentinel"]["spec"]["ingress"][0]["from"]
    assert heard["podSelector"]["matchExpressions"][0]["values"] == asking
