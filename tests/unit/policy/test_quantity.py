# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities, as the kubelet's parser takes them (semantics 3.4, 5.5)."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from vectors import Row, each

from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import (
    Quantity,
    QuantityError,
    add,
    format_binary,
    parse_quantity,
    reserialised,
    same_value,
)

SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2"]
)
NUMBERS = st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?", fullmatch=True)
QUANTITIES = st.builds(lambda number, suffix: parse_quantity(number + suffix), NUMBERS, SUFFIXES)


@each("quantity.json", "text")
def test_vectors(row: Row) -> None:
    if not row["ok"]:
        with pytest.raises(QuantityError) as error:
            parse_quantity(row["text"])
        assert str(error.value) == row["error"]
        return
    quantity = parse_quantity(row["text"])
    assert (str(quantity), str(quantity.value())) == (row["canonical"], row["value"])
    assert str(quantity.as_int64()) == (row["as_int64"] if row["as_int64_ok"] else "None")


@pytest.mark.parametrize("text", ["1.5Gi", "1000m", "1500m", "0.5Gi", "1Pi", "100Ti", "100000Gi"])
def test_whole_amounts_without_an_integer_form(text: str) -> None:
    assert parse_quantity(text).as_int64() is None


@pytest.mark.parametrize(
    ("text", "value"), [("1536Mi", 1610612736), ("1.5G", 1500000000), ("10Ti", 10 << 40), ("10000Gi", 10000 << 30)]
)
def test_amounts_with_one(text: str, value: int) -> None:
    assert parse_quantity(text).as_int64() == value


def test_serialisation_gives_an_integer_form_back() -> None:
    assert str(reserialised(parse_quantity("1.5Gi"))) == "1536Mi"
    assert reserialised(parse_quantity("1.5Gi")).as_int64() == 1536 << 20


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [("1Gi", "512Mi", "1536Mi"), ("0", "1Gi", "1Gi"), ("1Gi", "1", "1073741825"), ("1M", "1Mi", "2048576")],
)
def test_sums(left: str, right: str, total: str) -> None:
    assert str(add(parse_quantity(left), parse_quantity(right))) == total


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0"), (1023, "1023"), (2 << 20, "2Mi"), (1000 << 10, "1000Ki"), (3 << 30, "3Gi")]
)
def test_binary_text(size: int, text: str) -> None:
    assert format_binary(size) == text


@given(QUANTITIES)
def test_canonical_text_means_the_same(quantity: Quantity) -> None:
    assert same_value(parse_quantity(str(quantity)), quantity)


@given(QUANTITIES, QUANTITIES)
def test_sum_does_not_depend_on_the_order(one: Quantity, other: Quantity) -> None:
    assert same_value(add(one, other), add(other, one))
    assert add(one, other).unscaled or same_value(one, Quantity(-other.unscaled, other.exponent))


@given(st.text(max_size=40) | st.from_regex(r"[+-]?[0-9.]{0,400}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,12}", fullmatch=True))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert isinstance(quantity.value(), int)
    assert str(quantity)
    assert text.isascii()
