"""Whether ``SPNGPRegressor()`` (default arguments) is honest and misses nothing: data whose truth is known.

    python benchmarks/honesty.py --quick
    SPNGP_DATA=../shared/data python benchmarks/honesty.py --sections coverage --sets 100 --n-jobs 2

Sections, each in a module of ``benchmarks/honesty_sections`` that says what its columns mean:

search
    Fine structure along one input or two, among smooth structure along others.
more
    The same with 5,000 to 400,000 rows.
noise
    Noise that changes with the input: a step, growth, the motorcycle data, the non-stationary series.
coverage
    How often intervals hold on small sets of seven kinds, beside scikit-learn's GP and a constant.
errors
    Gross errors of every size among outputs, and what looks like errors and is none.
near
    Errors among outputs that are no farther off than sound ones may be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import reporting
from honesty_sections import Settings
from honesty_sections.coverage import coverage
from honesty_sections.errors import errors
from honesty_sections.more import more
from honesty_sections.near import near
from honesty_sections.noise import noise
from honesty_sections.search import search
from spngp.experiments.origin import origin_text

Section = Callable[[Settings], Iterator[str]]
SECTIONS: dict[str, Section] = {section.__name__: section for section in (search, more, noise, coverage, errors, near)}


def main() -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sections", type=reporting.names, default=list(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="a few fits of each kind, in a minute or two")
    parser.add_argument("--sets", type=int, default=100, help="data sets of each kind in the section on coverage")
    parser.add_argument("--seeds", type=int, default=3, help="seeds in the sections on noise and errors")
    parser.add_argument("--most-rows", type=int, default=10_000, help="leave out larger sets (coverage, errors)")
    parser.add_argument(
        "--shapes", type=reporting.names, default=[], help="of coverage: rows x inputs, as in 20x2,50x5"
    )
    parser.add_argument(
        "--models", type=reporting.names, default=[], help="of coverage: default, scikit-learn, constant"
    )
    parser.add_argument("--kinds", type=reporting.names, default=[], help="of data in coverage or errors")
    parser.add_argument("--n-jobs", type=int)
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        raise SystemExit(f"honesty.py: sections must be of {', '.join(SECTIONS)}, got {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    shapes = tuple((int(shape.split("x")[0]), int(shape.split("x")[1])) for shape in arguments.shapes)
    sizes = (arguments.sets, arguments.seeds, arguments.most_rows)
    settings = Settings(
        arguments.quick, arguments.n_jobs, *sizes, shapes, tuple(arguments.models), tuple(arguments.kinds)
    )
    lines = [
        "# Honesty",
        "",
        f"Made by `python benchmarks/honesty.py{' --quick' if arguments.quick else ''}` with {origin_text()}. Default "
        "arguments; modules of `benchmarks/honesty_sections` say what each column means.",
    ]
    for name in arguments.sections:
        lines += ["", f"## {name.capitalize()}", "", f"{SECTIONS[name].__doc__}", ""]
        for line in SECTIONS[name](settings):
            print(line, flush=True)
            lines.append(line)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    reporting.run(main)
