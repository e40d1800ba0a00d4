"""A network as a flat list of its nodes: how it is pickled and copied, so that depth is not limited by recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spngp.network.placement import distinct_nodes

if TYPE_CHECKING:
    from spngp.network.nodes import Node


class Record(NamedTuple):
    """A node: its class, its attributes but for the children, and the positions of its children in the list."""

    kind: type[Node]
    attributes: dict[str, Any]
    children: tuple[int, ...]


def attributes(node: Node) -> dict[str, Any]:
    """Everything that a node holds, by name."""
    slots = [slot for kind in type(node).__mro__ for slot in getattr(kind, "__slots__", ())]
    return {slot: getattr(node, slot) for slot in slots}


def restore(kind: type[Node], attributes: dict[str, Any]) -> Node:
    """A node with these attributes, which were checked when it was first built."""
    node = object.__new__(kind)
    if "log_weights" in attributes:  # a copied array can be written to again
        attributes["log_weights"].setflags(write=False)
    node._set(**attributes)
    return node


def flatten(root: Node) -> list[Record]:
    """Every node once, children before parents, the root last."""
    nodes = distinct_nodes(root)
    position = {id(node): i for i, node in enumerate(nodes)}
    records = []
    for node in nodes:
        held = attributes(node)
        records.append(Record(type(node), held, tuple(position[id(child)] for child in held.pop("children"))))
    return records


def rebuild(records: list[Record]) -> Node:
    """The network that :func:`flatten` took apart; shared children are shared again."""
    nodes: list[Node] = []
    for kind, held, children in records:
        nodes.append(restore(kind, {**held, "children": tuple(nodes[i] for i in children)}))
    return nodes[-1]
