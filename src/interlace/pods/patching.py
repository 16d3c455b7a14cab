"""The JSON patch (RFC 6902) that leads from one JSON value to another.

Invariant: only what differs is named, so that a field which we do not know, or which a newer API server knows
better, is never written back; applied to ``old`` the patch gives exactly ``new``.
"""

from __future__ import annotations

from typing import Any

Operation = dict[str, Any]


def difference(old: Any, new: Any) -> tuple[Operation, ...]:
    """The operations in order; none where both are equal (``1``, ``1.0`` and ``true`` are three values)."""
    found: list[Operation] = []
    _value("", old, new, found)
    return tuple(found)


def _value(path: str, old: Any, new: Any, found: list[Operation]) -> None:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        _mapping(path, old, new, found)
    elif isinstance(old, list) and isinstance(new, list):
        _list(path, old, new, found)
    elif not _same(old, new):
        found.append({"op": "replace", "path": path, "value": new})


def _mapping(path: str, old: dict[str, Any], new: dict[str, Any], found: list[Operation]) -> None:
    for key, value in old.items():
        if key not in new:
            found.append({"op": "remove", "path": f"{path}/{_escape(key)}"})
        else:
            _value(f"{path}/{_escape(key)}", value, new[key], found)
    found += [{"op": "add", "path": f"{path}/{_escape(key)}", "value": new[key]} for key in new if key not in old]


def _list(path: str, old: list[Any], new: list[Any], found: list[Operation]) -> None:
    """Elements at both ends that stay are not touched; between them pairs are compared, the rest comes or goes.

    Elements with a ``name`` (containers, volumes, variables) are paired by it.
    """
    start = 0
    while start < min(len(old), len(new)) and _same(old[start], new[start]):
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and _same(old[-1 - end], new[-1 - end]):
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    names = [_name(item) for item in before]
    wanted = [_name(item) for item in after]
    told_apart = None not in (*names, *wanted) and len(set(names)) == len(names) and len(set(wanted)) == len(wanted)
    in_order = [name for name in names if name in wanted] == [name for name in wanted if name in names]
    pair = _by_name if told_apart and in_order else _by_place
    pair(path, start, before, after, found)


def _by_place(path: str, start: int, before: list[Any], after: list[Any], found: list[Operation]) -> None:
    shared = min(len(before), len(after))
    for index in range(shared):
        _value(f"{path}/{start + index}", before[index], after[index], found)
    found += [_remove(path, start + index) for index in range(len(before) - 1, shared - 1, -1)]
    found += [_add(path, start + index, after[index]) for index in range(shared, len(after))]


def _by_name(path: str, start: int, before: list[Any], after: list[Any], found: list[Operation]) -> None:
    wanted = {_name(item) for item in after}
    last = len(before) - 1
    found += [_remove(path, start + i) for i in range(last, -1, -1) if _name(before[i]) not in wanted]
    present = {_name(item): item for item in before}
    for index, item in enumerate(after):
        if _name(item) in present:
            _value(f"{path}/{start + index}", present[_name(item)], item, found)
        else:
            found.append(_add(path, start + index, item))


def _add(path: str, index: int, value: Any) -> Operation:
    return {"op": "add", "path": f"{path}/{index}", "value": value}


def _remove(path: str, index: int) -> Operation:
    return {"op": "remove", "path": f"{path}/{index}"}


def _name(item: Any) -> str | None:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON values; Python holds 1, 1.0 and True for equal."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
