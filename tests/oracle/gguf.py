"""Just enough of GGUF for the oracle tests: a second reader, written apart from the one under test, and the
F32 expansion of a file, made with ggml's own to_float. The files are the tests' own, so bad input only raises.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from llama import GGML_TYPES

TYPE_NAMES = {number: name for name, number in GGML_TYPES.items()}
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


@dataclass
class Tensor:
    """One tensor: dimensions as in the file (fastest first) and its bytes."""

    name: str
    type_name: str
    ne: tuple
    data: memoryview


class GgufFile:
    """A single-file GGUF, read whole; the data of its tensors may be written."""

    def __init__(self, path, block_shape):
        """block_shape(type name) → (elements, bytes) of one block."""
        self._bytes = memoryview(bytearray(Path(path).read_bytes()))
        self._at = 0
        magic, version, n_tensors, n_kv = self._unpack("<4sIqq")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path}: no GGUF of version 2 or 3")
        kv_start = self._at
        self.metadata = {}
        for _ in range(n_kv):
            key = self._string().decode()
            self.metadata[key] = self._value(self._unpack("<i")[0])
        self.metadata_bytes = self._bytes[kv_start : self._at]
        infos = [self._info() for _ in range(n_tensors)]
        self.alignment = self.metadata.get("general.alignment", 32)
        data_start = round_up(self._at, self.alignment)
        self.tensors = {}
        for name, ne, type_id, offset in infos:
            elements, size = block_shape(TYPE_NAMES[type_id])
            n_bytes = product(ne) // elements * size
            start = data_start + offset
            self.tensors[name] = Tensor(name, TYPE_NAMES[type_id], ne, self._bytes[start : start + n_bytes])

    def whole(self):
        """The file's bytes, with what was written into the tensors since."""
        return bytes(self._bytes)

    def _unpack(self, layout):
        values = struct.unpack_from(layout, self._bytes, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _string(self):
        (length,) = self._unpack("<Q")
        self._at += length
        return bytes(self._bytes[self._at - length : self._at])

    def _value(self, kind):
        if kind == _STRING:
            return self._string().decode("utf-8", "surrogateescape")
        if kind == _ARRAY:
            element, count = self._unpack("<iQ")
            if element == _STRING:
                return [self._value(_STRING) for _ in range(count)]
            return list(self._unpack(f"<{count}{_SCALARS[element]}"))
        return self._unpack("<" + _SCALARS[kind])[0]

    def _info(self):
        name = self._string().decode()
        (n_dims,) = self._unpack("<I")
        ne = self._unpack(f"<{n_dims}q")
        type_id, offset = self._unpack("<iQ")
        return name, ne, type_id, offset


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


def round_up(n, multiple):
    return (n + multiple - 1) // multiple * multiple


def expand_to_f32(oracle, source, target):
    """Writes `target`: the metadata of `source`, byte for byte, and every tensor as F32 through ggml's to_float."""
    model = GgufFile(source, oracle.type_shape)
    infos, blobs, offset = b"", [], 0
    for tensor in model.tensors.values():
        name = tensor.name.encode()
        infos += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(tensor.ne))
        infos += struct.pack(f"<{len(tensor.ne)}qiQ", *tensor.ne, GGML_TYPES["F32"], offset)
        blob = bytes(tensor.data) if tensor.type_name == "F32" else oracle.dequantize(tensor.type_name, tensor.data).tobytes()
        blob += bytes(-len(blob) % model.alignment)
        blobs.append(blob)
        offset += len(blob)
    head = struct.pack("<4sIqq", b"GGUF", 3, len(blobs), len(model.metadata)) + bytes(model.metadata_bytes) + infos
    head += bytes(-len(head) % model.alignment)
    Path(target).write_bytes(head + b"".join(blobs))
    return model
