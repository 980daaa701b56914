# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Kubernetes quantities: parse, add, canonical text and the integer form that the kubelet insists on.

Rules of `k8s.io/apimachinery/pkg/api/resource` (semantics 3.4, 5.5). Integers only: a value is
`unscaled * 10**exponent`.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

ERR_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
ERR_SUFFIX = "unable to parse quantity's suffix"

BINARY_SI = "BinarySI"
DECIMAL_SI = "DecimalSI"
DECIMAL_EXPONENT = "DecimalExponent"

INT64_MAX = (1 << 63) - 1

_QUANTITY = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)\Z", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)\Z", re.ASCII)
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_TEXT = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_TEXT = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

_NANO = -9
_FAST_DIGITS = 18
# The kubelet reads exponents as int32; nothing real is near this, and 10**exponent must stay computable.
_MAX_EXPONENT = 4096


class QuantityError(ValueError):
    """The text is no quantity; the message is the kubelet's."""


@dataclass(frozen=True)
class Quantity:
    """A parsed quantity, `unscaled * 10**exponent`.

    `fast` is true while the kubelet holds it in its int64 form; only such a value has an integer form (`1.5Gi` has
    none, though it is whole: its value is held as 15 * 10**-1 * 2**30). `text` is the spelling that the parser keeps,
    if it does.
    """

    unscaled: int
    exponent: int = 0
    format: str = DECIMAL_SI
    fast: bool = True
    text: t.Optional[str] = None

    def __str__(self) -> str:
        return self.text if self.text is not None else _canonical(self)

    def is_zero(self) -> bool:
        return self.unscaled == 0

    def ceil(self) -> int:
        """The exact value in whole units, fractions rounded away from zero; not limited to 64 bit."""
        if self.exponent >= 0:
            return int(self.unscaled * 10**self.exponent)
        whole = -(-abs(self.unscaled) // 10**-self.exponent)
        return -whole if self.unscaled < 0 else int(whole)

    def as_int64(self) -> t.Optional[int]:
        """The integer form; None where the kubelet says `could not covert a variable of type Quantity to int64`."""
        if not self.fast or self.exponent < 0:
            return None
        value = self.ceil()
        return value if abs(value) <= INT64_MAX else None

    def value(self) -> int:
        """What the kubelet computes with: rounded up, but wrapped or zeroed where it exceeds int64 (semantics 5.5)."""
        whole = self.ceil()
        if self.fast:
            return whole if abs(whole) <= INT64_MAX else 0
        if self.unscaled < 0 and self.exponent < 0:
            # The kubelet's shortcut for small numbers takes any negative one, however large.
            return int(-(-_int64(self.unscaled) // 10**-self.exponent))
        return _int64(whole)


def parse_quantity(text: str) -> Quantity:
    """Parse `128Mi`, `1.5G`, `1e3`.

    :raises QuantityError: with the kubelet's text
    """
    match = _QUANTITY.match(text)
    if not text or match is None:
        raise QuantityError(ERR_FORMAT)
    if text == "0":
        return Quantity(0, text=text)
    sign, _zeros, num, denom, suffix = (part or "" for part in match.groups())
    base, exponent, fmt = _interpret(suffix)
    digits = _Digits(num or "0", denom, -1 if sign == "-" else 1)
    if base == 2:
        return _parse_binary(text, digits, exponent)
    return _parse_decimal(text, digits, exponent, fmt)


@dataclass(frozen=True)
class _Digits:
    num: str
    denom: str
    sign: int

    @property
    def unscaled(self) -> int:
        return self.sign * int(self.num + self.denom)


def _interpret(suffix: str) -> t.Tuple[int, int, str]:
    if suffix in _DECIMAL_SUFFIXES:
        return 10, _DECIMAL_SUFFIXES[suffix], DECIMAL_SI
    if suffix in _BINARY_SUFFIXES:
        return 2, _BINARY_SUFFIXES[suffix], BINARY_SI
    match = _EXPONENT.match(suffix)
    if match is None or len(match.group(1)) > 6 or abs(int(match.group(1))) > _MAX_EXPONENT:
        raise QuantityError(ERR_SUFFIX)
    return 10, int(match.group(1)), DECIMAL_EXPONENT


def _parse_decimal(text: str, digits: _Digits, exponent: int, fmt: str) -> Quantity:
    scale = exponent - len(digits.denom)
    shifted = digits.num + digits.denom
    if len(shifted) <= _FAST_DIGITS and scale >= _NANO:
        kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
        return Quantity(digits.unscaled, scale, fmt, True, text if kept else None)
    return _slow(digits.unscaled, scale, fmt)


def _parse_binary(text: str, digits: _Digits, power: int) -> Quantity:
    # The kubelet's own estimate of the decimal digits that are left beside 2**power.
    precision = 15 - len(digits.num) - (power * 3) // 10 - 1
    if not digits.denom and precision >= 0:
        kept = (abs(digits.unscaled) & 7) != 0
        return Quantity(digits.unscaled << power, 0, BINARY_SI, True, text if kept else None)
    slow = _slow(digits.unscaled << power, -len(digits.denom), BINARY_SI)
    if abs(slow.ceil()) > INT64_MAX:
        return Quantity(digits.sign * INT64_MAX, 0, BINARY_SI, False)
    if 0 < abs(slow.unscaled) < 10**-slow.exponent:
        return Quantity(slow.unscaled, slow.exponent, DECIMAL_SI, False)
    return slow


def _slow(unscaled: int, exponent: int, fmt: str) -> Quantity:
    """The arbitrary precision form: non-zero values are rounded up to whole nano units."""
    if unscaled and exponent < _NANO:
        nano = -(-abs(unscaled) // 10 ** (_NANO - exponent))
        return Quantity(nano if unscaled > 0 else -nano, _NANO, fmt, False)
    if unscaled:
        return Quantity(unscaled * 10 ** (exponent - _NANO), _NANO, fmt, False)
    return Quantity(0, 0, fmt, False)


def add(left: Quantity, right: Quantity) -> Quantity:
    """`left.Add(right)`: the format is left's unless left is zero."""
    fmt = right.format if left.is_zero() else left.format
    exponent = min(left.exponent, right.exponent)
    unscaled = left.unscaled * 10 ** (left.exponent - exponent) + right.unscaled * 10 ** (right.exponent - exponent)
    fast = left.fast and right.fast and abs(unscaled) <= INT64_MAX
    return Quantity(unscaled, exponent, fmt, fast)


def same_value(left: Quantity, right: Quantity) -> bool:
    """Numeric equality, whatever the spelling."""
    exponent = min(left.exponent, right.exponent)
    return bool(left.unscaled * 10 ** (left.exponent - exponent) == right.unscaled * 10 ** (right.exponent - exponent))


def reserialised(quantity: Quantity) -> Quantity:
    """The quantity after one trip through JSON, as those of the main file make with --config-dir (semantics 3.4)."""
    return parse_quantity(str(quantity))


def format_binary(value: int) -> str:
    """Canonical text of a number of bytes in BinarySI: 2097152 gives `2Mi`."""
    return _canonical(Quantity(value, 0, BINARY_SI))


def _int64(number: int) -> int:
    """Go's big.Int.Int64: the low 64 bits of the magnitude, negated for a negative number."""
    low = abs(number) & ((1 << 64) - 1)
    signed = low - (1 << 64) if low > INT64_MAX else low
    return -signed if number < 0 and signed != -(1 << 63) else signed


def _canonical(quantity: Quantity) -> str:
    if quantity.is_zero():
        return "0"
    if quantity.format == BINARY_SI and _is_whole(quantity) and abs(quantity.ceil()) >= 1024:
        number, power = _strip_factors(quantity.ceil(), 1024)
        return "{0}{1}".format(number, _BINARY_TEXT.get(power * 10, ""))
    number, times = _strip_factors(quantity.unscaled, 10)
    exponent = quantity.exponent + times
    number *= 10 ** (exponent % 3)
    exponent -= exponent % 3
    if quantity.format == DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    return "{0}{1}".format(number, _DECIMAL_TEXT.get(exponent, ""))


def _is_whole(quantity: Quantity) -> bool:
    return quantity.exponent >= 0 or quantity.unscaled % 10**-quantity.exponent == 0


def _strip_factors(number: int, factor: int) -> t.Tuple[int, int]:
    times = 0
    while number % factor == 0:
        number //= factor
        times += 1
    return number, times
