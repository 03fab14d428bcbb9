"""The alert rules and the dashboard ask for declared metrics by declared labels only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from typer.main import get_command

from deploy.cli.program import app
from shared.metrics.declarations import DECLARED, METRICS, OTHER

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "sitemapd.rules.yml").read_text())
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
DASHBOARD = json.loads((DEPLOY / "grafana" / "sitemapd.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = {
    f"{panel['title']} {target['refId']}": target for panel in PANELS for target in panel["targets"]
}
TARGET_LABELS = {"job", "instance"}  # what Prometheus itself adds
VARIABLES = {"site", "datasource"}


def selectors(expression: str) -> list[promql_parser.VectorSelector]:
    found = []

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def faults(expression: str) -> Iterator[str]:
    """What of an expression the table does not know."""
    known = set(TARGET_LABELS)
    for selector in selectors(expression):
        if selector.name == "up":
            known |= TARGET_LABELS
            continue
        base = re.sub(r"_(bucket|sum|count)$", "", selector.name or "")
        metric = DECLARED.get(selector.name) or DECLARED.get(base)
        if metric is None:
            yield f"{selector.name} is not declared"
            continue
        if (metric.kind == "histogram") != (metric.name != selector.name):
            yield f"{selector.name} is no series of a {metric.kind}"
        labels = {label.name: label for label in metric.labels}
        known |= {*labels, *({"le"} if metric.kind == "histogram" else set())}
        for matcher in selector.matchers.matchers:
            yield from _of_matcher(matcher, labels)
    for names in re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", expression):
        for name in filter(None, re.split(r"[\s,]+", names)):
            if name not in known:
                yield f"{name} is no label of these metrics"


def _of_matcher(matcher: Any, labels: dict[str, Any]) -> Iterator[str]:
    if matcher.name not in {*labels, *TARGET_LABELS}:
        yield f"{matcher.name} is no label of it"
    elif matcher.name in labels and labels[matcher.name].values:
        for value in matcher.value.split("|"):
            if value not in {*labels[matcher.name].values, OTHER, "$site"}:
                yield f"{matcher.name} is never {value}"


def plain(expression: str) -> str:
    """An expression of the dashboard as Prometheus gets it."""
    return expression.replace("$__rate_interval", "5m").replace("$site", "demo")


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS.keys())
def test_an_alert_asks_for_what_is_declared(alert: dict[str, Any]) -> None:
    assert not list(faults(alert["expr"]))
    assert selectors(alert["expr"])


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS.keys())
def test_an_alert_says_what_it_is_what_it_means_and_what_to_do(alert: dict[str, Any]) -> None:
    said = alert["annotations"]
    assert set(said) == {"summary", "description", "action"}
    assert alert["labels"]["severity"] in {"page", "ticket"}
    for line in re.findall(r"(?<![-@_/])\bsitemapd [a-z][^;,]*", said["action"]):
        assert exists(re.sub(r"{{.*?}}", "x", line).split()[1:]), line
    assert re.search(r"sitemapd|systemctl|journalctl|timedatectl|look at|df ", said["action"])
    for label in re.findall(r"\$labels\.(\w+)", json.dumps(said)):
        names = {name for each in selectors(alert["expr"]) for name in labels_of(each)}
        assert label in names


def exists(words: list[str]) -> bool:
    """Whether there is a command that begins so, and takes each of these options."""
    command: Any = get_command(app)
    while words and (inner := getattr(command, "commands", {}).get(words[0])):
        command, words = inner, words[1:]
    if hasattr(command, "commands") and not command.invoke_without_command:
        return False
    known = {option for each in command.params for option in each.opts}
    return {word for word in words if word.startswith("--")} <= known


def labels_of(selector: promql_parser.VectorSelector) -> set[str]:
    base = re.sub(r"_(bucket|sum|count)$", "", selector.name or "")
    metric = DECLARED.get(selector.name) or DECLARED.get(base)
    return {label.name for label in metric.labels} if metric else set()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_a_panel_asks_for_what_is_declared(target: dict[str, Any]) -> None:
    expression = plain(target["expr"])
    assert not list(faults(expression))
    shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    known = {name for each in selectors(expression) for name in labels_of(each)}
    assert shown <= known | TARGET_LABELS | {"le"}


def test_the_dashboard_can_be_read_by_grafana() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert all(panel["description"] for panel in PANELS)
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert names == VARIABLES
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert used <= VARIABLES | {"__rate_interval", "__all"}
    (query,) = (
        variable["definition"]
        for variable in DASHBOARD["templating"]["list"]
        if variable["name"] == "site"
    )
    found = re.fullmatch(r"label_values\((\w+), (\w+)\)", query)
    assert found is not None
    assert found[2] in {label.name for label in DECLARED[found[1]].labels}


def test_what_is_not_declared_is_found() -> None:
    assert list(faults("sitemapd_nothing > 0"))
    assert list(faults("sum by (page) (sitemapd_urls)"))
    assert list(faults('sitemapd_queue_paused{queue="evnts"} == 1'))
    assert list(faults('sitemapd_urls{section="news"}'))
    assert list(faults("rate(sitemapd_answer_seconds[5m])"))
    assert list(faults("rate(sitemapd_urls_count[5m])"))


def test_every_metric_has_its_place() -> None:
    """One that no panel and no alert shows is one that nobody sees."""
    asked = [alert["expr"] for alert in ALERTS.values()]
    asked += [plain(target["expr"]) for target in TARGETS.values()]
    names = {
        re.sub(r"_(bucket|sum|count)$", "", selector.name or "")
        for expression in asked
        for selector in selectors(expression)
    }
    assert {metric.name for metric in METRICS} <= names
