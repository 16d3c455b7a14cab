"""Sets of field paths, as ``metadata.managedFields`` records them.

A set is a tree of dicts in the notation of ``FieldsV1``: steps are ``f:<field>``, ``k:{<keys of the item>}`` and
``v:<value>``; the step ``.`` marks a node as a member itself. The rules (what owns what, what a list item is called)
are those of the structured-merge-diff of Kubernetes.

Invariant: every function returns a new tree without empty branches; arguments are never changed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlace.sim.apiserver.raw import RawJson
from interlace.sim.apiserver.shapes import ANY, Shape

Tree = dict[str, Any]
MEMBER = "."


def parse(fields: Tree) -> Tree:
    """From ``fieldsV1``, in which a leaf is an empty object."""
    return {key: True if key == MEMBER else (parse(sub) or {MEMBER: True}) for key, sub in fields.items()}


def render(tree: Tree) -> Tree:
    """To ``fieldsV1``."""
    out: Tree = {}
    for key in sorted(tree):
        sub = tree[key]
        out[key] = {} if key == MEMBER or set(sub) == {MEMBER} else render(sub)
    return out


def union(a: Tree, b: Tree) -> Tree:
    """Members of either."""
    if not a or not b:
        return a or b
    out = dict(a)
    for key, sub in b.items():
        out[key] = union(a[key], sub) if key in a and key != MEMBER else sub
    return out


def difference(a: Tree, b: Tree) -> Tree:
    """Members of ``a`` that are no members of ``b``; a parent does not stand for its children."""
    if not a or not b:
        return a
    out: Tree = {}
    for key, sub in a.items():
        if key == MEMBER:
            if MEMBER not in b:
                out[key] = True
        elif key not in b:
            out[key] = sub
        elif rest := difference(sub, b[key]):
            out[key] = rest
    return out


def without(a: Tree, prefixes: Tree) -> Tree:
    """``a`` without the members of ``prefixes`` and everything below them."""
    out: Tree = {}
    for key, sub in a.items():
        if key == MEMBER or key not in prefixes:
            out[key] = sub
        elif MEMBER not in prefixes[key] and (rest := without(sub, prefixes[key])):
            out[key] = rest
    return out


def intersection(a: Tree, b: Tree) -> Tree:
    """Members of both."""
    out: Tree = {}
    for key, sub in a.items():
        if key in b:
            if key == MEMBER:
                out[key] = True
            elif common := intersection(sub, b[key]):
                out[key] = common
    return out


def paths(tree: Tree, prefix: str = "") -> list[str]:
    """The members in the notation of conflict messages, e.g. ``.spec.containers[name="a"].image``."""
    out: list[str] = []
    if MEMBER in tree:
        out.append(prefix)
    for key in sorted(tree):
        if key == MEMBER:
            continue
        if key.startswith("f:"):
            step = "." + key[2:]
        elif key.startswith("k:"):
            keys = msgspec.json.decode(key[2:])
            step = "[" + ",".join(f"{name}={msgspec.json.encode(keys[name]).decode()}" for name in sorted(keys)) + "]"
        else:
            step = f"[={key[2:]}]"
        out += paths(tree[key], prefix + step)
    return out


def step_of(item: Any, shape: Shape) -> str:
    """What an item of a list that merges is called. Raises ValueError if it lacks all keys."""
    if shape.set or not shape.keys:
        return "v:" + msgspec.json.encode(item).decode()
    if not isinstance(item, dict):
        # A ValueError like the one below: both say that the list does not fit its keys.
        raise ValueError(f"associative list with keys has an element that is not an object: {item!r}")  # noqa: TRY004
    keys: dict[str, Any] = {}
    for key in sorted(shape.keys):
        value = item.get(key)
        if value is None:
            value = _absent_key(shape, key)
        if value is not None:
            keys[key] = value
    if not keys:
        missing = f"omits key field {shape.keys[0]!r} (and doesn't have default value)"
        raise ValueError(f"associative list with keys has an element that {missing}")
    return "k:" + msgspec.json.encode(keys).decode()


def repeated(value: Any, shape: Shape, path: str = "") -> str:
    """The first list item that a configuration states twice, in words; empty if there is none."""
    match _kind(value, shape):
        case "map":
            for key, item in value.items():
                if found := repeated(item, shape.child(key), f"{path}.{key}"):
                    return found
        case "list":
            seen: set[str] = set()
            for item in value:
                step = step_of(item, shape)
                if step in seen:
                    return f"{path}: duplicate entries for key {paths({step: {MEMBER: True}})[0]}"
                seen.add(step)
                if found := repeated(item, shape.of or ANY, path + paths({step: {MEMBER: True}})[0]):
                    return found
        case _:
            pass
    return ""


def _absent_key(shape: Shape, key: str) -> Any:
    if shape.of is None:
        return None
    child = shape.of.child(key)
    if child.default is None and key in shape.of.required:  # built-in types write required keys even when empty
        return {"string": "", "int32": 0, "int64": 0}.get(child.form)
    return child.default


def _kind(value: Any, shape: Shape) -> str:
    """How to walk a value: ``leaf``, ``map`` or ``list``."""
    if shape.atomic or isinstance(value, RawJson):
        return "leaf"
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list):
        return "leaf" if shape.form == "any" else "list"
    return "leaf"


def fields_of(value: Any, shape: Shape) -> Tree:
    """Every field that a configuration states: the set that an applier owns."""
    match _kind(value, shape):
        case "map":
            out: Tree = {}
            for key, item in value.items():
                sub = fields_of(item, shape.child(key))
                if item is None or item == {} or key not in shape.fields:
                    sub = {MEMBER: True, **sub}
                if sub:
                    out[f"f:{key}"] = sub
            return out
        case "list":
            child = shape.of or ANY
            return {step_of(item, shape): {MEMBER: True, **fields_of(item, child)} for item in value}
        case _:
            return {MEMBER: True}


def compare(old: Any, new: Any, shape: Shape) -> tuple[Tree, Tree, Tree]:
    """What changed between two values: (removed, modified, added)."""
    if old == new:
        return {}, {}, {}
    kinds = _kind(old, shape), _kind(new, shape)
    if kinds == ("map", "map"):
        for key in shape.always:
            if (key in old) != (key in new):
                empty: Any = [] if shape.child(key).form == "list" else {}
                old, new = {key: empty, **old}, {key: empty, **new}
        keys = dict.fromkeys([*old, *new])
        pairs = [(f"f:{key}", old, new, key, shape.child(key)) for key in keys]
        return _compare_children(pairs)
    if kinds == ("list", "list"):
        child = shape.of or ANY
        olds = {step_of(item, shape): item for item in old}
        news = {step_of(item, shape): item for item in new}
        return _compare_children([(step, olds, news, step, child) for step in dict.fromkeys([*olds, *news])])
    return {}, {MEMBER: True}, {}


def _compare_children(pairs: list[tuple[str, Any, Any, str, Shape]]) -> tuple[Tree, Tree, Tree]:
    removed: Tree = {}
    modified: Tree = {}
    added: Tree = {}
    for step, old, new, key, shape in pairs:
        if key not in new:
            removed[step] = {MEMBER: True, **_all(old[key], shape)}
        elif key not in old:
            added[step] = {MEMBER: True, **_all(new[key], shape)}
        else:
            gone, other, more = compare(old[key], new[key], shape)
            if gone:
                removed[step] = gone
            if other:
                modified[step] = other
            if more:
                added[step] = more
    return removed, modified, added


def _all(value: Any, shape: Shape) -> Tree:
    """Every node below a value that came or went as a whole."""
    match _kind(value, shape):
        case "map":
            return {f"f:{key}": {MEMBER: True, **_all(item, shape.child(key))} for key, item in value.items()}
        case "list":
            child = shape.of or ANY
            return {step_of(item, shape): {MEMBER: True, **_all(item, child)} for item in value}
        case _:
            return {}


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """``live`` with the fields of ``config`` laid over it; lists that merge keep the order of both where they can."""
    kinds = _kind(live, shape), _kind(config, shape)
    if kinds == ("map", "map"):
        out = dict(live)
        for key, item in config.items():
            out[key] = merge(live[key], item, shape.child(key)) if key in live else item
        return out
    if kinds == ("list", "list"):
        return _merge_lists(live, config, shape)
    return config


def _merge_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    child = shape.of or ANY
    left = [(step_of(item, shape), item) for item in live]
    right = [(step_of(item, shape), item) for item in config]
    lefts, rights = dict(left), dict(right)
    out: list[Any] = []
    done: set[str] = set()
    l_at = r_at = 0
    while l_at < len(left) or r_at < len(right):
        if l_at < len(left) and (r_at == len(right) or left[l_at][0] not in rights or left[l_at][0] in done):
            step, item = left[l_at]
            l_at += 1
            if step not in done and step not in rights:
                out.append(item)
            continue
        step, item = right[r_at]
        r_at += 1
        done.add(step)
        out.append(merge(lefts[step], item, child) if step in lefts else item)
    return out


def remove(value: Any, tree: Tree, shape: Shape) -> Any:
    """``value`` without the items of ``tree``; None where nothing is left."""
    match _kind(value, shape):
        case "map":
            out: Any = {}
            for key, item in value.items():
                sub = tree.get(f"f:{key}")
                if sub is None:
                    out[key] = item
                elif MEMBER not in sub and (rest := remove(item, sub, shape.child(key))) is not None:
                    out[key] = rest
            return out or None
        case "list":
            child = shape.of or ANY
            out = []
            for item in value:
                sub = tree.get(step_of(item, shape))
                if sub is None:
                    out.append(item)
                elif MEMBER not in sub and (rest := remove(item, sub, child)) is not None:
                    out.append(rest)
            return out or None
        case _:
            return None if shape.atomic and value else value


def name_fields(tree: Tree, shape: Shape) -> Tree:
    """``tree`` with every named field on the way to a member as a member itself."""
    out: Tree = {}
    for key, sub in tree.items():
        if key == MEMBER:
            out[key] = True
            continue
        below = shape.child(key[2:]) if key.startswith("f:") else (shape.of or ANY)
        node = name_fields(sub, below)
        if key.startswith("f:") and key[2:] in shape.fields:
            node = {MEMBER: True, **node}
        out[key] = node
    return out
