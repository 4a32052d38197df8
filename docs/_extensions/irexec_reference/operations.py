"""Operation reference: a page per operation type, from the registry, rows of tests and known differences."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import groupby

import irexec.ops  # noqa: F401 - its modules register the operations
from irexec.analysis.portability import DIFFERENCES
from irexec.io.xml import WRITTEN_TYPES
from irexec.schema.opdef import InputSpec, OpDef
from irexec.schema.registry import definitions
from irexec_reference.attributes import attribute_table
from irexec_reference.examples import example
from irexec_reference.markdown import code, prose, sentence, table
from irexec_reference.openvino_pages import openvino_page
from tests.oracle.explained import KNOWN


def pages() -> dict[str, str]:
    """Every page of the reference, by its name below the folder of generated pages."""
    found = {f"operations/{type}.md": page(type, versions) for type, versions in _types().items()}
    return {"operations/index.md": _index(), **found}


def page(type: str, versions: list[OpDef]) -> str:
    """The page of one operation type, its newest version first."""
    family = family_of(versions[0])
    spelled = (
        f" IR files spell it {code(WRITTEN_TYPES[type])}; both spellings are read." if type in WRITTEN_TYPES else ""
    )
    parts = [
        f"# {type}\n",
        f"{_versions(versions)}. Family: {family.replace('_', ' ')}, in `irexec/ops/{family}.py`.{spelled}\n",
        *(_version(definition) for definition in reversed(versions)),
        _differences(type),
        _neighbours(type, family),
    ]
    return "\n".join(part for part in parts if part)


@cache
def _types() -> dict[str, list[OpDef]]:
    return {type: list(group) for type, group in groupby(definitions(), key=lambda definition: definition.type)}


def family_of(definition: OpDef) -> str:
    """The module of irexec.ops that defines the operation."""
    return definition.kernel.__module__.rpartition(".")[2]


def _versions(versions: Iterable[OpDef]) -> str:
    return "Versions: " + ", ".join(f"[{v.version}](#{_anchor(v)})" for v in versions)


def _anchor(definition: OpDef) -> str:
    return f"{definition.type}-{definition.since}".lower()


def _version(definition: OpDef) -> str:
    openvino = openvino_page(definition.type, definition.since)
    parts = [
        f"## {definition.type}-{definition.since}\n",
        f'In IR: `type="{WRITTEN_TYPES.get(definition.type, definition.type)}" version="{definition.version}"`'
        + (f". [OpenVINO's page]({openvino})\n" if openvino else "\n"),
        prose(definition.kernel.__doc__ or "") + "\n",
        "**Inputs**\n",
        _inputs(definition.inputs),
        "**Attributes**\n",
        attribute_table(definition.attributes),
        _properties(definition),
        example(definition),
    ]
    return "\n".join(part for part in parts if part)


def _inputs(inputs: Iterable[InputSpec]) -> str:
    rows = [(str(i), code(spec.name), _elements(spec), _ranks(spec), _count(spec)) for i, spec in enumerate(inputs)]
    return table(("Port", "Name", "Element types", "Rank", "Given"), rows) if rows else "None.\n"


def _elements(spec: InputSpec) -> str:
    return "not declared" if spec.elements is None else spec.elements.text


def _ranks(spec: InputSpec) -> str:
    return "any" if spec.ranks is None else spec.ranks.text


def _count(spec: InputSpec) -> str:
    return "any number of times" if spec.variadic else "optional" if spec.optional else "required"


def _properties(definition: OpDef) -> str:
    known = {
        "f16 inputs are computed in f32, and the results are rounded to f16 once.": definition.widen,
        "An output may share memory with an input.": definition.view,
        "Known values are propagated through it by shape inference, also where they are bounds or "
        "symbols.": definition.symbolic,
        "The same inputs may give different results from run to run.": not definition.deterministic
        and bool(definition.inputs),
        "It reads or writes a variable of the session.": definition.stateful,
    }
    lines = [f"- {text}\n" for text, holds in known.items() if holds]
    return "**Properties**\n\n" + "".join(lines) if lines else ""


def _neighbours(type: str, family: str) -> str:
    """Links to the other operations of the family."""
    others = [other for other, versions in _types().items() if other != type and family_of(versions[0]) == family]
    if not others:
        return ""
    links = ", ".join(f"[{other}]({other}.md)" for other in others)
    return f"## Other operations of the family\n\n{links}. [All operations](index.md)\n"


def _differences(type: str) -> str:
    """Known differences of OpenVINO's implementations from each other, from the specification, and from irexec."""
    own = [row.does for row in DIFFERENCES.values() if type in row.types] + [
        known.why for known in KNOWN if type in known.types
    ]
    if not own:
        return ""
    lines = [f"- {prose(why[:1].upper() + why[1:])}.\n" for why in dict.fromkeys(own)]
    return "## Differences between implementations\n\n" + "".join(lines)


def _index() -> str:
    general = [f"- {prose(known.why[:1].upper() + known.why[1:])}.\n" for known in KNOWN if not known.types]
    parts = [
        "# Operations\n",
        f"{len(definitions())} definitions of {len(_types())} operation types, generated from the registry of irexec. "
        "Each page shows the inputs and attributes of every version, an example, and where implementations differ. "
        "`irexec ops NAME` prints a summary in the terminal.\n",
        "## By family\n",
        *(_family(name, members) for name, members in _families()),
        "## By opset\n",
        "The opset in which each version first appeared. A layer's `version` may name any later opset: it means the "
        "newest "
        "version that is not newer.\n",
        table(("Opset", "Versions"), _opsets()),
        "## Differences that hold for many operations\n",
        "".join(general),
    ]
    return "\n".join(parts)


def _families() -> list[tuple[str, list[OpDef]]]:
    newest = sorted((versions[-1] for versions in _types().values()), key=family_of)
    return [(name, list(members)) for name, members in groupby(newest, key=family_of)]


def _family(name: str, members: list[OpDef]) -> str:
    rows = [(f"[{d.type}]({d.type}.md)", sentence(d.kernel.__doc__ or "")) for d in members]
    return f"### {name.replace('_', ' ').capitalize()}\n\n" + table(("Operation", "What it computes"), rows)


def _opsets() -> list[tuple[str, str]]:
    ordered = sorted(definitions(), key=lambda d: (isinstance(d.since, str), f"{d.since!s:0>8}", d.type))
    return [
        (code(version), ", ".join(f"[{d.type}]({d.type}.md#{_anchor(d)})" for d in members))
        for version, members in groupby(ordered, key=lambda d: d.version)
    ]
