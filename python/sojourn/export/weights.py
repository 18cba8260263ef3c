"""Weights of learned networks in other formats: from NumPy's npz to the JSON of ``weights``, and to ONNX."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sojourn._core import ExperimentError, network_json
from sojourn.files import bounded, whole

Network = dict[str, Any]  # a network as the file of ``weights`` has it
_WORDS = ("interval", "inputs", "output", "most")
_FLOAT = 1  # ONNX' number of 32-bit floats


def convert_weights(source: str | Path, target: str | Path) -> None:
    """Writes the network of a file in another format.

    ``source`` is ``.json``, as ``weights`` of ``aqm = "policy"`` has it; or ``.npz``, an archive of ``numpy.savez``:
    ``interval``, ``inputs``, ``output`` and ``most`` as in JSON, ``weights.0`` and ``bias.0`` of the first layer, and
    so on, each with a row of weights per output. ``target`` is one of both; or ``.onnx``: a graph of ``Gemm`` and
    ``Relu`` in 32-bit floats from ``seen``, a row of inputs per decision, to ``values``, the outputs. What they mean is
    in its metadata. Raises ExperimentError if the file is not whole, or has another format.
    """
    for name, path, formats in (("source", source, _READ), ("target", target, _WRITE)):
        if Path(path).suffix not in formats:
            raise ExperimentError(f'{name}: got "{path}"; must end in one of {", ".join(formats)}')
    try:
        network = _READ[Path(source).suffix](Path(source))
        layers = network["layers"]
        inputs = len(network["inputs"])
        for number, layer in enumerate(layers):
            shape = np.shape(layer["weights"])
            if shape != (len(layer["bias"]), inputs):
                raise ValueError(
                    f"layer {number}: got weights of shape {shape}; must be {(len(layer['bias']), inputs)}"
                )
            inputs = len(layer["bias"])
    except KeyError as error:
        raise ExperimentError(f'{source}: has no "{error.args[0]}"') from None
    except (ValueError, TypeError, ExperimentError) as error:
        raise ExperimentError(f"{source}: {error}") from None
    whole.write(Path(target), _WRITE[Path(target).suffix](network))


def _from_json(path: Path) -> Network:
    network = json.loads(bounded.read_text(path, bounded.LARGEST_TEXT))
    if not isinstance(network, dict):
        raise ValueError("must be a table")
    return network


def _to_npz(network: Network) -> bytes:
    words = {word: np.array(network[word]) for word in _WORDS if word in network}
    for number, layer in enumerate(network["layers"]):
        words |= {f"{part}.{number}": np.array(layer[part], np.float64) for part in ("weights", "bias")}
    archive = io.BytesIO()
    np.savez(archive, **words)  # type: ignore[arg-type] # its keywords are arrays
    return archive.getvalue()


def _to_onnx(network: Network) -> bytes:
    """A ModelProto (onnx.proto3): fields are written in the order of their numbers."""
    layers = network["layers"]
    nodes, tensors, seen = b"", b"", "seen"
    for number, layer in enumerate(layers):
        last = number + 1 == len(layers)
        out = "values" if last else f"sum.{number}"
        names = [f"weights.{number}", f"bias.{number}"]
        nodes += _node("Gemm", [seen, *names], out, _text(1, "transB") + _number(3, 1) + _number(20, 2))
        tensors += b"".join(
            _bytes(5, _tensor(name, np.array(layer[part], "<f4")))
            for name, part in zip(names, ("weights", "bias"), strict=True)
        )
        if not last:
            seen = f"units.{number}"
            nodes += _node("Relu", [out], seen)
    ends = _bytes(11, _value("seen", len(network["inputs"]))) + _bytes(12, _value("values", len(layers[-1]["bias"])))
    graph = nodes + _text(2, "policy") + tensors + ends
    known = {word: network[word] for word in _WORDS if word in network}
    words = {word: value if isinstance(value, str) else json.dumps(value) for word, value in known.items()}
    properties = b"".join(_bytes(14, _text(1, word) + _text(2, value)) for word, value in words.items())
    return _number(1, 8) + _text(2, "sojourn") + _bytes(7, graph) + _bytes(8, _number(2, 13)) + properties


def _node(kind: str, inputs: list[str], output: str, attribute: bytes = b"") -> bytes:
    named = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, kind)
    return _bytes(1, named + (_bytes(5, attribute) if attribute else b""))


def _tensor(name: str, array: np.ndarray[Any, Any]) -> bytes:
    dims = b"".join(_number(1, size) for size in array.shape)
    return dims + _number(2, _FLOAT) + _text(8, name) + _bytes(9, array.tobytes())


def _value(name: str, width: int) -> bytes:
    shape = _bytes(1, _text(2, "decisions")) + _bytes(1, _number(1, width))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, shape)))


def _varint(number: int) -> bytes:
    low = bytearray()
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(low) + bytes([number])


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, content: str) -> bytes:
    return _bytes(field, content.encode())


_READ: Mapping[str, Callable[[Path], Network]] = {
    ".json": _from_json,
    ".npz": lambda path: json.loads(network_json(bounded.read_bytes(path, bounded.LARGEST_TEXT))),
}
_WRITE: Mapping[str, Callable[[Network], bytes]] = {
    ".json": lambda network: (json.dumps(network) + "\n").encode(),
    ".npz": _to_npz,
    ".onnx": _to_onnx,
}
