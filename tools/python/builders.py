"""Writes rlxvk/ops.py: a Python function for each builder call of the public headers.

A builder is a call whose first argument is the graph. Its other arguments become parameters:

    rlxvk_tensor             a Tensor, number or array; None is "no tensor"
    pointer and count        a sequence; a count that several pointers share is given once
    rlxvk_..._options *      a keyword for each member; one that is left out is zero, its default
    enumerations             their names in lower case
    rlxvk_tensor *out_...    a further result

The plan of a function tells `rlxvk._build.build` how each argument of the C call is made.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

# Made by hand in rlxvk: their arguments are graphs, or they begin a graph.
BY_HAND = {
    "rlxvk_call",
    "rlxvk_constant",
    "rlxvk_custom",
    "rlxvk_custom_function",
    "rlxvk_custom_packed",
    "rlxvk_dim_add",
    "rlxvk_dim_div",
    "rlxvk_dim_multiply",
    "rlxvk_dim_sub",
    "rlxvk_grad",
    "rlxvk_if",
    "rlxvk_input",
    "rlxvk_param",
    "rlxvk_scan",
    "rlxvk_set_symbol_example",
    "rlxvk_state",
    "rlxvk_while",
}
# Operands that an op can do without, by the names that the headers give them.
OPTIONAL = set(
    "b_hh b_ih beta bias c0 cos d_targets dcn dhn dstate extra gamma h0 mask residual seed sin "
    "state step weights".split()
)
DEFAULTS = {"axis": "-1", "channel_axis": "1", "eps": "1e-5"}
HINTS = {
    "tensor": "TensorLike",
    "tensors": "Sequence[TensorLike]",
    "int": "int",
    "size": "DimLike",
    "float": "float",
    "bool": "bool",
    "dtype": "DTypeLike",
    "shape": "ShapeLike",
    "text": "str",
    "enum": "str",
}
# Names that mean something else in Python, or to its readers.
RENAMED = {"from": "from_", "lambda": "lambda_", "in": "in_"}


@dataclass
class Parameter:
    """One parameter of a Python function."""

    name: str
    hint: str
    default: str = "" # "": it has none
    keyword: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.hint}" + (f" = {self.default}" if self.default else "")


@dataclass
class Function:
    """One builder call."""

    name: str
    text: str # the contract above the declaration
    result: str
    arguments: list[tuple[str, str]] # (C type, name), without the graph
    plan: list[str] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    values: list[str] = field(default_factory=list) # the Python expressions that the plan takes


# ---- Reading headers ----


def prose(comment: str) -> str:
    """A comment without its frame."""
    lines = comment[2:-2].strip("\n").split("\n")
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in lines).strip()


def arguments_of(text: str) -> list[tuple[str, str]]:
    found = []
    for one in re.sub(r"\s+", " ", text).split(","):
        match = re.fullmatch(r"\s*(.*?)(\w+)\s*", one)
        assert match, one
        found.append((match.group(1).strip(), match.group(2)))
    return found


def functions_of(header: str) -> list[Function]:
    """The builders of a header, each with the comment that speaks of it."""
    piece = re.compile(
        r"(?P<comment>/\*.*?\*/)|(?P<line>^#.*?(?<!\\)$)|(?P<body>\{)|(?P<end>\})"
        r"|(?P<call>^[\w \*]+?\brlxvk_\w+\([^(){};]*\)\s*;)",
        re.S | re.M,
    )
    header = re.sub(r"#ifdef __cplusplus\n.*?#endif", "", header, flags=re.S)
    found: list[Function] = []
    contract, depth, at = "", 0, 0
    for match in piece.finditer(header):
        between = header[at : match.start()]
        at = match.end()
        kind = match.lastgroup
        if kind == "comment":
            trailing = "\n" not in between and found and not depth
            if trailing:
                found[-1].text += "\n" + prose(match.group())
            elif not depth:
                contract = "" if "----" in match.group() else prose(match.group())
        elif kind in ("body", "end"):
            depth += 1 if kind == "body" else -1
        elif kind == "call" and not depth:
            declared = re.match(r"\s*([\w \*]+?)\b(rlxvk_\w+)\((.*)\)", match.group(), re.S)
            assert declared
            result = declared.group(1).replace("RLXVK_MUST_CHECK", "").strip()
            name, arguments = declared.group(2), arguments_of(declared.group(3))
            if arguments[0][0] == "rlxvk_graph *" and not name.startswith("rlxvk_graph_"):
                found.append(Function(name, contract, result, arguments[1:]))
    return [f for f in found if f.name not in BY_HAND]


# ---- Arguments ----


def is_enum(ffi: Any, ctype: str) -> bool:
    return ctype.startswith("rlxvk_") and ffi.typeof(ctype).kind == "enum"


def role_of(ffi: Any, ctype: str, name: str) -> str:
    """How a value of this C type is made of a Python value."""
    if ctype == "rlxvk_tensor":
        return "tensor"
    if ctype in ("rlxvk_dtype", "rlxvk_shape"):
        return ctype[len("rlxvk_") :]
    if ctype == "const char *":
        return "text"
    if ctype == "int64_t":
        return "size"
    if ctype in ("int32_t", "uint32_t", "uint64_t", "size_t"):
        return "int"
    if ctype in ("float", "double"):
        return "float"
    if ctype in ("bool", "_Bool"):
        return "bool"
    if is_enum(ffi, ctype):
        return f"enum:{ctype}"
    raise ValueError(f"no role for {ctype} {name}")


def hint_of(role: str) -> str:
    return HINTS[role.split(":")[0]]


def default_of(role: str, name: str) -> str:
    if role == "tensor":
        return "None" if name in OPTIONAL else ""
    if role == "bool":
        return "False"
    if role.startswith("enum:"):
        return "" if name == "format" else "None" # no format of packed weights is natural
    return DEFAULTS.get(name, "")


def add_members(
    ffi: Any, function: Function, struct: str, path: str, entries: list[str]
) -> None:
    """The keywords of a struct: `entries` gets pairs of a member's path and its value."""
    fields = dict(ffi.typeof(struct).fields)
    for name, member in fields.items():
        if name == "struct_size" or name.startswith("has_") or name.endswith("_count"):
            continue
        ctype = member.type
        if ctype.kind == "struct" and ctype.cname not in ("rlxvk_tensor", "rlxvk_shape"):
            add_members(ffi, function, ctype.cname, f"{path}{name}.", entries)
            continue
        if name == "count" and ctype.cname == "size_t":
            continue
        taken = {parameter.name for parameter in function.parameters}
        own = f"{name}_kind" if name in taken else name
        assert own not in taken, f"{function.name}: two parameters {own}"
        if ctype.kind in ("array", "pointer"):
            item = ctype.item
            if item.kind == "struct":
                hint = "Sequence[Mapping[str, Any]]"
            else:
                inner = "float" if item.cname in ("float", "double") else "int"
                hint = f"Sequence[{inner}]" + (f" | {inner}" if ctype.kind == "array" else "")
        else:
            hint = hint_of(role_of(ffi, ctype.cname, name))
        function.parameters.append(Parameter(own, f"{hint} | None", "None", keyword=True))
        entries.append(f'"{path}{name}": {own}')


