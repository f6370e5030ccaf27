"""Gradients passed through blocking functions: rounding, casts, thresholds, inactive or saturated units.

Rounding has no slope, so the gradient of a quantised network is zero, or only that of paths around the quantiser.
Backward pass differentiable approximation (A. Athalye et al., "Obfuscated gradients give a false sense of security",
ICML 2018) takes the rounded value forward and the identity's slope backward. The slope of an inactive
rectifier or a saturated squashing function also counts as at least a tenth.

Only functions called from Python are covered: inside a TorchScript program, or a function with a custom backward pass,
gradients are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from medtest.core.probes import Probe
from medtest.relations.adversarial.strongest.draws import ProbeWith, same_answers, seeded

_LEAK = 0.1
"""Least slope of an inactive or saturated unit."""
_STEPS = frozenset({"round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "floor_divide", "__floordiv__"})
_CASTS = frozenset({"int", "long", "short", "byte", "char"})
_COMPARED = {"gt": 1.0, "ge": 1.0, "__gt__": 1.0, "__ge__": 1.0, "greater": 1.0, "greater_equal": 1.0}
_COMPARED |= {"lt": -1.0, "le": -1.0, "__lt__": -1.0, "__le__": -1.0, "less": -1.0, "less_equal": -1.0}
_SHUT = frozenset({"relu", "relu6", "clamp", "clip", "clamp_min", "clamp_max", "hardtanh", "threshold"})
_SATURATED: dict[str, Callable[[Tensor], Tensor]] = {"tanh": lambda y: 1 - y * y, "sigmoid": lambda y: y * (1 - y)}
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _Passing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, value: Tensor, slope: Tensor | float) -> Tensor:
        ctx.slope = slope
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient * ctx.slope, None, None


class PassingGradients(TorchFunctionMode):
    """Context in which gradients pass functions that block them; values are unchanged.

    Args:
        leaky: Whether inactive or saturated units pass gradients too, besides rounding.

    Attributes:
        used: Whether a blocked gradient was passed somewhere.
    """

    def __init__(self, *, leaky: bool = False) -> None:
        super().__init__()
        self.used = False
        self._leaky = leaky
        self._soft: dict[int, tuple[Tensor, Tensor, float]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call ``func``; see the class."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        tensor = args[0] if args else None
        if isinstance(tensor, Tensor) and tensor.dtype == torch.bool:
            return self._of_threshold(func, tensor, args, kwargs)
        if not (isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.requires_grad):
            return func(*args, **kwargs)
        if name in _COMPARED:
            value = func(*args, **kwargs)
            self._soft[id(value)] = (value, tensor, _COMPARED[name])  # kept alive so that its id stays unique
            return value
        written = name.endswith("_") and not name.startswith("__")
        plain = name.removesuffix("_") if written else name
        if plain in _STEPS or (plain in ("div", "divide") and kwargs.get("rounding_mode")):
            divisor = args[1] if len(args) > 1 and "div" in plain else 1.0
            slope = 1.0 / divisor.detach() if isinstance(divisor, Tensor) else 1.0 / divisor
            return self._pass_through(func, tensor, args, kwargs, slope=slope, written=written)
        if plain in _CASTS or (plain in ("to", "type") and _is_integer_cast(args, kwargs)):
            return self._apply_passing(tensor, func(*args, **kwargs).to(tensor.dtype), 1.0)
        if plain == "quantize_per_tensor":
            return self._apply_passing(tensor, func(*args, **kwargs).dequantize(), 1.0)
        if self._leaky and (plain in _SHUT or plain in _SATURATED):
            slope_of = _SATURATED.get(plain)
            return self._pass_through(
                func,
                tensor,
                args,
                kwargs,
                slope=slope_of or _equality_slope(tensor),
                written=written or _in_place(plain, args, kwargs),
            )
        return func(*args, **kwargs)

    def _of_threshold(self, func: Any, tensor: Tensor, args: Any, kwargs: Any) -> Any:
        """Give a comparison converted to numbers the slope of the compared values."""
        value = func(*args, **kwargs)
        entry = self._soft.get(id(tensor))
        if entry is None or not isinstance(value, Tensor) or value.dtype not in _FLOATS or value.shape != tensor.shape:
            return value
        name = getattr(func, "__name__", "")
        if name not in ("float", "double", "half", "to", "type", "type_as"):
            return value
        compared = entry[1].expand_as(value) if entry[1].shape != value.shape else entry[1]
        return self._apply_passing(compared, value, entry[2])

    def _pass_through(
        self,
        func: Any,
        tensor: Tensor,
        args: Any,
        kwargs: Any,
        *,
        slope: float | Tensor | Callable[[Tensor], Tensor],
        written: bool,
    ) -> Tensor:
        source = tensor.clone() if written else tensor
        with torch.no_grad():
            value = func(source.detach().clone() if written else source.detach(), *args[1:], **kwargs)
            local_slope = slope(value).clamp_min(_LEAK) if callable(slope) else slope
        passed = self._apply_passing(source, value, local_slope)
        return tensor.copy_(passed) if written else passed

    def _apply_passing(self, tensor: Tensor, value: Tensor, slope: float | Tensor) -> Tensor:
        self.used = True
        passed: Tensor = _Passing.apply(tensor, value, slope)
        return passed


def _equality_slope(tensor: Tensor) -> Callable[[Tensor], Tensor]:
    source = tensor.detach().clone()
    return lambda value: (value == source).to(value.dtype)


def _in_place(name: str, args: Any, kwargs: Any) -> bool:
    if "inplace" in kwargs:
        return bool(kwargs["inplace"])
    place = {"relu": 1, "relu6": 1, "hardtanh": 3, "threshold": 3}.get(name)
    return place is not None and len(args) > place and args[place] is True


def _is_integer_cast(args: Any, kwargs: Any) -> bool:
    """Return True if a cast is to an integer type."""
    dtypes = [value for value in (*args[1:], *kwargs.values()) if isinstance(value, torch.dtype)]
    return any(not kind.is_floating_point and not kind.is_complex and kind != torch.bool for kind in dtypes)


def passing(probe: Probe, *, leaky: bool) -> Probe:
    """Return a probe of the same logits whose gradients pass rounding and, if leaky, inactive units."""

    def logits(images: Tensor) -> Tensor:
        with PassingGradients(leaky=leaky):
            answers: Tensor = probe.logits(images)
        return answers

    passed: Probe = ProbeWith(probe, logits)
    return passed


def passing_helps(probe: Probe, images: Tensor, *, leaky: bool) -> bool:
    """Return True if blocked gradients are passed somewhere and the answers stay the same.

    Args:
        probe: The probe.
        images: float32 B×3×H×W in [0, 1], queried twice.
        leaky: As in :class:`PassingGradients`.
    """
    try:
        with seeded(0, probe.device), torch.enable_grad(), PassingGradients(leaky=leaky) as mode:
            logits = probe.logits(images.detach().requires_grad_())
        with seeded(0, probe.device):  # the same draws, where answers do not repeat
            plain = probe.logits(images.detach())
    except Exception:  # noqa: BLE001 - foreign networks may fail in any way; the attack then goes without
        return False
    return mode.used and logits.requires_grad and same_answers(plain.detach(), logits.detach())
