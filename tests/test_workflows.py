"""Files that other programs read, such as workflows: they parse, and name what exists."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")

pytestmark = pytest.mark.skipif(not (ROOT / ".github").exists(), reason="an sdist has no workflows")


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def make_targets():
    rules = re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return set(rules)


def steps_of(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"tests", "nightly", "wheels"}
    assert {"setup", "test", "unit", "test-oldest"} <= make_targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_whole_and_its_make_targets_exist(path):
    workflow = read(path)
    assert workflow["name"] == path.stem
    assert workflow[True]  # what YAML 1.1 makes of the key "on"
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert job["timeout-minutes"] <= 60
    for step in steps_of(workflow):
        assert ("run" in step) != ("uses" in step), step
        for target in re.findall(r"^\s*make ([a-z-]+)", step.get("run", ""), re.MULTILINE):
            assert target in make_targets(), step
        for used in re.findall(r"[\w./-]+\.(?:py|txt|toml)\b", step.get("run", "")):
            assert (ROOT / used).exists(), step
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["fetch-depth"] == 0  # or the version would not know its tag


def test_every_supported_python_is_tested_on_three_systems():
    matrix = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["supported"]["strategy"]["matrix"]
    declared = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if ":: Python :: 3." in line]
    assert matrix["python"] == declared
    assert PROJECT["project"]["requires-python"] == f">={declared[0]}"
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}


def test_without_make_the_same_is_run_as_by_make_test():
    (step,) = [
        step
        for step in steps_of(read(ROOT / ".github" / "workflows" / "tests.yml"))
        if "Windows" in step.get("if", "") and "!=" not in step["if"]
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [line.removeprefix("python -m ") for line in step["run"].splitlines()][1:]
    assert len(commands) == 4
    for command in commands:
        assert re.search(rf"^\t.*\$\(BIN\)/(python -m )?{re.escape(command)}", makefile, re.MULTILINE), command


def test_the_nightly_run_is_scheduled_and_upgrades_what_it_says():
    workflow = read(ROOT / ".github" / "workflows" / "nightly.yml")
    assert workflow[True]["schedule"]
    (upgrade,) = [step["run"] for step in steps_of(workflow) if "--pre" in step.get("run", "")]
    assert {"numpy", "scipy", "scikit-learn"} <= set(upgrade.split())


def test_wheels_are_built_on_the_oldest_python_and_for_tags():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert PROJECT["tool"]["cibuildwheel"]["build"][0] == f"cp{oldest}-*"
    assert f'"cp{oldest}"' in (ROOT / "setup.py").read_text(encoding="utf-8")
    assert read(ROOT / ".github" / "workflows" / "wheels.yml")[True]["push"]["tags"] == ["v*"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_has_distinct_fields(path):
    form = read(path)
    assert form["name"]
    assert form["description"]
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names) > 0
    assert any(field["validations"]["required"] for field in form["body"] if "validations" in field)


def test_the_citation_names_the_paper_and_the_authors_of_the_software():
    citation = read(ROOT / "CITATION.cff")
    assert citation["authors"] == PROJECT["project"]["authors"]
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["repository-code"] == PROJECT["project"]["urls"]["Repository"]
    paper = citation["preferred-citation"]
    assert paper["title"] in (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    assert [author["family-names"] for author in paper["authors"]] == ["Trapp", "Peharz", "Rasmussen", "Pernkopf"]
    assert paper["year"] == 2018