def add_argument(ffi: Any, function: Function, index: int) -> None:
    """Adds what argument `index` of the C call means to plan, parameters and values."""
    ctype, name = function.arguments[index]
    if ctype == "rlxvk_tensor *":
        function.plan.append("out")
        return
    if ctype == "size_t":
        function.plan.append("count")
        return
    name = RENAMED.get(name, name)
    pointed = re.fullmatch(r"const (\w+) \*", ctype)
    if pointed and pointed.group(1) != "char":
        target = pointed.group(1)
        if target == "rlxvk_tensor":
            function.plan.append("tensors")
            function.parameters.append(Parameter(name, HINTS["tensors"]))
            function.values.append(name)
        elif target in ("int32_t", "int64_t"):
            function.plan.append(f"array:{target}")
            default = "None" if name == "axes" else ""
            hint = "Sequence[int] | int" + (" | None" if default else "")
            function.parameters.append(Parameter(name, hint, default))
            function.values.append(name)
        else:
            entries: list[str] = []
            add_members(ffi, function, target, "", entries)
            function.plan.append(f"struct:{target}")
            function.values.append("{" + ", ".join(entries) + "}")
        return
    role = role_of(ffi, ctype, name)
    default = default_of(role, name)
    optional = default == "None"
    function.plan.append(role)
    function.parameters.append(Parameter(name, hint_of(role) + " | None" * optional, default))
    function.values.append(name)


# ---- Writing ----


def signature(function: Function) -> str:
    """The parameters: first those without a default, in the order of C; then keywords alone."""
    plain = [p for p in function.parameters if not p.keyword]
    words = [p for p in function.parameters if p.keyword]
    first = next((i for i, p in enumerate(plain) if p.default), len(plain))
    # What follows a default and has none can only be given by name.
    late = [p for p in plain[first:] if not p.default]
    ordered = [p for p in plain if p not in late]
    words = late + words
    if not any(role in ("tensor", "tensors") for role in function.plan) and not any(
        p.hint.startswith("TensorLike") for p in words
    ):
        ordered.insert(0, Parameter("graph", "Graph"))
    return ", ".join([str(p) for p in ordered] + (["*"] + [str(p) for p in words] if words else []))


def results(function: Function) -> str:
    count = function.plan.count("out") + (function.result == "rlxvk_tensor")
    if count == 0:
        return "None"
    return "Tensor" if count == 1 else "tuple[" + ", ".join(["Tensor"] * count) + "]"


def source(ffi: Any, function: Function) -> str:
    for index in range(len(function.arguments)):
        add_argument(ffi, function, index)
    given = signature(function)
    graph = "graph" if given.startswith("graph:") else "None"
    text = function.text or f"{function.name} of the C library."
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    values = ", ".join(function.values)
    python = function.name[len("rlxvk_") :]
    lines = [
        f"def {python}({given}) -> {results(function)}:",
        '    """' + text.replace("\n", "\n    ") + '\n    """',
        f"    values = ({values}{',' * bool(values)})",
        f'    plan = "{" ".join(function.plan)}"',
        f'    return build("{function.name}", plan, {graph}, values) # type: ignore',
    ]
    return "\n".join(line.rstrip() for line in lines)


def ops_source(ffi: Any, headers: list[str]) -> str:
    """The text of ops.py."""
    functions = [f for text in headers for f in functions_of(text)]
    names = [f.name[len("rlxvk_") :] for f in functions]
    head = [
        '"""A function for each builder of the C library. builders.py wrote this from its headers.',
        "",
        "Each text is the contract of the C call; there, RLXVK_NONE is None here. Operands are",
        "Tensors, or numbers and arrays, which become constants. Members of option structs are",
        "keywords. A call that fails raises an exception of rlxvk.errors.",
        '"""',
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping, Sequence",
        "from typing import Any",
        "",
        "from ._build import DimLike, DTypeLike, Graph, ShapeLike, build",
        "from ._tensor import Tensor, TensorLike",
        "",
        "__all__ = [" + ", ".join(f'"{n}"' for n in sorted(names)) + "]",
    ]
    return "\n\n\n".join(["\n".join(head)] + [source(ffi, f) for f in functions]) + "\n"
