"""Sites in the files of `sites.d`: read with sitemapd.toml, and anew only where a file changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.config.edit import changes
from shared.config.edit.config_file import ConfigFile
from shared.config.live import LiveSettings
from shared.config.settings import Settings, load, parse, read, read_sites
from shared.config.sites import site_files
from shared.errors import ConfigError, InvalidError
from tests.unit.configured import CANARY, SITE


def table(name: str, more: str = "") -> str:
    return (
        f'[sites.{name}]\nbase_url = "https://{name}.example.com"\nweb_root = "public/{name}"\n'
        f'tokens = ["{CANARY}"]\n{more}'
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sitemapd.toml"
    path.write_text(SITE)
    path.chmod(0o640)
    (tmp_path / "sites.d").mkdir()
    return path


@pytest.fixture
def beside(file: Path) -> Path:
    return file.parent / "sites.d"


def replace(path: Path, text: str) -> None:
    new = path.with_name(".new")
    new.write_text(text)
    new.rename(path)


def faults(path: Path) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert CANARY not in str(caught.value)
    return {fault.field: fault.detail for fault in caught.value.faults}


class Follower:
    def __init__(self, path: Path) -> None:
        self.live, self.applied = LiveSettings(path), list[Settings]()

    def look(self) -> bool:
        return self.live.look(self.applied.append)

    def looks(self) -> list[str]:
        """The sites in force after two looks: a file that is not replaced must rest."""
        self.look()
        self.look()
        return [*self.live.current.sites]


def test_files_hold_one_site_or_several_beside_those_of_sitemapd_toml(
    file: Path, beside: Path
) -> None:
    (beside / "b.toml").write_text(table("b", "[sites.b.sections.posts]\n"))
    (beside / "a.toml").write_text(table("a2") + table("a1"))
    for name in ("c.toml.off", ".d.toml", "e.txt"):
        (beside / name).write_text("no TOML")

    sites = load(file).sites

    assert [*sites] == ["demo", "a2", "a1", "b"]
    assert sites["b"].web_root == file.parent / "public/b"
    assert "posts" in sites["b"].sections


def test_each_fault_names_its_file(file: Path, beside: Path) -> None:
    (beside / "a.toml").write_text(table("a", 'robots = "maybe"\n'))
    (beside / "b.toml").write_text("[")
    (beside / "c.toml").write_text('redis_url = "x"\n' + table("c"))
    (beside / "d.toml").write_text(table("d").replace("public/d", "sites.d"))
    (beside / "e.toml").write_text(table("e") + table("Shop"))
    file.write_text(SITE + "unknown = 1\n")

    found = faults(file)

    assert found.keys() == {
        "sites.demo.unknown", "sites.d/a.toml: sites.a.robots", "sites.d/b.toml",
        "sites.d/c.toml: redis_url", "sites.d/d.toml: sites.d.web_root",
        "sites.d/e.toml: sites.Shop",
    }  # fmt: skip
    assert found["sites.d/c.toml: redis_url"] == "belongs into sitemapd.toml"
    assert "secrets would be served" in found["sites.d/d.toml: sites.d.web_root"]


def test_a_site_in_two_files_is_refused_with_both(file: Path, beside: Path) -> None:
    (beside / "a.toml").write_text(table("a"))
    (beside / "b.toml").write_text(table("a"))
    (beside / "demo.toml").write_text(table("demo"))

    assert faults(file) == {
        "sites.a": "is in sites.d/a.toml and in sites.d/b.toml: remove one of them",
        "sites.demo": "is in sitemapd.toml and in sites.d/demo.toml: remove one of them",
    }


def test_sites_of_two_files_do_not_share_a_web_root(file: Path, beside: Path) -> None:
    (beside / "a.toml").write_text(table("a").replace("public/a", "public"))

    assert faults(file) == {
        "sites.a.web_root": "is also the web_root of the site demo: each site needs its own"
    }


def test_alerts_name_sites_of_files_and_variables_win_over_them(
    file: Path, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (beside / "a.toml").write_text(table("a", "rate = 7\n"))
    file.write_text(SITE + '[alerts.failed]\nsites = ["a"]\n')
    monkeypatch.setenv("SITEMAPD_SITES__A__RATE", "9")

    assert load(file).sites["a"].rate == 9
    (beside / "a.toml").write_text("[")
    assert [*faults(file)] == ["sites.d/a.toml"], "whether the site exists is not known"


def test_changed_added_and_removed_files_are_in_force_without_a_restart(
    file: Path, beside: Path
) -> None:
    (beside / "a.toml").write_text(table("a"))
    follower = Follower(file)
    revision = follower.live.revision
    assert not follower.look()

    replace(beside / "a.toml", table("a", "rate = 7\n"))
    assert follower.look()
    assert follower.live.current.sites["a"].rate == 7
    assert follower.live.revision != revision

    (beside / "b.toml").write_text(table("b"))
    assert follower.looks() == ["demo", "a", "b"]
    with (beside / "b.toml").open("a") as written:
        written.write("rate = 3\n")
    follower.looks()
    assert follower.live.current.sites["b"].rate == 3

    (beside / "a.toml").unlink()
    assert follower.looks() == ["demo", "b"]
    (beside / "b.toml").unlink()
    assert follower.looks() == ["demo"]


def test_a_file_that_is_being_written_is_read_when_it_rests(file: Path, beside: Path) -> None:
    follower = Follower(file)
    with (beside / "a.toml").open("w") as written:
        for part in (table("a")[:20], table("a")[20:], "rate = 7\n"):
            written.write(part)
            written.flush()
            assert not follower.look()
            assert follower.live.refused is None

    assert follower.look()
    assert follower.live.current.sites["a"].rate == 7


def test_one_file_with_a_fault_keeps_all_in_force_as_it_was(file: Path, beside: Path) -> None:
    (beside / "a.toml").write_text(table("a"))
    follower = Follower(file)
    before = follower.live.current
    replace(beside / "a.toml", table("a", "rate = 7\n"))
    (beside / "b.toml").write_text(table("b", 'robots = "maybe"\n'))
    follower.live.ask()

    assert follower.look()
    assert follower.live.current is before
    assert follower.live.refused is not None
    assert "sites.d/b.toml: sites.b.robots" in str(follower.live.refused.faults[0])
    assert not follower.look(), "it is told once"

    replace(beside / "b.toml", table("b"))
    assert follower.look()
    assert [*follower.live.current.sites] == ["demo", "a", "b"]
    assert follower.live.current.sites["a"].rate == 7


def test_files_that_stay_are_the_same_objects_after_a_reload(file: Path, beside: Path) -> None:
    for name in ("a", "b"):
        (beside / f"{name}.toml").write_text(table(name))
    follower = Follower(file)
    before = follower.live.current.sites["b"]
    replace(beside / "a.toml", table("a", "rate = 7\n"))

    assert follower.look()
    assert follower.live.current.sites["b"] is before


def test_a_look_at_many_files_is_bounded_and_finds_each_change_by_turns(
    file: Path, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_files, "MOST", 3)
    for number in range(10):
        (beside / f"s{number}.toml").write_text(table(f"s{number}"))
    os.utime(beside, (0, 0))
    follower = Follower(file)
    follower.look()
    (beside / "s7.toml").write_text(table("s7", "rate = 7\n"))  # in place: the directory stays

    looks = 0
    while follower.live.current.sites["s7"].rate != 7:
        looks += 1
        assert looks <= 6, "10 files by turns of 3, and one look more until it rests"
        follower.look()


def test_a_new_site_gets_a_file_of_its_own_with_the_mode_of_sitemapd_toml(
    file: Path, beside: Path
) -> None:
    made = changes.add_site(ConfigFile(file), "shop", "https://shop.example")

    added = beside / "shop.toml"
    assert file.read_text() == SITE
    assert added.stat().st_mode & 0o777 == 0o640
    assert os.listdir(beside) == ["shop.toml"]
    assert load(file).sites["shop"].web_root == file.parent / "public-shop"
    assert made.edit.after == load(file)
    assert made.edit.revision == LiveSettings(file).revision
    assert made.secret not in "\n".join(made.edit.lines)


def test_a_site_is_changed_and_removed_in_the_file_that_holds_it(file: Path, beside: Path) -> None:
    (beside / "two.toml").write_text("# ours\n" + table("a") + table("b"))
    (beside / "c.toml").write_text(table("c"))
    config = ConfigFile(file)

    changes.add_section(config, "a", "blog", {"split": "month"})
    changes.add_section(config, "demo", "blog", {})
    assert "[sites.a.sections.blog]" in (beside / "two.toml").read_text()
    assert "[sites.demo.sections.blog]" in file.read_text()

    changes.remove_site(config, "b")
    changes.remove_site(config, "c")
    assert sorted(os.listdir(beside)) == ["two.toml"], "a file without a site is removed"
    assert [*load(file).sites] == ["demo", "a"]
    assert (beside / "two.toml").read_text().startswith("# ours\n[sites.a]")


def test_a_refused_site_leaves_no_file(file: Path, beside: Path) -> None:
    for name, url in (("demo", "https://a.example"), ("x", "nonsense"), ("../x", "https://a.de")):
        with pytest.raises(InvalidError):
            changes.add_site(ConfigFile(file), name, url)

    assert os.listdir(beside) == []
    assert file.read_text() == SITE


def test_what_was_read_is_not_read_again_by_an_edit(file: Path, beside: Path) -> None:
    (beside / "a.toml").write_text(table("a"))
    known = read_sites(file)

    edit = changes.add_site(ConfigFile(file, known), "shop", "https://shop.example").edit

    assert edit.after.sites["a"] is parse(read(file), file, known).sites["a"]
