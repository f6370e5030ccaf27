"""Small ONNX graphs that answer like networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 64


def save_graph(
    path: Path,
    outputs: Mapping[str, NDArray[Any]],
    *,
    score: str = "",
    channel: int = 0,
    image: Sequence[int | str] = (1, 3, SIDE, SIDE),
    sizes: bool = False,
) -> Path:
    """Write a graph with constant outputs, one of them multiplied by the brightest level of a channel.

    Args:
        path: The file.
        outputs: Arrays by name, with the axis of pictures.
        score: The multiplied output.
        channel: The channel.
        image: Shape of the image input.
        sizes: Whether it takes the sizes of pictures too; boxes are then multiplied by them.
    """
    from onnx import TensorProto, checker, helper, numpy_helper, save

    inputs = [helper.make_tensor_value_info("images", TensorProto.FLOAT, list(image))]
    held = {"channel": np.array([channel], np.int64), "by": np.array([1, 2, 3], np.int64)}
    held |= {f"{name}_held": array for name, array in outputs.items()}
    nodes = [
        helper.make_node("Gather", ["images", "channel"], ["picked"], axis=1),
        helper.make_node("ReduceMax", ["picked", "by"], ["level"], keepdims=0),
    ]
    if sizes:
        inputs.append(helper.make_tensor_value_info("orig_target_sizes", TensorProto.INT64, ["N", 2]))
        nodes += [
            helper.make_node("Cast", ["orig_target_sizes"], ["wide"], to=TensorProto.FLOAT),
            helper.make_node("Concat", ["wide", "wide"], ["four"], axis=1),
        ]
    for name in outputs:
        factor = "level" if name == score else "four" if sizes and name == "boxes" else ""
        node = ("Mul", [f"{name}_held", factor]) if factor else ("Identity", [f"{name}_held"])
        nodes.append(helper.make_node(node[0], node[1], [name]))
    types = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
    output_infos = [
        helper.make_tensor_value_info(name, types[array.dtype], list(array.shape)) for name, array in outputs.items()
    ]
    graph = helper.make_graph(
        nodes, "small", inputs, output_infos, [numpy_helper.from_array(array, name) for name, array in held.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    checker.check_model(model)
    save(model, path)
    return path
