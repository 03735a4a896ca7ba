"""Panels as folders: what is read, what is refused with the file and what would help, and the way there and back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.running.cases import Budgets, CaseDefinition, SimulatedUser, Verifier
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.formats.panels import tree as panel_tree
from harnesslab.formats.panels.reading import read_panel
from harnesslab.formats.panels.writing import panel_files, unpacked

DIGEST = f"python@sha256:{'a' * 64}"
TASK = f"""
version = "1.0"
[metadata]
tags = ["shell"]
[environment]
docker_image = "{DIGEST}"
[agent]
timeout_sec = 900.0
[verifier]
timeout_sec = 120.0
"""
TEST = "#!/bin/bash\ncd /work\nif grep -q done /work/a.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


def written(folder: Path, **files: str | bytes) -> Path:
    """Write files by path, `__` standing for a dot and `_in_` for a slash."""
    return wrote(folder, {name.replace("_in_", "/").replace("__", "."): data for name, data in files.items()})


def wrote(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def small(folder: Path, **more: str | bytes) -> Path:
    return written(folder, a_in_instruction__md="Do a.\n", b_in_instruction__md="Do b.\n", **more)


def harbor(folder: Path, task: str = TASK, test: str = TEST, **more: str | bytes) -> Path:
    files = {
        "t_in_task__toml": task,
        "t_in_instruction__md": "Write done into a.txt.\n",
        "t_in_tests_in_test__sh": test,
    }
    return written(folder, **(files | more))


def test_a_folder_becomes_cases_with_the_panels_budgets_and_their_own(tmp_path: Path) -> None:
    case = 'tags = ["x"]\nsetup = ["touch y"]\n[budgets]\nsteps = 3\n[verifier.tests]\n"y is there" = "test -f y"\n'
    folder = small(
        tmp_path / "p",
        panel__toml='name = "two"\ncases = ["b", "a"]\n[budgets]\nsteps = 9\nwall = 60\n',
        a_in_case__toml=case,
        a_in_environment_in_sub_in_f__txt="one\n",
        a_in_verifier_in_check__py="import sys\n",
    )
    found = read_panel(folder)
    b, a = found.cases
    assert (found.name, b.name, a.name) == ("two", "b", "a")
    assert (b.budgets.steps, b.budgets.wall, a.budgets.steps, a.budgets.wall) == (9, 60.0, 3, 60.0)
    assert (a.instruction, a.files, a.setup, a.tags) == ("Do a.", {"sub/f.txt": "one\n"}, ("touch y",), ("x",))
    assert a.verifier == Verifier({"y is there": "test -f y"}, {"check.py": "import sys\n"})


def test_without_a_panel_file_the_folder_names_it_and_a_list_chooses_cases(tmp_path: Path) -> None:
    assert [case.name for case in read_panel(small(tmp_path / "p")).cases] == ["a", "b"]
    assert read_panel(tmp_path / "p").name == "p"
    chosen = read_panel(small(tmp_path / "q", panel__toml='cases = ["b"]'))
    assert ([case.name for case in chosen.cases], chosen.unlisted) == (["b"], ("a",))


@pytest.mark.parametrize(
    ("files", "where", "said"),
    [
        ({"panel.toml": "name = \n"}, "panel.toml", "line 1"),
        ({"panel.toml": "names = 'x'\n"}, "panel.toml", "unknown field `names`"),
        ({"panel.toml": "a = " + "[" * 5000}, "panel.toml", "no TOML"),
        ({"panel.toml": b"name = '\xff'"}, "panel.toml", "not UTF-8"),
        ({"panel.toml": "cases = ['c']"}, "panel.toml", "no case 'c'"),
        ({"panel.toml": "[budgets]\nstep = 1"}, "case.toml", "unknown field `step`"),
        ({"a/case.toml": "[budgets]\nwall = nan"}, "a/case.toml", "wall = nan"),
        ({"a/case.toml": "[budgets]\nsteps = 0"}, "a/case.toml", "steps = 0"),
        ({"a/case.toml": "name = 'b'"}, "a and b", "two cases are named 'b'"),
        ({"a/case.toml": 'name = "a\\u0000"'}, "a/case.toml", "no name"),
        ({"a/case.toml": "image = 'python:3'"}, "a/case.toml", "not named by its digest"),
        ({"a/case.toml": "verifier = 3"}, "a/case.toml", "verifier"),
        ({"a/instruction.md": " \n"}, "a/instruction.md", "empty"),
        ({"c/case.toml": ""}, "c", "no instruction.md"),
        ({"a/environment/x.bin": b"\x80"}, "a/environment/x.bin", "base64"),
        ({"a/verifier/x": b"a\0b"}, "a/verifier/x", "byte 1 is 0"),
        ({"a/environment": "a file"}, "a/environment", "can't be read"),
        ({"a/environment/x": "x" * (panel_tree.LARGEST_FILE + 1)}, "a/environment/x", "limit of 1,048,576"),
    ],
)
def test_what_is_wrong_is_said_with_its_file(
    tmp_path: Path, files: dict[str, str | bytes], where: str, said: str
) -> None:
    folder = wrote(small(tmp_path / "p"), files)
    with pytest.raises(HarnessLabError) as caught:
        read_panel(folder)
    assert where in caught.value.sentence
    assert said in caught.value.sentence


@pytest.mark.parametrize("place", ["a/environment/link", "a/instruction.md", "c", "a/verifier"])
def test_a_link_is_refused_wherever_it_is(tmp_path: Path, place: str) -> None:
    folder = small(tmp_path / "p")
    (tmp_path / "secret").write_text("secret")
    (folder / place).unlink(missing_ok=True)
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).symlink_to(tmp_path / "secret")
    with pytest.raises(HarnessLabError, match="a link"):
        read_panel(folder)


def test_a_pipe_is_no_file_and_nothing_waits_for_it(tmp_path: Path) -> None:
    folder = written(small(tmp_path / "p"), a_in_environment_in_f="x")
    os.mkfifo(folder / "a" / "environment" / "pipe")
    with pytest.raises(HarnessLabError, match="no plain file"):
        read_panel(folder)


def test_a_panel_that_is_all_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_tree, "LARGEST_PANEL", 8)
    with pytest.raises(HarnessLabError, match="more than 8 bytes"):
        read_panel(small(tmp_path / "p"))


def test_nothing_is_no_panel(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(HarnessLabError, match=r"no case|no such folder"):
            read_panel(folder)


PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAMES = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20)
PATHS = st.lists(st.from_regex(r"[a-z][a-z.]{0,5}", fullmatch=True), min_size=1, max_size=2).map("/".join)
FILES = st.dictionaries(PATHS, PLAIN, max_size=1)
CASES = st.builds(
    CaseDefinition,
    name=NAMES,
    instruction=PLAIN.filter(str.strip),
    files=FILES,
    setup=st.lists(PLAIN, max_size=2).map(tuple),
    verifier=st.builds(Verifier, tests=st.dictionaries(PLAIN, PLAIN, max_size=2), files=FILES),
    budgets=st.builds(Budgets) | st.builds(Budgets, steps=st.integers(1, 99), wall=st.floats(0.5, 1e6)),
    user=st.none() | st.builds(SimulatedUser, persona=PLAIN, replies=st.lists(PLAIN, max_size=2).map(tuple)),
    image=st.sampled_from(["", DIGEST]),
    tags=st.lists(PLAIN, max_size=2).map(tuple),
)


@given(st.lists(CASES, min_size=1, max_size=3, unique_by=lambda case: case.name))
def test_what_is_written_out_is_read_as_the_same_revision(
    tmp_path_factory: pytest.TempPathFactory, cases: list[CaseDefinition]
) -> None:
    definition = PanelDefinition(tuple(cases))
    files = dict(unpacked(panel_files("any name", definition)))
    found = read_panel(wrote(tmp_path_factory.mktemp("panel"), dict(files)))
    assert found.definition.digest == definition.digest


def test_a_stored_path_that_would_leave_the_folder_is_not_written() -> None:
    definition = PanelDefinition((CaseDefinition("a", "Do a.", {"../../b": "x"}),))
    with pytest.raises(InvalidValue, match="leave the folder"):
        list(unpacked(panel_files("p", definition)))


def test_half_a_character_is_refused_by_the_way_out() -> None:
    with pytest.raises(InvalidValue, match="half a character"):
        panel_files("p", PanelDefinition((CaseDefinition("a", "Do a.", setup=("\ud800",)),)))


def test_a_harbor_task_becomes_a_case_of_its_image(tmp_path: Path) -> None:
    more = {"t_in_environment_in_Dockerfile": "FROM x", "t_in_environment_in_a__txt": "", "t_in_tests_in_more__py": ""}
    (case,) = read_panel(harbor(tmp_path / "set", **more)).cases
    assert (case.name, case.image, case.tags, case.files) == ("t", DIGEST, ("shell",), {"a.txt": ""})
    assert (case.budgets.wall, case.budgets.verify, case.budgets.steps) == (900.0, 120.0, 100)
    assert "/work/.verifier/logs/reward.txt" in case.verifier.files["test.sh"]
    assert list(case.verifier.tests) == ["reward"]
    assert read_panel(tmp_path / "set" / "t").cases[0].digest == case.digest


@pytest.mark.parametrize(
    ("task", "test", "said"),
    [
        (TASK.replace("docker_image", "build"), TEST, "only a Dockerfile"),
        (TASK.replace(DIGEST, "python:3"), TEST, "not named by its digest"),
        (TASK.replace("[agent]", "gpus = 1\n[agent]"), TEST, "a GPU"),
        (TASK + '[[steps]]\nname = "one"\n', TEST, "several steps"),
        (TASK, "apt-get update\n" + TEST, "fetches things"),
    ],
)
def test_a_harbor_task_that_can_not_run_here_says_why(tmp_path: Path, task: str, test: str, said: str) -> None:
    found = read_panel(harbor(tmp_path / "set", task, test))
    assert found.cases == ()
    assert said in found.refused["t"]
    assert "t/task.toml" in found.refused["t"]


REAL = Path(__file__).resolve().parents[4] / "shared" / "traces" / "harbor-trial" / "gpt-ioi-circuit"


@pytest.mark.skipif(not REAL.exists(), reason="the real traces are not beside this checkout")
def test_a_real_harbor_task_is_refused_for_what_it_needs() -> None:
    assert "a GPU" in read_panel(REAL).refused["gpt-ioi-circuit"]
