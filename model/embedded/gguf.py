"""Writes and reads GGUF files: the metadata types and the two tensor types that the embedded model needs."""

import struct

import numpy as np

ALIGNMENT = 32
F32, Q8_0 = 0, 8
_BLOCK = 32  # elements of a Q8_0 block: a half-precision scale, then as many signed bytes

_SCALARS = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?")}
_STRING, _ARRAY = 8, 9
_READ = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def quantize_q8_0(values):
    """float32 [..., n], n a multiple of 32, to the bytes of its blocks."""
    blocks = np.ascontiguousarray(values, dtype=np.float32).reshape(-1, _BLOCK)
    scale = np.abs(blocks).max(axis=1) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    scaled = blocks * inverse[:, None]
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)  # half away from zero
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", _BLOCK)])
    out["d"], out["q"] = scale.astype(np.float16), rounded.astype(np.int8)
    return out.tobytes()


def dequantize_q8_0(data, shape):
    blocks = np.frombuffer(data, dtype=[("d", "<f2"), ("q", "i1", _BLOCK)])
    return (blocks["d"].astype(np.float32)[:, None] * blocks["q"].astype(np.float32)).reshape(shape)


def _string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind, value):
    if kind == "string":
        return struct.pack("<i", _STRING) + _string(value)
    if kind.startswith("["):
        element = kind[1:-1]
        code = _STRING if element == "string" else _SCALARS[element][0]
        body = (_string(v) if element == "string" else struct.pack(_SCALARS[element][1], v) for v in value)
        return struct.pack("<iiQ", _ARRAY, code, len(value)) + b"".join(body)
    code, form = _SCALARS[kind]
    return struct.pack("<i", code) + struct.pack(form, value)


def write(path, metadata, tensors):
    """metadata: (key, kind, value), kind one of u32 i32 f32 bool string or such a word in brackets for an array.
    tensors: (name, array in numpy's order with the fastest axis last, F32 or Q8_0)."""
    head = [b"GGUF", struct.pack("<Iqq", 3, len(tensors), len(metadata))]
    for key, kind, value in metadata:
        head += [_string(key), _value(kind, value)]
    data, offset = [], 0
    for name, array, tensor_type in tensors:
        array = np.ascontiguousarray(array, dtype=np.float32)
        body = quantize_q8_0(array) if tensor_type == Q8_0 else array.tobytes()
        extents = array.shape[::-1]
        head.append(_string(name) + struct.pack(f"<I{len(extents)}q", len(extents), *extents))
        head.append(struct.pack("<iQ", tensor_type, offset))
        body += bytes(-len(body) % ALIGNMENT)
        data.append(body)
        offset += len(body)
    start = b"".join(head)
    with open(path, "wb") as file:
        file.write(start + bytes(-len(start) % ALIGNMENT))
        file.writelines(data)


class Reader:
    """A whole file in memory: `metadata` by key, `tensor(name)` as float32."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._data = file.read()
        self._at = 4
        if self._data[:4] != b"GGUF" or self._take("<I") != 3:
            raise ValueError(f"{path}: not a GGUF file of version 3")
        n_tensors, n_keys = self._take("<q"), self._take("<q")
        self.metadata = {}
        for _ in range(n_keys):
            key = self._text().decode()
            self.metadata[key] = self._entry(self._take("<i"))
        self.tensors = {}
        for _ in range(n_tensors):
            name = self._text().decode()
            extents = [self._take("<q") for _ in range(self._take("<I"))]
            self.tensors[name] = extents[::-1], self._take("<i"), self._take("<Q")
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        self._start = -(-self._at // alignment) * alignment

    def _take(self, form):
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _text(self):
        length = self._take("<Q")
        self._at += length
        return self._data[self._at - length : self._at]

    def _entry(self, code):
        if code == _STRING:
            return self._text().decode()
        if code == _ARRAY:
            element, count = self._take("<i"), self._take("<Q")
            return [self._entry(element) for _ in range(count)]
        return self._take(_READ[code])

    def offset(self, name):
        """Where a tensor's bytes begin in the file."""
        return self._start + self.tensors[name][2]

    def tensor(self, name):
        shape, tensor_type, _ = self.tensors[name]
        count = int(np.prod(shape))
        begin = self.offset(name)
        if tensor_type == F32:
            return np.frombuffer(self._data, "<f4", count, begin).reshape(shape).copy()
        if tensor_type == Q8_0:
            return dequantize_q8_0(self._data[begin : begin + count // _BLOCK * 34], shape)
        raise ValueError(f"{name}: tensor type {tensor_type} is neither F32 nor Q8_0")
