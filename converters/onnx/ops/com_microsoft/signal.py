"""com.microsoft: Fourier transforms of real signals."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Rfft", domain=COM_MICROSOFT)
def rfft(ctx: TranslationContext, x: Value, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Value:
    """The transform over the last axes."""
    return ctx.emit("RDFT", x, _last_axes(ctx, x, signal_ndim, 0, normalized, onesided))


@translates("Irfft", domain=COM_MICROSOFT)
def irfft(ctx: TranslationContext, x: Value, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Value:
    return ctx.emit("IRDFT", x, _last_axes(ctx, x, signal_ndim, 1, normalized, onesided))


def _last_axes(ctx: TranslationContext, x: Value, count: int, parts: int, normalized: int, onesided: int) -> Value:
    if normalized or not onesided:
        raise OpError(f"normalized is {normalized} and onesided {onesided}, expected 0 and 1")
    end = ctx.rank(x) - parts
    if not 1 <= count <= end:
        raise OpError(f"signal_ndim is {count} for {ctx.fact(x)}")
    return ctx.constant(list(range(end - count, end)))
