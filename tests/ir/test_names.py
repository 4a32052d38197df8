"""Locks after a fork, and what values are called in messages and files."""

from __future__ import annotations

import os

import pytest

from irexec.ir import process
from irexec.ir.graph import Input, Node, Value
from irexec.ir.order import Names, unique_names
from tests.support.processes import python

HELD = """
import os, signal, threading
from irexec.ir import process

class Value:
    @functools.cached_property
    def slow(self):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            release.wait()
        return 1

process._PACKAGES = ("__main__",)
lock, rlock, inside, release = process.new_lock(), process.new_rlock(), threading.Event(), threading.Event()

def hold():
    with lock, rlock:
        Value().slow

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    with lock, rlock:
        os._exit(Value().slow)
status = os.waitpid(child, 0)[1]
release.set()
thread.join()
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_locks_are_free_in_a_child() -> None:
    done = python("-W", "ignore", "-c", "import functools" + HELD)
    assert done.stdout.strip() == "1", done.stderr


def test_locks_that_are_gone_are_forgotten() -> None:
    lock = process.new_lock()
    count = len(process._locks)
    del lock
    assert len(process._locks) == count - 1


# What values are called, in messages and in files.


def _node(id: int, outputs: int, *names: str, inputs: int = 0) -> Node:
    node = Node(id, "split", "Split", "opset1", ports=[Input() for _ in range(inputs)])
    node.outputs = [Value(node, index, names=list(names) if index == 0 else []) for index in range(outputs)]
    return node


def test_the_output_is_named_where_there_are_several() -> None:
    assert [value.label for value in _node(3, 1, "x").outputs] == ["split"]
    assert [value.label for value in _node(3, 2).outputs] == ["split:0", "split:1"]


def test_tensor_names_come_first() -> None:
    assert [value.name for value in _node(3, 2, "x", "y").outputs] == ["x", "split:1"]


def test_ids_of_ports_run_on_from_the_inputs() -> None:
    node = _node(3, 2, inputs=2)
    assert ([node.input_id(i) for i in range(2)], [value.port_id for value in node.outputs]) == ([0, 1], [2, 3])
    node.ports[1].port, node.outputs[0].port = 7, 9
    assert ([node.input_id(i) for i in range(2)], [value.port_id for value in node.outputs]) == ([0, 7], [9, 3])
    assert [node.input_index(number) for number in (0, 7, 1)] == [0, 1, None]
    assert [node.output_index(number) for number in (9, 3, 2)] == [0, 1, None]


@pytest.mark.parametrize(("wanted", "expected"), [("b", "b"), ("a", "a_2"), ("a_1", "a_1_1")])
def test_free_names(wanted: str, expected: str) -> None:
    names = Names({"a", "a_1"})
    assert names.free(wanted) == expected
    assert names.free(expected) != expected


def test_names_that_are_given_back() -> None:
    names = Names()
    assert [names.free("a") for _ in range(4)] == ["a", "a_1", "a_2", "a_3"]
    for name in ("a_1", "a_3", "other"):
        names.give_back(name)
    assert [names.free("a") for _ in range(4)] == ["a_1", "a_3", "a_4", "a_5"]


def test_many_layers_may_want_one_name() -> None:
    """The time of each does not depend on how many there are: with the square of them this takes an hour."""
    names = Names()
    assert len({names.free("same") for _ in range(100_000)}) == 100_000


def test_no_two_values_have_one_name() -> None:
    values = [value for node in (_node(1, 1, "x"), _node(2, 1, "x"), _node(3, 2, "x")) for value in node.outputs]
    assert list(unique_names(values)) == ["x", "split", "split:0", "split:1"]
    assert list(unique_names([*values, *_node(4, 1, "x").outputs])) == ["x", "split", "split:0", "split:1", "4:0"]
