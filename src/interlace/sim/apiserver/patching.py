"""JSON patch (RFC 6902), JSON merge patch (RFC 7386) and strategic merge patch.

Invariant: the object that is patched is never changed; a patch that fails leaves no trace.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.apiserver import errors
from interlace.sim.apiserver.objects import clone
from interlace.sim.apiserver.raw import RawJson
from interlace.sim.apiserver.shapes import ANY, Shape

_DIRECTIVES = ("$patch", "$retainKeys")


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict) or isinstance(patch, RawJson):
        return patch
    base = target if isinstance(target, dict) and not isinstance(target, RawJson) else {}
    out = dict(base)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge_patch(out.get(key), value)
    return out


def _refuse() -> errors.ApiFault:
    # What does not fit is in the real server's log and not in its answer.
    message = "the server rejected our request due to an error in our request"
    return errors.ApiFault(422, "Invalid", message, details={})


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902. Raises ApiFault 400 for a malformed patch and 422 for an operation that does not fit the object."""
    if not isinstance(operations, list):
        raise errors.bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    document = clone(target)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise errors.bad_request("json patch: an operation needs op and path")
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    op, path = operation.get("op"), operation["path"]
    tokens = _tokens(path)
    value = clone(operation.get("value"))
    match op:
        case "add":
            return _add(document, tokens, value)
        case "remove":
            return _remove(document, tokens)
        case "replace":
            return _replace(document, tokens, value)
        case "test":
            found = _find(document, tokens, missing_ok=value is None)
            if found != value:
                raise _refuse()
            return document
        case "move" | "copy":
            source = operation.get("from")
            if not isinstance(source, str):
                raise errors.bad_request(f"json patch: {op} needs from")
            found = clone(_find(document, _tokens(source)))
            if op == "move":
                document = _remove(document, _tokens(source))
            return _add(document, tokens, found)
        case _:
            raise errors.bad_request(f"Unexpected kind: {op}")


def _tokens(path: str) -> list[str]:
    if not path:
        return []
    if not path.startswith("/"):
        raise errors.bad_request(f"json patch: path {path!r} does not start with /")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _index(token: str, length: int) -> int:
    if not token.isdigit() or int(token) >= length:
        raise _refuse()
    return int(token)


def _find(document: Any, tokens: list[str], *, missing_ok: bool = False) -> Any:
    for token in tokens:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list) and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        elif missing_ok:
            return None
        else:
            raise _refuse()
    return document


def _parent(document: Any, tokens: list[str]) -> Any:
    parent = _find(document, tokens[:-1])
    if not isinstance(parent, dict | list) or isinstance(parent, RawJson):
        raise _refuse()
    return parent


def _add(document: Any, tokens: list[str], value: Any) -> Any:
    if not tokens:
        return value
    parent, last = _parent(document, tokens), tokens[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_index(last, len(parent) + 1), value)
    return document


def _replace(document: Any, tokens: list[str], value: Any) -> Any:
    if not tokens:
        return value
    parent, last = _parent(document, tokens), tokens[-1]
    if isinstance(parent, dict):
        parent[last] = value  # as on the real server, also where there was nothing
    else:
        parent[_index(last, len(parent))] = value
    return document


def _remove(document: Any, tokens: list[str]) -> Any:
    if not tokens:
        return None
    parent, last = _parent(document, tokens), tokens[-1]
    if isinstance(parent, dict):
        if last not in parent:
            raise _refuse()
        del parent[last]
    else:
        del parent[_index(last, len(parent))]
    return document


def strategic_patch(target: Any, patch: Any, shape: Shape) -> Any:
    """Strategic merge patch with the list keys of ``shape``, ``$patch``, ``$deleteFromPrimitiveList`` and orders.

    Raises ApiFault 400 for an unknown directive or an item without its key.
    """
    if not isinstance(patch, dict) or isinstance(patch, RawJson):
        return patch
    match patch.get("$patch"):
        case None | "merge":
            pass
        case "replace":
            return {key: value for key, value in patch.items() if key not in _DIRECTIVES}
        case "delete":
            return {}
        case other:
            raise errors.bad_request(f"unknown patch type found in patch: {other}")
    base = target if isinstance(target, dict) and not isinstance(target, RawJson) else {}
    out = dict(base)
    if "$retainKeys" in patch:
        out = {key: value for key, value in out.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            out[name] = [item for item in out.get(name) or [] if item not in value]
        elif key in _DIRECTIVES or key.startswith("$setElementOrder/"):
            continue
        elif value is None:
            out.pop(key, None)
        else:
            child = shape.child(key)
            if isinstance(value, list) and child.merge_key is not None:
                live = out.get(key) or []
                out[key] = _ordered(_merge_list(live, value, child), live, value, child.merge_key)
            elif isinstance(value, dict) and not isinstance(value, RawJson):
                out[key] = strategic_patch(out.get(key), value, child)
            else:
                out[key] = value
    for key, order in patch.items():
        if key.startswith("$setElementOrder/"):
            name = key.partition("/")[2]
            items = base.get(name) or []
            out[name] = _ordered(out.get(name) or [], items, order, shape.child(name).merge_key or "")
    return out


def _merge_list(live: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    key = shape.merge_key
    if not key:
        return live + [item for item in dict.fromkeys(patch) if item not in live]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" and key not in item for item in patch):
        return [item for item in patch if "$patch" not in item]
    out = list(live)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise errors.plain(f"map: {_go_map(item)} does not contain declared merge key: {key}")
        at = next((i for i, old in enumerate(out) if isinstance(old, dict) and old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            out = [old for old in out if old.get(key) != item[key]]
        elif at is None:
            out.append({name: value for name, value in item.items() if name not in _DIRECTIVES})
        else:
            out[at] = strategic_patch(out[at], item, shape.of or ANY)
    return out


def _go_map(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    return "map[" + " ".join(f"{key}:{_go_map(item[key])}" for key in sorted(item)) + "]"


def _ordered(items: list[Any], live: list[Any], order: list[Any], key: str) -> list[Any]:
    """Items in the order of the patch; those it does not name go before the first that followed them so far."""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    before = [identity(item) for item in live]
    named = sorted((i for i in items if identity(i) in wanted), key=lambda item: wanted.index(identity(item)))
    others = sorted((i for i in items if identity(i) not in wanted), key=lambda item: before.index(identity(item)))
    out: list[Any] = []
    while named and others:
        left, right = identity(others[0]), identity(named[0])
        first = right in before and before.index(left) < before.index(right)
        out.append((others if first else named).pop(0))
    return [*out, *named, *others]
